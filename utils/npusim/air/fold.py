"""Index arithmetic done while copying code: what is known becomes a number, affine expressions become plain arithmetic.

A :class:`Scalars` remembers for the values of the code being copied either the number they are known to be, or the value
that stands for them in the copy.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from npusim.air.affine import AffineExpr, AffineMap, IntegerSet
from npusim.engine import arith
from npusim.errors import UnsupportedError
from npusim.ir import Loc, Op, Value

_PREDICATES = {False: 5, True: 0}  # >= 0, == 0
_NAMES = {"+": "addi", "*": "muli", "floordiv": "floordivsi", "ceildiv": "ceildivsi"}
Known = int | Any
"""An index as a Python int, another scalar as a numpy scalar."""


class Scalars:
    """The scalars of one copy. ``out`` is the block being written: its list of operations."""

    def __init__(self) -> None:
        self.known: dict[Value, Known] = {}
        self.copies: dict[Value, Value] = {}
        self.out: list[Op] = []

    def bind(self, value: Value, to: int | Value) -> None:
        """Let a value be a number, or be another value."""
        if isinstance(to, Value):
            if (number := self.number(to)) is not None:
                self.known[value] = number
            self.copies[value] = self.copies.get(to, to)
        else:
            self.known[value] = to

    def number(self, value: Value) -> Known | None:
        """What a value is known to be, else None."""
        if value in self.known:
            return self.known[value]
        scalar = isinstance(value.type, str) and not value.type.startswith("vector")
        if scalar and isinstance(value.owner, Op) and value.owner.name == "arith.constant":
            self.known[value] = arith.constant(value.owner)
        return self.known.get(value)

    def index(self, entry: int | Value) -> int | Value:
        """An index: a Python int if it is known, else the value in the copy."""
        if isinstance(entry, int):
            return entry
        number = self.number(entry)
        return self.value(entry) if number is None else int(number)

    def value(self, value: Value) -> Value:
        """The value in the copy; a known number becomes a constant."""
        number = self.number(value)
        if number is not None:
            return constant(number, str(value.type))
        return self.copies.get(value, value)

    def write(self, op: Op) -> Value:
        """Append an operation with one result to the copy."""
        self.out.append(op)
        return op.result

    def scalar(self, op: Op) -> None:
        """Copy a scalar operation, or do it at once if its operands are known."""
        numbers = [self.number(v) for v in op.operands]
        if all(n is not None for n in numbers) and isinstance(op.result.type, str) and "vector" not in op.result.type:
            self.known[op.result] = _compute(op, numbers)
            return
        made = Op(op.name, tuple(self.value(v) for v in op.operands), dict(op.attrs), loc=op.loc)
        made.results = [Value(r.type, made) for r in op.results]
        self.out.append(made)
        self.copies.update(zip(op.results, made.results, strict=True))

    def apply(self, op: Op) -> None:
        """``affine.apply``."""
        of: AffineMap = op.attrs["map"]
        self.bind(op.result, self.affine(of.results[0], op.operands[: of.n_dims], op.operands[of.n_dims :], op.loc))

    def affine(self, expr: AffineExpr, dims: Sequence[Value], symbols: Sequence[Value], loc: Loc) -> int | Value:
        """An affine expression over values: a number, or a value computed in the copy."""
        if expr.kind == "c":
            return expr.value
        if expr.kind in "ds":
            return self.index((dims if expr.kind == "d" else symbols)[expr.value])
        a, b = (self.affine(part, dims, symbols, loc) for part in expr.parts)
        if isinstance(a, int) and isinstance(b, int):
            return AffineExpr(expr.kind, parts=(AffineExpr("c", a), AffineExpr("c", b))).at((), ())
        if expr.kind == "mod":
            whole = self.arithmetic("floordivsi", a, b, loc)
            return self.arithmetic("subi", a, self.arithmetic("muli", whole, b, loc), loc)
        return self.arithmetic(_NAMES[expr.kind], a, b, loc)

    def arithmetic(self, name: str, a: int | Value, b: int | Value, loc: Loc) -> Value:
        """An operation on two indices in the copy."""
        operands = [constant(x, "index") if isinstance(x, int) else x for x in (a, b)]
        return self.write(Op.make(f"arith.{name}", operands, ("index",), loc))

    def add(self, a: int | Value, b: int | Value, loc: Loc) -> int | Value:
        """The sum of two indices."""
        if isinstance(a, int) and isinstance(b, int):
            return a + b
        if a == 0 or b == 0:
            return b if isinstance(a, int) else a
        return self.arithmetic("addi", a, b, loc)

    def times(self, a: int | Value, b: int | Value, loc: Loc) -> int | Value:
        """The product of two indices."""
        if isinstance(a, int) and isinstance(b, int):
            return a * b
        if a == 1 or b == 1:
            return b if isinstance(a, int) else a
        return 0 if 0 in (x for x in (a, b) if isinstance(x, int)) else self.arithmetic("muli", a, b, loc)

    def inside(self, of: IntegerSet, operands: Sequence[Value], loc: Loc) -> bool | Value:
        """Whether operands lie in a set: True, False, or a condition computed in the copy."""
        dims, symbols = operands[: of.n_dims], operands[of.n_dims :]
        unknown: list[Value] = []
        for expr, equal in zip(of.constraints, of.equal, strict=True):
            side = self.affine(expr, dims, symbols, loc)
            if not isinstance(side, int):
                zero = constant(0, "index")
                unknown.append(
                    self.write(Op.make("arith.cmpi", (side, zero), ("i1",), loc, predicate=_PREDICATES[equal]))
                )
            elif side != 0 if equal else side < 0:
                return False
        if not unknown:
            return True
        both = unknown[0]
        for other in unknown[1:]:
            both = self.write(Op.make("arith.andi", (both, other), ("i1",), loc))
        return both


def constant(number: Known, kind: str) -> Value:
    """A constant that belongs to no block; the core compiler writes it where it is used."""
    plain = number.item() if isinstance(number, np.generic) else number
    return Op.make("arith.constant", (), (kind,), value=plain).result


def _compute(op: Op, numbers: Sequence[Known]) -> Known:
    if op.name not in arith.SERVED:
        raise UnsupportedError(f"operation {op.name} at {op.loc} is not served")
    names = [f"a{i}" for i in range(len(numbers))]
    with np.errstate(all="ignore"):
        value = eval(arith.expression(op, names), arith.HELPERS, dict(zip(names, numbers, strict=True)))
    return np.bool_(value) if op.result.type == "i1" else value

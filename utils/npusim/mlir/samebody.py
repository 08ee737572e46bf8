"""Whether two core bodies or host sequences are the same, operation by operation, whatever their values are called."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from npusim.graph import Buffer, Lock
from npusim.ir import UNKNOWN, Block, Loc, Op, Region, Value
from npusim.mlir.schema import normalise
from npusim.types import numpy_dtype


class Difference(Exception):
    """The first difference; the message says where and what both sides have."""


class Bodies:
    """One comparison of two regions. ``locks`` pairs the locks of the two designs; buffers pair by name."""

    def __init__(self, where: str, sides: tuple[str, str], locks: dict[Lock, Lock]) -> None:
        self.where, self.sides, self.locks = where, sides, locks
        self.values: dict[Value, Value] = {}
        self.blocks: dict[Block, Block] = {}
        self.count = 0  # operations compared, to say which one differs

    def differ(self, what: str, a: object, b: object) -> None:
        """Raise the Difference if ``a`` and ``b`` differ."""
        if a != b:
            first, second = self.sides
            raise Difference(f"{self.where}, {what}: {a} in {first}, {b} in {second}")

    def regions(self, a: Region, b: Region) -> None:
        """Compare two regions; Difference if they are not the same."""
        self.differ(f"blocks after operation {self.count}", len(a.blocks), len(b.blocks))
        for x, y in zip(a.blocks, b.blocks):
            self.blocks[x] = y
            types = [[str(v.type) for v in block.args] for block in (x, y)]
            self.differ(f"block arguments after operation {self.count}", *(f"({', '.join(t)})" for t in types))
            self._bind(f"block arguments after operation {self.count}", x.args, y.args)
        for x, y in zip(a.blocks, b.blocks):
            self._block(_without_end(x.ops), _without_end(y.ops))

    def _block(self, a: Sequence[Op], b: Sequence[Op]) -> None:
        for x, y in zip(a, b):
            self.count += 1
            self._op(x, y)
        for extra, mine in ((a, True), (b, False)):
            if len(extra) > min(len(a), len(b)):
                op = extra[min(len(a), len(b))]
                shown = (describe(op), "nothing more") if mine else ("nothing more", describe(op))
                self.differ(f"operation {self.count + 1}", *shown)

    def _op(self, a: Op, b: Op) -> None:
        what = f"operation {self.count}"
        if a.name != b.name:
            self.differ(what, describe(a), describe(b))
        what = f"{what}, {a.name}{_at(a.loc, b.loc)}"
        self._attributes(what, a, b)
        self.differ(f"{what}: number of operands", len(a.operands), len(b.operands))
        for i, (v, w) in enumerate(zip(a.operands, b.operands)):
            self._operand(f"{what}: operand {i}", v, w)
        types = [", ".join(str(v.type) for v in op.results) or "nothing" for op in (a, b)]
        self.differ(f"{what}: type of the result", *types)
        self._bind(f"{what}: result", a.results, b.results)
        inner = [[r for r in op.regions if r.blocks] for op in (a, b)]
        self.differ(f"{what}: number of regions", len(inner[0]), len(inner[1]))
        for x, y in zip(*inner):
            self.regions(x, y)
        self._successors(what, a, b)

    def _attributes(self, what: str, a: Op, b: Op) -> None:
        first, second = attributes(a), attributes(b)
        for key in sorted(first.keys() | second.keys()):
            self.differ(f"{what}: {key}", first.get(key, "none"), second.get(key, "none"))

    def _operand(self, what: str, a: Value, b: Value) -> None:
        things = [v.owner if isinstance(v.owner, (Buffer, Lock)) else None for v in (a, b)]
        if things == [None, None]:
            same = self.values.setdefault(a, b) is b  # a value used before its definition is bound by its first use
        elif isinstance(things[0], Lock) and isinstance(things[1], Lock):
            same = self.locks.get(things[0]) is things[1]
        else:
            same = type(things[0]) is type(things[1]) and _name(things[0]) == _name(things[1])
        if not same:
            self.differ(what, _value(a), _value(b) + (" (another one)" if _value(a) == _value(b) else ""))

    def _bind(self, what: str, a: Sequence[Value], b: Sequence[Value]) -> None:
        for v, w in zip(a, b):
            if self.values.setdefault(v, w) is not w:
                self.differ(f"{what} as used above", "this value", "another value")

    def _successors(self, what: str, a: Op, b: Op) -> None:
        self.differ(f"{what}: number of successors", len(a.successors), len(b.successors))
        for i, ((x, xs), (y, ys)) in enumerate(zip(a.successors, b.successors)):
            if self.blocks.get(x) is not y:
                self.differ(f"{what}: successor {i}", "one block", "another block")
            self.differ(f"{what}: operands of successor {i}", len(xs), len(ys))
            for v, w in zip(xs, ys):
                self._operand(f"{what}: an operand of successor {i}", v, w)


def attributes(op: Op) -> dict[str, Any]:
    """The attributes of an operation in a form that compares: defaults settled, constants rounded to their type."""
    found = {key: _settled(v) for key, v in normalise(op.name, op.attrs).items() if v is not None}
    if (
        op.name == "arith.constant"
        and isinstance(op.result.type, str)
        and not isinstance(op.attrs["value"], np.ndarray)
    ):
        found["value"] = _rounded(op.attrs["value"], op.result.type)
    return found


def _rounded(value: Any, element: str) -> Any:
    dtype = numpy_dtype(element)
    if "f" in element:
        rounded = float(np.array(value).astype(dtype).astype(np.float64))
        return "NaN" if rounded != rounded else rounded
    bits = 8 * dtype.itemsize if element != "i1" else 1
    wrapped = int(value) & ((1 << bits) - 1)
    return wrapped - (1 << bits) if bits > 1 and wrapped >> (bits - 1) else wrapped


def _settled(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return (value.shape, str(value.dtype), value.tobytes())
    if isinstance(value, (list, tuple)):
        return tuple(_settled(v) for v in value)
    return value.item() if isinstance(value, np.generic) else value


def _without_end(ops: Sequence[Op]) -> Sequence[Op]:
    """Without the terminator that a frontend may leave out."""
    return ops[:-1] if ops and ops[-1].name == "aie.end" else ops


def describe(op: Op) -> str:
    """An operation in a few words: its name, what tells it from its like, and its line."""
    told = ", ".join(f"{key} {value}" for key, value in attributes(op).items() if isinstance(value, (int, str)))
    place = f" ({op.loc})" if op.loc != UNKNOWN else ""
    return f"{op.name}{f' with {told}' if told else ''}{place}"


def _value(value: Value) -> str:
    owner = value.owner
    if isinstance(owner, Buffer):
        return f"buffer {owner.name!r}"
    if isinstance(owner, Lock):
        return f"lock {owner.name!r}" if owner.name else f"the lock of {owner.tile}"
    if isinstance(owner, Op):
        return f"the result of {describe(owner)}"
    return f"argument {owner.args.index(value)} of its block" if isinstance(owner, Block) else "a value"


def _name(thing: Buffer | Lock | None) -> str | None:
    return thing.name if thing is not None else None


def _at(a: Loc, b: Loc) -> str:
    places = [str(loc) for loc in (a, b) if loc != UNKNOWN]
    return f" ({', '.join(dict.fromkeys(places))})" if places else ""

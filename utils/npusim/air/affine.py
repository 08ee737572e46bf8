"""Affine expressions, maps and integer sets, with the names that MLIR's Python bindings give them.

An expression over dimensions ``d0, d1, ...`` and symbols ``s0, s1, ...``; division and remainder round towards minus
infinity. ``str`` gives MLIR's text, :func:`parse_map` and :func:`parse_set` read it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from npusim.errors import DesignError

_PYTHON = {
    "+": "({} + {})",
    "*": "({} * {})",
    "mod": "({} % {})",
    "floordiv": "({} // {})",
    "ceildiv": "(-(-{} // {}))",
}
_STRENGTH = {"+": 1, "*": 2, "mod": 2, "floordiv": 2, "ceildiv": 2}


@dataclass(frozen=True)
class AffineExpr:
    """One node: ``kind`` is ``d``, ``s`` (with ``position``), ``c`` (with ``value``) or an operator with two ``parts``."""

    kind: str
    value: int = 0
    parts: tuple[AffineExpr, ...] = ()

    @property
    def position(self) -> int:
        """Which dimension or symbol it is."""
        return self.value

    @staticmethod
    def get_add(lhs: Any, rhs: Any) -> AffineExpr:
        return _make("+", lhs, rhs)

    @staticmethod
    def get_mul(lhs: Any, rhs: Any) -> AffineExpr:
        return _make("*", lhs, rhs)

    @staticmethod
    def get_mod(lhs: Any, rhs: Any) -> AffineExpr:
        return _make("mod", lhs, rhs)

    @staticmethod
    def get_floor_div(lhs: Any, rhs: Any) -> AffineExpr:
        return _make("floordiv", lhs, rhs)

    @staticmethod
    def get_ceil_div(lhs: Any, rhs: Any) -> AffineExpr:
        return _make("ceildiv", lhs, rhs)

    @staticmethod
    def get_constant(value: int, context: Any = None) -> AffineExpr:
        return AffineExpr("c", int(value))

    @staticmethod
    def get_dim(position: int, context: Any = None) -> AffineExpr:
        return AffineExpr("d", int(position))

    @staticmethod
    def get_symbol(position: int, context: Any = None) -> AffineExpr:
        return AffineExpr("s", int(position))

    def __add__(self, other: Any) -> AffineExpr:
        return _make("+", self, other)

    def __radd__(self, other: Any) -> AffineExpr:
        return _make("+", other, self)

    def __sub__(self, other: Any) -> AffineExpr:
        return _make("+", self, _make("*", other, -1))

    def __rsub__(self, other: Any) -> AffineExpr:
        return _make("+", other, _make("*", self, -1))

    def __mul__(self, other: Any) -> AffineExpr:
        return _make("*", self, other)

    def __rmul__(self, other: Any) -> AffineExpr:
        return _make("*", other, self)

    def __mod__(self, other: Any) -> AffineExpr:
        return _make("mod", self, other)

    def python(self, dims: Sequence[str], symbols: Sequence[str]) -> str:
        """The expression in Python over the given names."""
        if self.kind == "c":
            return str(self.value)
        if self.kind in "ds":
            return (dims if self.kind == "d" else symbols)[self.value]
        return _PYTHON[self.kind].format(*(part.python(dims, symbols) for part in self.parts))

    def at(self, dims: Sequence[int], symbols: Sequence[int]) -> int:
        """Its value."""
        if self.kind == "c":
            return self.value
        if self.kind in "ds":
            return (dims if self.kind == "d" else symbols)[self.value]
        return _fold(self.kind, *(part.at(dims, symbols) for part in self.parts))

    def __str__(self) -> str:
        if self.kind == "c":
            return str(self.value)
        if self.kind in "ds":
            return f"{self.kind}{self.value}"
        left, right = self.parts
        if self.kind == "+" and right.kind == "c" and right.value < 0:
            return f"{left} - {-right.value}"
        if self.kind == "+" and right.kind == "*" and right.parts[1] == AffineExpr("c", -1):
            return f"{left} - {_inside(right.parts[0], 2)}"
        if self.kind == "*" and right == AffineExpr("c", -1):
            return f"-{_inside(left, 3)}"
        strength = _STRENGTH[self.kind]
        return f"{_inside(left, strength)} {self.kind} {_inside(right, strength + 1)}"


def _inside(expr: AffineExpr, strength: int) -> str:
    return f"({expr})" if expr.parts and _STRENGTH[expr.kind] < strength else str(expr)


def _fold(kind: str, a: int, b: int) -> int:
    if kind in ("mod", "floordiv", "ceildiv") and b <= 0:
        raise DesignError(f"an affine {kind} by {b}: the divisor is a positive constant")
    results = {"+": lambda: a + b, "*": lambda: a * b, "mod": lambda: a % b, "floordiv": lambda: a // b}
    return results.get(kind, lambda: -(-a // b))()


def _make(kind: str, lhs: Any, rhs: Any) -> AffineExpr:
    """A node, folded as MLIR folds it: constants, + 0, * 1, a constant on the right."""
    a, b = (x if isinstance(x, AffineExpr) else AffineExpr("c", int(x)) for x in (lhs, rhs))
    if a.kind == "c" and b.kind == "c":
        return AffineExpr("c", _fold(kind, a.value, b.value))
    if a.kind == "c" and kind in "+*":
        a, b = b, a
    if b.kind == "c" and ((kind == "+" and b.value == 0) or (kind in ("*", "floordiv", "ceildiv") and b.value == 1)):
        return a
    if b.kind == "c" and a.kind == kind and kind in "+*" and a.parts[1].kind == "c":
        return _make(kind, a.parts[0], _fold(kind, a.parts[1].value, b.value))
    return AffineExpr(kind, parts=(a, b))


class AffineConstantExpr(AffineExpr):
    """``AffineConstantExpr.get(3)``."""

    @staticmethod
    def get(value: int, context: Any = None) -> AffineExpr:
        return AffineExpr.get_constant(value)


class AffineDimExpr(AffineExpr):
    """``AffineDimExpr.get(0)`` is ``d0``."""

    @staticmethod
    def get(position: int, context: Any = None) -> AffineExpr:
        return AffineExpr.get_dim(position)


class AffineSymbolExpr(AffineExpr):
    """``AffineSymbolExpr.get(0)`` is ``s0``."""

    @staticmethod
    def get(position: int, context: Any = None) -> AffineExpr:
        return AffineExpr.get_symbol(position)


@dataclass(frozen=True)
class AffineMap:
    """``affine_map<(d0)[s0] -> (d0 + s0)>``."""

    n_dims: int
    n_symbols: int
    results: tuple[AffineExpr, ...]

    @classmethod
    def get(cls, dim_count: int, symbol_count: int, exprs: Sequence[AffineExpr], context: Any = None) -> AffineMap:
        return cls(int(dim_count), int(symbol_count), tuple(exprs))

    @classmethod
    def get_identity(cls, n_dims: int, context: Any = None) -> AffineMap:
        return cls(n_dims, 0, tuple(AffineExpr("d", i) for i in range(n_dims)))

    @classmethod
    def get_minor_identity(cls, n_dims: int, n_results: int, context: Any = None) -> AffineMap:
        return cls(n_dims, 0, tuple(AffineExpr("d", i) for i in range(n_dims - n_results, n_dims)))

    def __str__(self) -> str:
        return f"affine_map<{_header(self.n_dims, self.n_symbols)} -> ({', '.join(map(str, self.results))})>"


@dataclass(frozen=True)
class IntegerSet:
    """``affine_set<()[s0] : (s0 - 1 == 0, s0 >= 0)>``; ``equal`` says for each constraint whether it is an equality."""

    n_dims: int
    n_symbols: int
    constraints: tuple[AffineExpr, ...]
    equal: tuple[bool, ...] = field(default=())

    @classmethod
    def get(
        cls, num_dims: int, num_symbols: int, exprs: Sequence[AffineExpr], eq_flags: Sequence[bool], context: Any = None
    ) -> IntegerSet:
        if len(exprs) != len(eq_flags):
            raise DesignError(f"an integer set of {len(exprs)} constraints needs as many eq_flags, got {len(eq_flags)}")
        return cls(int(num_dims), int(num_symbols), tuple(exprs), tuple(map(bool, eq_flags)))

    def __str__(self) -> str:
        parts = (f"{e} {'==' if q else '>='} 0" for e, q in zip(self.constraints, self.equal, strict=True))
        return f"affine_set<{_header(self.n_dims, self.n_symbols)} : ({', '.join(parts)})>"


def _header(dims: int, symbols: int) -> str:
    named = f"[{', '.join(f's{i}' for i in range(symbols))}]" if symbols else ""
    return f"({', '.join(f'd{i}' for i in range(dims))}){named}"


_FORM = re.compile(r"affine_(map|set)<\(([^)]*)\)(?:\[([^\]]*)\])?\s*(?:->|:)\s*\((.*)\)>\s*", re.DOTALL)
_TOKEN = re.compile(r"\s*(\d+|[a-z]\w*|[-+*()])")


def parse_map(text: str) -> AffineMap:
    """An ``affine_map<...>``."""
    dims, symbols, parts = _split(text, "map")
    return AffineMap(len(dims), len(symbols), tuple(_Parser(p, dims, symbols).whole() for p in parts))


def parse_set(text: str) -> IntegerSet:
    """An ``affine_set<...>``."""
    dims, symbols, parts = _split(text, "set")
    equal = tuple("==" in part for part in parts)
    sides = [re.split(r"==|>=", part) for part in parts]
    exprs = [_Parser(a, dims, symbols).whole() - _Parser(b, dims, symbols).whole() for a, b in sides]
    return IntegerSet(len(dims), len(symbols), tuple(exprs), equal)


def _split(text: str, kind: str) -> tuple[list[str], list[str], list[str]]:
    match = _FORM.fullmatch(text.strip())
    if match is None or match.group(1) != kind:
        raise DesignError(f"{text!r} is no affine {kind}")
    dims, symbols = ([n.strip() for n in (match.group(i) or "").split(",") if n.strip()] for i in (2, 3))
    return dims, symbols, [part for part in _top_level(match.group(4)) if part.strip()]


def _top_level(text: str) -> list[str]:
    parts, depth = [""], 0
    for char in text:
        depth += (char == "(") - (char == ")")
        if char == "," and not depth:
            parts.append("")
        else:
            parts[-1] += char
    return parts


class _Parser:
    """Recursive descent over one expression."""

    def __init__(self, text: str, dims: list[str], symbols: list[str]) -> None:
        self.text, self.tokens = text, _TOKEN.findall(text)
        self.dims, self.symbols = dims, symbols

    def whole(self) -> AffineExpr:
        expr = self.sum()
        if self.tokens:
            raise DesignError(f"{self.text!r} is no affine expression (at {self.tokens[0]!r})")
        return expr

    def sum(self) -> AffineExpr:
        expr = self.product()
        while self.tokens and self.tokens[0] in "+-":
            expr = expr + self.product() if self.tokens.pop(0) == "+" else expr - self.product()
        return expr

    def product(self) -> AffineExpr:
        expr = self.atom()
        while self.tokens and self.tokens[0] in ("*", "mod", "floordiv", "ceildiv"):
            expr = _make(self.tokens.pop(0), expr, self.atom())
        return expr

    def atom(self) -> AffineExpr:
        token = self.tokens.pop(0) if self.tokens else ""
        if token == "-":
            return self.atom() * -1
        if token == "(":
            expr = self.sum()
            self.tokens.pop(0)
            return expr
        if token.isdigit():
            return AffineExpr("c", int(token))
        for kind, names in (("d", self.dims), ("s", self.symbols)):
            if token in names:
                return AffineExpr(kind, names.index(token))
        raise DesignError(f"{self.text!r} is no affine expression (at {token!r})")

"""Index arithmetic on tile coordinates: linear forms, which become one ``affine.apply`` each."""

from __future__ import annotations

from typing import Any

from npusim.air.affine import AffineConstantExpr, AffineExpr, AffineMap, AffineSymbolExpr
from npusim.errors import UnsupportedError
from npusim.frontends.air.dialect_scf import apply
from npusim.frontends.tracing import DesignTypeError


class Leaf:
    """A coordinate or a loop's variable."""

    def __init__(self, value: Any, name: str) -> None:
        self.value, self.name = value, name


class IndexExpr:
    """A sum of coordinates, each times a number, and a number."""

    def __init__(self, terms: dict[Leaf, int] | None = None, const: int = 0) -> None:
        self.terms = {leaf: n for leaf, n in (terms or {}).items() if n}
        self.const = int(const)

    @staticmethod
    def leaf(value: Any, name: str) -> IndexExpr:
        """A coordinate by itself."""
        return IndexExpr({Leaf(value, name): 1})

    def _plus(self, other: Any, sign: int) -> IndexExpr:
        more = coerce_index(other)
        terms = dict(self.terms)
        for leaf, n in more.terms.items():
            terms[leaf] = terms.get(leaf, 0) + sign * n
        return IndexExpr(terms, self.const + sign * more.const)

    def __add__(self, other: Any) -> IndexExpr:
        return self._plus(other, 1)

    __radd__ = __add__

    def __sub__(self, other: Any) -> IndexExpr:
        return self._plus(other, -1)

    def __rsub__(self, other: Any) -> IndexExpr:
        return coerce_index(other)._plus(self, -1)

    def __neg__(self) -> IndexExpr:
        return self * -1

    def __mul__(self, other: Any) -> IndexExpr:
        one, two = self, coerce_index(other)
        if one.terms and two.terms:
            raise DesignTypeError(f"{one} * {two} is no affine index: at most one factor may depend on a coordinate")
        if two.terms:
            one, two = two, one
        return IndexExpr({leaf: n * two.const for leaf, n in one.terms.items()}, one.const * two.const)

    __rmul__ = __mul__

    def __floordiv__(self, other: Any) -> IndexExpr:
        return self._divided(other, "//")

    def __mod__(self, other: Any) -> IndexExpr:
        return self._divided(other, "%")

    def _divided(self, other: Any, sign: str) -> IndexExpr:
        by = coerce_index(other)
        if self.terms or by.terms:
            raise UnsupportedError(f"{sign} of a coordinate of air.api is not served")
        return IndexExpr({}, self.const // by.const if sign == "//" else self.const % by.const)

    def as_const(self) -> int | None:
        """The number, None if it depends on a coordinate."""
        return None if self.terms else self.const

    def materialize(self) -> Any:
        """An int, or the value of an ``affine.apply``."""
        if not self.terms:
            return self.const
        made: AffineExpr | None = None
        for i, n in enumerate(self.terms.values()):
            part: AffineExpr = AffineSymbolExpr.get(i)
            if n != 1:
                part = AffineExpr.get_mul(part, AffineConstantExpr.get(n))
            made = part if made is None else AffineExpr.get_add(made, part)
        assert made is not None
        if self.const:
            made = AffineExpr.get_add(made, AffineConstantExpr.get(self.const))
        return apply(AffineMap.get(0, len(self.terms), [made]), [leaf.value for leaf in self.terms])

    def __repr__(self) -> str:
        parts = [leaf.name if n == 1 else f"{n}*{leaf.name}" for leaf, n in self.terms.items()]
        return " + ".join([*parts, *([str(self.const)] if self.const or not parts else [])])


def coerce_index(value: Any) -> IndexExpr:
    """An int, a symbol or an index as an index."""
    if isinstance(value, IndexExpr):
        return value
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise DesignTypeError(f"{value!r} ({type(value).__name__}) is no index")
    return IndexExpr({}, value.__index__())

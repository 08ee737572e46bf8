"""The ``arith`` dialect: operations as classes (``AddIOp(a, b)``, which stands for its result) and as functions (``addi``)."""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum
from typing import Any

from npusim.frontends import operators as ops
from npusim.frontends.air.attributes import plain
from npusim.frontends.air.types import Type
from npusim.frontends.air.values import ScalarOp, emit, plain_type, value_of, wrap
from npusim.frontends.control import refuse_placement
from npusim.frontends.iron import dialects_arith as plain_arith
from npusim.frontends.tracing import DesignTypeError

CmpIPredicate = IntEnum("CmpIPredicate", dict(plain_arith.CMPI))  # type: ignore[misc]
CmpFPredicate = IntEnum(  # type: ignore[misc]
    "CmpFPredicate", {(n.upper() if n in ("true", "false") else n): i for n, i in plain_arith.CMPF.items()}
)


class ConstantOp(ScalarOp):
    """``ConstantOp(type, value)``."""

    def __init__(self, result: Any, value: Any, *, loc: Any = None, ip: Any = None) -> None:
        refuse_placement(loc, ip)
        super().__init__(ops.constant(plain(value), str(plain_type(result, "a constant"))).owner)

    @classmethod
    def create_index(cls, value: int, *, loc: Any = None, ip: Any = None) -> ConstantOp:
        """An index constant."""
        from npusim.frontends.air.types import IndexType

        return cls(IndexType.get(), value, loc=loc, ip=ip)


def constant(result: Any, value: Any = None, *, loc: Any = None, ip: Any = None) -> Any:
    """``constant(type, value)``, or a Python number alone (i32 or f32)."""
    refuse_placement(loc, ip)
    if value is None:
        return plain_arith.constant(result)
    if isinstance(value, Type):
        result, value = value, result
    return ConstantOp(result, value)


def _scalar(x: Any, what: str) -> Any:
    """An operand as a traced scalar; a Python number is none, as in the bindings."""
    if isinstance(x, (int, float)):
        raise DesignTypeError(
            f"{what} needs values, got the number {x!r}: make it one with arith.ConstantOp(type, {x!r})"
        )
    return wrap(value_of(x, what))


def _same(name: str, a: Any, b: Any) -> None:
    kinds = [str(x.value.type) for x in (a, b)]
    if kinds[0] != kinds[1]:
        raise DesignTypeError(f"arith.{name} needs two operands of one type, got {kinds[0]} and {kinds[1]}")


def _vector(kind: Any) -> bool:
    return str(kind).startswith("vector")


def _pair(name: str) -> Callable[[Any, Any], Any]:
    """The operation on two operands of one type."""
    function = plain_arith.NAMES[name]

    def write(lhs: Any, rhs: Any) -> Any:
        a, b = _scalar(lhs, f"arith.{name}"), _scalar(rhs, f"arith.{name}")
        _same(name, a, b)
        kind = str(a.value.type)
        return emit(f"arith.{name}", (a.value, b.value), (kind,)) if _vector(kind) else function(a, b).owner

    return write


def _binary(name: str, title: str) -> tuple[type[ScalarOp], Callable[..., Any]]:
    write = _pair(name)

    class Binary(ScalarOp):
        def __init__(self, lhs: Any, rhs: Any, *, results: Any = None, loc: Any = None, ip: Any = None) -> None:
            refuse_placement(loc, ip)
            super().__init__(write(lhs, rhs))

    def function(lhs: Any, rhs: Any, *, results: Any = None, loc: Any = None, ip: Any = None) -> Any:
        refuse_placement(loc, ip)
        return Binary(lhs, rhs)

    return _named(Binary, function, name, title)


def _conversion(name: str, title: str) -> tuple[type[ScalarOp], Callable[..., Any]]:
    convert = plain_arith.NAMES[name]

    def write(out: Any, in_: Any) -> Any:
        kind, x = str(plain_type(out, title)), _scalar(in_, title)
        return convert(x, kind).owner if name == "index_cast" else convert(kind, x).owner

    class Conversion(ScalarOp):
        def __init__(self, out: Any, in_: Any, *, loc: Any = None, ip: Any = None) -> None:
            refuse_placement(loc, ip)
            super().__init__(write(out, in_))

    def function(out: Any, in_: Any, *, loc: Any = None, ip: Any = None) -> Any:
        refuse_placement(loc, ip)
        return Conversion(out, in_)

    return _named(Conversion, function, name, title)


def _named(made: type[ScalarOp], function: Any, name: str, title: str) -> tuple[type[ScalarOp], Callable[..., Any]]:
    made.__name__ = made.__qualname__ = title
    function.__name__ = function.__qualname__ = name
    made.__doc__ = function.__doc__ = f"``arith.{name}``."
    return made, function


class _Compare(ScalarOp):
    NAME = ""

    def __init__(self, predicate: Any, lhs: Any, rhs: Any, *, loc: Any = None, ip: Any = None) -> None:
        refuse_placement(loc, ip)
        a, b = (_scalar(x, f"arith.{self.NAME}") for x in (lhs, rhs))
        _same(self.NAME, a, b)
        how = plain(predicate)
        super().__init__(plain_arith.NAMES[self.NAME](how if isinstance(how, str) else int(how), a, b).owner)


class CmpIOp(_Compare):
    """``arith.cmpi``: the predicate, then the operands."""

    NAME = "cmpi"


class CmpFOp(_Compare):
    """``arith.cmpf``: the predicate, then the operands."""

    NAME = "cmpf"


class SelectOp(ScalarOp):
    """``arith.select``."""

    def __init__(self, condition: Any, true_value: Any, false_value: Any, *, loc: Any = None, ip: Any = None) -> None:
        refuse_placement(loc, ip)
        a, b, c = (_scalar(x, "arith.select") for x in (condition, true_value, false_value))
        super().__init__(plain_arith.select(a, b, c).owner)


class NegFOp(ScalarOp):
    """``arith.negf``."""

    def __init__(self, operand: Any, *, loc: Any = None, ip: Any = None) -> None:
        refuse_placement(loc, ip)
        super().__init__(plain_arith.negf(_scalar(operand, "arith.negf")).owner)


def cmpi(predicate: Any, lhs: Any, rhs: Any, *, loc: Any = None, ip: Any = None) -> Any:
    """``arith.cmpi``."""
    return CmpIOp(predicate, lhs, rhs, loc=loc, ip=ip)


def cmpf(predicate: Any, lhs: Any, rhs: Any, *, loc: Any = None, ip: Any = None) -> Any:
    """``arith.cmpf``."""
    return CmpFOp(predicate, lhs, rhs, loc=loc, ip=ip)


def select(condition: Any, true_value: Any, false_value: Any, *, loc: Any = None, ip: Any = None) -> Any:
    """``arith.select``."""
    return SelectOp(condition, true_value, false_value, loc=loc, ip=ip)


_PAIRS = """
    addi AddIOp subi SubIOp muli MulIOp divsi DivSIOp divui DivUIOp floordivsi FloorDivSIOp
    ceildivsi CeilDivSIOp remsi RemSIOp remui RemUIOp andi AndIOp ori OrIOp xori XOrIOp shli ShLIOp
    shrsi ShRSIOp shrui ShRUIOp maxsi MaxSIOp minsi MinSIOp maxui MaxUIOp minui MinUIOp addf AddFOp
    subf SubFOp mulf MulFOp divf DivFOp remf RemFOp maximumf MaximumFOp minimumf MinimumFOp
    maxnumf MaxNumFOp minnumf MinNumFOp
"""
_CONVERSIONS = """
    index_cast IndexCastOp extsi ExtSIOp extui ExtUIOp trunci TruncIOp sitofp SIToFPOp uitofp UIToFPOp
    fptosi FPToSIOp fptoui FPToUIOp extf ExtFOp truncf TruncFOp
"""

NAMES: dict[str, Any] = {
    "ConstantOp": ConstantOp,
    "constant": constant,
    "CmpIOp": CmpIOp,
    "CmpFOp": CmpFOp,
    "SelectOp": SelectOp,
    "NegFOp": NegFOp,
    "cmpi": cmpi,
    "cmpf": cmpf,
    "select": select,
    "CmpIPredicate": CmpIPredicate,
    "CmpFPredicate": CmpFPredicate,
}
for _table, _make in ((_PAIRS.split(), _binary), (_CONVERSIONS.split(), _conversion)):
    for _name, _title in zip(_table[::2], _table[1::2]):
        NAMES[_title], NAMES[_name] = _make(_name, _title)

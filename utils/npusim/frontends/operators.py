"""The ``arith`` operations behind the operators of traced scalars: types, coercion, constants.

A Python number takes the type of the other operand (integers wrap as the core's do, 300 as ``i8`` is 44). Two values
must have one type, except that an ``index`` (an induction variable) is cast to the other's type. Division is signed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from npusim.errors import DesignError
from npusim.frontends.tracing import DesignTypeError, emit, here
from npusim.ir import Value
from npusim.messages import explain
from npusim.types import MemRefType, numpy_dtype

if TYPE_CHECKING:
    from npusim.frontends.values import ScalarValue

_SYMBOLS = {"add": "+", "sub": "-", "mul": "*", "div": "/", "floordiv": "//", "rem": "%", "and": "&", "or": "|"}
_INTEGER = {"div": "divsi", "floordiv": "floordivsi", "rem": "remsi"}
_CMPI = {"eq": 0, "ne": 1, "lt": 2, "le": 3, "gt": 4, "ge": 5}
_CMPF = {"eq": 1, "gt": 2, "ge": 3, "lt": 4, "le": 5, "ne": 6}
Compare = Literal["eq", "ne", "lt", "le", "gt", "ge"]


def scalar(value: Value) -> ScalarValue:
    """The traced scalar of an SSA value."""
    from npusim.frontends.values import ScalarValue  # the two modules need each other

    return ScalarValue(value)


def is_scalar(x: Any) -> bool:
    from npusim.frontends.values import ScalarValue

    return isinstance(x, ScalarValue)


def is_number(x: Any) -> bool:
    """Whether an operand can stand beside a traced scalar."""
    return is_scalar(x) or isinstance(x, (int, float, np.generic))


def is_float(kind: str) -> bool:
    return kind in ("bf16", "f16", "f32", "f64")


def is_unsigned(kind: str) -> bool:
    return kind.startswith("ui")


def is_integer(kind: str) -> bool:
    """Whether a type is a signless integer (``i1`` to ``i64``) or ``index``."""
    return kind == "index" or (kind.startswith("i") and kind[1:].isdigit())


def constant(number: Any, kind: str) -> ScalarValue:
    """``arith.constant``: a Python number as a value of a type. A float into an integer type is refused."""
    return scalar(emit("arith.constant", (), (kind,), value=_literal(number, kind)).result)


def _literal(number: Any, kind: str) -> int | float | bool:
    if isinstance(number, np.generic) and not isinstance(number, float):
        raise DesignError(
            f"the numpy scalar {number!r} cannot become a run-time {kind}: convert it with int() or float() first"
        )
    if is_unsigned(kind):
        raise DesignError(
            f"{number!r} cannot become an unsigned {kind}: arithmetic on the core is signless; use a signed element "
            "type (np.int8 for np.uint8), or do it in a kernel"
        )
    if is_float(kind):
        return float(np.array(float(number)).astype(numpy_dtype(kind)))
    if isinstance(number, float):
        raise DesignError(
            f"the float {number!r} does not fit the integer type {kind}: write int({number!r}), or use floats"
        )
    if kind == "i1":
        return bool(number)
    bits = 64 if kind == "index" else int(kind[1:])
    wrapped = int(number) & ((1 << bits) - 1)
    return wrapped - (1 << bits) if wrapped >> (bits - 1) else wrapped


def inferred(number: int | float | bool) -> str:
    """The type of a Python number that stands alone: ``i32`` if it fits, else ``i64``; ``f32``, else ``f64``."""
    if isinstance(number, bool):
        return "i1"
    if isinstance(number, int):
        if 2**31 <= number < 2**32:
            raise DesignError(
                f"{number} alone would be an unsigned ui32, which constants cannot be: say which type it has"
            )
        return "i32" if -(2**31) <= number < 2**31 else "i64"
    return "f32" if number == 0 or not np.isfinite(number) or abs(number) <= np.finfo(np.float32).max else "f64"


def as_index(x: Any) -> ScalarValue:
    """A value as an index: an integer is cast."""
    if x.dtype == "index":
        return x  # type: ignore[no-any-return]
    if not is_integer(x.dtype):
        raise DesignError(f"a run-time {x.dtype} cannot be an index or a loop bound: only integers can")
    return cast("index_cast", x, "index")


def cast(name: str, x: Any, to: str) -> ScalarValue:
    """One of arith's conversions."""
    return scalar(emit(f"arith.{name}", (x.value,), (to,)).result)


def coerce(lhs: Any, rhs: Any, symbol: str) -> tuple[ScalarValue, ScalarValue]:
    """Both operands as values of one type: numbers become constants, an index is cast."""
    if not is_scalar(lhs):
        return constant(_operand(lhs, rhs, symbol), rhs.dtype), rhs
    if not is_scalar(rhs):
        return lhs, constant(_operand(rhs, lhs, symbol), lhs.dtype)
    if lhs.dtype == rhs.dtype:
        return lhs, rhs
    if "index" in (lhs.dtype, rhs.dtype) and is_integer(lhs.dtype) and is_integer(rhs.dtype):
        return lhs, cast("index_cast", rhs, lhs.dtype)
    raise DesignError(
        explain(
            f"{lhs.dtype} {symbol} {rhs.dtype}: both operands must have one type, the core converts nothing by itself.",
            phrase="can't coerce other=ScalarValue(...) to self=ScalarValue(...)",
            hint="convert one with aie.dialects.arith (extsi, trunci, sitofp, fptosi, extf, truncf), or use one "
            "element type.",
            loc=here(),
        )
    )


def _operand(number: Any, beside: Any, symbol: str) -> Any:
    if isinstance(number, (int, float, np.generic)):
        return number
    raise DesignTypeError(
        f"unsupported operand types for {symbol}: a run-time {beside.dtype} and {type(number).__name__}"
        + ("; index the memref to get an element" if hasattr(number, "shape") else "")
    )


def binary(op: str, lhs: Any, rhs: Any) -> ScalarValue:
    """``lhs <op> rhs``; DesignError for an operation the type does not have."""
    a, b = coerce(lhs, rhs, _SYMBOLS[op])
    if is_unsigned(a.dtype):
        raise DesignError(_no_unsigned(a.dtype, _SYMBOLS[op]))
    if is_float(a.dtype):
        if op in ("floordiv", "and", "or"):
            raise DesignError(f"{_SYMBOLS[op]} does not exist for {a.dtype}: it is an operation on integers")
        name = f"{op}f"
    else:
        name = _INTEGER.get(op, f"{op}i")
    return scalar(emit(f"arith.{name}", (a.value, b.value), (a.dtype,)).result)


def compare(how: Compare, lhs: Any, rhs: Any) -> ScalarValue:
    """A comparison, of type ``i1``: signed for integers, ordered for floats."""
    a, b = coerce(lhs, rhs, how)
    if is_unsigned(a.dtype):
        raise DesignError(_no_unsigned(a.dtype, how))
    name, predicate = ("cmpf", _CMPF[how]) if is_float(a.dtype) else ("cmpi", _CMPI[how])
    return scalar(emit(f"arith.{name}", (a.value, b.value), ("i1",), predicate=predicate).result)


def _no_unsigned(kind: str, symbol: str) -> str:
    return (
        f"{symbol} on the unsigned type {kind}: operators exist only for signless integers and floats; use a signed "
        f"element type (np.int{kind[2:]}), or do it in a kernel"
    )


def element(source: Any, into: MemRefType) -> ScalarValue:
    """What is stored into a memref: a number becomes a constant of its element type, a value must have it already."""
    if is_scalar(source):
        if source.dtype != into.element:
            raise DesignError(
                f"a run-time {source.dtype} cannot be stored into {into}: convert it to {into.element} first with "
                "aie.dialects.arith (index_cast, trunci, extsi, sitofp, truncf, ...)"
            )
        return source  # type: ignore[no-any-return]
    if isinstance(source, (int, float, np.generic)):
        return constant(source, into.element)
    what = f"{source.memref}" if hasattr(source, "memref") else f"{type(source).__name__}"
    raise DesignError(f"storing into {into} needs one scalar element, got {what}; index it, or loop with range_")


def missing(symbol: str, x: Any, hint: str) -> DesignTypeError:
    """The refusal of an operator that run-time values do not have."""
    return DesignTypeError(f"unsupported operator {symbol} for a run-time {x.dtype}: IRON has none; {hint}")

"""Operations of the ``arith`` dialect by name, for what operators cannot say (conversions, minimum, shifts, select).

Types are MLIR names (``np_dtype_to_mlir_type(np.int32)`` is ``"i32"``). Operands are run-time values; where two are
needed, a Python number takes the other's type.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from npusim.errors import DesignError
from npusim.frontends import operators as ops
from npusim.frontends.control import refuse_placement
from npusim.frontends.tracing import DesignTypeError, emit

_INTEGER = (
    "addi subi muli divsi divui floordivsi ceildivsi remsi remui andi ori xori shli shrsi shrui maxsi minsi maxui minui"
)
_FLOAT = "addf subf mulf divf remf maximumf minimumf maxnumf minnumf"
_CASTS = {  # name -> what it takes and what it gives
    "extsi": ("integer", "integer"),
    "extui": ("integer", "integer"),
    "trunci": ("integer", "integer"),
    "sitofp": ("integer", "float"),
    "uitofp": ("integer", "float"),
    "fptosi": ("float", "integer"),
    "fptoui": ("float", "integer"),
    "extf": ("float", "float"),
    "truncf": ("float", "float"),
}
_WIDENS, _NARROWS = ("extsi", "extui", "extf"), ("trunci", "truncf")
CMPI = {n: i for i, n in enumerate(["eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge"])}
CMPF = {
    n: i
    for i, n in enumerate(
        [
            "false",
            "oeq",
            "ogt",
            "oge",
            "olt",
            "ole",
            "one",
            "ord",
            "ueq",
            "ugt",
            "uge",
            "ult",
            "ule",
            "une",
            "uno",
            "true",
        ]
    )
}


def constant(
    value: Any,
    type: Any = None,
    index: bool | None = None,
    *,
    result: Any = None,
    vector: bool | None = False,
    loc: Any = None,
    ip: Any = None,
) -> Any:
    """A Python number as a run-time value: of ``type``, of type index, or by default i32 or f32."""
    refuse_placement(loc, ip)
    if isinstance(value, str):
        value, type = type, value  # arith.constant of the dialect has the type first
    kind = type if type is not None else result
    if not isinstance(value, (int, float)):
        raise DesignTypeError(f"a constant is a Python number here, got {value!r}")
    return ops.constant(value, "index" if index else ops.inferred(value) if kind is None else str(kind))


def _value(x: Any, what: str) -> Any:
    if not ops.is_scalar(x):
        raise DesignTypeError(f"arith.{what} needs a run-time value, got {x!r}")
    return x


def _pair(name: str, lhs: Any, rhs: Any, check: Callable[[str], bool]) -> tuple[Any, Any]:
    if not (ops.is_scalar(lhs) or ops.is_scalar(rhs)):
        raise DesignTypeError(f"arith.{name} needs a run-time value, got {lhs!r} and {rhs!r}")
    a, b = ops.coerce(lhs, rhs, f"arith.{name}")
    if not check(a.dtype):
        raise DesignError(f"arith.{name} does not exist for a run-time {a.dtype}")
    return a, b


def _binary(name: str, check: Callable[[str], bool]) -> Callable[..., Any]:
    def op(lhs: Any, rhs: Any, *, loc: Any = None, ip: Any = None) -> Any:
        refuse_placement(loc, ip)
        a, b = _pair(name, lhs, rhs, check)
        return ops.scalar(emit(f"arith.{name}", (a.value, b.value), (a.dtype,)).result)

    op.__name__ = op.__qualname__ = name
    op.__doc__ = f"``arith.{name}``."
    return op


def _conversion(name: str) -> Callable[..., Any]:
    def op(out: Any, in_: Any, *, loc: Any = None, ip: Any = None) -> Any:
        refuse_placement(loc, ip)
        takes, gives = _CASTS[name]
        x, to = _value(in_, name), str(out)
        fits = all(
            ops.is_float(kind) if wanted == "float" else ops.is_integer(kind) and kind != "index"
            for kind, wanted in ((x.dtype, takes), (to, gives))
        )
        if not fits or not _width_fits(name, x.dtype, to):
            raise DesignError(f"arith.{name} cannot convert {x.dtype} to {to}: it makes {takes}s {gives}s{_way(name)}")
        return ops.cast(name, x, to)

    op.__name__ = op.__qualname__ = name
    op.__doc__ = f"``arith.{name}``: the wanted type first, then the value."
    return op


def _width_fits(name: str, source: str, to: str) -> bool:
    a, b = (16 if kind == "bf16" else int(kind.lstrip("if")) for kind in (source, to))
    return a < b if name in _WIDENS else a > b if name in _NARROWS else True


def _way(name: str) -> str:
    return " of more bits" if name in _WIDENS else " of fewer bits" if name in _NARROWS else ""


def index_cast(in_: Any, to: Any = None, *, out: Any = None, loc: Any = None, ip: Any = None) -> Any:
    """An integer as index, or an index as the integer type ``to``."""
    refuse_placement(loc, ip)
    if not ops.is_scalar(in_):
        in_, to = to, in_  # the dialect's own function has the type first
    x, kind = _value(in_, "index_cast"), str(to or out or "index")
    if not (ops.is_integer(x.dtype) and ops.is_integer(kind)) or (x.dtype == "index") == (kind == "index"):
        raise DesignError(f"arith.index_cast converts between index and an integer, not {x.dtype} to {kind}")
    return ops.cast("index_cast", x, kind)


def negf(operand: Any, *, loc: Any = None, ip: Any = None) -> Any:
    """``-x`` of a float."""
    refuse_placement(loc, ip)
    x = _value(operand, "negf")
    if not ops.is_float(x.dtype):
        raise DesignError(f"arith.negf does not exist for a run-time {x.dtype}; write 0 - x")
    return ops.scalar(emit("arith.negf", (x.value,), (x.dtype,)).result)


def cmpi(predicate: Any, lhs: Any, rhs: Any, *, loc: Any = None, ip: Any = None) -> Any:
    """A comparison of integers; the predicate is a name (``slt``, ``uge``, ...) or its number."""
    refuse_placement(loc, ip)
    return _compare("cmpi", CMPI, predicate, lhs, rhs, ops.is_integer)


def cmpf(predicate: Any, lhs: Any, rhs: Any, *, loc: Any = None, ip: Any = None) -> Any:
    """A comparison of floats; the predicate is a name (``olt``, ``une``, ...) or its number."""
    refuse_placement(loc, ip)
    return _compare("cmpf", CMPF, predicate, lhs, rhs, ops.is_float)


def _compare(name: str, known: dict[str, int], predicate: Any, lhs: Any, rhs: Any, check: Callable[[str], bool]) -> Any:
    number = known.get(predicate) if isinstance(predicate, str) else int(predicate)
    if number is None or number not in known.values():
        raise DesignError(f"arith.{name} has no predicate {predicate!r}; known: {', '.join(known)}")
    a, b = _pair(name, lhs, rhs, check)
    return ops.scalar(emit(f"arith.{name}", (a.value, b.value), ("i1",), predicate=number).result)


def select(condition: Any, true_value: Any, false_value: Any, *, loc: Any = None, ip: Any = None) -> Any:
    """One of two values, by a condition."""
    refuse_placement(loc, ip)
    c = _value(condition, "select")
    if c.dtype != "i1":
        raise DesignError(f"arith.select needs a condition (i1), got a run-time {c.dtype}")
    a, b = _pair("select", true_value, false_value, lambda kind: True)
    return ops.scalar(emit("arith.select", (c.value, a.value, b.value), (a.dtype,)).result)


NAMES: dict[str, Any] = {
    "constant": constant,
    "index_cast": index_cast,
    "negf": negf,
    "cmpi": cmpi,
    "cmpf": cmpf,
    "select": select,
    **{name: _binary(name, ops.is_integer) for name in _INTEGER.split()},
    **{name: _binary(name, ops.is_float) for name in _FLOAT.split()},
    **{name: _conversion(name) for name in _CASTS},
}

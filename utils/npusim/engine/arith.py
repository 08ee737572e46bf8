"""What scalar operations compute: a Python expression for each, on numpy scalars (``index`` values are Python ints).

Signed integers wrap as on the core; ``/`` truncates towards zero and ``%`` has the sign of the dividend, as ``divsi`` and
``remsi`` do. bf16 arithmetic rounds each result to bf16.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from npusim.errors import DesignError, UnsupportedError
from npusim.ir import Op
from npusim.types import numpy_dtype

_CMPI = ("==", "!=", "<", "<=", ">", ">=", "<", "<=", ">", ">=")  # eq ne slt sle sgt sge ult ule ugt uge
_CMPF = {1: "==", 2: ">", 3: ">=", 4: "<", 5: "<=", 6: "!=", 8: "==", 9: ">", 10: ">=", 11: "<", 12: "<=", 13: "!="}


def trunc_div(a: Any, b: Any) -> Any:
    """Signed division towards zero; DesignError on zero (the core's answer is undefined)."""
    if b == 0:
        raise DesignError("division by zero")
    q = abs(int(a)) // abs(int(b))
    return _like(a, q if (a < 0) == (b < 0) else -q)


def trunc_rem(a: Any, b: Any) -> Any:
    """Remainder with the sign of the dividend; DesignError on zero."""
    if b == 0:
        raise DesignError("remainder by zero")
    r = abs(int(a)) % abs(int(b))
    return _like(a, r if a >= 0 else -r)


def floor_div(a: Any, b: Any) -> Any:
    """Signed division rounded down; DesignError on zero."""
    if b == 0:
        raise DesignError("division by zero")
    return _like(a, int(a) // int(b))


def ceil_div(a: Any, b: Any) -> Any:
    """Signed division rounded up; DesignError on zero."""
    if b == 0:
        raise DesignError("division by zero")
    return _like(a, -(-int(a) // int(b)))


def unsigned(a: Any) -> Any:
    """The same bits as an unsigned number (Python ints, of type index, as they are)."""
    return a if isinstance(a, int) else a.view(np.dtype(f"u{a.dtype.itemsize}"))


def _unsigned_op(f: Callable[[int, int], int]) -> Callable[[Any, Any], Any]:
    def go(a: Any, b: Any) -> Any:
        return _like(a, f(int(unsigned(a)), int(unsigned(b))))

    return go


def _like(a: Any, value: int) -> Any:
    """``value`` wrapped into a's type."""
    return value if isinstance(a, int) else np.array([value]).astype(a.dtype)[0]


def cast(value: Any, dtype: np.dtype[Any]) -> Any:
    """Convert a scalar: integers wrap, floats round to nearest even."""
    return np.asarray(value).astype(dtype)[()]


HELPERS: dict[str, Any] = {
    "trunc_div": trunc_div,
    "trunc_rem": trunc_rem,
    "floor_div": floor_div,
    "ceil_div": ceil_div,
    "unsigned": unsigned,
    "cast": cast,
    "shrui": _unsigned_op(lambda a, b: a >> b),
    "divui": _unsigned_op(lambda a, b: a // b),
    "remui": _unsigned_op(lambda a, b: a % b),
    "maxui": _unsigned_op(max),
    "minui": _unsigned_op(min),
    "np": np,
}

_SIMPLE = {
    "arith.addi": "{0} + {1}",
    "arith.subi": "{0} - {1}",
    "arith.muli": "{0} * {1}",
    "arith.divsi": "trunc_div({0}, {1})",
    "arith.divui": "divui({0}, {1})",
    "arith.floordivsi": "floor_div({0}, {1})",
    "arith.ceildivsi": "ceil_div({0}, {1})",
    "arith.remsi": "trunc_rem({0}, {1})",
    "arith.remui": "remui({0}, {1})",
    "arith.andi": "{0} & {1}",
    "arith.ori": "{0} | {1}",
    "arith.xori": "{0} ^ {1}",
    "arith.shli": "{0} << {1}",
    "arith.shrsi": "{0} >> {1}",
    "arith.shrui": "shrui({0}, {1})",
    "arith.maxsi": "max({0}, {1})",
    "arith.minsi": "min({0}, {1})",
    "arith.maxui": "maxui({0}, {1})",
    "arith.minui": "minui({0}, {1})",
    "arith.addf": "{0} + {1}",
    "arith.subf": "{0} - {1}",
    "arith.mulf": "{0} * {1}",
    "arith.divf": "{0} / {1}",
    "arith.remf": "np.fmod({0}, {1})",
    "arith.negf": "-{0}",
    "arith.maximumf": "np.maximum({0}, {1})",
    "arith.minimumf": "np.minimum({0}, {1})",
    "arith.maxnumf": "np.fmax({0}, {1})",
    "arith.minnumf": "np.fmin({0}, {1})",
    "arith.select": "({1} if {0} else {2})",
}
_CASTS = frozenset(
    "arith." + n
    for n in ("index_cast", "extsi", "trunci", "sitofp", "fptosi", "extf", "truncf", "index_castui", "uitofp", "fptoui")
)
_MATH = {f"math.{n}": f"np.{n}" for n in ("exp", "exp2", "log", "log2", "sqrt", "tanh", "sin", "cos", "floor", "ceil")} | {
    "math.absf": "np.abs",
    "math.absi": "np.abs",
}

_COST = {"muli": "mul", "divsi": "div", "divui": "div", "floordivsi": "div", "ceildivsi": "div", "remsi": "div"} | {
    "remui": "div",
    "divf": "fdiv",
    "remf": "fdiv",
    "constant": "",
}


SERVED = frozenset({*_SIMPLE, *_CASTS, *_MATH, "arith.cmpi", "arith.cmpf", "arith.extui", "arith.bitcast"})
"""The scalar operations that :func:`expression` writes."""


def expression(op: Op, names: list[str]) -> str:
    """The Python expression of a scalar operation (one of SERVED) over its operands' names."""
    if op.name in _SIMPLE:
        return _SIMPLE[op.name].format(*names)
    if op.name == "arith.cmpi":
        predicate = int(op.attrs["predicate"])
        a, b = (f"unsigned({n})" for n in names) if predicate >= 6 else names
        return f"{a} {_CMPI[predicate]} {b}"
    if op.name == "arith.cmpf":
        return _compare_floats(op, names)
    if op.name in _CASTS:
        return _cast(op, names[0])
    if op.name == "arith.extui":
        return f"cast(unsigned({names[0]}), np.dtype('{_dtype(op)}'))"
    if op.name == "arith.bitcast":
        return f"{names[0]}.view(np.dtype('{_dtype(op)}'))"
    return f"cast({_MATH[op.name]}({names[0]}), np.dtype('{_dtype(op)}'))"


def _compare_floats(op: Op, names: list[str]) -> str:
    predicate = int(op.attrs["predicate"])
    if predicate not in _CMPF:
        raise UnsupportedError(f"arith.cmpf predicate {predicate} at {op.loc} is not served")
    return f"{names[0]} {_CMPF[predicate]} {names[1]}"


def _dtype(op: Op) -> str:
    assert isinstance(op.result.type, str)
    dtype = numpy_dtype(op.result.type)
    return dtype.name


def _cast(op: Op, name: str) -> str:
    if op.result.type == "index":
        return f"int({name})"
    return f"cast({name}, np.dtype('{_dtype(op)}'))"


def constant(op: Op) -> Any:
    """The value of an ``arith.constant``: a Python int for index, else a numpy scalar (integers wrap)."""
    value, kind = op.attrs["value"], op.result.type
    if not isinstance(kind, str):
        raise UnsupportedError(f"a constant of type {kind} at {op.loc} is not served")
    if kind == "index":
        return int(value)
    dtype = numpy_dtype(kind)
    if dtype.kind in "iu":
        value = int(value) & ((1 << 8 * dtype.itemsize) - 1)
        return np.array([value], dtype=f"u{dtype.itemsize}").view(dtype)[0]
    return np.array([value]).astype(dtype)[0]


def cost_class(op: Op) -> str:
    """Which entry of the scalar cost table an operation falls under ('' for free)."""
    short = op.name.split(".")[-1]
    if op.name.startswith("math."):
        return "fdiv"
    if short in _COST:
        return _COST[short]
    if op.name in _CASTS or short in ("extui", "bitcast"):
        return "" if short.startswith("index") else "cast"
    return "float" if short.endswith("f") else "int"

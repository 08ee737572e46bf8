"""Structured control flow of traced code: ``for`` with :func:`for_`, ``if`` with :func:`if_` and :func:`else_`.

The names and signatures are those of ``aie.helpers.dialects.scf``. A loop stays rolled: its body is traced once, with
the induction variable as an ``index`` value.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from npusim.errors import DesignError, UnsupportedError
from npusim.frontends import operators as ops
from npusim.frontends.tracing import DesignTypeError, abandon, before_terminator, emit, here, inside, need
from npusim.frontends.values import TracedValue, wrap
from npusim.ir import Loc, Op, Region, Value


def for_(
    start: Any,
    stop: Any = None,
    step: Any = None,
    iter_args: Sequence[Any] | None = None,
    insert_yield: bool = True,
    *,
    loc: Any = None,
    ip: Any = None,
) -> Iterator[Any]:
    """``for i in for_(n)``: an ``scf.for``. Bounds are ints or run-time integers, the step is positive.

    With ``iter_args`` the loop gives ``(i, arg, result)`` (tuples of args and results if there are several); its body
    must end with ``yield_([...])`` and ``insert_yield=False``, and ``result`` is for use after the loop.
    """
    refuse_placement(loc, ip)
    return traced_for(start, stop, step, iter_args, insert_yield, here())


def traced_for(
    start: Any, stop: Any, step: Any, iter_args: Sequence[Any] | None, insert_yield: bool, at: Loc
) -> Iterator[Any]:
    """The loop of :func:`for_`, written at ``at``."""
    into = need("range_")
    bounds = _bounds(start, stop, step)
    carried = [_carried(a) for a in iter_args or ()]
    region = Region.single("index", *(v.type for v in carried))
    op = emit("scf.for", (*bounds, *carried), [v.type for v in carried], regions=[region], loc=at)
    induction, *inner = (wrap(v) for v in region.entry.args)
    results = [wrap(v) for v in op.results]
    with inside(op, region):
        finished = False
        try:
            if not carried:
                yield induction
            elif len(carried) == 1:
                yield induction, inner[0], results[0]
            else:
                yield induction, tuple(inner), tuple(results)
            finished = True
        finally:
            if not finished:
                abandon(into, op)
        if insert_yield:
            emit("scf.yield", loc=at)
        _check_yield(op, region, len(carried))


def _bounds(start: Any, stop: Any, step: Any) -> list[Value]:
    if not isinstance(start, (int, np.integer, TracedValue)):
        raise DesignError(f"range_ needs integers or run-time integers as bounds, got {type(start).__name__} {start!r}")
    start, stop = (0, start) if stop is None else (start, stop)
    bounds = []
    for bound in (start, stop, 1 if step is None else step):
        if isinstance(bound, (int, np.integer)):
            bounds.append(ops.constant(int(bound), "index").value)
        elif ops.is_scalar(bound):
            bounds.append(ops.as_index(bound).value)
        else:
            raise DesignError(
                f"range_ needs integers or run-time integers as bounds, got {type(bound).__name__} {bound!r}"
            )
    if isinstance(step, (int, np.integer)) and step <= 0:
        raise DesignError(
            f"range_ with step {step}: a traced loop counts upwards, the core would run it zero times or for ever; "
            "loop upwards and compute the index, such as n - 1 - i"
        )
    return bounds


def _carried(arg: Any) -> Value:
    if not isinstance(arg, TracedValue):
        raise DesignError(
            f"iter_args needs run-time values, got {arg!r}: make one with constant() from aie.extras.dialects.arith"
        )
    return arg.value


def _check_yield(op: Op, region: Region, count: int) -> None:
    last = region.entry.ops[-1] if region.entry.ops else None
    if last is None or last.name != "scf.yield":
        raise DesignError(f"the loop at {op.loc} has insert_yield=False but its body does not end with yield_([...])")
    if any(o.name == "scf.yield" for o in region.entry.ops[:-1]):
        raise DesignError(f"the body of the loop at {op.loc} yields twice: give insert_yield=False if you call yield_")
    want, got = [str(v.type) for v in op.results], [str(v.type) for v in last.operands]
    if want != got:
        raise DesignError(
            f"the loop at {op.loc} carries {count} value(s) ({', '.join(want)}) but yields ({', '.join(got)}): give "
            "insert_yield=False and end the body with yield_([...]), one value of the same type for each of iter_args"
        )


def yield_(results_: Any, *, loc: Any = None, ip: Any = None) -> None:
    """End the body of a loop with the values it carries into the next turn."""
    refuse_placement(loc, ip)
    values = [results_] if isinstance(results_, TracedValue) else list(results_)
    emit("scf.yield", [_carried(v) for v in values])


@contextmanager
def if_(cond: Any, hasElse: bool = True, insert_yield: bool = True, loc: Any = None, ip: Any = None) -> Iterator[Op]:
    """``with if_(cond) as op:``, an ``scf.if`` on a run-time condition; :func:`else_` takes what it gives."""
    refuse_placement(loc, ip)
    if not ops.is_scalar(cond):
        raise DesignError(
            f"if_ needs a run-time condition, got {cond!r}: what is known while tracing is decided with a Python if"
        )
    if cond.dtype != "i1":
        raise DesignError(f"if_ needs a condition (i1), got a run-time {cond.dtype}: compare it, such as if_(x != 0)")
    at = here()
    then, other = Region.single(), Region.single() if hasElse else Region()
    op = emit("scf.if", (cond.value,), regions=[then, other], loc=at)
    with inside(op, then):
        yield op
        if insert_yield:
            emit("scf.yield", loc=at)
    if hasElse and insert_yield:
        with inside(op, other):
            emit("scf.yield", loc=at)


@contextmanager
def else_(if_op: Any, insert_yield: bool = True) -> Iterator[None]:
    """``with else_(op):``, the other branch of ``with if_(cond) as op:``."""
    if not isinstance(if_op, Op) or if_op.name != "scf.if":
        raise DesignTypeError(f"else_ needs what `with if_(cond) as op:` gives, got {if_op!r}")
    if not if_op.regions[1].blocks:
        raise DesignError(f"the if_ at {if_op.loc} has hasElse=False, so it has no else_: leave that argument out")
    with before_terminator(if_op, if_op.regions[1]):
        yield


def refuse_placement(loc: Any, ip: Any) -> None:
    """``loc=`` and ``ip=`` of the real functions place operations by hand; they are not served."""
    for name, value in (("loc", loc), ("ip", ip)):
        if value is not None:
            raise UnsupportedError(f"the argument {name}= (MLIR's own objects) is not served by the simulated IRON")

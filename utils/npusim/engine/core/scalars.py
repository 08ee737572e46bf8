"""Scalar arithmetic, constants and scratchpad reads."""

from __future__ import annotations

from npusim.engine import arith
from npusim.engine.core.writer import SERVED, Writer, serves
from npusim.ir import Op


@serves("arith.constant", "aie.end")
def nothing(w: Writer, op: Op, depth: int) -> None:
    """Nothing to do: constants are written where they are used."""


@serves(*arith.SERVED)
def scalar(w: Writer, op: Op, depth: int) -> None:
    """One scalar operation as a Python expression."""
    if w.evaluates(op):
        text = arith.expression(op, [w.name(v) for v in op.operands])
        w.line(depth, f"{w.new(op.result)} = {text}")
    w.charge(arith.cost_class(op))


@serves("aiex.read_scratchpad_parameter")
def scratchpad(w: Writer, op: Op, depth: int) -> None:
    """A scalar that the host sets before the run."""
    if w.evaluates(op):
        values = w.bind("P", w.around.scratchpad)
        w.line(depth, f"{w.new(op.result)} = {values}[{str(op.attrs['parameter'])!r}]")
    w.charge("load")


__all__ = ["SERVED"]

"""Calls of external kernels: the numpy model computes, the cycle model says how long it took."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from npusim.engine.core.writer import Writer, serves
from npusim.engine.failure import failure
from npusim.errors import DesignError
from npusim.ir import Op
from npusim.types import MemRefType


@serves("func.call")
def call(w: Writer, op: Op, depth: int) -> None:
    """One kernel call."""
    callee, model = str(op.attrs["callee"]), w.model(op)
    w.spend(w.around.clock.costs.kernel_call.value)
    arguments = [w.name(v) if w.around.data or isinstance(v.type, str) else "None" for v in op.operands]
    ticks = _ticks(w, op, arguments)
    if model.uses_cascade:
        _call_cascade(w, op, depth, arguments, ticks)
        w.done(depth, "called", None, callee)
        return
    w.settle(depth)
    for value in op.operands:
        w.in_turn(depth, value)
    if w.around.data:
        w.line(depth, f"{w.bind('F', model.compute)}({', '.join(arguments)})")
    if not ticks.isdigit():
        w.line(depth, f"k = {ticks}")
        ticks = "k"
    w.interval(depth, callee, "kernel", ticks)
    w.done(depth, "called", None, callee)


def _call_cascade(w: Writer, op: Op, depth: int, arguments: list[str], ticks: str) -> None:
    """A kernel that puts to or gets from the cascade blocks inside."""
    w.settle(depth)
    ports = w.bind("C", w.around.cascades.ports(w.core.tile))
    types = w.bind("Y", tuple(v.type for v in op.operands))
    given = f"({', '.join(arguments)},)"
    callee = str(op.attrs["callee"])
    w.line(depth, f"t = yield from {ports}.call(ME, t, {callee!r}, {w.bind('F', w.model(op))}, {given}, {types}, {ticks})")


def _ticks(w: Writer, op: Op, names: list[str]) -> str:
    """The ticks of a call: a number if all its scalars are constants, else an expression."""
    given = [v.type if isinstance(v.type, MemRefType) else w.constant(v) for v in op.operands]
    cycles = _cycles(w, op, given)
    dynamic = [name for name, known in zip(names, given, strict=True) if known is None]
    return f"{w.bind('Q', cycles)}({', '.join(dynamic)})" if dynamic else str(cycles())


def _cycles(w: Writer, op: Op, given: list[Any]) -> Callable[..., int]:
    model, device = w.model(op), w.around.machine.device

    def ticks(*scalars: Any) -> int:
        rest = iter(scalars)
        try:
            n = int(model.cycles(*(next(rest) if known is None else known for known in given), device=device))
        except Exception as error:
            raise failure(w.core, op.loc, error) from error
        if n < 0:
            problem = DesignError(f"the cycle model of kernel {op.attrs['callee']!r} gave {n} cycles")
            raise failure(w.core, op.loc, problem)
        return w.ticks(n)

    return ticks

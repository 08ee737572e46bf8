"""Small programs for the frontend's tests: one core between an input and an output fifo."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from npusim import graph, ir
from npusim.frontends.iron.device import NPU2
from npusim.frontends.iron.objectfifo import ObjectFifo
from npusim.frontends.iron.program import Program
from npusim.frontends.iron.runtime import Runtime
from npusim.frontends.iron.worker import Worker


def array(n: int | tuple[int, ...], dtype: Any = np.int32) -> Any:
    """IRON's spelling of an array type."""
    return np.ndarray[(n,) if isinstance(n, int) else n, np.dtype[dtype]]  # type: ignore[misc]


def program(
    core: Callable[..., Any],
    taken: Any = None,
    given: Any = None,
    extra: list[Any] | None = None,
    seq: Callable[..., Any] | None = None,
    worker: dict[str, Any] | None = None,
    x: dict[str, Any] | None = None,
    y: dict[str, Any] | None = None,
    more: list[Any] | None = None,
    host: Any = None,
) -> Program:
    """``core(x, y, *extra)`` between fifos x and y of 16 int32 each; ``seq(a, b, px, cy, *more)`` drives them."""
    taken, given = taken or array(16), given or array(16)
    fx, fy = ObjectFifo(taken, name="x", **(x or {})), ObjectFifo(given, name="y", **(y or {}))
    made = Worker(core, [fx.cons(), fy.prod(), *(extra or [])], **(worker or {}))

    def drive(a: Any, b: Any, px: Any, cy: Any, *rest: Any) -> None:
        px.fill(a)
        cy.drain(b, wait=True)

    return Program(NPU2(), Runtime(seq or drive, [host or taken, given, fx.prod(), fy.cons(), *(more or [])]), [made])


def resolve(core: Callable[..., Any], **given: Any) -> graph.Design:
    """The design of :func:`program`."""
    return program(core, **given).resolve_program().design


def body(core: Callable[..., Any], **given: Any) -> list[ir.Op]:
    """The operations in the loop of the core, nested ones behind the operation they are in, terminators left out."""
    loop = resolve(core, **given).cores[0].body.entry.ops[3]
    assert loop.name == "scf.for"
    return [op for op in ir.walk(loop.regions[0]) if op.name != "scf.yield"]


def names(core: Callable[..., Any], **given: Any) -> list[str]:
    """The names of those operations, of arith and its users only, without the constants that are indices."""
    ops = body(core, **given)
    return [op.name for op in ops if not (op.name.startswith("aie.") or is_index(op))]


def is_index(op: ir.Op) -> bool:
    """Whether an operation is an index constant."""
    return op.name == "arith.constant" and op.result.type == "index"


def sequence(seq: Callable[..., Any], **given: Any) -> list[ir.Op]:
    """The operations of a host sequence, outermost level."""
    made = resolve(lambda a, b, *rest: None, seq=seq, **given).sequence
    assert made is not None
    return made.body.entry.ops

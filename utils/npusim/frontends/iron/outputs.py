"""Outputs of a generator that nothing writes."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Sequence
from typing import Any

from npusim.ir import UNKNOWN, Loc, Value, walk
from npusim.machine import Machine


def unwritten(machine: Machine, tensors: Sequence[str], outputs: Iterable[str]) -> list[str]:
    """The outputs among the tensors (in the order of the host sequence's arguments) into which no transfer moves anything."""
    if machine.sequence is None:
        return list(outputs)
    written: set[Value] = set()
    for task in walk(machine.sequence):
        channel = machine.host_channels.get(str(task.attrs.get("alloc")))
        if channel is not None and channel.direction == "S2MM":
            written.update(op.operands[0] for region in task.regions for op in walk(region) if op.name == "aie.dma_bd")
    arguments = dict(zip(tensors, machine.sequence.entry.args, strict=False))
    return [name for name in outputs if name in arguments and arguments[name] not in written]


def source_of(generator: Any) -> Loc:
    """Where a generator is written."""
    code = getattr(inspect.unwrap(generator), "__code__", None) if callable(generator) else None
    return UNKNOWN if code is None else Loc(code.co_filename, code.co_firstlineno)

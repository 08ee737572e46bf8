"""Buffers that workers handle themselves: read without ever being written, or shared without a lock.

Nothing of this is refused by the real tools; it shows up as wrong numbers. A kernel may read or write what it is given, so
only loads and stores written in Python count, and a buffer that goes to a kernel or a DMA is taken as written.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field

from npusim.ir import Op, base_of, walk
from npusim.machine import CoreProgram, MachineLock, MemBuffer
from npusim.place.draft import Draft, label
from npusim.place.messages import explain
from npusim.types import MemRefType


@dataclass
class _Use:
    """Who does what with one buffer."""

    loads: dict[CoreProgram, Op] = field(default_factory=dict)
    stores: dict[CoreProgram, Op] = field(default_factory=dict)
    passed: bool = False  # to a kernel


def check_sharing(draft: Draft, cores: list[CoreProgram]) -> None:
    """Warn about buffers that are read but never written, and about those that two workers use without a lock."""
    uses: dict[MemBuffer, _Use] = defaultdict(_Use)
    for core in cores:
        for op in walk(core.body):
            _note(uses, core, op)
    moved = {bd.buffer for channel in draft.channels for bd in channel.descriptors}
    for buffer, use in uses.items():
        if buffer.initial is None and not buffer.host_written and not use.stores and not use.passed and buffer not in moved:
            _warn_unwritten(draft, buffer, use)
        if buffer not in moved:
            _check_race(draft, buffer, use)


def _note(uses: dict[MemBuffer, _Use], core: CoreProgram, op: Op) -> None:
    if op.name == "memref.load":
        for buffer in _buffers(core, op, 0):
            uses[buffer].loads.setdefault(core, op)
    elif op.name == "memref.store":
        for buffer in _buffers(core, op, 1):
            uses[buffer].stores.setdefault(core, op)
    elif op.name == "func.call":
        for i, value in enumerate(op.operands):
            if isinstance(value.type, MemRefType):
                for buffer in _buffers(core, op, i):
                    uses[buffer].passed = True


def _buffers(core: CoreProgram, op: Op, operand: int) -> list[MemBuffer]:
    root = base_of(op.operands[operand])
    return [core.buffers[root]] if root in core.buffers else []


def _warn_unwritten(draft: Draft, buffer: MemBuffer, use: _Use) -> None:
    core, op = next(iter(use.loads.items()))
    draft.warn(
        explain(
            f"{core.name} on {label(core.tile)} reads buffer {buffer.name!r}, which nothing ever writes: it holds zeros here, "
            "and whatever was there on hardware.",
            hint="give it an initial_value, or write it from the host sequence (use_write_rtp=True).",
            loc=op.loc,
        )
    )


def _check_race(draft: Draft, buffer: MemBuffer, use: _Use) -> None:
    for writer, store in use.stores.items():
        for other in (*use.stores, *use.loads):
            if other is not writer and not _synchronised(writer, other):
                draft.warn(_race(buffer, writer, store, other, use))
                return


def _race(buffer: MemBuffer, writer: CoreProgram, store: Op, other: CoreProgram, use: _Use) -> str:
    does, at = ("writes", use.stores[other]) if other in use.stores else ("reads", use.loads[other])
    return explain(
        f"a race on buffer {buffer.name!r}: {writer.name} on {label(writer.tile)} writes it ({store.loc}) and {other.name} on "
        f"{label(other.tile)} {does} it ({at.loc}), with no lock between them; what is seen depends on who is faster.",
        hint="hand the data over in an ObjectFifo, or guard the buffer with a Lock that one releases and the other acquires.",
        loc=store.loc,
    )


def _synchronised(one: CoreProgram, other: CoreProgram) -> bool:
    """Whether a lock or a fifo orders the two: both use it, one to give and one to take."""
    return bool(_locks(one) & _locks(other))


def _locks(core: CoreProgram) -> set[MachineLock]:
    explicit = {core.locks[op.operands[0]] for op in walk(core.body) if op.name == "aie.use_lock"}
    ports = {lock for port in core.ports.values() for lock in (port.acquire_lock, port.release_lock) if lock is not None}
    return explicit | ports

"""Buffers that workers handle themselves: read before or without being written, or shared without a lock.

Nothing of this is refused by the real tools; it shows up as wrong numbers. A kernel may read or write what it is given, so
only loads and stores written in Python count, and a buffer that goes to a kernel or a DMA is taken as written.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field

from npusim.ir import Op, Region, base_of, walk
from npusim.machine import CoreProgram, MachineLock, MemBuffer
from npusim.messages import explain
from npusim.place.draft import Draft, label
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
        if buffer in moved:
            continue
        if buffer.initial is None and not buffer.host_written:
            _check_written(draft, buffer, use)
        _check_race(draft, buffer, use)


def _check_written(draft: Draft, buffer: MemBuffer, use: _Use) -> None:
    if not use.stores and not use.passed:
        _warn_unwritten(draft, buffer, use)
    elif set(use.stores) == set(use.loads) and len(use.stores) == 1 and not use.passed:
        core = next(iter(use.stores))
        first = _first_use(core, core.body, buffer)
        if first is not None and first.name == "memref.load":
            _warn_too_early(draft, buffer, core, first, use.stores[core])


def _first_use(core: CoreProgram, region: Region, buffer: MemBuffer) -> Op | None:
    """The first load or store of a buffer that a core comes to in any case, loops being entered and branches not (a store in
    one counts, so that what may have been written is not complained about)."""
    for block in region.blocks:
        for op in block.ops:
            if op.name == "scf.for":
                found = _first_use(core, op.regions[0], buffer)
            elif op.regions:
                inside = (inner for part in op.regions for inner in walk(part))
                found = next((i for i in inside if i.name == "memref.store" and buffer in _buffers(core, i, 1)), None)
            else:
                place = {"memref.load": 0, "memref.store": 1}.get(op.name)
                found = op if place is not None and buffer in _buffers(core, op, place) else None
            if found is not None:
                return found
    return None


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
            f"worker {core.name!r} on {label(core.tile)} reads buffer {buffer.name!r}, which nothing ever writes: it "
            "holds zeros here, "
            "and whatever was there on hardware.",
            hint="give it an initial_value, or write it from the host sequence (use_write_rtp=True).",
            loc=op.loc,
        )
    )


def _warn_too_early(draft: Draft, buffer: MemBuffer, core: CoreProgram, load: Op, store: Op) -> None:
    draft.warn(
        explain(
            f"worker {core.name!r} on {label(core.tile)} reads buffer {buffer.name!r} before anything has been "
            "written to it (it is first written "
            f"at {store.loc}): it holds zeros here, and whatever was there on hardware.",
            hint="give it an initial_value, or set it before the first turn.",
            loc=load.loc,
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
        f"a race on buffer {buffer.name!r}: worker {writer.name!r} on {label(writer.tile)} writes it ({store.loc}) "
        f"and worker {other.name!r} on "
        f"{label(other.tile)} {does} it ({at.loc}), with no lock between them; what is seen depends on who is faster.",
        hint="hand the data over in an ObjectFifo, or guard the buffer with a Lock that one releases and the other "
        "acquires.",
        loc=store.loc,
    )


def _synchronised(one: CoreProgram, other: CoreProgram) -> bool:
    """Whether a lock or a fifo orders the two: both use it, one to give and one to take."""
    return bool(_locks(one) & _locks(other))


def _locks(core: CoreProgram) -> set[MachineLock]:
    explicit = {core.locks[op.operands[0]] for op in walk(core.body) if op.name == "aie.use_lock"}
    ports = {
        lock for port in core.ports.values() for lock in (port.acquire_lock, port.release_lock) if lock is not None
    }
    return explicit | ports

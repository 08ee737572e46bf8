"""Static checks of the host sequence: access patterns, descriptors in flight, waits that can end.

The sequence is walked as the compiler unrolls it (a loop up to the turn in which something must have run out). Where a
bound is known only at run time, its operations are looked at once and nothing is counted.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from npusim.errors import CapacityError, DesignError
from npusim.ir import Block, Loc, Op, Region, Value, walk
from npusim.machine import Coord, DmaChannel, MachineLock, MemBuffer
from npusim.messages import count, explain
from npusim.place.access import Pattern, Refusal, encode
from npusim.place.draft import Draft, label
from npusim.place.loops import trips
from npusim.types import MemRefType

TASK = "aiex.dma_configure_task_for"
TURNS = 40
"""Turns of a loop that are walked: more than any tile has descriptors, so a leak of one a turn shows."""
REPEAT_MAX = 255
"""Largest repeat count of a queue push (mlir-aie, NpuPushQueueOp: 8 bits)."""


def check_sequence(draft: Draft, host_channels: dict[str, DmaChannel]) -> dict[Coord, int]:
    """The most descriptors that its transfers use at once, by shim tile. Raises DesignError or CapacityError for a host
    sequence that cannot be compiled or would wait for ever."""
    checker = _Checker(draft, host_channels)
    if draft.design.sequence is not None:
        checker.region(draft.design.sequence.body, counting=True)
        checker.warn_unawaited()
    return checker.peak


def bind_sequence(draft: Draft) -> tuple[dict[str, MemBuffer], dict[Value, MachineLock]]:
    """(buffers that the sequence writes, by name; locks that it sets)."""
    if draft.design.sequence is None:
        return {}, {}
    by_name = {b.name: b for b in draft.own_buffers.values()}
    buffers = {name: b for name, b in by_name.items() if b.host_written}
    locks: dict[Value, MachineLock] = {}
    own = {lock.value: mine for lock, mine in draft.own_locks.items()}
    for op in walk(draft.design.sequence.body):
        name = op.attrs.get("buffer") if op.name == "aiex.npu.rtp_write" else None
        if name is not None:
            if name not in by_name:
                raise DesignError(
                    f"the host sequence writes buffer {name!r}, which the design does not have ({op.loc})"
                )
            buffers[name] = by_name[name]
        locks |= {value: own[value] for value in op.operands if value in own}
    return buffers, locks


@dataclass(eq=False)
class _Task:
    """One configured task: where it runs, its descriptors, and what has become of it."""

    op: Op
    channel: DmaChannel
    descriptors: int
    token: bool
    held: bool = True
    awaited: bool = False


@dataclass
class _Checker:
    draft: Draft
    channels: dict[str, DmaChannel]
    pieces: dict[Op, int] = field(default_factory=dict)  # descriptors of each configure operation, once checked
    tasks: dict[Value, _Task] = field(default_factory=dict)
    active: dict[Coord, list[_Task]] = field(default_factory=dict)
    tokens: Counter[DmaChannel] = field(default_factory=Counter)
    last: dict[DmaChannel, _Task] = field(default_factory=dict)
    peak: dict[Coord, int] = field(default_factory=dict)

    def region(self, region: Region, counting: bool) -> None:
        for block in region.blocks:
            self.block(block, counting)

    def block(self, block: Block, counting: bool) -> None:
        for op in block.ops:
            if op.name == TASK:
                self.configure(op, counting)
            elif op.name == "scf.for":
                turns = trips(op)
                for _ in range(1 if turns is None else min(turns, TURNS)):
                    self.region(op.regions[0], counting and turns is not None)
            elif op.regions:
                for inner in op.regions:
                    self.region(inner, counting=False)
            elif counting and op.operands and op.operands[0] in self.tasks:
                self.use(op, self.tasks[op.operands[0]])

    def use(self, op: Op, task: _Task) -> None:
        if op.name == "aiex.dma_start_task":
            self.tokens[task.channel] += task.token
            self.last[task.channel] = task
        elif op.name == "aiex.dma_await_task":
            self.wait(op, task)
        elif op.name == "aiex.dma_free_task":
            if not task.held and not task.awaited:
                raise self.refuse(
                    op.loc,
                    f"the task on {task.channel} is freed twice.",
                    phrase="frees buffer descriptor ID, which is not currently in use",
                    hint="free each task once.",
                )
            self.release(task)

    def configure(self, op: Op, counting: bool) -> None:
        channel = self.channels.get(op.attrs["alloc"])
        if channel is None:
            raise self.refuse(
                op.loc,
                f"the host sequence transfers to or from {op.attrs['alloc']!r}, which has no end on a shim tile.",
                hint="fill and drain only fifos whose producer or consumer is the host; a worker's end is not the "
                "host's.",
            )
        if op not in self.pieces:
            self.pieces[op] = sum(
                self.descriptor(op, bd, channel) for bd in walk(op.regions[0]) if bd.name == "aie.dma_bd"
            )
        if not counting:
            return
        task = _Task(op, channel, self.pieces[op], bool(op.attrs.get("issue_token")))
        active = self.active.setdefault(channel.tile, [])
        active.append(task)
        limit = self.draft.limits(channel.tile).bds.value
        self.peak[channel.tile] = max(self.peak.get(channel.tile, 0), sum(t.descriptors for t in active))
        if self.peak[channel.tile] > limit:
            raise self.exhausted(channel.tile, active, limit)
        self.tasks[op.results[0]] = task

    def descriptor(self, task: Op, bd: Op, channel: DmaChannel) -> int:
        """Check one transfer; returns how many descriptors it becomes."""
        sizes, strides = bd.attrs.get("static_sizes") or (), bd.attrs.get("static_strides") or ()
        length, offset = bd.attrs.get("static_len"), bd.attrs.get("static_offset", 0)
        host = bd.operands[0].type
        known = all(isinstance(n, int) and n >= 0 for n in (*sizes, *strides, length, offset))
        if not known or not isinstance(host, MemRefType) or len(bd.operands) > 1:
            return 1
        what = f"the transfer of fifo {task.attrs['alloc']!r}"
        loc = task.loc if bd.loc.line == 0 else bd.loc
        if len(sizes) > 4:
            raise self.refuse(
                loc,
                f"{what} has {len(sizes)} dimensions; a shim descriptor has three and the iteration.",
                phrase="At most four data layout transformation dimensions may be provided.",
                hint="merge dimensions, or use several transfers.",
            )
        assert length is not None
        pattern = Pattern.of(tuple(sizes), tuple(strides), offset) if sizes else Pattern.of((length,), (1,), offset)
        self.check_repeat(task, what, loc)
        self.check_bounds(what, pattern, host, loc)
        result = encode(pattern, length, host.dtype.itemsize)
        if isinstance(result, Refusal):
            raise self.refuse(
                loc,
                f"{what} does not fit a buffer descriptor of {label(channel.tile)}: {result.problem}.",
                details=[f"sizes {list(sizes)}, strides {list(strides)} of {host}, length {length}"],
                phrase=result.phrase,
                hint=result.hint,
                capacity=result.capacity,
            )
        self.warn_sub_word(what, pattern, host, loc)
        return len(result)

    def check_repeat(self, task: Op, what: str, loc: Loc) -> None:
        repeat = task.attrs.get("repeat_count", 0)
        if isinstance(repeat, int) and repeat > REPEAT_MAX:
            raise self.refuse(
                loc,
                f"{what} repeats {repeat} times; a queue push repeats {REPEAT_MAX} times at most.",
                phrase=f"Repeat count exceeds the [0:{REPEAT_MAX}] range.",
                hint="use several transfers.",
                capacity=True,
            )

    def check_bounds(self, what: str, pattern: Pattern, host: MemRefType, loc: Loc) -> None:
        if pattern.last >= host.size:
            raise self.refuse(
                loc,
                f"{what} reaches element {pattern.last} of a host array of {host.size} elements ({host}).",
                details=[f"offset {pattern.offset}, (size, stride) {list(pattern.dims)}"],
                hint="the real tools accept this and read or write beyond the array.",
            )

    def warn_sub_word(self, what: str, pattern: Pattern, host: MemRefType, loc: Loc) -> None:
        width, size, stride = host.dtype.itemsize, pattern.sizes[0], pattern.strides[0]
        if width < 4 and size > 1 and stride != 1:
            self.draft.warn(
                explain(
                    f"{what} has an inner stride of {stride} elements of {width} bytes, but the DMA moves 4-byte "
                    "words: it "
                    f"takes {4 // width} neighbouring elements at each step, not one.",
                    phrase="For <32b width datatypes, inner-most dim stride must be 1",
                    hint="keep the inner dimension contiguous. A MemTile or compute tile refuses this; on the shim "
                    "the real "
                    "tools accept it silently.",
                    loc=loc,
                )
            )

    def wait(self, op: Op, task: _Task) -> None:
        if not task.token:
            raise self.refuse(
                op.loc,
                f"the task on {task.channel} is awaited, but it does not report its end.",
                phrase="Cannot wait on a BD that is not configured to issue a token.",
                hint="start it with wait=True.",
            )
        if self.tokens[task.channel] < 1:
            raise self.refuse(
                op.loc,
                f"nothing is left to wait for on {task.channel}: the task was awaited before, or never started.",
                phrase="awaits a task-completion token on a channel where no outstanding token is guaranteed to have "
                "been "
                "produced",
                hint="await each started task once.",
            )
        self.tokens[task.channel] -= 1
        task.awaited = True
        self.release(task)

    def release(self, task: _Task) -> None:
        if task.held:
            task.held = False
            self.active[task.channel.tile].remove(task)

    def warn_unawaited(self) -> None:
        """A transfer to the host that nobody waits for may not have arrived when the run ends."""
        for channel, task in self.last.items():
            if channel.direction == "S2MM" and not task.awaited:
                self.draft.warn(
                    explain(
                        f"the last drain of {task.op.attrs['alloc']!r} is never waited for: the host sequence may end "
                        "before "
                        "the data has arrived.",
                        hint="drain with wait=True (and finish the task group). The real tools accept this silently.",
                        loc=task.op.loc,
                    )
                )

    def exhausted(self, tile: Coord, active: list[_Task], limit: int) -> CapacityError:
        users = Counter(f"{t.op.attrs['alloc']!r} ({t.channel.direction} {t.channel.index})" for t in active)
        need = sum(t.descriptors for t in active)
        text = explain(
            f"{need} buffer descriptors (BDs) are in use at once on {label(tile)}, which has {limit}.",
            details=[f"{count(n, 'transfer')} of {name}" for name, n in users.items()],
            phrase=(
                f"Too many simultaneously active buffer descriptors on tile ({tile.col},{tile.row}), which supports "
                "up to "
                f"{limit}. Emit an aiex.dma_free_task / aiex.dma_await_task to reuse BDs.",
                "Allocator exhausted available buffer descriptor IDs.",
            ),
            hint="wait between transfers (finish a task group and open the next), or fold a loop of fills into one "
            "transfer "
            "with a larger size.",
            loc=active[-1].op.loc,
        )
        return CapacityError(text)

    def refuse(self, loc: Loc, problem: str, *, capacity: bool = False, **words: Any) -> DesignError:
        return (CapacityError if capacity else DesignError)(explain(problem, loc=loc, **words))

"""DMA channels and the streams between them.

A stream couples the MM2S channel that feeds it with the S2MM channels it reaches (several: a broadcast). Both ends work
through their own buffer descriptors; what moves in one event is what the shortest of the current descriptors still
lacks. So a host task of a whole matrix crosses object by object, and nothing is simulated word by word.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from npusim import walk
from npusim.costs import Clockwork
from npusim.engine.loop import Loop, Process, Waitable
from npusim.engine.state import Array, Ddr, LockState, Memory
from npusim.machine import BufferDescriptor, DmaChannel, HostBuffer, LockUse, MachineLock, Route
from npusim.report import ChannelUse

BURST = 64
"""Bytes of the smallest shim burst (AIE TM: 64, 128, 256 B); a shorter contiguous run costs the DDR a whole one. Conf. M."""


class Task(Waitable):
    """A transfer the host started on a shim channel: a chain of descriptors, run ``repeat`` + 1 times."""

    __slots__ = ("await_token", "awaited", "channel", "chain", "done", "name", "op", "passes", "started")

    def __init__(self, channel: DmaChannel, chain: list[Transfer], repeat: int, await_token: bool, name: str) -> None:
        super().__init__()
        self.channel, self.chain, self.passes = channel, chain, repeat + 1
        self.await_token, self.name = await_token, name
        self.started = self.done = self.awaited = False
        self.op: Any = None


class Transfer:
    """A buffer descriptor ready to run: its locks and memory found, its walk prepared."""

    __slots__ = ("acquires", "array", "bd", "burst", "flat", "nbytes", "next", "releases", "dimensions")

    def __init__(
        self, bd: BufferDescriptor, array: Array | None, locks: dict[MachineLock, LockState], dimensions: int
    ) -> None:
        self.bd = bd
        self.nbytes = bd.nbytes
        self.next = bd.next
        self.acquires = [self._lock(use, locks) for use in bd.acquires]
        self.releases = [self._lock(use, locks) for use in bd.releases]
        self.array = None if array is None else array.reshape(-1)
        self.dimensions = dimensions
        self.flat = self._contiguous()
        self.burst = _burst(bd)

    @staticmethod
    def _lock(use: LockUse, locks: dict[MachineLock, LockState]) -> tuple[LockState, int, bool]:
        return locks[use.lock], use.value, use.equal

    def _contiguous(self) -> Array | None:
        """The descriptor's memory as bytes, if it is one piece."""
        if self.array is None or self.bd.pad or len(simple := walk.merged(self.bd.dims)) > 1:
            return None
        if simple and (simple[0][1] != 1 or simple[0][0] != self.bd.length):
            return None
        return self.array[self.bd.offset : self.bd.offset + self.bd.length].view(np.uint8)

    def read(self) -> Array:
        """The bytes it puts onto the stream."""
        if self.flat is not None:
            return self.flat
        bd = self.bd
        assert self.array is not None
        data = walk.gather(
            self.array, bd.offset, bd.length, bd.dims, bd.pad, bd.pad_value, dimensions=self.dimensions
        )
        return data.view(np.uint8)

    def write(self, data: Array) -> None:
        """Put the bytes of a whole transfer where the descriptor says."""
        bd = self.bd
        if self.flat is not None:
            self.flat[:] = data
            return
        assert self.array is not None
        elements = data.view(self.array.dtype)
        walk.scatter(self.array, bd.offset, bd.length, bd.dims, elements, dimensions=self.dimensions)


def _burst(bd: BufferDescriptor) -> tuple[int, int]:
    """(bytes the DDR is busy for, bytes of payload) of one contiguous run of a host transfer."""
    simple = walk.merged(bd.dims)
    itemsize = bd.buffer.type.dtype.itemsize
    run = bd.length if not simple else simple[-1][0] if simple[-1][1] == 1 else 1
    nbytes = run * itemsize
    return (-(-nbytes // BURST) * BURST, nbytes) if nbytes < 2**16 else (1, 1)


@dataclass(eq=False)
class End:
    """One channel's state: the current transfer, what it still lacks, and where its next ones come from."""

    channel: DmaChannel
    use: ChannelUse
    program: list[Transfer]
    tasks: deque[Task] = field(default_factory=deque)  # host-driven channels: waiting, without the running one
    arrived: Waitable = field(default_factory=Waitable)
    task: Task | None = None
    transfer: Transfer | None = None
    left: int = 0  # bytes the current transfer still lacks
    moved: int = 0
    passes: int = 0  # of the chain, complete
    staged: Array | None = None
    finished: bool = False

    def __post_init__(self) -> None:
        channel = self.channel
        self.host = not channel.descriptors  # the host sequence drives it
        self.warm = False  # has run a host task in this run
        self.track = str(channel)
        self.key = (channel.tile.col, channel.index, int(channel.direction == "S2MM"))

    def take(self) -> None:
        """Start the next host task."""
        self.task = self.tasks.popleft()
        self.task.started = True
        self.transfer, self.passes = None, 0

    def begin(self, transfer: Transfer) -> None:
        self.transfer, self.left, self.moved, self.staged = transfer, transfer.nbytes, 0, None

    def following(self) -> Transfer | None:
        """The next transfer of the chain it is in; None if that is over."""
        chain = self.task.chain if self.task else self.program
        if self.transfer is None:
            return chain[0]
        if self.transfer.next is not None:
            return chain[self.transfer.next]
        self.passes += 1
        return chain[0] if self.passes < (self.task.passes if self.task else self.channel.repeat + 1) else None


class Stream:
    """The process of one route."""

    def __init__(
        self,
        route: Route,
        ends: list[End],
        loop: Loop,
        clock: Clockwork,
        ddr: Ddr,
        trace: list[Any] | None,
        data: bool,
    ) -> None:
        self.route, self.ends = route, ends
        self.blocked: tuple[End, LockState | None] | None = None  # the end it last waited at; None: for a host task
        self._loop, self._clock, self._ddr, self._trace, self._data = loop, clock, ddr, trace, data
        self._cold = clock.cycles(clock.costs.stream_hop.value * len(route.hops))
        self._switch = clock.cycles(clock.costs.bd_switch.value)

    def process(self) -> Process:
        """Move data as long as both sides have descriptors to run."""
        loop, ends = self._loop, self.ends
        shim = [end for end in ends if end.channel.tile.row == 0]
        source, dests = ends[0], ends[1:]
        rate, switch, cold = self._clock.stream, self._switch, self._cold
        ready = cold  # the tick from which data can flow
        while True:
            extra = 0
            waited = loop.now
            for end in ends:
                if end.left:
                    continue
                if end.task is None and end.host:
                    if not end.tasks:
                        while not end.tasks:
                            self.blocked = (end, None)
                            yield end.arrived
                        ready = max(ready, loop.now + self._start_up(end))
                    end.take()
                transfer = end.following()
                if transfer is None:
                    end.finished = True
                    return
                for state, count, equal in transfer.acquires:
                    while state.value != count if equal else state.value < count:
                        self.blocked = (end, state)
                        yield state
                    if not equal:
                        state.value -= count
                end.begin(transfer)
                extra = switch
            begun = loop.now
            if begun > waited:
                ready = max(ready, begun + cold)
            nbytes = min(end.left for end in ends) if dests else source.left
            ticks = nbytes * rate + extra + max(0, ready - begun)
            for end in shim:
                assert end.transfer is not None
                busy, payload = end.transfer.burst
                request = self._ddr.request(end.key, end.channel.direction, -(-nbytes * busy // payload))
                yield request
                assert request.done is not None
                ticks = max(ticks, request.done - begun)
            yield ticks
            if self._data:
                _move(source, dests, nbytes)
            self._account(nbytes, begun, ticks)

    def _start_up(self, end: End) -> int:
        """The ticks an idle shim channel takes from a task to its first data; the first time longer."""
        costs = self._clock.costs
        if end.channel.direction == "MM2S":
            start = costs.shim_read_next if end.warm else costs.shim_read_start
        else:
            start = costs.shim_write_next if end.warm else costs.shim_write_start
        end.warm = True
        return self._clock.cycles(start.value)

    def _finish(self, end: End) -> None:
        """The running host task, if any, is over."""
        if end.task is not None:
            end.task.done = True
            self._loop.wake(end.task)
            end.task = None

    def _account(self, nbytes: int, begun: int, ticks: int) -> None:
        """Advance every end by what has moved, and let go of what is complete."""
        wake = self._loop.wake
        for end in self.ends:
            use = end.use
            use.bytes += nbytes
            use.busy += ticks
            end.left -= nbytes
            end.moved += nbytes
            if self._trace is not None:
                self._trace.append((end.track, self.route.name, "transfer", begun, ticks))
            if end.left:
                continue
            use.transfers += 1
            assert end.transfer is not None
            for state, count, _ in end.transfer.releases:
                state.value += count
                if state.waiters:
                    wake(state)
            if end.task is not None and end.transfer.next is None and end.passes + 1 >= end.task.passes:
                self._finish(end)


def _move(source: End, dests: list[End], nbytes: int) -> None:
    """Move the next ``nbytes`` of the source's descriptor to every destination's."""
    assert source.transfer is not None
    if source.staged is None:
        source.staged = source.transfer.read()
    piece = source.staged[source.moved : source.moved + nbytes]
    for end in dests:
        transfer = end.transfer
        assert transfer is not None
        if nbytes == transfer.nbytes:
            transfer.write(piece)
            continue
        if end.staged is None:
            end.staged = transfer.flat if transfer.flat is not None else np.empty(transfer.nbytes, np.uint8)
        end.staged[end.moved : end.moved + nbytes] = piece
        if nbytes == end.left and transfer.flat is None:
            transfer.write(end.staged)


def channel_end(
    channel: DmaChannel, memory: Memory | None, locks: dict[MachineLock, LockState], dimensions: int
) -> End:
    """The running state of a channel; without ``memory`` (timing only) its transfers have no data."""
    program = []
    for bd in channel.descriptors:
        assert not isinstance(bd.buffer, HostBuffer)
        program.append(Transfer(bd, None if memory is None else memory[bd.buffer], locks, dimensions))
    return End(channel, ChannelUse(channel), program)

"""Streams between DMA channels.

A stream couples the MM2S channel that feeds it with the S2MM channels it reaches (several: a broadcast). Both ends work
through their own buffer descriptors; what moves in one step is what the shortest of the current descriptors still lacks.
So a host task of a whole matrix crosses object by object, and nothing is simulated word by word.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from npusim.costs import Clockwork
from npusim.engine.channel import End
from npusim.engine.loop import Loop, Process, Waitable
from npusim.engine.state import Ddr
from npusim.machine import Route

HORIZON = 20_000
"""Core cycles that a stream without any lock may run ahead of what is shared."""


class Stream:
    """The process of one route. ``blocked`` is the end it last waited at and what for, mostly a lock (None: a host task)."""

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
        self.route, self.ends, self.every = route, ends, ends
        self.blocked: tuple[End, Waitable | None] | None = None
        self.key = ends[0].key
        self._loop, self._clock, self._ddr, self._trace, self._data = loop, clock, ddr, trace, data
        self._shim = [end for end in ends if end.channel.tile.row == 0]
        self._latency = clock.cycles(clock.costs.stream_hop.value * len(route.hops))
        self._switch = clock.cycles(clock.costs.bd_switch.value)
        self._gives_shared = any(transfer.gives_shared for end in ends for transfer in end.program)
        self.ready = 0  # the tick from which data can flow
        self._wanted: Waitable | None = None  # what to wait for; None: for its turn in the order of time
        self._in_turn = False

    def process(self) -> Process:
        """Move data as long as both sides have descriptors to run. ``now`` is the stream's own tick."""
        loop, key, ends, rate = self._loop, self.key, self.ends, self._clock.stream
        horizon, latency = self._clock.cycles(HORIZON), self._latency
        now = loop.now
        while True:
            begun, extra = now, 0
            for end in ends:
                if end.left:
                    continue
                while (tick := self._fetch(end, now)) < 0:
                    if end.finished:
                        return
                    yield self._wanted or (max(begun, loop.now), key)
                if tick > begun:
                    begun = tick
                extra = self._switch
            nbytes = min([end.left for end in ends])
            ticks = nbytes * rate + extra
            if begun > now and begun + latency > self.ready:  # the stream stood: through the switches again
                self.ready = begun + latency
            late = max(self.ready - begun, 0)
            ticks += late
            if self._shim:
                yield (begun, key)
                passed = self._from_ddr(begun, nbytes) - begun
                if passed > ticks:
                    ticks = passed
            elif begun - loop.now > horizon:
                yield (begun, key, True)
            now = begun + ticks
            if self._data:
                move(ends, nbytes)
            if self._gives_shared:
                yield (now, key)
            self._account(nbytes, begun, ticks, late)

    def _fetch(self, end: End, now: int) -> int:
        """Start the next transfer of an end; the tick at which it has its locks, or -1 if it must wait (or is finished)."""
        if end.upcoming is None:
            if end.host and end.task is None and not self._task(end, now):
                return -1
            if end.advance() is None:
                end.finished = True
                return -1
        transfer = end.upcoming
        assert transfer is not None
        if transfer.takes_shared and not self._in_turn:
            self._in_turn, self._wanted = True, None
            return -1
        lock = transfer.lacking()
        if lock is not None:
            self.blocked, self._wanted = (end, lock), lock
            return -1
        began = max(now, end.task.pushed_at) if end.task is not None else now
        end.begin()
        self._in_turn = False
        return transfer.take(began, self._loop.now)

    def _task(self, end: End, now: int) -> bool:
        """Take up the next host task; False if there is none."""
        if not end.tasks:
            self.blocked, self._wanted = (end, None), end.arrived
            return False
        end.take_up(now)
        assert end.task is not None
        if end.task.pushed_at > now:  # the channel was idle
            self.ready = max(self.ready, end.task.pushed_at + self._start_up(end))
        return True

    def _start_up(self, end: End) -> int:
        """The ticks an idle shim channel takes from a task to its first data; the first time longer."""
        costs = self._clock.costs
        if end.channel.direction == "MM2S":
            start = costs.shim_read_next if end.warm else costs.shim_read_start
        else:
            start = costs.shim_write_next if end.warm else costs.shim_write_start
        end.warm = True
        return self._clock.cycles(start.value)

    def _from_ddr(self, begun: int, nbytes: int) -> int:
        """The tick at which the DDR has served this step."""
        passed = begun
        for end in self._shim:
            assert end.transfer is not None
            busy, payload = end.transfer.burst
            asked = nbytes if busy == payload else -(-nbytes * busy // payload)
            served = self._ddr.serve(begun, end.channel.direction, asked)
            if served > passed:
                passed = served
        return passed

    def _account(self, nbytes: int, begun: int, ticks: int, late: int) -> None:
        """Advance every end by what has moved, and let go of what is complete. Data flows ``late`` ticks after ``begun``;
        a wait longer than the way through the switches, which a shim channel's start-up is, has its own event."""
        loop, trace = self._loop, self._trace
        shown = late if late > self._latency else 0
        for end in self.ends:
            use = end.use
            use.bytes += nbytes
            use.busy += ticks - shown
            end.left -= nbytes
            end.moved += nbytes
            if trace is not None:
                if shown:
                    trace.append((end.track, f"start {self.route.name}", "stall", begun, shown))
                trace.append((end.track, self.route.name, "transfer", begun + shown, ticks - shown))
            if not end.left:
                use.transfers += 1
                assert end.transfer is not None
                end.transfer.give(begun + ticks, loop)
                if end.task is not None and end.task_ends:
                    end.task.done_at = end.finished_at = begun + ticks
                    loop.wake(end.task)
                    end.task = None


def move(ends: list[End], nbytes: int) -> None:
    """Move the next ``nbytes`` of the source's descriptor to every destination's."""
    source, *dests = ends
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

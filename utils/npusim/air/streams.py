"""Streams of AIR channels: the engine's, with ends that are fed by scripts instead of programs of descriptors.

Where ends share a DMA channel, its transfers happen in the order of the party's program, so each stream waits until the
channel comes to a transfer of its own.
"""

from __future__ import annotations

from npusim.air.transfers import AirTransfer, FedEnd
from npusim.engine.channel import End
from npusim.engine.loop import Process
from npusim.engine.stream import Stream, move


class AirStream(Stream):
    """A stream of one put to its gets."""

    def _fetch(self, end: End, now: int) -> int:
        """Start the next transfer of an end; the tick at which it may begin, or -1 if it must wait."""
        if not isinstance(end, FedEnd):
            return super()._fetch(end, now)
        transfer = end.upcoming
        if transfer is None and (transfer := end.advance()) is None:
            self.blocked, self._wanted = (end, None), end.arrived
            return -1
        lacking = transfer.lacking()
        if lacking is not None:
            self.blocked, self._wanted = (end, lacking), lacking
            return -1
        end.begin()
        return transfer.take(now, self._loop.now)


class SharedStream(AirStream):
    """A stream with ends that other streams use, too."""

    def process(self) -> Process:
        """As :meth:`Stream.process`, but an end may be busy with another stream's transfer, or come to one first."""
        loop, key, ends, rate = self._loop, self.key, self.ends, self._clock.stream
        now = loop.now
        while True:
            begun, extra = now, 0
            for end in ends:
                if end.left and not self._elsewhere(end):
                    continue
                while (tick := self._fetch_mine(end, now)) < 0:
                    yield self._wanted or (max(begun, loop.now), key)
                begun, extra = max(begun, tick), self._switch
            nbytes = min(end.left for end in ends)
            if begun > now and begun + self._latency > self.ready:
                self.ready = begun + self._latency
            late = max(self.ready - begun, 0)
            ticks = nbytes * rate + extra + late
            if self._shim:
                yield (begun, key)
                ticks = max(ticks, self._from_ddr(begun, nbytes) - begun)
            now = begun + ticks
            if self._data:
                move(ends, nbytes)
            self._account(nbytes, begun, ticks, late)
            for end in ends:
                if isinstance(end, FedEnd) and not end.left:
                    end.free_at = now
                    loop.wake(end.passed)

    def _elsewhere(self, end: End) -> bool:
        """Whether an end moves, or comes to, something of another stream."""
        if not isinstance(end, FedEnd):
            return False
        transfer = end.transfer if end.left else end.upcoming
        return isinstance(transfer, AirTransfer) and transfer.route not in (None, self.route)

    def _fetch_mine(self, end: End, now: int) -> int:
        if not isinstance(end, FedEnd):
            return super()._fetch(end, now)
        if end.upcoming is None and not end.left:
            end.advance()
        if self._elsewhere(end):
            self.blocked, self._wanted = (end, end.passed), end.passed
            return -1
        return super()._fetch(end, max(now, end.free_at))

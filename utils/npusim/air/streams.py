"""Streams of AIR channels: the engine's, with ends that are fed by scripts instead of programs of descriptors."""

from __future__ import annotations

from npusim.air.transfers import FedEnd
from npusim.engine.channel import End
from npusim.engine.stream import Stream


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

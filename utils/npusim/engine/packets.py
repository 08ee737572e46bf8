"""Packet-switched streams: several share a DMA channel, and each transfer of the source is a packet with the id of its route.

A packet holds every channel it goes to until all of it has passed. Where several wait for a channel, who came first goes
first. A receiving descriptor takes what comes, whatever the id.
"""

from __future__ import annotations

from collections import Counter, deque
from typing import Any

from npusim.costs import Clockwork
from npusim.engine.channel import End
from npusim.engine.loop import Loop, Process, Waitable
from npusim.engine.state import Ddr
from npusim.engine.stream import Stream, move
from npusim.errors import DesignError
from npusim.machine import DmaChannel, Route

HEADER = 4
"""Bytes before the data of each packet."""


class Turnstile(Waitable):
    """The entry of a receiving channel: who waits for it, the holder first, and when the last packet was through."""

    __slots__ = ("free_at", "queue")

    def __init__(self) -> None:
        super().__init__()
        self.queue: deque[PacketStream] = deque()
        self.free_at = 0


class PacketStream(Stream):
    """The process of one source channel. ``every`` are its ends: the source, and all that it can reach."""

    def __init__(
        self,
        routes: list[Route],
        ends: dict[DmaChannel, End],
        turnstiles: dict[DmaChannel, Turnstile],
        loop: Loop,
        clock: Clockwork,
        ddr: Ddr,
        trace: list[Any] | None,
        data: bool,
    ) -> None:
        dests = dict.fromkeys(channel for route in routes for channel in route.dests)
        super().__init__(routes[0], [ends[c] for c in (routes[0].source, *dests)], loop, clock, ddr, trace, data)
        self._routes = {route.packet_id: route for route in routes}
        self._found, self._turnstiles = ends, turnstiles
        self.strays: Counter[tuple[str, DmaChannel, int | None, int]] = Counter()
        """Packets whose id is not what the receiving descriptor is there for: stream, channel, id, expected id."""

    def process(self) -> Process:
        """Packet by packet. ``now`` is the stream's own tick."""
        loop, key, source = self._loop, self.key, self.every[0]
        now = loop.now
        while True:
            while (tick := self._fetch(source, now)) < 0:
                if source.finished:
                    return
                yield self._wanted or (max(now, loop.now), key)
            now = max(now, tick)
            self._choose(source)
            yield (now, key)  # those who want a channel queue in the order of time
            held = [self._turnstiles[end.channel] for end in self.ends[1:]]
            for turnstile in held:
                turnstile.queue.append(self)
            for turnstile in held:
                while turnstile.queue[0] is not self:
                    self.blocked = (source, turnstile)
                    yield turnstile
                now = max(now, turnstile.free_at)
            now = yield from self._packet(now)
            for turnstile in held:
                turnstile.queue.popleft()
                turnstile.free_at = now
                loop.wake(turnstile)

    def _choose(self, source: End) -> None:
        """Take up the route of the packet that the source begins."""
        assert source.transfer is not None
        number = source.transfer.bd.packet_id
        if number is None and len(self._routes) == 1:
            number = next(iter(self._routes))
        route = self._routes.get(number)
        if route is None:
            raise DesignError(
                f"{source.channel} sends a packet of id {number}, for which there is no way; ids with one: "
                f"{', '.join(map(str, self._routes))}"
            )
        self.route = route
        self.ends = [source, *(self._found[channel] for channel in route.dests)]
        self._shim = [end for end in self.ends if end.channel.tile.row == 0]
        self._latency = self._clock.cycles(self._clock.costs.stream_hop.value * len(route.hops))

    def _packet(self, now: int) -> Any:
        """Move one packet; gives the tick of its end."""
        loop, ends, rate = self._loop, self.ends, self._clock.stream
        source, header = ends[0], HEADER * self._clock.stream
        while source.left:
            begun, extra = now, header
            for end in ends[1:]:
                if end.left:
                    continue
                while (tick := self._fetch(end, now)) < 0:
                    yield self._wanted or (max(begun, loop.now), self.key)
                begun, extra = max(begun, tick), extra + self._switch
                self._check(end)
            nbytes = min(end.left for end in ends)
            if begun > now and begun + self._latency > self.ready:
                self.ready = begun + self._latency
            late = max(self.ready - begun, 0)
            ticks = nbytes * rate + extra + late
            if self._shim:
                yield (begun, self.key)
                ticks = max(ticks, self._from_ddr(begun, nbytes) - begun)
            now, header = begun + ticks, 0
            if self._data:
                move(ends, nbytes)
            if self._gives_shared:
                yield (now, self.key)
            self._account(nbytes, begun, ticks, late)
        return now

    def _check(self, end: End) -> None:
        """Note a packet that meets a descriptor meant for another."""
        assert end.transfer is not None and self.route.packet_id is not None
        expected = end.transfer.bd.packet_id
        if expected is not None and expected != self.route.packet_id:
            self.strays[self.route.name, end.channel, self.route.packet_id, expected] += 1

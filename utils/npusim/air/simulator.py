"""AIR designs on the engine: the streams, cores and host of a placed design, and runs of it."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any

from npusim.air import corecode, corevectors  # noqa: F401  (they serve the operations of AIR cores)
from npusim.air.corecode import CoreLinks
from npusim.air.feeds import CoreFeed, MemFeed, known_end
from npusim.air.hostplan import HostPlan
from npusim.air.machine import AirCore, AirMachine
from npusim.air.memory import far
from npusim.air.moves import Moved, Walk
from npusim.air.parts import CoreParty, End, Party
from npusim.air.periodic import LaunchPeriodicity
from npusim.air.spread import pieces
from npusim.air.streams import AirStream, SharedStream
from npusim.air.transfers import BufferState, FedEnd
from npusim.engine.channel import End as ChannelEnd
from npusim.engine.core import Surroundings
from npusim.engine.loop import Waitable
from npusim.engine.periodic import Periodicity
from npusim.engine.plan import Action
from npusim.engine.simulator import Simulator
from npusim.errors import DeadlockError
from npusim.ir import Value
from npusim.machine import CoreProgram, DmaChannel, Route
from npusim.report import ChannelUse, Report

Part = tuple[End, Value, Walk]
"""A transfer at an end: the buffer (or part of it) and the walk in it."""


class AirSimulator(Simulator):
    """A loaded AIR design; see :class:`npusim.engine.Simulator`."""

    machine: AirMachine
    patient = True

    def __init__(self, machine: AirMachine, **how: Any) -> None:
        assert machine.parties is not None
        self.air, self.parties = machine, machine.parties
        self.fed: dict[End, FedEnd] = {}
        self.sharing: dict[End, Route] = {}  # the streams of ends that share a DMA channel with others
        self.feeds: list[MemFeed | CoreFeed] = []
        self._simple: dict[tuple[Moved, tuple[int, ...]], End] = {}  # transfers of buffers that are not cut
        self.arrived = Waitable()
        self.queues: dict[CoreProgram, deque[tuple[int, ...]]] = {}
        super().__init__(machine, **how)
        self.loop.ends = True  # scripts and the bodies of herds are finite

    @property
    def parties_by_channel(self) -> dict[DmaChannel, list[End]]:
        """The ends of AIR channels that each DMA channel serves."""
        found: dict[DmaChannel, list[End]] = {}
        for end, channel in self.air.channel_of.items():
            found.setdefault(channel, []).append(end)
        return found

    @property
    def core_feeds(self) -> list[CoreFeed]:
        """The feeds of cores."""
        return [feed for feed in self.feeds if isinstance(feed, CoreFeed)]

    # -- loading

    def _end(self, channel: DmaChannel) -> ChannelEnd:
        if channel.tile.row == 0:
            return ChannelEnd(channel, ChannelUse(channel), [])
        return FedEnd(channel, ChannelUse(channel), [])

    def _load_streams(self) -> None:
        for end, channel in self.air.channel_of.items():
            made = self.ends[channel]
            if isinstance(made, FedEnd):
                self.fed[end] = made
        for put, route in self.air.route_of.items():
            ends = [self.ends[channel] for channel in (route.source, *route.dests)]
            kind = AirStream if route.packet_id is None else SharedStream
            self.streams.append(kind(route, ends, self.loop, self.clock, self.ddr, self.trace, self.data))
            if kind is SharedStream:
                self.sharing |= dict.fromkeys((put, *far(self.parties, put)), route)
        for mem in self.parties.mems:
            self._give(MemFeed(self, mem), mem)
        self.stream_processes = [stream.process() for stream in self.streams]
        for process in self.stream_processes:
            self.loop.start(process)

    def _give(self, feed: MemFeed | CoreFeed, party: Party) -> None:
        self.feeds.append(feed)
        for end, fed in self.fed.items():
            if end.party is party and (fed.channel.direction == "S2MM" or isinstance(feed, MemFeed)):
                fed.feed = feed

    def _load_cores(self, given: Mapping[str, Any] | None) -> None:
        self._core_links: dict[CoreProgram, CoreLinks] = {}
        for program in self.machine.cores:
            assert isinstance(program, AirCore) and program.party is not None
            party = program.party
            states = {value: [BufferState(b) for b in copies] for value, copies in party.buffers.items()}
            feed = CoreFeed(self, party, states)
            self._give(feed, party)
            queue = self.queues[program] = deque()
            self._core_links[program] = CoreLinks(feed, queue, self.arrived, states, *self._numbers(party))
        super()._load_cores(given)

    def _surroundings(self, given: Mapping[str, Any] | None) -> Surroundings:
        around = super()._surroundings(given)
        around.air = self._core_links
        return around

    def _numbers(self, party: CoreParty) -> tuple[dict[int, FedEnd], dict[Any, int]]:
        """For the gets and puts of a core whose channel index is fixed: the DMA channel; for cascade transfers: bytes."""
        ends: dict[int, FedEnd] = {}
        sizes: dict[Any, int] = {}
        for i, op in enumerate(party.projection.moves):
            move: Moved = op.attrs["move"]
            if op.name in ("air.send", "air.receive"):
                sizes[op] = _length(move) * move.type.dtype.itemsize
            elif not any(isinstance(n, Value) for n in move.indices):
                indices = tuple(int(n) for n in move.indices if not isinstance(n, Value))
                key = self.parties.key(move, indices)
                table = self.parties.puts if move.side == "put" else self.parties.gets
                ends[i] = self.fed[table[key]]
        return ends, sizes

    # -- running

    def resolve(self, party: Party, move: Moved, indices: tuple[int, ...], at: Walk) -> list[Part]:
        """The ends that a transfer goes through, several where a buffer was cut into parts."""
        if (known := self._simple.get((move, indices))) is not None:
            return [(known, move.memref, at)]
        key = self.parties.key(move, indices)
        table = self.parties.puts if move.side == "put" else self.parties.gets
        cut = self.air.cuts.get(move.memref)
        if cut is not None and key != cut.single:
            value, part = cut.part(at)
            return [(known_end(table, key, move), value, part)]
        if cut is not None:
            whole = [Walk(0, ((cut.length, 1),))] * len(cut.parts)
            return [(table[k], v, w) for k, v, w in zip(cut.ends, cut.parts, whole, strict=True)]
        if party is self.parties.host and key not in table:
            for other in self.air.cuts.values():
                if other.single == key:
                    walks = pieces(at, other.length, len(other.parts)) or []
                    return [(table[k], move.memref, w) for k, w in zip(other.ends, walks, strict=True)]
        self._simple[move, indices] = known_end(table, key, move)
        return [(self._simple[move, indices], move.memref, at)]

    def _actions(self, args: Sequence[Any]) -> list[Action]:
        plan = HostPlan(self, list(args))
        actions = plan.plan()
        self.boundaries = plan.boundaries
        now = self.loop.now
        launches = list(self.parties.launches)
        for feed in self.feeds:
            feed.launches.extend(launches)
        for queue in self.queues.values():
            queue.extend((now, *ids) for ids in launches)
        self.loop.wake(self.arrived)
        for end in self.fed.values():
            self.loop.wake(end.arrived)
        return actions

    def _periodicity(self, actions: list[Action]) -> Periodicity:
        return LaunchPeriodicity(self, actions, self.boundaries)

    def _report(self, begun: int, resumptions: int, cascaded: int) -> Report:
        report = super()._report(begun, resumptions, cascaded)
        report.notes += self.air.notes
        return report

    def _explain(self) -> DeadlockError:
        from npusim.air.deadlock import explain

        return explain(self)


def _length(move: Moved) -> int:
    n = 1
    for size in move.sizes:
        assert not isinstance(size, Value)
        n *= size
    return n

"""The placed form of an AIR design: a machine whose DMA channels are driven by the scripts of its parties."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field

from npusim.air.channels import assign, routes
from npusim.air.checks import cascade_pairs, check
from npusim.air.graph import Side
from npusim.air.lifetimes import release_and_drain
from npusim.air.memory import make_buffers, place_l2
from npusim.air.moves import Walk
from npusim.air.parts import CoreParty, End, MemParty, Parties, Party, find_parties
from npusim.air.patterns import check_patterns
from npusim.air.spread import Cut, spread
from npusim.errors import CapacityError
from npusim.graph import Design
from npusim.ir import Block, Op, Region, Value
from npusim.machine import (
    BufferDescriptor,
    CascadeLink,
    CoreProgram,
    DmaChannel,
    HostBuffer,
    Machine,
    MachineLock,
    MemBuffer,
    Route,
)
from npusim.messages import count, explain
from npusim.place.routes import route
from npusim.types import MemRefType

NOTE = (
    "MLIR-AIR: timing of an idealised compilation. Transfers go as early as their data, buffer and channel allow, what a launch "
    "moves on one channel costs one host task, and buffers are doubled where the compiler would."
)


@dataclass(eq=False)
class AirCore(CoreProgram):
    """A core's program: its projection, one turn a launch."""

    party: CoreParty | None = None


@dataclass(eq=False)
class AirMachine(Machine):
    """The machine and what drives it."""

    parties: Parties | None = None
    cuts: dict[Value, Cut] = field(default_factory=dict)
    channel_of: dict[End, DmaChannel] = field(default_factory=dict)
    route_of: dict[End, Route] = field(default_factory=dict)
    notes: list[str] = field(default_factory=lambda: [NOTE])

    @property
    def outputs(self) -> list[int]:
        """The positions of the host arrays that something is got into."""
        assert self.parties is not None
        host = self.parties.host
        ends = [end for end in self.parties.gets.values() if end.party is host]
        return sorted({host_buffer(host, memref).index for end in ends for memref in end.buffers})


def place_air(design: Design) -> AirMachine:
    """The machine of an AIR design.

    Raises CapacityError (a limit exceeded), DesignError (a rule broken) or UnsupportedError (the simulator's gap, named).
    """
    parties = find_parties(design)
    cuts = spread(parties)
    warnings = check(parties)
    where = place_l2(parties, cuts)
    buffers = make_buffers(parties, cuts, where)
    channels = assign(parties, where)
    streams = routes(parties, channels)
    _describe(parties, channels)
    check_patterns(parties, channels)
    locks = _locks(parties, channels)
    route(design.device, list(streams.values()))
    distinct = list(dict.fromkeys(channels.values()))
    assert design.air is not None
    return AirMachine(
        device=design.device,
        name=design.name,
        buffers=buffers,
        locks=locks,
        channels=distinct,
        routes=list(streams.values()),
        cores=[_program(core, design.air.options.stack_size) for core in parties.cores],
        cascades=_cascades(parties),
        kernels={kernel.name: kernel for kernel in design.kernels},
        sequence=design.air.function,
        host_channels={end.name: c for end, c in channels.items() if c.tile.row == 0},
        design=design,
        warnings=[*design.warnings, *parties.warnings, *warnings],
        parties=parties,
        cuts=cuts,
        channel_of=channels,
        route_of=streams,
    )


def _program(core: CoreParty, stack: int) -> AirCore:
    release_and_drain(core.projection.region)
    body = Region([Block(ops=[Op("air.launches", regions=[core.projection.region])])])
    buffers = {value: copies[0] for value, copies in core.buffers.items()}
    assert core.herd is not None
    return AirCore(core.tile, body, core.name, stack, buffers=buffers, loc=core.herd.loc, party=core)


def _cascades(parties: Parties) -> list[CascadeLink]:
    """One link for each pair of cores, whatever the number of channels that run over it."""
    links: dict[tuple[int, ...], CascadeLink] = {}
    for put, get in cascade_pairs(parties):
        source, dest = put.party, get.party
        assert isinstance(source, CoreParty) and isinstance(dest, CoreParty)
        links.setdefault((*source.tile, *dest.tile), CascadeLink(source.tile, dest.tile, next(iter(put.locs))))
    return list(links.values())


def _describe(parties: Parties, channels: dict[End, DmaChannel]) -> None:
    """A descriptor for each buffer and walk of a channel, as the compiler would need it. CapacityError for too many."""
    users: dict[tuple[int, int], int] = defaultdict(int)
    for end, channel in channels.items():
        if channel.tile.row == 0:
            continue
        for buffer, walk in end.walks:
            for copy in end.party.buffers[buffer]:
                channel.descriptors.append(BufferDescriptor(copy, 0, walk.length, walk.dims))
                users[channel.tile] += 1
    for tile, n in users.items():
        most = parties.device.limits(tile[1]).bds.value
        if n > most:
            here = [end for end, channel in channels.items() if channel.tile == tile]
            raise CapacityError(
                explain(
                    f"tile ({tile[0]},{tile[1]}) needs {count(n, 'buffer descriptor')}; it has {most}.",
                    details=[f"{end.name}: {len(end.walks)} at {end.where}" for end in here],
                    phrase="'aie.dma_bd' op Allocator exhausted available buffer descriptor IDs.",
                    hint="move data in fewer different shapes.",
                )
            )


def _locks(parties: Parties, channels: dict[End, DmaChannel]) -> list[MachineLock]:
    """A pair for each buffer that a DMA moves, as the compiler makes them; the simulated run orders by data instead."""
    locks: list[MachineLock] = []
    used: dict[tuple[int, int], int] = defaultdict(int)
    seen: set[MemBuffer] = set()
    for end, channel in channels.items():
        for buffer in end.buffers if channel.tile.row else ():
            copies = end.party.buffers[buffer]
            if copies[0] in seen:
                continue
            seen.add(copies[0])
            for counts, init in (("free", len(copies)), ("full", 0)):
                number, used[channel.tile] = used[channel.tile], used[channel.tile] + 1
                name = f"{copies[0].name}.{counts}"
                locks.append(MachineLock(name, channel.tile, number, init, end.key[0], counts))  # type: ignore[arg-type]
    for tile, n in used.items():
        most = parties.device.limits(tile[1]).locks.value
        if n > most:
            raise CapacityError(
                explain(
                    f"the buffers of tile ({tile[0]},{tile[1]}) that DMAs move need {count(n, 'lock')}; a tile there has {most}.",
                    hint="move data through fewer buffers.",
                )
            )
    return locks


def host_buffer(party: Party, memref: Value) -> HostBuffer:
    """The host's array behind a memref of the host's projection."""
    assert isinstance(memref.type, MemRefType) and isinstance(memref.owner, Block)
    return HostBuffer(memref.owner.args.index(memref), memref.type)


__all__ = ["AirCore", "AirMachine", "MemParty", "Side", "Walk", "host_buffer", "place_air"]

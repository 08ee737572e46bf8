"""The parties of an AIR design: the host, the MemTiles of each segment instance, the cores; and the ends of channels.

Each party has its projection of the function. Every transfer in it is at one end of a channel, or of a dma_memcpy_nd, which
is like a channel of its own for each core. Who is at which end is found by letting the projections run through launches.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import product

from npusim.air.graph import Channel, Program, Side
from npusim.air.layout import Herd, Part, layout
from npusim.air.lifetimes import doubled
from npusim.air.moves import Moved, Walk
from npusim.air.project import Index, Projection, Wanted, project
from npusim.air.script import Event, Script, script
from npusim.devices import Device
from npusim.errors import DesignError, UnsupportedError
from npusim.graph import Design
from npusim.ir import Loc, Op, Value, walk
from npusim.machine import Coord, MemBuffer

SAMPLES = 64
"""Launches that are run through to see which ends there are; of more, the first of them and the last one."""

Key = tuple[str, Index, Index]
"""A channel (or dma_memcpy_nd), the segment instance it is private to (empty: none), and an index of it."""


@dataclass(eq=False)
class Party:
    """Somebody who moves data. ``buffers`` has the copies of each buffer of its projection, once they are placed."""

    name: str
    projection: Projection
    instance: Index | None = None
    doubled: set[Value] = field(default_factory=set)
    buffers: dict[Value, list[MemBuffer]] = field(default_factory=dict)
    foreseen: bool = True  # whether its transfers are known beforehand: else a core says at each what it wants

    def script(self) -> Script:
        """The transfers of its launches."""
        return script(self.projection)


@dataclass(eq=False)
class MemParty(Party):
    """The MemTiles of one segment instance."""

    part: Part | None = None


@dataclass(eq=False)
class CoreParty(Party):
    """One core: its herd, its place in it and its tile."""

    herd: Herd | None = None
    index: Index = ()
    tile: Coord = Coord(-1, -1)


@dataclass(eq=False)
class End:
    """One end of a channel: what one party puts on an index of it, or gets."""

    key: Key
    side: Side
    party: Party
    channel: Channel | None
    element: str
    locs: dict[Loc, None] = field(default_factory=dict)
    walks: dict[tuple[Value, Walk], None] = field(default_factory=dict)  # distinct (buffer, walk from element 0)
    reaches: dict[tuple[Value, Walk], None] = field(default_factory=dict)  # the same with their offsets (MemTiles only)
    sizes: list[int] = field(default_factory=list)  # elements of each transfer of the first launch, in order
    known: bool = True  # whether ``sizes`` is complete

    @property
    def name(self) -> str:
        """As in messages: ``channel 'x'[0,1]``."""
        what, _, index = self.key
        if self.channel is None:
            return what if index in ((), (0, 0)) else f"{what}, core [{','.join(map(str, index))}]"
        return f"channel {what!r}" + (f"[{','.join(map(str, index))}]" if index else "")

    @property
    def buffers(self) -> list[Value]:
        return list(dict.fromkeys(buffer for buffer, _ in self.walks))

    @property
    def cascade(self) -> bool:
        return self.channel is not None and self.channel.cascade

    @property
    def where(self) -> str:
        """The places in the source."""
        return ", ".join(map(str, self.locs))


@dataclass(eq=False)
class Parties:
    """All of a design."""

    design: Design
    device: Device
    program: Program
    parts: list[Part]
    host: Party
    mems: list[MemParty]
    cores: list[CoreParty]
    puts: dict[Key, End] = field(default_factory=dict)
    gets: dict[Key, End] = field(default_factory=dict)
    private: set[str] = field(default_factory=set)  # channels of which each segment instance has its own
    dmas: dict[Op, int] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)

    @property
    def every(self) -> Iterator[Party]:
        yield self.host
        yield from self.mems
        yield from self.cores

    @property
    def launches(self) -> Iterator[Index]:
        """The ids of each launch, in their order."""
        return product(*(range(n) for n in self.host.projection.launch))

    def key(self, move: Moved, indices: Index) -> Key:
        """The index of a channel that a put uses, or the destination that a get is."""
        if move.dma is not None:
            return f"dma_memcpy_nd at {move.loc}", (self.dmas[move.dma], *(move.instance or ())), move.core
        channel = self.program.channels.get(move.channel)
        if channel is None:
            raise DesignError(f"{move}: no channel of that name is declared")
        index = channel.put_index(indices) if move.side == "put" else channel.get_index(indices)
        return channel.name, (move.instance or ()) if channel.name in self.private else (), index

    def destinations(self, put: End) -> list[Key]:
        """Every destination of what is put, whether somebody gets there or not."""
        name, scope, index = put.key
        if put.channel is None or len(index) != len(put.channel.size):  # the latter: a part of a cut buffer
            return [put.key]
        return [(name, scope, to) for to in put.channel.destinations(index)]

    def ends(self) -> Iterator[End]:
        yield from self.puts.values()
        yield from self.gets.values()


def find_parties(design: Design) -> Parties:
    """The parties of an AIR design and the ends of its channels. DesignError for ends that do not go together."""
    assert design.air is not None
    program, function = design.air, design.air.function
    host = Party("host", project(function, Wanted(0)))
    parts = layout(design.device, host.projection.instances, host.projection.visits)
    mems = [_mem(design, part) for part in parts]
    cores = [_core(design, part, herd, index) for part in parts for herd in part.herds for index in herd.cores()]
    dmas = [op for op in walk(function) if op.name == "air.dma_memcpy_nd"]
    found = Parties(design, design.device, program, parts, host, mems, cores, dmas={op: i for i, op in enumerate(dmas)})
    found.private = _private(found)
    for party in found.every:
        _find_ends(found, party)
    return found


def _mem(design: Design, part: Part) -> MemParty:
    assert design.air is not None
    of = project(design.air.function, Wanted(1, part.segment, part.instance))
    pairs = doubled(of.region, design.air.options, 1, 1)
    return MemParty(f"segment{_label(part.instance)}", of, part.instance, pairs, part=part)


def _core(design: Design, part: Part, herd: Herd, index: Index) -> CoreParty:
    assert design.air is not None
    wanted = Wanted(2, part.segment, part.instance, herd.name, index, computes=True)
    of = project(design.air.function, wanted)
    for op in of.moves:
        channel = design.air.channels.get(op.attrs["move"].channel)
        if channel is not None and channel.cascade:
            op.name = "air.send" if op.name == "air.put" else "air.receive"
    pairs = doubled(of.region, design.air.options, 2, 2)
    name = f"{herd.name}{_label(index)}" + (f" of segment{_label(part.instance)}" if any(part.instance) else "")
    return CoreParty(name, of, part.instance, pairs, herd=herd, index=index, tile=herd.tile(index))


def _label(index: Index) -> str:
    return f"[{','.join(map(str, index))}]" if index else ""


def _private(found: Parties) -> set[str]:
    """Channels with every end inside segments: each instance has its own."""
    outside = {op.attrs["move"].channel for op in found.host.projection.moves}
    return set(found.program.channels) - outside


def _find_ends(found: Parties, party: Party) -> None:
    """Let a party's script run and note what it does at which end."""
    try:
        run = party.script()
    except UnsupportedError:
        if not isinstance(party, CoreParty):
            raise
        party.foreseen = False
        _find_static_ends(found, party)
        return
    every = list(found.launches)
    if not party.projection.region.entry.args or not _uses_ids(party):
        every = every[:1]
    launches = every if len(every) <= SAMPLES else [*every[: SAMPLES - 1], every[-1]]
    for number, ids in enumerate(launches):
        for event in run(deque([ids])):
            if event is None:
                break
            _note(found, party, event, number == 0)


def _uses_ids(party: Party) -> bool:
    """Whether what a party does can differ from launch to launch."""
    ids = set(party.projection.region.entry.args)
    return any(ids & set(op.operands) for op in walk(party.projection.region))


def _note(found: Parties, party: Party, event: Event, first: bool) -> None:
    move: Moved = party.projection.moves[event[0]].attrs["move"]
    indices, walk_of = move.filled(event[1:])
    end = _end(found, party, move, indices)
    check_reach(found, party, move, walk_of)
    end.walks[move.memref, Walk(0, walk_of.dims)] = None
    if isinstance(party, MemParty):
        end.reaches[move.memref, walk_of] = None
    if first:
        end.sizes.append(walk_of.length)


def _find_static_ends(found: Parties, party: CoreParty) -> None:
    """Of a core whose transfers depend on what memory holds: only which ends there are."""
    for op in party.projection.moves:
        move: Moved = op.attrs["move"]
        if any(isinstance(i, Value) for i in move.indices):
            raise UnsupportedError(f"{move}: a channel index that depends on what memory holds is not served")
        end = _end(found, party, move, tuple(int(i) for i in move.indices if not isinstance(i, Value)))
        end.known = False
        if not move.dynamic:
            end.walks[move.memref, Walk(0, move.filled(())[1].dims)] = None


def _end(found: Parties, party: Party, move: Moved, indices: Index) -> End:
    key = found.key(move, indices)
    table = found.puts if move.side == "put" else found.gets
    if key not in table:
        channel = found.program.channels.get(move.channel) if move.dma is None else None
        table[key] = End(key, move.side, party, channel, move.type.element)
    end = table[key]
    if end.party is not party:
        raise _two_parties(end, party, move)
    if end.element != move.type.element:
        raise DesignError(
            f"{move} moves {move.type.element}, but other transfers there ({end.where}) move {end.element}"
        )
    end.locs[move.loc] = None
    return end


def _two_parties(end: End, other: Party, move: Moved) -> DesignError:
    what = "is put on" if end.side == "put" else "is got from"
    why = (
        "the real tools accept that and silently drop one of the two streams"
        if end.side == "put"
        else "each element goes to one place only"
    )
    return DesignError(
        f"{end.name} {what} by {end.party.name} (at {end.where}) and by {other.name} (at {move.loc}); {why}. Give the channel "
        "a size and each of them an index"
        + (" (or a broadcast_shape, for everybody to get the same)" if end.side == "get" else "")
    )


def check_reach(found: Parties, party: Party, move: Moved, walk_of: Walk) -> None:
    """DesignError for a transfer that reaches beyond its memory. To read beyond an array of the host is a warning only: the
    real tools neither see it nor stop it, and what comes is what lies there."""
    last = walk_of.last
    if all(size > 0 for size, _ in walk_of.dims) and walk_of.offset >= 0 and last < move.type.size:
        return
    text = (
        f"{move} reaches elements {walk_of.offset} to {last} of a memref of {move.type.size} ({move.type}): offset "
        f"{walk_of.offset}, sizes {[n for n, _ in walk_of.dims]}, strides {[s for _, s in walk_of.dims]}"
    )
    if party is not found.host or move.side == "get" or walk_of.offset < 0 or last < move.type.size:
        raise DesignError(text)
    if not any(known.startswith(f"{move} ") for known in found.warnings):
        found.warnings.append(
            f"{text}. On the NPU it brings whatever lies behind the array; here zeros. Mend its offsets, sizes or strides"
        )

"""DMA channels of an AIR design: each end of a channel gets one, on its core, its MemTile, or a shim tile near the other end.

Where a core has more ends in one direction than channels, they share: their streams are packet-switched, as mlir-air makes
them. MemTiles and shim tiles do not share here.
"""

from __future__ import annotations

from collections import defaultdict

from npusim.air.memory import far
from npusim.air.parts import CoreParty, End, MemParty, Parties
from npusim.errors import CapacityError
from npusim.ir import Value
from npusim.machine import Coord, Direction, DmaChannel, Route
from npusim.messages import count, explain
from npusim.place.draft import label


def direction(end: End) -> Direction:
    """Puts go out of a memory, gets into it."""
    return "MM2S" if end.side == "put" else "S2MM"


def assign(parties: Parties, where: dict[Value, Coord]) -> dict[End, DmaChannel]:
    """The DMA channel of each end that is no cascade. Raises CapacityError where there are too few."""
    by_tile: dict[tuple[Coord, Direction], list[End]] = defaultdict(list)
    at_host: list[End] = []
    for end in (e for e in parties.ends() if not e.cascade):
        if isinstance(end.party, CoreParty):
            by_tile[end.party.tile, direction(end)].append(end)
        elif isinstance(end.party, MemParty):
            by_tile[where[end.buffers[0]], direction(end)].append(end)
        else:
            at_host.append(end)
    found: dict[End, DmaChannel] = {}
    for (tile, way), ends in by_tile.items():
        found |= _on_tile(parties, tile, way, ends)
    for way in ("MM2S", "S2MM"):
        found |= _on_shims(parties, way, [e for e in at_host if direction(e) == way], found)
    return {end: found[end] for end in parties.ends() if end in found}


def _on_tile(parties: Parties, tile: Coord, way: Direction, ends: list[End]) -> dict[End, DmaChannel]:
    limits = parties.device.limits(tile.row)
    most = limits.mm2s.value if way == "MM2S" else limits.s2mm.value
    if len(ends) > most and tile.row == 1:
        raise CapacityError(
            explain(
                f"{label(tile)} needs {count(len(ends), way + ' channel')}; it has {most}.",
                details=[f"{end.name} at {end.where}" for end in ends],
                phrase="number of input DMA channel exceeded"
                if way == "S2MM"
                else "number of output DMA channel exceeded",
                hint="spread the buffers over more MemTiles (more columns), broadcast instead of sending copies, or let one "
                "channel carry several things in turn.",
            )
        )
    channels = [DmaChannel(tile, way, i, fifo=end.key[0]) for i, end in enumerate(ends[:most])]
    found = {end: channels[i % most] for i, end in enumerate(ends)}
    if len(ends) > most:
        parties.warnings.append(_sharing(tile, way, ends, found))
    return found


def _sharing(tile: Coord, way: Direction, ends: list[End], found: dict[End, DmaChannel]) -> str:
    by_channel: dict[DmaChannel, list[End]] = defaultdict(list)
    for end in ends:
        by_channel[found[end]].append(end)
    shared = [(channel, users) for channel, users in by_channel.items() if len(users) > 1]
    return explain(
        f"{ends[0].party.name} on {label(tile)} needs {count(len(ends), way + ' channel')} and has {len(by_channel)}: several "
        "AIR channels share one, packet by packet.",
        details=[f"{channel}: {', '.join(end.name for end in users)}" for channel, users in shared],
        hint="here a shared channel serves them in the order of the program. The real one takes what arrives first, so that data "
        "can end up in another buffer or everything stand still: let one AIR channel carry several things in turn.",
        loc=next(iter(ends[0].locs)),
    )


def _on_shims(
    parties: Parties, way: Direction, ends: list[End], placed: dict[End, DmaChannel]
) -> dict[End, DmaChannel]:
    limits, columns = parties.device.shim, parties.device.columns
    each = limits.mm2s.value if way == "MM2S" else limits.s2mm.value
    if len(ends) > each * columns:
        raise CapacityError(
            explain(
                f"the launch needs {count(len(ends), 'shim ' + way + ' channel')}; {parties.device.name} has {each * columns} "
                f"({each} in each of {columns} columns).",
                details=[f"{end.name} at {end.where}" for end in ends],
                phrase="no ShimNOCTile has sufficient DMA capacity",
                hint="stage through a MemTile and broadcast from there, let one channel carry several things in turn, or use a "
                "smaller herd or fewer segment instances.",
            )
        )
    free = dict.fromkeys(range(columns), each)
    found: dict[End, DmaChannel] = {}
    for end in ends:
        wanted = _column(parties, end, placed)
        column = min((c for c, n in free.items() if n), key=lambda c: (abs(c - wanted), c))
        found[end] = DmaChannel(Coord(column, 0), way, each - free[column], fifo=end.key[0])
        free[column] -= 1
    return found


def _column(parties: Parties, end: End, placed: dict[End, DmaChannel]) -> int:
    """The column in which the other end lies (the westernmost of several)."""
    columns = [placed[other].tile.col for other in far(parties, end) if other in placed]
    return min(columns, default=0)


def routes(parties: Parties, channels: dict[End, DmaChannel]) -> dict[End, Route]:
    """One stream for each put end that is no cascade; packet ids where channels are shared."""
    users: dict[DmaChannel, int] = defaultdict(int)
    for channel in channels.values():
        users[channel] += 1
    found: dict[End, Route] = {}
    number = 0
    for put in parties.puts.values():
        if put not in channels:
            continue
        dests = [channels[get] for get in far(parties, put)]
        shared = any(users[channel] > 1 for channel in (channels[put], *dests))
        found[put] = Route(channels[put], dests, _name(put), packet_id=number if shared else None)
        number += shared
    return found


def _name(put: End) -> str:
    name, _, index = put.key
    return name + (f"[{','.join(map(str, index))}]" if index and put.channel is not None else "")

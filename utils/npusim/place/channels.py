"""Which DMA channel each fifo end uses: pinned ones first, then the lowest free one, in the order of the fifos.

Ends whose buffers lie partly on a neighbour MemTile come before the others, since only channels 0 to 3 reach there.
"""

from __future__ import annotations

from collections.abc import Iterator

from npusim.errors import CapacityError, DesignError
from npusim.machine import Coord, Direction
from npusim.messages import explain
from npusim.place.draft import Draft, End, label

ADJACENT_CHANNELS = 4
"""Channels of a MemTile that reach a neighbour MemTile (mlir-aie, getMaxChannelNumForAdjacentMemTile)."""

_Port = tuple[Coord, Direction, int]


def assign_channels(draft: Draft) -> None:
    """Set ``channel`` of every DMA end. Raises CapacityError when a tile's channels run out, DesignError for bad pins."""
    taken = _explicit(draft)
    ends = [end for stream in draft.streams for end in stream.ends]
    for end in ends:
        if end.pinned is not None:
            _pin(draft, end, taken)
    for spilled in (True, False):
        for end in ends:
            if end.channel is None and end.spilled == spilled:
                _first_free(draft, end, taken)


def channel_count(draft: Draft, tile: Coord, direction: str) -> int:
    """How many channels of a direction a tile has."""
    limits = draft.limits(tile)
    return (limits.s2mm if direction == "S2MM" else limits.mm2s).value


def _explicit(draft: Draft) -> dict[_Port, str]:
    """Channels that the design's own DMA programs and named flows claim."""
    taken: dict[_Port, str] = {}
    for program in draft.design.tile_dmas:
        for channel in program.channels:
            taken[draft.at(program.tile), channel.direction, channel.index] = "the design's own DMA program"
    for flow in draft.design.flows:
        if flow.shim_symbol:
            source, dest = draft.at(flow.source), draft.at(flow.dest)
            owner = f"flow {flow.shim_symbol!r}"
            if source.row == 0:
                taken[source, "MM2S", flow.source_channel] = owner
            else:
                taken[dest, "S2MM", flow.dest_channel] = owner
    return taken


def _direction(end: End) -> Direction:
    return "MM2S" if end.produce else "S2MM"


def _pin(draft: Draft, end: End, taken: dict[_Port, str]) -> None:
    assert end.pinned is not None
    direction = _direction(end)
    port = (end.tile, direction, end.pinned)
    available = channel_count(draft, end.tile, direction)
    if port in taken or not 0 <= end.pinned < available:
        why = f"it is taken by {taken[port]}" if port in taken else f"the tile has channels 0 to {available - 1}"
        text = explain(
            f"fifo {end.fifo.name!r} is pinned to channel {direction} {end.pinned} of {label(end.tile)}, but {why}.",
            phrase=f"pinned {direction} DMA channel {end.pinned} is out of range or already in use on this tile",
            hint="leave channel= out to have a free one chosen.",
            loc=end.fifo.loc,
        )
        raise DesignError(text)
    taken[port] = f"fifo {end.fifo.name!r}"
    end.channel = end.pinned


def _first_free(draft: Draft, end: End, taken: dict[_Port, str]) -> None:
    direction = _direction(end)
    available = channel_count(draft, end.tile, direction)
    if end.spilled:
        available = min(available, ADJACENT_CHANNELS)
    for index in range(available):
        if (end.tile, direction, index) not in taken:
            taken[end.tile, direction, index] = f"fifo {end.fifo.name!r}"
            end.channel = index
            return
    raise _exceeded(draft, end, direction, taken)


def _exceeded(draft: Draft, end: End, direction: Direction, taken: dict[_Port, str]) -> CapacityError:
    ends = [e for stream in draft.streams for e in stream.ends if e.tile == end.tile and e.direction == direction]
    programs = [v for (tile, d, _), v in taken.items() if tile == end.tile and d == direction and v.startswith("the ")]
    need, have = len(ends) + len(programs), channel_count(draft, end.tile, direction)
    word = "input" if direction == "S2MM" else "output"
    reach = f" ({ADJACENT_CHANNELS} of them reach a neighbour MemTile)" if end.spilled else ""
    text = explain(
        f"{label(end.tile)} needs {need} {word} DMA channels ({direction}) but has {have}{reach}.",
        details=[*_competitors(ends), *programs],
        phrase=(_placers_phrase(draft, end), f"number of {word} DMA channel exceeded!"),
        hint=_hint(end),
        loc=end.fifo.loc,
    )
    return CapacityError(text)


def _placers_phrase(draft: Draft, end: End) -> str:
    """What the real placer says: it counts a worker's ends together, but the ends of a shim tile one by one."""
    directions = ("S2MM", "MM2S")
    here = [e for stream in draft.streams for e in stream.ends if e.tile == end.tile]
    have = [channel_count(draft, end.tile, d) for d in directions]
    if end.tile.row == 0:
        need = [int(d == end.direction) for d in directions]
        have = [n - sum(e.channel is not None and e.direction == d for e in here) for n, d in zip(have, directions)]
    else:
        need = [sum(e.direction == d for e in here) for d in directions]
    return (
        f"tile ({end.tile.col}, {end.tile.row}) requires {need[0]} input/{need[1]} output DMA channels, but only "
        f"{have[0]} input/{have[1]} output available"
    )


def _competitors(ends: list[End]) -> Iterator[str]:
    for end in ends:
        what = "sends" if end.produce else "receives"
        at = "" if end.channel is None else f" on channel {end.channel}"
        yield f"fifo {end.fifo.name!r} {what} objects of {end.type.nbytes} bytes{at}"


def _hint(end: End) -> str:
    if end.tile.row == 0:
        return (
            "leave tile= out so that the streams spread over several shim tiles, or send several as one fifo and split "
            "it on a MemTile."
        )
    if end.tile.row == 1:
        return "use a second MemTile for some of the fifos."
    return (
        "join the inputs on a MemTile into one fifo, or place producer and consumer side by side so that they share "
        "memory and need no DMA."
    )

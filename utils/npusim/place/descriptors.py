"""Buffer descriptors: their ids and their number, channel parity on MemTiles included."""

from __future__ import annotations

from collections.abc import Iterator

from npusim.errors import CapacityError, DesignError
from npusim.machine import Coord, DmaChannel
from npusim.messages import count, explain
from npusim.place.draft import Draft, label


def assign_descriptors(draft: Draft) -> None:
    """Give every descriptor an id: the design's own, then the lowest free one that the channel reaches.

    Raises CapacityError if a tile, or the half of a MemTile's descriptors that a channel reaches, runs out.
    """
    by_tile: dict[Coord, list[DmaChannel]] = {}
    for channel in draft.channels:
        if channel.descriptors:
            by_tile.setdefault(channel.tile, []).append(channel)
    for tile, channels in by_tile.items():
        _assign(draft, tile, channels)


def reachable(tile: Coord, channel: int, total: int) -> range:
    """The ids that a channel can use: on a MemTile the lower half for even channels, the upper half for odd ones."""
    if tile.row != 1:
        return range(total)
    half = total // 2
    return range(half, total) if channel % 2 else range(half)


def _assign(draft: Draft, tile: Coord, channels: list[DmaChannel]) -> None:
    limit = draft.limits(tile).bds.value
    if sum(len(c.descriptors) for c in channels) > limit:
        raise _too_many(tile, channels, limit)
    taken = _wanted(tile, channels, limit)
    for channel in channels:
        ids = reachable(tile, channel.index, limit)
        for descriptor in channel.descriptors:
            if descriptor.bd_id is not None:
                continue
            free = next((i for i in ids if i not in taken), None)
            if free is None:
                raise _too_many_for(tile, channel, channels, len(ids))
            descriptor.bd_id = free
            taken.add(free)


def _wanted(tile: Coord, channels: list[DmaChannel], limit: int) -> set[int]:
    taken: set[int] = set()
    for channel in channels:
        for descriptor in channel.descriptors:
            wanted = descriptor.bd_id
            if wanted is None:
                continue
            if wanted in taken or wanted not in reachable(tile, channel.index, limit):
                why = "is taken" if wanted in taken else "cannot be used by that channel"
                raise DesignError(
                    explain(
                        f"buffer descriptor {wanted} of {channel} {why}.",
                        phrase=f"bdId attribute exceeds max: {limit - 1}" if wanted >= limit else None,
                        hint="leave the id out to have a free one chosen.",
                        loc=channel.loc,
                    )
                )
            taken.add(wanted)
    return taken


def _users(channels: list[DmaChannel]) -> Iterator[str]:
    for c in channels:
        what = f"fifo {c.fifo!r}" if c.fifo else "the design's own DMA program"
        yield f"{c.direction} {c.index}: {count(len(c.descriptors), 'descriptor')} ({what})"


def _too_many(tile: Coord, channels: list[DmaChannel], limit: int) -> CapacityError:
    total = sum(len(c.descriptors) for c in channels)
    op = "aie.memtile_dma" if tile.row == 1 else "aie.mem"
    text = explain(
        f"{label(tile)} needs {total} buffer descriptors (BDs) but has {limit}.",
        details=_users(channels),
        phrase=(f"'{op}' op has more than {limit} blocks", "Allocator exhausted available BD IDs"),
        hint="every buffer of a fifo end takes one descriptor (times its parts and repeats): use a smaller depth.",
        loc=max(channels, key=lambda c: len(c.descriptors)).loc,
    )
    return CapacityError(text)


def _too_many_for(tile: Coord, channel: DmaChannel, channels: list[DmaChannel], have: int) -> CapacityError:
    rivals = [c for c in channels if c.index % 2 == channel.index % 2]
    parity = "odd" if channel.index % 2 else "even"
    need = sum(len(c.descriptors) for c in rivals)
    text = explain(
        f"the {parity} channels of {label(tile)} need {need} buffer descriptors (BDs) but reach only {have} of its 48.",
        details=_users(rivals),
        phrase=f"Allocator exhausted available BD IDs (maximum {have} available for channel {channel.index}).",
        hint="even channels use descriptors 0 to 23 and odd ones 24 to 47: use a smaller depth, or pin a fifo to a "
        "channel of the other parity with channel=.",
        loc=channel.loc,
    )
    return CapacityError(text)

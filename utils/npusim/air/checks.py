"""Static checks of an AIR design: every put has its get, as many elements are got as put, cascades run south or east.

Put against got is counted for one launch, by index of the channel. Elements left over are worth a warning (the real tools
accept them), but a put of which nobody ever takes an element, or a get that can never be met, is refused: the first would
wait in its DMA for ever and meet the next launch, the second never end.
"""

from __future__ import annotations

from collections import defaultdict

from npusim.air.parts import CoreParty, End, Key, Parties
from npusim.air.project import herd_name
from npusim.errors import DesignError, UnsupportedError
from npusim.ir import Op, Value, base_of, walk
from npusim.machine import Coord
from npusim.messages import count, explain
from npusim.place.draft import label
from npusim.place.neighbours import adjacent, cascades
from npusim.types import MemRefType

PAIRS = "found channel op not in pairs"


def check(parties: Parties) -> list[str]:
    """Raise DesignError for what cannot work; gives the warnings."""
    _both_sides(parties)
    _shared_buffers(parties)
    warnings = [*_balance(parties), *_unused(parties), *_to_itself(parties)]
    _cascades(parties)
    return warnings


def _both_sides(parties: Parties) -> None:
    """A channel with puts needs gets, and the other way round; so does each index of it."""
    puts, gets = _by_channel(parties.puts), _by_channel(parties.gets)
    for name in {**puts, **gets}:
        if name in puts and name in gets:
            continue
        side, missing, ends = ("put", "get", puts[name]) if name in puts else ("get", "put", gets[name])
        raise DesignError(
            explain(
                f"{_subject(ends[0])} has a {side} (at {ends[0].where}) but no {missing}: "
                + (
                    "nobody ever takes what is put."
                    if side == "put"
                    else "nothing ever comes, so the get waits for ever."
                ),
                phrase=f"'air.channel.{side}' op {PAIRS}",
                hint=f"add the {missing}, or take the {side} away.",
                loc=next(iter(ends[0].locs)),
            )
        )
    fed = {key for put in parties.puts.values() for key in parties.destinations(put)}
    for get in parties.gets.values():
        if get.key not in fed:
            raise DesignError(
                explain(
                    f"{get.name} is got from by {get.party.name} (at {get.where}), but no put reaches this index.",
                    details=[f"{put.name} is put by {put.party.name} (at {put.where})" for put in puts[get.key[0]][:6]],
                    hint="get indices are taken modulo the extents of the broadcast; put on this index, or widen broadcast_shape.",
                )
            )


def _by_channel(ends: dict[Key, End]) -> dict[str, list[End]]:
    found: dict[str, list[End]] = defaultdict(list)
    for end in ends.values():
        found[end.key[0]].append(end)
    return found


def _subject(end: End) -> str:
    return f"channel {end.key[0]!r}" if end.channel is not None else end.key[0]


def _balance(parties: Parties) -> list[str]:
    warnings = []
    for put in parties.puts.values():
        keys = parties.destinations(put)
        for key in keys:
            get = parties.gets.get(key)
            if get is None:
                if put.known:
                    raise _never_taken(put, len(put.sizes), f"nobody gets from index {list(key[2])}")
            elif put.element != get.element:
                raise DesignError(
                    f"{put.name}: {put.party.name} puts {put.element} (at {put.where}), but {get.party.name} gets "
                    f"{get.element} (at {get.where})"
                )
            elif put.known and get.known:
                warnings += _compare(put, get)
    return warnings


def _compare(put: End, get: End) -> list[str]:
    given, taken = sum(put.sizes), sum(get.sizes)
    if given == taken:
        return []
    counts = (
        f"{get.name}: in each launch {put.party.name} puts {given} elements (at {put.where}) and {get.party.name} gets {taken} "
        f"(at {get.where})"
    )
    if taken > given:
        raise DesignError(
            explain(
                f"{counts}: the last get can never be met.",
                details=[
                    f"{count(len(put.sizes), 'put')}: {_listed(put)}",
                    f"{count(len(get.sizes), 'get')}: {_listed(get)}",
                ],
                hint="a channel is a stream: over a launch, as many elements must be put as are got.",
            )
        )
    left, reached = 0, 0
    for size in put.sizes:
        left += reached >= taken
        reached += size
    if left:
        raise _never_taken(put, left, counts)
    return [f"{counts}: {given - taken} elements stay in the channel and meet the first get of the next launch."]


def _listed(end: End) -> str:
    sizes = [str(n) for n in end.sizes[:8]]
    return " + ".join(sizes) + (" + ..." if len(end.sizes) > 8 else "") + " elements"


def _never_taken(put: End, left: int, why: str) -> DesignError:
    return DesignError(
        explain(
            f"{put.name}: {left} of {count(len(put.sizes), 'put')} by {put.party.name} (at {put.where}) "
            f"{'is' if left == 1 else 'are'} never taken: {why}.",
            phrase=f"'air.channel.put' op {PAIRS}",
            hint="each put needs its get at every destination of the channel, as often as it runs.",
        )
    )


def _unused(parties: Parties) -> list[str]:
    used = {end.key[0] for end in parties.ends()}
    return [
        f"channel {name!r} (declared at {channel.loc}) is never used"
        for name, channel in parties.program.channels.items()
        if name not in used
    ]


def _to_itself(parties: Parties) -> list[str]:
    """A core that gets what it puts. When the compiled put leaves depends on where its buffer is deallocated."""
    return [
        explain(
            f"{put.name}: {put.party.name} gets (at {parties.gets[key].where}) what it puts itself (at {put.where}).",
            hint="compiled, what is put leaves where its buffer is deallocated or its life ends, not where the put stands, so the "
            "get may wait for ever: deallocate the buffer before the get, or keep the data in a buffer of the segment.",
            loc=next(iter(put.locs)),
        )
        for put in parties.puts.values()
        if isinstance(put.party, CoreParty)
        for key in parties.destinations(put)
        if key in parties.gets and parties.gets[key].party is put.party
    ]


def _shared_buffers(parties: Parties) -> None:
    """An L1 buffer of a segment belongs to the cores of one herd."""
    for segment in (op for op in walk(parties.program.function) if op.name == "air.segment"):
        users: dict[Value, set[str]] = defaultdict(set)
        for herd in (op for op in walk(segment.regions[0]) if op.name == "air.herd"):
            for value in herd.operands:
                users[base_of(value)].add(herd_name(herd))
        for buffer, herds in users.items():
            if isinstance(buffer.type, MemRefType) and buffer.type.space == 2 and len(herds) > 1:
                assert isinstance(buffer.owner, Op)
                raise UnsupportedError(
                    f"the L1 buffer allocated at {buffer.owner.loc} is passed to several herds ({', '.join(sorted(herds))}), which "
                    "is not served: an L1 buffer of a segment is private to each core of one herd. Send the data on a channel"
                )


# -- cascades


def cascade_pairs(parties: Parties) -> list[tuple[End, End]]:
    """(put, get) of every cascade channel."""
    return [
        (put, parties.gets[key])
        for put in parties.puts.values()
        if put.cascade
        for key in parties.destinations(put)
        if key in parties.gets
    ]


def _cascades(parties: Parties) -> None:
    ahead: dict[Coord, tuple[Coord, End]] = {}
    behind: dict[Coord, tuple[Coord, End]] = {}
    for put, get in cascade_pairs(parties):
        source, dest = put.party, get.party
        if not (isinstance(source, CoreParty) and isinstance(dest, CoreParty)):
            side = get if isinstance(source, CoreParty) else put
            raise DesignError(
                f"{put.name} is a cascade, but {side.party.name} (at {side.where}) is no compute tile: only those have one"
            )
        _direction(put, source, get, dest)
        for table, here, there, end in ((ahead, source, dest, put), (behind, dest, source, get)):
            other = table.setdefault(here.tile, (there.tile, end))
            if other[0] != there.tile:
                raise _twice(here, other, (there.tile, end))


def _direction(put: End, source: CoreParty, get: End, dest: CoreParty) -> None:
    if cascades(source.tile, dest.tile):
        return
    where = f"{source.name} on {label(source.tile)} (put at {put.where}) to {dest.name} on {label(dest.tile)} (get at {get.where})"
    if not adjacent(source.tile, dest.tile):
        raise DesignError(
            explain(
                f"{put.name} is a cascade from {where}, which are no neighbours.",
                phrase="'aie.cascade_flow' op tiles must be adjacent",
                hint="a cascade runs from a core to its neighbour in the south or east: core [x, y] to [x, y-1] or [x+1, y].",
            )
        )
    heading = "north" if dest.tile.row > source.tile.row else "west"
    raise DesignError(
        explain(
            f"{put.name} is a cascade from {where}, that is {heading}; cascades run only south (to the row below) and east.",
            phrase="'aie.cascade_flow' op source tile must be to the North or West of the destination tile",
            hint="swap the two: a herd's second coordinate counts rows from the south, so send from ty to ty - 1.",
        )
    )


def _twice(core: CoreParty, one: tuple[Coord, End], other: tuple[Coord, End]) -> DesignError:
    word = "out of" if one[1].side == "put" else "into"
    return DesignError(
        explain(
            f"two cascades go {word} {core.name} on {label(core.tile)}; a core has one cascade input and one output.",
            details=[
                f"{end.name} at {end.where}, {'to' if word == 'out of' else 'from'} {tile}"
                for tile, end in (one, other)
            ],
            hint="chain the cores one after the other. The real tools accept this and lose the first cascade.",
        )
    )

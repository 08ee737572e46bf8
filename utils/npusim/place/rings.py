"""The buffers and locks of every fifo.

Rings are made in the order of the real lowering, MemTile rings largest first, because that decides which buffers spill
into a neighbour MemTile when one is full.
"""

from __future__ import annotations

from npusim.graph import Fifo, Link
from npusim.machine import Coord, MachineLock, MemBuffer
from npusim.messages import explain, size
from npusim.place import links
from npusim.place.draft import NOWHERE, Draft, End, LockPair, Ring, label
from npusim.place.neighbours import reaches


def make_rings(draft: Draft) -> None:
    """Give every end its ring; the ends of a link share one. Warns about buffers that spill to another MemTile."""
    linked = _link_ends(draft)
    owners = {link: links.owner(link, ends) for link, ends in linked.items()}
    for end in _order(draft):
        if end.link is None or owners[end.link] is end:
            end.ring = _ring(draft, end)
            draft.rings.append(end.ring)
    for link, ends in linked.items():
        for end in ends.values():
            end.ring = owners[link].ring


def _link_ends(draft: Draft) -> dict[Link, dict[Fifo, End]]:
    found: dict[Link, dict[Fifo, End]] = {}
    for stream in draft.streams:
        for end in stream.ends:
            if end.link is not None:
                found.setdefault(end.link, {})[end.fifo] = end
    return found


def _order(draft: Draft) -> list[End]:
    """The ends in the real lowering's order: by fifo, consumers from the last, MemTile ends by falling object size."""
    by_fifo = {end.fifo: [end] for end in draft.shared}
    by_fifo |= {s.fifo: [s.producer, *reversed(s.consumers)] for s in draft.streams}
    ends = [end for fifo in draft.design.fifos for end in by_fifo[fifo]]
    home = [draft.at(end.fifo.producer) if end.shared else end.tile for end in ends]
    slots = [i for i, tile in enumerate(home) if tile.row == 1]
    largest_first = sorted((ends[i] for i in slots), key=lambda e: -e.type.nbytes)
    for i, end in zip(slots, largest_first):
        ends[i] = end
    return ends


def _ring(draft: Draft, end: End) -> Ring:
    ring = Ring(end.name, end.tile, [], [])
    if end.tile.row > 0:
        for index in range(end.depth):
            ring.buffers.append(_buffer(draft, end, index, ring))
    ring.pairs = _locks(end)
    return ring


def _buffer(draft: Draft, end: End, index: int, ring: Ring) -> MemBuffer:
    initial = end.fifo.init_values
    return MemBuffer(
        name=f"{end.name}_buff_{index}",
        tile=_home(draft, end, ring),
        type=end.type,
        initial=initial[index] if initial is not None and end.produce else None,
        fifo=end.fifo.name,
        loc=end.fifo.loc,
    )


def _home(draft: Draft, end: End, ring: Ring) -> Coord:
    """The tile of the next buffer: its own, or a neighbour MemTile with room when a MemTile is full."""
    tile, need = end.tile, end.type.nbytes
    capacity = draft.limits(tile).memory.value
    if tile.row != 1 or _used(draft, ring, tile) + need <= capacity:
        return tile
    around = [Coord(tile.col - 1, 1), Coord(tile.col + 1, 1)]
    candidates = sorted(
        (t for t in around if reaches(draft.design.device, tile, t)), key=lambda t: _used(draft, ring, t)
    )
    for neighbour in candidates:
        if _used(draft, ring, neighbour) + need <= capacity:
            draft.warn(
                explain(
                    f"{label(tile)} is full: a buffer of fifo {end.fifo.name!r} ({need} bytes) goes to {label(neighbour)}.",
                    details=[f"{_used(draft, ring, tile)} of {size(capacity)} are taken on {label(tile)}"],
                    hint="only DMA channels 0 to 3 of a MemTile reach a neighbour's memory; use smaller objects or a "
                    "smaller depth to keep the data on one MemTile.",
                    loc=end.fifo.loc,
                )
            )
            return neighbour
    return tile


def _used(draft: Draft, ring: Ring, tile: Coord) -> int:
    """Bytes that fifo buffers take on a tile so far, as the real lowering counts them."""
    return sum(b.type.nbytes for r in (*draft.rings, ring) for b in r.buffers if b.tile == tile)


def _locks(end: End) -> list[LockPair]:
    """One pair for a fifo, one a part for a split or join; ``repeat_count`` multiplies what they count."""
    fifo, link = end.fifo, end.link
    if fifo.disable_synchronization or cycles_initial_values(end):
        return []
    filled = len(fifo.init_values) if fifo.init_values is not None and end.produce else 0
    repeat = (fifo.repeat_count or 1) if end.produce else 1
    if link is not None:
        repeat = links.repeats(link) if links.repeats(link) > 1 else repeat
    slots = end.depth if end.tile.row > 0 else 0
    names = [
        (f"{end.name}_prod_lock_{i}", f"{end.name}_cons_lock_{i}") for i in range(links.parts(link) if link else 1)
    ]
    return [
        LockPair(
            MachineLock(free, end.tile, NOWHERE, (slots - filled) * repeat, fifo.name, "free"),
            MachineLock(full, end.tile, NOWHERE, filled * repeat, fifo.name, "full"),
        )
        for free, full in names
    ]


def cycles_initial_values(end: End) -> bool:
    """A producer whose buffers are all given at load time and sent ``iter_count`` times: nothing refills them, so the
    real lowering leaves out its locks."""
    fifo = end.fifo
    return (
        end.produce
        and end.link is None
        and fifo.init_values is not None
        and (fifo.iter_count or 1) > 1
        and len(fifo.init_values) == end.depth
    )

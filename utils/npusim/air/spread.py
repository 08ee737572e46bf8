"""MemTile buffers that several cores fill, or empty, part by part: each part becomes a buffer of its own.

So mlir-air's compiler spreads a gathered result over the MemTiles of its columns (AIRSplitL2MemrefForBufferConstraint, August
2026): for segments of more than four tiles, a buffer that is cut into equal, contiguous parts by the channels on one side
and moved whole by one channel to or from DDR on the other. That channel becomes one for each part, and so does its end at
the host.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from npusim import walk
from npusim.air.moves import Walk
from npusim.air.parts import CoreParty, End, Key, MemParty, Parties
from npusim.ir import Value
from npusim.types import MemRefType

TILES = 4
"""A segment of more compute tiles than this has its buffers cut (the pass's default tiles-per-l2-tile)."""


@dataclass(eq=False)
class Cut:
    """A buffer cut into parts of ``length`` elements, in order. ``single`` is the key of the channel that moved it whole."""

    parts: list[Value]
    length: int
    single: Key
    ends: list[Key]  # what that channel became

    def part(self, at: Walk) -> tuple[Value, Walk]:
        """The part that a transfer touches, and its walk there."""
        return self.parts[at.offset // self.length], Walk(at.offset % self.length, at.dims)


def spread(parties: Parties) -> dict[Value, Cut]:
    """Cut what can be cut; gives the cuts by the buffer in its party's projection."""
    cuts: dict[Value, Cut] = {}
    for mem in parties.mems:
        assert mem.part is not None
        if sum(herd.columns * herd.rows for herd in mem.part.herds) > TILES:
            for buffer in mem.projection.allocations:
                if buffer not in mem.doubled and (cut := _cut(parties, mem, buffer)) is not None:
                    cuts[buffer] = cut
    return cuts


def _cut(parties: Parties, mem: MemParty, buffer: Value) -> Cut | None:
    users = [end for end in parties.ends() if end.party is mem and buffer in end.buffers]
    many, single = _sides(parties, users)
    if single is None or any(len(end.buffers) > 1 for end in users):
        return None
    size = _size(buffer)
    if size % len(many) or not _whole(single, size):
        return None
    length = size // len(many)
    places = [_place(parties, end, buffer, length) for end in many]
    far = (parties.gets if single.side == "put" else parties.puts).get(single.key)
    if far is None or far.party is not parties.host or sorted(places) != list(range(len(many))):
        return None
    if any(pieces(w, length, len(many)) is None for _, w in far.walks):
        return None
    return _apply(parties, buffer, length, len(many), single, far)


def _sides(parties: Parties, users: list[End]) -> tuple[list[End], End | None]:
    """The ends of the side that several cores are on, and the one end of the other."""
    puts, gets = ([end for end in users if end.side == side] for side in ("put", "get"))
    for many, other in ((puts, gets), (gets, puts)):
        if len(many) > 1 and len(other) == 1 and all(_to_core(parties, end) for end in many):
            return many, other[0]
    return [], None


def _to_core(parties: Parties, end: End) -> bool:
    if end.side == "get":
        far = [p for p in parties.puts.values() if end.key in parties.destinations(p)]
    else:
        far = [parties.gets[k] for k in parties.destinations(end) if k in parties.gets]
    return bool(far) and all(isinstance(other.party, CoreParty) for other in far)


def _size(buffer: Value) -> int:
    assert isinstance(buffer.type, MemRefType)
    return buffer.type.size


def _whole(end: End, size: int) -> bool:
    """Whether an end always moves its buffer from first to last element."""
    return all(walk.merged(w.dims) in ((), ((size, 1),)) and w.length == size for _, w in end.walks)


def _place(parties: Parties, end: End, buffer: Value, length: int) -> int:
    """Which part an end always works on; -1 if on none or several."""
    found = {
        w.offset // length if w.last // length == w.offset // length else -1 for b, w in end.reaches if b is buffer
    }
    return found.pop() if len(found) == 1 else -1


def pieces(at: Walk, length: int, count: int) -> list[Walk] | None:
    """A walk in ``count`` consecutive pieces of ``length`` elements; None if it does not fall apart that way."""
    dims = walk.merged(at.dims) or ((1, 1),)
    (size, stride), inner = dims[0], dims[1:]
    each = 1
    for n, _ in inner:
        each *= n
    if at.length != length * count or length % each or size % (length // each):
        return None
    step = length // each
    return [Walk(at.offset + i * step * stride, ((step, stride), *inner)) for i in range(count)]


def _apply(parties: Parties, buffer: Value, length: int, n: int, single: End, far: End) -> Cut:
    assert isinstance(buffer.type, MemRefType)
    shape = buffer.type.shape
    part_shape = (shape[0] // n, *shape[1:]) if shape[0] % n == 0 else (length,)
    type = replace(buffer.type, shape=part_shape)
    values = [Value(type, buffer.owner) for _ in range(n)]
    name, scope, index = single.key
    keys: list[Key] = [(name, scope, (*index, i)) for i in range(n)]
    for end in (single, far):
        table = parties.puts if end.side == "put" else parties.gets
        del table[end.key]
        for i, key in enumerate(keys):
            sizes = [size // n for size in end.sizes]
            walks = {(values[i] if b is buffer else b, _part_of(w, length, n)): None for b, w in end.walks}
            table[key] = replace(end, key=key, sizes=sizes, walks=walks, reaches=dict(walks))
    for end in parties.ends():
        if buffer in end.buffers:
            moved = {(values[w.offset // length], Walk(w.offset % length, w.dims)): None for _, w in end.reaches}
            end.reaches = moved
            end.walks = {(b, Walk(0, w.dims)): None for b, w in moved}
    return Cut(values, length, single.key, keys)


def _part_of(at: Walk, length: int, n: int) -> Walk:
    found = pieces(at, length, n)
    assert found is not None
    return Walk(0, found[0].dims)

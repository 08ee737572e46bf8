"""Memory of an AIR design: which MemTile each L2 buffer lies on, and the addresses of all buffers.

L2 buffers that one channel moves lie on one MemTile. They go to the column of the cores they serve if those are in one
column and no column gets more than one group, else round the columns of their segment, groups of one type in turn. That is
mlir-air's scheme (AIRToAIEPass.cpp, L2MemrefToMemTileMap, August 2026).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field

from npusim.air.parts import CoreParty, End, MemParty, Parties
from npusim.air.spread import Cut
from npusim.ir import Loc, Op, Value
from npusim.machine import Coord, MemBuffer
from npusim.place.memory import pack
from npusim.types import MemRefType


@dataclass(eq=False)
class Group:
    """L2 buffers that must lie together."""

    buffers: list[Value]
    ends: list[End] = field(default_factory=list)
    column: int = -1


def place_l2(parties: Parties, cuts: dict[Value, Cut]) -> dict[Value, Coord]:
    """The MemTile of each L2 buffer (parts of cut ones included)."""
    where: dict[Value, Coord] = {}
    for mem in parties.mems:
        groups = _groups(parties, mem, cuts)
        _columns(parties, mem, groups)
        where |= {buffer: Coord(group.column, 1) for group in groups for buffer in group.buffers}
    return where


def buffers_of(mem: MemParty, cuts: dict[Value, Cut]) -> list[Value]:
    """The L2 buffers of a segment instance, cut ones as their parts."""
    found: list[Value] = []
    for buffer in mem.projection.allocations:
        found += cuts[buffer].parts if buffer in cuts else [buffer]
    return found


def _groups(parties: Parties, mem: MemParty, cuts: dict[Value, Cut]) -> list[Group]:
    groups = {buffer: Group([buffer]) for buffer in buffers_of(mem, cuts)}
    for end in (e for e in parties.ends() if e.party is mem):
        first, *rest = (groups[b] for b in end.buffers)
        for other in rest:
            if other is not first:
                first.buffers += other.buffers
                groups.update(dict.fromkeys(other.buffers, first))
    every = list(dict.fromkeys(groups.values()))
    for end in (e for e in parties.ends() if e.party is mem):
        groups[end.buffers[0]].ends.append(end)
    return every


def _columns(parties: Parties, mem: MemParty, groups: list[Group]) -> None:
    assert mem.part is not None
    columns = list(mem.part.columns)
    wanted = [_consensus(parties, group) for group in groups]
    demand = Counter(c for c in wanted if c is not None)
    if any(n > 1 for n in demand.values()):
        _in_turn(groups, columns)
        return
    free = [c for c in columns if c not in demand]
    turn = 0
    for group, column in zip(groups, wanted, strict=True):
        if column is None and free:
            column = free.pop(0)
        elif column is None:
            column = columns[turn % len(columns)]
            turn += 1
        group.column = column


def _in_turn(groups: list[Group], columns: list[int]) -> None:
    types = Counter(str(group.buffers[0].type) for group in groups)
    turns: Counter[str] = Counter()
    for group in groups:
        kind = str(group.buffers[0].type) if types[str(group.buffers[0].type)] > 1 else ""
        group.column = columns[turns[kind] % len(columns)]
        turns[kind] += 1


def _consensus(parties: Parties, group: Group) -> int | None:
    """The one column of all cores at the other ends, or None."""
    columns = {
        core.tile.col
        for end in group.ends
        for core in (other.party for other in far(parties, end))
        if isinstance(core, CoreParty)
    }
    mixed = any(len({_column(other) for other in far(parties, end)}) > 1 for end in group.ends)
    return columns.pop() if len(columns) == 1 and not mixed else None


def _column(end: End) -> int:
    return end.party.tile.col if isinstance(end.party, CoreParty) else -1


def far(parties: Parties, end: End) -> list[End]:
    """The ends on the other side of a channel."""
    if end.side == "put":
        return [parties.gets[k] for k in parties.destinations(end) if k in parties.gets]
    return [put for put in parties.puts.values() if end.key in parties.destinations(put)]


# -- buffers with addresses


def make_buffers(parties: Parties, cuts: dict[Value, Cut], where: dict[Value, Coord]) -> list[MemBuffer]:
    """Every buffer with its address. Raises CapacityError for a memory that is too small."""
    by_tile: dict[Coord, list[MemBuffer]] = defaultdict(list)
    for mem in parties.mems:
        for i, value in enumerate(buffers_of(mem, cuts)):
            mem.buffers[value] = _copies(mem, value, f"{mem.name}.buf{i}", where[value], parties)
            by_tile[where[value]] += mem.buffers[value]
    for core in parties.cores:
        by_tile[core.tile] += _core_buffers(core, parties)
    assert parties.design.air is not None
    stack = parties.design.air.options.stack_size
    for tile, buffers in by_tile.items():
        pack(parties.design, tile, list(reversed(buffers)), stack if tile.row > 1 else 0)
    return [b for buffers in by_tile.values() for b in buffers]


def _core_buffers(core: CoreParty, parties: Parties) -> list[MemBuffer]:
    """Of a core: what is allocated around its herd and passed in, if it uses it, and what its bodies allocate."""
    used = {v for op in _deep(core.projection.region.entry.ops) for v in (*op.operands, *op.results)}
    found = []
    for i, value in enumerate(v for v in core.projection.allocations if v in used):
        core.buffers[value] = _copies(core, value, f"{core.name}.buf{i}", core.tile, parties)
        found += core.buffers[value]
    return found


def _deep(ops: list[Op]) -> list[Op]:
    found = list(ops)
    for op in ops:
        for region in op.regions:
            for block in region.blocks:
                found += _deep(block.ops)
    return found


def _copies(party: MemParty | CoreParty, value: Value, name: str, tile: Coord, parties: Parties) -> list[MemBuffer]:
    assert isinstance(value.type, MemRefType) and isinstance(value.owner, Op)
    names = [f"{name}.{k}" for k in ("ping", "pong")] if value in party.doubled else [name]
    channel = next((end.key[0] for end in parties.ends() if end.party is party and value in end.buffers), None)
    loc: Loc = value.owner.loc
    return [MemBuffer(n, tile, value.type, fifo=channel, loc=loc) for n in names]

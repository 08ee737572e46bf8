"""Where compute tiles go: pinned tiles first, then column by column from (0,2), each column from the bottom.

The rules are those of the real placer (mlir-aie's SequentialPlacer, August 2026). A core with more fifos to other cores
than it has DMA channels must get enough of them as neighbours: such cores are placed first, on an inner tile, and the
tiles around them are kept for their peers.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field

from npusim.errors import CapacityError, DesignError
from npusim.graph import Design, LogicalTile
from npusim.ir import UNKNOWN, Loc
from npusim.machine import Coord
from npusim.messages import count, explain
from npusim.place.demand import Edge, buffer_users, channel_demand, core_fifos, fifos_on, tile_order
from npusim.place.draft import label
from npusim.place.neighbours import cascades, memory_neighbours, reaches
from npusim.place.sides import place_side


def place_tiles(design: Design) -> dict[LogicalTile, Coord]:
    """A coordinate for every logical tile of the design.

    Raises DesignError for a tile outside the device or of the wrong kind, CapacityError when tiles or channels run out.
    """
    for tile in tile_order(design):
        _check(design, tile)
    placer = _CorePlacer(design)
    cores = [t for t in tile_order(design) if t.kind == "core" or (t.col is not None and t.row is not None)]
    for tile in sorted(cores, key=placer.priority):
        placer.place(tile)
    return place_side(design, placer.where)


def _check(design: Design, tile: LogicalTile) -> None:
    device = design.device
    for name, value, limit in (("column", tile.col, device.columns), ("row", tile.row, device.rows)):
        if value is not None and not 0 <= value < limit:
            text = explain(
                f"{tile} does not exist: {device.name} has {limit} {name}s, numbered 0 to {limit - 1}.",
                phrase=f"{name} index ({value}) must be less than the number of {name}s in the device ({limit})",
                hint="row 0 holds the shim tiles, row 1 the MemTiles, rows 2 to 5 the compute tiles.",
                loc=_loc(design, tile),
            )
            raise DesignError(text)
    if tile.row is not None and device.kind(tile.row) != tile.kind:
        there = label(Coord(tile.col or 0, tile.row)).split(" (")[0]
        wanted = {"core": "a compute tile", "mem": "a MemTile", "shim": "a shim tile"}[tile.kind]
        text = explain(
            f"{wanted} is asked for at ({tile.col},{tile.row}), but row {tile.row} holds {there}s.",
            details=[f"fifo {fifo.name!r} ends there" for fifo in fifos_on(design, tile)],
            phrase=f"declared logical tile type does not match the tile type at coordinates ({tile.col}, {tile.row})",
            hint="a Worker needs a compute tile (rows 2 to 5); leave tile= out to have one chosen.",
            loc=_loc(design, tile),
        )
        raise DesignError(text)


def _loc(design: Design, tile: LogicalTile) -> Loc:
    """Where something that stands on the tile is written."""
    cores = [core.loc for core in design.cores if core.tile is tile]
    return next((loc for loc in (*cores, *(f.loc for f in fifos_on(design, tile))) if loc is not UNKNOWN), UNKNOWN)


@dataclass
class _CorePlacer:
    """Places compute tiles one by one; ``where`` holds what is placed."""

    design: Design
    where: dict[LogicalTile, Coord] = field(default_factory=dict)

    def __post_init__(self) -> None:
        device = self.design.device
        self.device = device
        self.free = [Coord(c, r) for c in range(device.columns) for r in range(device.rows) if device.kind(r) == "core"]
        self.peers = _by_tile(core_fifos(self.design))
        self.users = _by_tile(buffer_users(self.design))
        self.cascades = _by_tile([(c.source, c.dest) for c in self.design.cascades])
        self.reserved: dict[Coord, list[LogicalTile]] = defaultdict(list)
        demand, limits = channel_demand(self.design), device.core
        self.need_in: dict[LogicalTile, int] = {}
        self.need_out: dict[LogicalTile, int] = {}
        for tile in (t for t in tile_order(self.design) if t.kind == "core"):
            edges = self.peers.get(tile, [])
            incoming = sum(consumer is tile for _, consumer in edges)
            self.need_in[tile] = max(0, incoming - (limits.s2mm.value - demand.into[tile]))
            self.need_out[tile] = max(0, len(edges) - incoming - (limits.mm2s.value - demand.out[tile]))

    def need(self, tile: LogicalTile) -> int:
        """How many of its fifo peers must be neighbours, so that its DMA channels suffice."""
        return self.need_in.get(tile, 0) + self.need_out.get(tile, 0)

    def priority(self, tile: LogicalTile) -> tuple[int, int, int]:
        """Pinned before half pinned before free; then the most demanding tiles and their peers."""
        pins = (tile.col is not None) + (tile.row is not None)
        around = [self.need(other) for edge in self.peers.get(tile, []) for other in edge]
        return 2 - pins, -max([self.need(tile), *around]), -self.need(tile)

    def place(self, tile: LogicalTile) -> None:
        if tile.col is not None and tile.row is not None:
            spot = Coord(tile.col, tile.row)
        else:
            spot = self._choose(tile)
        self.where[tile] = spot
        if tile.kind == "core":
            self.free = [t for t in self.free if t != spot]
            if self.need(tile) > 0:
                for neighbour in memory_neighbours(self.device, spot):
                    self.reserved[neighbour].append(tile)

    def _choose(self, tile: LogicalTile) -> Coord:
        spots = [t for t in self.free if tile.col in (None, t.col) and tile.row in (None, t.row)]
        if self.need(tile) > 0:
            inner = {t: sum(o.col == t.col for o in memory_neighbours(self.device, t)) for t in spots}
            spots.sort(key=lambda t: (t.col, -inner[t], t.row))
        fitting = [t for t in spots if self._fits(tile, t)]
        for spot in fitting:
            if not self._reserved_for_others(tile, spot):
                return spot
        if fitting:
            return fitting[0]
        raise self._no_tile(tile, bool(spots))

    def _reserved_for_others(self, tile: LogicalTile, spot: Coord) -> bool:
        mine = {other for edge in self.peers.get(tile, []) for other in edge} | {tile}
        return any(owner not in mine for owner in self.reserved[spot])

    def _fits(self, tile: LogicalTile, spot: Coord) -> bool:
        """Whether the tile can stand here, given what is placed: buffers, cascades, DMA channels."""

        def seen(other: LogicalTile) -> Coord | None:
            return spot if other is tile else self.where.get(other)

        for user, owner in self.users.get(tile, []):
            a, b = seen(user), seen(owner)
            if a and b and not reaches(self.device, a, b):
                return False
        for source, dest in self.cascades.get(tile, []):
            a, b = seen(source), seen(dest)
            if a and b and not cascades(a, b):
                return False
        return self._channels_suffice(tile, spot)

    def _channels_suffice(self, tile: LogicalTile, spot: Coord) -> bool:
        """Whether this tile and its placed peers keep enough DMA channels for the peers that are no neighbours."""
        edges = self.peers.get(tile, [])
        if not edges:
            return True
        self.where[tile] = spot
        try:
            placed = [o for edge in edges for o in edge if o is not tile and o in self.where]
            return (
                self._within_slack(tile, placed)
                and all(self._within_slack(peer, [tile]) for peer in dict.fromkeys(placed))
                and self._room_around(tile, spot)
            )
        finally:
            del self.where[tile]

    def _within_slack(self, tile: LogicalTile, because: list[LogicalTile]) -> bool:
        """Whether not too many of a tile's fifo peers are far away, in the directions that concern ``because``."""
        here = self.where[tile]
        for need, incoming in ((self.need_in, True), (self.need_out, False)):
            others = [(p if c is tile else c) for p, c in self.peers[tile] if (c is tile) == incoming]
            far = [o for o in others if o in self.where and not reaches(self.device, here, self.where[o])]
            if set(others) & set(because) and len(far) > len(others) - need.get(tile, 0):
                return False
        return True

    def _room_around(self, tile: LogicalTile, spot: Coord) -> bool:
        """Whether enough free neighbours remain for the peers that must come next to this tile."""
        if self.need(tile) == 0:
            return True
        missing = 0
        for need, incoming in ((self.need_in, True), (self.need_out, False)):
            others = [(p if c is tile else c) for p, c in self.peers[tile] if (c is tile) == incoming]
            near = [o for o in others if o in self.where and reaches(self.device, spot, self.where[o])]
            missing += max(0, need.get(tile, 0) - len(near))
        return missing <= sum(t in self.free for t in memory_neighbours(self.device, spot))

    def _no_tile(self, tile: LogicalTile, some_free: bool) -> CapacityError | DesignError:
        names = [f"fifo {fifo.name!r}" for fifo in fifos_on(self.design, tile)]
        if some_free:
            text = explain(
                f"no free compute tile suits the worker of {tile}: its cascade, its shared buffers or its fifos tie it to "
                "tiles that are taken or too far away.",
                details=[*names, *(f"already placed: {label(self.where[t])}" for t in self._tied(tile))],
                phrase="no available compute tiles for placement",
                hint="pin the workers that belong together with tile=Tile(col, row), so that they are neighbours.",
                loc=_loc(self.design, tile),
            )
            return DesignError(text)
        have = self.device.compute_tiles
        wanted = sum(t.kind == "core" for t in tile_order(self.design))
        text = explain(
            f"{wanted} compute tiles are needed, but {self.device.name} has {have} "
            f"({count(self.device.columns, 'column')} of {self.device.rows - 2}).",
            details=[f"worker {core.name!r} ({core.loc})" for core in self.design.cores],
            phrase=("no available compute tiles for placement", "Ran out of compute tiles for placement!"),
            hint="use fewer workers, or a device with more columns.",
            loc=_loc(self.design, tile),
        )
        return CapacityError(text)

    def _tied(self, tile: LogicalTile) -> list[LogicalTile]:
        edges = [*self.users.get(tile, []), *self.cascades.get(tile, []), *self.peers.get(tile, [])]
        return list(dict.fromkeys(o for edge in edges for o in edge if o in self.where))


def _by_tile(edges: list[Edge]) -> dict[LogicalTile, list[Edge]]:
    found: dict[LogicalTile, list[Edge]] = defaultdict(list)
    for edge in edges:
        for tile in dict.fromkeys(edge):
            found[tile].append(edge)
    return dict(found)

"""Where MemTiles and shim tiles go: as near as possible to the cores they serve, by column.

The rules are those of the real placer (mlir-aie's SequentialPlacer, August 2026): the tiles with the most DMA channels
first, each at the column with the shortest streams, else at the nearest column with enough free channels, the least used
first. Several logical tiles may share one physical tile as long as its channels last.
"""

from __future__ import annotations

from collections import Counter

from npusim.devices import Device
from npusim.errors import CapacityError
from npusim.graph import Design, LogicalTile
from npusim.ir import UNKNOWN
from npusim.machine import Coord
from npusim.messages import explain
from npusim.place.demand import Demand, channel_demand, fifos_on, peers, tile_order


def place_side(design: Design, where: dict[LogicalTile, Coord]) -> dict[LogicalTile, Coord]:
    """``where`` (the compute tiles and pinned tiles) completed by the MemTiles and shim tiles.

    Raises CapacityError if no tile of a kind has enough free DMA channels.
    """
    where = dict(where)
    demand = channel_demand(design)
    used_in, used_out = Counter[Coord](), Counter[Coord]()
    for placed, at in where.items():
        used_in[at] += demand.into[placed]
        used_out[at] += demand.out[placed]
    streams = peers(design)
    waiting = [tile for tile in tile_order(design) if tile not in where]
    for tile in sorted(waiting, key=lambda t: -demand.total(t)):
        target = tile.col if tile.col is not None else _best_column(design.device, tile, streams, where)
        spot = _nearest(design.device, tile, target, demand, used_in, used_out)
        if spot is None:
            raise _no_channels(design, tile, demand, used_in, used_out)
        where[tile] = spot
        used_in[spot] += demand.into[tile]
        used_out[spot] += demand.out[tile]
    return where


def _best_column(
    device: Device,
    tile: LogicalTile,
    streams: dict[LogicalTile, list[list[LogicalTile]]],
    where: dict[LogicalTile, Coord],
) -> int:
    """The column with the least horizontal way to the cores at the other ends, one MemTile in between allowed."""

    def columns(peer: LogicalTile) -> list[int]:
        if peer.kind == "core":
            return [where[peer].col]
        if peer is tile:
            return []
        return [where[p].col for group in streams.get(peer, []) for p in group if p.kind == "core"]

    spans = [found for group in streams.get(tile, []) if (found := [c for peer in group for c in columns(peer)])]
    if not spans:
        return 0
    flat = [c for span in spans for c in span]
    mean = sum(flat) / len(flat)

    def cost(column: int) -> tuple[int, float]:
        return sum(max(min(s) - column, column - max(s), 0) for s in spans), abs(column - mean)

    return min(range(device.columns), key=cost)


def _nearest(
    device: Device, tile: LogicalTile, target: int, demand: Demand, used_in: Counter[Coord], used_out: Counter[Coord]
) -> Coord | None:
    row = 1 if tile.kind == "mem" else 0
    limits = device.limits(row)
    spots = [
        spot
        for spot in (Coord(column, row) for column in range(device.columns))
        if used_in[spot] + demand.into[tile] <= limits.s2mm.value
        and used_out[spot] + demand.out[tile] <= limits.mm2s.value
        and tile.col in (None, spot.col)
    ]
    return min(spots, key=lambda s: (abs(s.col - target), used_in[s] + used_out[s], s.col), default=None)


def _no_channels(
    design: Design, tile: LogicalTile, demand: Demand, used_in: Counter[Coord], used_out: Counter[Coord]
) -> CapacityError:
    row, name, real = (1, "MemTile", "MemTile") if tile.kind == "mem" else (0, "shim tile", "ShimNOCTile")
    limits = design.device.limits(row)
    need = f"{demand.into[tile]} input (S2MM) and {demand.out[tile]} output (MM2S) channels"
    spots = [Coord(c, row) for c in range(design.device.columns) if tile.col in (None, c)]
    taken = [f"{name} {s}: {used_in[s]} input and {used_out[s]} output channels taken" for s in spots]
    fifos = fifos_on(design, tile)
    who = f"the end of fifo {fifos[0].name!r}" if len(fifos) == 1 else f"{len(fifos)} fifo ends"
    text = explain(
        f"no {name} has enough free DMA channels for {who}: {need}.",
        details=[*(f"fifo {f.name!r}: objects of {f.type.nbytes} bytes" for f in fifos), *taken],
        phrase=f"no {real} has sufficient DMA capacity for {demand.into[tile]} input/{demand.out[tile]} output channels",
        hint=f"a {name} has {limits.s2mm.value} input and {limits.mm2s.value} output channels. "
        + (
            "Split over two MemTiles, or forward fewer fifos through this one."
            if tile.kind == "mem"
            else "Send several streams as one fifo and split it on a MemTile, or use a device with more columns."
        ),
        loc=fifos[0].loc if fifos else UNKNOWN,
    )
    return CapacityError(text)

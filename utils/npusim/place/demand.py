"""How many DMA channels each tile will need, and who talks to whom, before anything is placed.

The placer of the real tools (mlir-aie's SequentialPlacer, August 2026) chooses MemTiles and shim tiles by these counts, so
they follow its rules: a fifo between two cores counts for nothing here, since the cores may turn out to be neighbours.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from npusim.graph import Buffer, Design, Fifo, LogicalTile
from npusim.ir import walk


@dataclass
class Demand:
    """DMA channels into and out of each logical tile, and the fifos that ask for them."""

    into: Counter[LogicalTile] = field(default_factory=Counter)
    out: Counter[LogicalTile] = field(default_factory=Counter)

    def total(self, tile: LogicalTile) -> int:
        return self.into[tile] + self.out[tile]


def channel_demand(design: Design) -> Demand:
    """The channels that fifos, links and explicit flows need on each logical tile."""
    demand = Demand()
    as_source = {fifo for link in design.links for fifo in link.inputs}
    as_dest = {fifo for link in design.links for fifo in link.outputs}
    for fifo in design.fifos:
        by_dma = [c for c in fifo.consumers if not (fifo.producer.kind == "core" == c.kind)]
        if fifo not in as_source:
            demand.into.update(by_dma)
        if by_dma and fifo not in as_dest:
            demand.out[fifo.producer] += 1
    for link in design.links:
        tile = link.inputs[0].consumers[0]
        demand.into[tile] += len(link.inputs)
        demand.out[tile] += len(link.outputs)
    demand.out.update(t for t, _ in {(f.source, f.source_channel) for f in design.flows if f.source_port == "DMA"})
    demand.into.update(t for t, _ in {(f.dest, f.dest_channel) for f in design.flows if f.dest_port == "DMA"})
    return demand


def tile_order(design: Design) -> list[LogicalTile]:
    """Every logical tile once: those the design lists, in its order, then any that are only mentioned."""
    return list(dict.fromkeys([*design.tiles, *_mentioned(design)]))


def _mentioned(design: Design) -> Iterator[LogicalTile]:
    for core in design.cores:
        yield core.tile
    for fifo in design.fifos:
        yield from (fifo.producer, *fifo.consumers)
        if fifo.delegate_tile:
            yield fifo.delegate_tile
    yield from (buffer.tile for buffer in design.buffers)
    yield from (lock.tile for lock in design.locks)
    yield from (program.tile for program in design.tile_dmas)
    for flow in design.flows:
        yield from (flow.source, flow.dest)
    for cascade in design.cascades:
        yield from (cascade.source, cascade.dest)


def peers(design: Design) -> dict[LogicalTile, list[list[LogicalTile]]]:
    """For each tile, one list of peer tiles for every stream end that it has (flows first, then fifos)."""
    found: dict[LogicalTile, list[list[LogicalTile]]] = {}

    def connect(source: LogicalTile, dests: list[LogicalTile]) -> None:
        found.setdefault(source, []).append(dests)
        for dest in dests:
            found.setdefault(dest, []).append([source])

    for flow in design.flows:
        connect(flow.source, [flow.dest])
    for fifo in design.fifos:
        connect(fifo.producer, list(fifo.consumers))
    return found


Edge = tuple[LogicalTile, LogicalTile]


def core_fifos(design: Design) -> list[Edge]:
    """(producer, consumer) of every fifo end between two different cores."""
    return [
        (fifo.producer, consumer)
        for fifo in design.fifos
        for consumer in fifo.consumers
        if fifo.producer.kind == "core" == consumer.kind and fifo.producer is not consumer
    ]


def buffer_users(design: Design) -> list[Edge]:
    """(user, owner) for every core that reads or writes a buffer declared on another tile."""
    edges: list[Edge] = []
    for core in design.cores:
        for op in walk(core.body):
            for value in op.operands:
                owner = value.owner
                if isinstance(owner, Buffer) and owner.tile is not core.tile:
                    edges.append((core.tile, owner.tile))
    return list(dict.fromkeys(edges))


def fifos_on(design: Design, tile: LogicalTile) -> list[Fifo]:
    """The fifos with an end on a logical tile."""
    return [fifo for fifo in design.fifos if fifo.producer is tile or tile in fifo.consumers]

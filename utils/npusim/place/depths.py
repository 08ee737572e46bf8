"""How many buffers each end of a fifo gets.

A depth given as one number is an upper bound for ends on a core: they get what they need, which is the largest acquire
plus one (so that the DMA can work on one object while the core holds the others). A depth given per end is taken
literally. In shared memory there is one ring, as deep as the producer's side says.
"""

from __future__ import annotations

from collections.abc import Sequence

from npusim.devices import Device
from npusim.graph import Design, Fifo, LogicalTile
from npusim.ir import walk
from npusim.machine import Coord


class Depths:
    """Depths by end, from the design's numbers and what its cores acquire."""

    def __init__(self, design: Design, where: dict[LogicalTile, Coord]) -> None:
        self._device: Device = design.device
        self._acquired: dict[tuple[str, Coord], int] = {}
        for core in design.cores:
            for op in walk(core.body):
                if op.name == "aie.objectfifo.acquire":
                    key = (op.attrs["objFifo_name"], where[core.tile])
                    self._acquired[key] = max(self._acquired.get(key, 0), op.attrs["size"])

    def declared(self, fifo: Fifo, end: int = 0) -> int:
        """The number the design gives: ``end`` 0 is the producer, 1 the first consumer."""
        return fifo.depth if isinstance(fifo.depth, int) else fifo.depth[end]

    def needed(self, fifo: Fifo, tile: Coord, declared: int) -> int:
        """What an end on this tile gets of ``declared``: on a core the largest acquire plus one."""
        acquired = self._acquired.get((fifo.name, tile), 0)
        if self._device.kind(tile.row) != "core" or acquired == 0 or declared == 0:
            return declared
        return 1 if acquired == declared == 1 else acquired + 1

    def producer(self, fifo: Fifo, tile: Coord) -> int:
        """The depth of the producer's end of a fifo that moves by DMA."""
        declared = self.declared(fifo)
        literal = not isinstance(fifo.depth, int) or fifo.init_values is not None
        return declared if literal else self.needed(fifo, tile, declared)

    def consumer(self, fifo: Fifo, index: int, tile: Coord, dims: Sequence[object]) -> int:
        """The depth of consumer ``index``. With a layout transform even a literal depth shrinks to what a core needs,
        as in the real lowering."""
        if isinstance(fifo.depth, int):
            return self.needed(fifo, tile, fifo.depth)
        literal = self.declared(fifo, index + 1)
        return self.needed(fifo, tile, literal) if dims else literal

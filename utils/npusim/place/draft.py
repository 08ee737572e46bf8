"""What placement works on: fifo ends, rings of buffers with their locks, and the machine as it grows.

Order matters. The real tools assign lock ids, addresses and descriptor ids in the order in which the operations stand in
the module, so the draft keeps that order: the rings in reverse order of their making, then what the design declares.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from npusim.devices import TileLimits
from npusim.graph import Buffer, Core, Design, Dims, Fifo, Link, Lock, LogicalTile
from npusim.machine import Coord, DmaChannel, MachineLock, MemBuffer
from npusim.types import MemRefType

NOWHERE = -1
"""The id of a lock that has none yet."""


class LockPair(NamedTuple):
    """``free`` counts the slots a producer may fill, ``full`` the objects a consumer may take."""

    free: MachineLock
    full: MachineLock


@dataclass(eq=False)
class Ring:
    """The buffers that an end (or both ends, in shared memory) walks round, and the locks that guard them.

    A split or join has one lock pair a part, any other fifo has one; a fifo without synchronisation has none.
    """

    name: str
    tile: Coord
    buffers: list[MemBuffer]
    pairs: list[LockPair]


@dataclass(eq=False)
class End:
    """One end of a fifo that moves by DMA, or a whole fifo in shared memory (then it is both ends)."""

    name: str  # as the real lowering names it: x, x_cons, x_1_cons
    fifo: Fifo
    tile: Coord
    produce: bool
    type: MemRefType
    depth: int
    dims: Dims = ()
    link: Link | None = None  # the link that this end takes part in
    pinned: int | None = None  # the DMA channel that the design asks for
    shared: bool = False
    ring: Ring | None = None
    channel: int | None = None

    @property
    def spilled(self) -> bool:
        """Whether some of its buffers had to go to a neighbour MemTile."""
        return self.ring is not None and any(b.tile != self.tile for b in self.ring.buffers)

    @property
    def direction(self) -> str:
        return "MM2S" if self.produce else "S2MM"


@dataclass(eq=False)
class Stream:
    """A fifo that moves by DMA: one producer's end, one end a consumer."""

    fifo: Fifo
    producer: End
    consumers: list[End]

    @property
    def ends(self) -> list[End]:
        return [self.producer, *self.consumers]


@dataclass(eq=False)
class Draft:
    """A design half lowered."""

    design: Design
    where: dict[LogicalTile, Coord]
    streams: list[Stream] = field(default_factory=list)
    shared: list[End] = field(default_factory=list)
    rings: list[Ring] = field(default_factory=list)  # in the order of their making
    own_buffers: dict[Buffer, MemBuffer] = field(default_factory=dict)
    own_locks: dict[Lock, MachineLock] = field(default_factory=dict)
    early: dict[Coord, tuple[list[MemBuffer], list[MachineLock]]] = field(default_factory=dict)
    late: tuple[list[MemBuffer], list[MachineLock]] = field(default_factory=lambda: ([], []))
    fixed: dict[MemBuffer, int] = field(default_factory=dict)  # addresses that the design asks for
    channels: list[DmaChannel] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    def at(self, tile: LogicalTile) -> Coord:
        return self.where[tile]

    def limits(self, tile: Coord) -> TileLimits:
        return self.design.device.limits(tile.row)

    def core_at(self, tile: Coord) -> Core | None:
        """The core that runs on a tile, if any."""
        return next((c for c in self.design.cores if self.where[c.tile] == tile), None)

    def warn(self, text: str) -> None:
        """Note something that the real tools accept and that is probably a mistake."""
        self.warnings.append(text)

    @property
    def buffers(self) -> list[MemBuffer]:
        """Every buffer in the order in which the real tools would meet it."""
        early = [b for buffers, _ in self.early.values() for b in buffers]
        rings = [b for ring in reversed(self.rings) for b in ring.buffers]
        return [*early, *rings, *self.late[0], *self.own_buffers.values()]

    @property
    def locks(self) -> list[MachineLock]:
        """Every lock in that order."""
        early = [lock for _, locks in self.early.values() for lock in locks]
        rings = [lock for ring in reversed(self.rings) for pair in ring.pairs for lock in pair]
        return [*early, *rings, *self.late[1], *self.own_locks.values()]


def label(tile: Coord) -> str:
    """``compute tile (0,2)``, ``MemTile (0,1)``, ``shim tile (0,0)``."""
    kind = {0: "shim tile", 1: "MemTile"}.get(tile.row, "compute tile")
    return f"{kind} {tile}"

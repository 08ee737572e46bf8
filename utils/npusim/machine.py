"""The lowered design: what a loader would put on the array. Addresses, locks, channels, descriptors, routes, programs.

The placer makes it from a design graph, the MLIR reader from compiled modules; the engine runs it. Everything here is
static: the state of a run lives in the engine.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

import numpy as np

from npusim.devices import Device
from npusim.graph import Design, Dims, KernelDecl, Scratchpad
from npusim.ir import UNKNOWN, Loc, Region, Value
from npusim.types import MemRefType

Direction = Literal["S2MM", "MM2S"]


class Coord(NamedTuple):
    """A placed tile: column and row, row 0 the shim, row 1 the MemTiles, the compute tiles above."""

    col: int
    row: int

    def __str__(self) -> str:
        return f"({self.col},{self.row})"


@dataclass(eq=False)
class MemBuffer:
    """A buffer with its place: byte address and bank in one tile's memory."""

    name: str
    tile: Coord
    type: MemRefType
    address: int = 0
    bank: int | None = None
    initial: np.ndarray[Any, Any] | None = None
    fifo: str | None = None  # the ObjectFifo it belongs to, for messages
    host_written: bool = False
    loc: Loc = UNKNOWN


@dataclass(eq=False)
class HostBuffer:
    """A host array: argument ``index`` of the host sequence."""

    index: int
    type: MemRefType

    @property
    def name(self) -> str:
        return f"host argument {self.index}"


@dataclass(eq=False)
class MachineLock:
    """A counting lock with its identity on a tile and its value at load time."""

    name: str
    tile: Coord
    lock_id: int
    init: int = 0
    fifo: str | None = None
    counts: Literal["free", "full", "other"] = "other"  # free slots, full objects, or the design's own


@dataclass(frozen=True, eq=False)
class LockUse:
    """Acquire: wait for at least ``value`` and subtract it (``equal``: wait for exactly it, leave it). Release: add it."""

    lock: MachineLock
    value: int = 1
    equal: bool = False


@dataclass(eq=False)
class BufferDescriptor:
    """One transfer: ``length`` elements of ``buffer`` from element ``offset``, walked by ``dims`` (sizes and strides in
    elements, outermost first; empty: contiguous). With ``pad`` (MemTile MM2S) ``length`` counts the padded elements that
    go onto the stream. ``next`` is an index in the channel's list, None ends the chain.
    """

    buffer: MemBuffer | HostBuffer
    offset: int
    length: int
    dims: Dims = ()
    pad: tuple[tuple[int, int], ...] = ()
    pad_value: int = 0
    acquires: tuple[LockUse, ...] = ()
    releases: tuple[LockUse, ...] = ()
    next: int | None = None
    bd_id: int | None = None
    packet_id: int | None = None

    @property
    def nbytes(self) -> int:
        """Bytes on the stream."""
        return self.length * self.buffer.type.dtype.itemsize


@dataclass(eq=False)
class DmaChannel:
    """One DMA channel of a tile. Its program starts with descriptor 0 at load time; a channel without descriptors is
    driven by tasks of the host sequence (shim)."""

    tile: Coord
    direction: Direction
    index: int
    descriptors: list[BufferDescriptor] = field(default_factory=list)
    repeat: int = 0  # the chain runs repeat + 1 times (irrelevant for a chain that loops)
    fifo: str | None = None
    loc: Loc = UNKNOWN

    def __str__(self) -> str:
        return f"{self.direction} {self.index} of tile {self.tile}"


class Hop(NamedTuple):
    """One switchbox crossing of a route: tile, entry port and exit port (``DMA 0``, ``North 1``, ...)."""

    tile: Coord
    entry: str
    exit: str


@dataclass(eq=False)
class Route:
    """A stream from one MM2S channel to one or more S2MM channels (broadcast). With ``packet_id`` it is packet-switched, and
    other streams may use the same channels; otherwise they are its own."""

    source: DmaChannel
    dests: list[DmaChannel]
    name: str
    hops: tuple[Hop, ...] = ()
    packet_id: int | None = None


@dataclass(eq=False)
class FifoPort:
    """One core's end of an ObjectFifo: the ring of buffers it walks and the locks that guard it.

    ``acquire(n)`` waits on ``acquire_lock`` for the objects not yet held, ``release(n)`` adds n to ``release_lock``;
    both counts times ``factor`` (a fifo with ``repeat_count`` hands each object over several times). ``locked`` is False
    for ``disable_synchronization``.
    """

    fifo: str
    produce: bool
    buffers: list[MemBuffer]
    acquire_lock: MachineLock | None
    release_lock: MachineLock | None
    depth: int
    factor: int = 1

    @property
    def role(self) -> str:
        return "producer" if self.produce else "consumer"


@dataclass(eq=False)
class CoreProgram:
    """What one compute tile runs, with the things of the design that its body names bound to the machine's."""

    tile: Coord
    body: Region
    name: str
    stack_size: int = 1024
    ports: dict[tuple[str, bool], FifoPort] = field(default_factory=dict)  # (fifo name, produce) -> port
    buffers: dict[Value, MemBuffer] = field(default_factory=dict)
    locks: dict[Value, MachineLock] = field(default_factory=dict)
    loc: Loc = UNKNOWN


@dataclass(eq=False)
class CascadeLink:
    """A cascade connection, output of ``source`` to input of ``dest``."""

    source: Coord
    dest: Coord
    loc: Loc = UNKNOWN


@dataclass(eq=False)
class Machine:
    """A placed and lowered design."""

    device: Device
    name: str = "main"
    buffers: list[MemBuffer] = field(default_factory=list)
    locks: list[MachineLock] = field(default_factory=list)
    channels: list[DmaChannel] = field(default_factory=list)
    routes: list[Route] = field(default_factory=list)
    cores: list[CoreProgram] = field(default_factory=list)
    cascades: list[CascadeLink] = field(default_factory=list)
    kernels: dict[str, KernelDecl] = field(default_factory=dict)
    scratchpads: list[Scratchpad] = field(default_factory=list)
    sequence: Region | None = None  # operations of the aiex dialect, see npusim.engine.host
    sequence_buffers: dict[str, MemBuffer] = field(default_factory=dict)  # buffers the sequence writes, by symbol
    sequence_locks: dict[Value, MachineLock] = field(default_factory=dict)  # locks the sequence sets
    host_channels: dict[str, DmaChannel] = field(default_factory=dict)  # fifo or allocation name -> shim channel
    host_bds: dict[Coord, int] = field(default_factory=dict)  # descriptors of host transfers in use at once, at most, by tile
    design: Design | None = None
    warnings: list[str] = field(default_factory=list)

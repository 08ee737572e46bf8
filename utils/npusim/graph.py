"""The design graph: what a frontend traces and what the placer lowers. No addresses, no channels, no time.

One graph serves IRON, MLIR-AIR and the MLIR reader. Things refer to each other by object, and a tile may still be
unplaced (``col`` or ``row`` is None).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from npusim.devices import Device
from npusim.ir import UNKNOWN, Loc, Region, Value
from npusim.types import MemRefType

if TYPE_CHECKING:
    from npusim.air.graph import Program

TileKind = Literal["core", "mem", "shim"]
Direction = Literal["S2MM", "MM2S"]
Dims = tuple[tuple[int, int], ...]
"""A layout transform or access pattern: (size, stride) in elements, outermost first."""


@dataclass(eq=False)
class LogicalTile:
    """A tile of the design; two ends share one exactly if they share the object. Coordinates may be open (None)."""

    kind: TileKind
    col: int | None = None
    row: int | None = None

    def __str__(self) -> str:
        where = f"({'?' if self.col is None else self.col},{'?' if self.row is None else self.row})"
        return f"{ {'core': 'compute tile', 'mem': 'MemTile', 'shim': 'shim tile'}[self.kind] } {where}"


@dataclass(eq=False)
class Fifo:
    """An ObjectFifo: objects of ``type`` handed in order from one producer to every consumer (broadcast)."""

    name: str
    type: MemRefType
    producer: LogicalTile
    consumers: list[LogicalTile]
    depth: int | tuple[int, ...] = 2  # a tuple (producer, consumer, ...) is taken literally, see docs of place
    to_stream: Dims = ()
    from_stream: tuple[Dims, ...] = ()  # one a consumer
    via_dma: bool = False
    repeat_count: int | None = None
    iter_count: int | None = None
    pad: tuple[tuple[int, int], ...] = ()  # (before, after) elements a dimension, outermost first
    pad_value: int = 0
    init_values: list[np.ndarray[Any, Any]] | None = None
    consumer_type: MemRefType | None = None
    disable_synchronization: bool = False
    delegate_tile: LogicalTile | None = None
    producer_channel: int | None = None
    consumer_channels: tuple[int | None, ...] = ()
    loc: Loc = UNKNOWN


@dataclass(eq=False)
class Link:
    """Fifos joined on a MemTile (or core): one input split to several outputs, several joined to one, or 1-to-1 (forward)."""

    inputs: list[Fifo]
    outputs: list[Fifo]
    src_offsets: tuple[int, ...] = ()  # elements, one an input of a join
    dst_offsets: tuple[int, ...] = ()  # elements, one an output of a split
    loc: Loc = UNKNOWN


@dataclass(eq=False)
class Buffer:
    """Memory of one tile under the program's own control (table, state, run-time parameters)."""

    name: str
    type: MemRefType
    tile: LogicalTile
    initial: np.ndarray[Any, Any] | None = None
    address: int | None = None
    host_written: bool = False  # a run-time parameter: IRON's use_write_rtp
    loc: Loc = UNKNOWN
    value: Value = field(init=False)

    def __post_init__(self) -> None:
        self.value = Value(self.type, self)


@dataclass(eq=False)
class Lock:
    """A counting lock that the design handles itself."""

    name: str | None
    tile: LogicalTile
    init: int | None = None
    lock_id: int | None = None
    loc: Loc = UNKNOWN
    value: Value = field(init=False)

    def __post_init__(self) -> None:
        self.value = Value("index", self)


@dataclass(eq=False)
class Flow:
    """An explicit stream from one tile's port to another's."""

    source: LogicalTile
    dest: LogicalTile
    source_port: str = "DMA"
    source_channel: int = 0
    dest_port: str = "DMA"
    dest_channel: int = 0
    packet_id: int | None = None
    shim_symbol: str | None = None  # the name by which the host sequence drives its shim end
    loc: Loc = UNKNOWN


@dataclass(eq=False)
class LockAction:
    """A lock operation of a buffer descriptor. ``equal`` waits for the exact value and leaves it."""

    lock: Lock
    value: int = 1
    equal: bool = False


@dataclass(eq=False)
class Descriptor:
    """A buffer descriptor of an explicit tile DMA program. ``next`` is an index in the chain; None ends it."""

    buffer: Buffer
    offset: int = 0
    length: int | None = None
    dims: Dims = ()
    pad: tuple[tuple[int, int], ...] = ()
    pad_value: int = 0
    acquires: list[LockAction] = field(default_factory=list)
    releases: list[LockAction] = field(default_factory=list)
    next: int | None = None
    packet_id: int | None = None
    bd_id: int | None = None


@dataclass(eq=False)
class ChannelProgram:
    """The descriptors that one DMA channel of an explicit tile DMA runs, starting with the first."""

    direction: Direction
    index: int
    descriptors: list[Descriptor]
    repeat: int = 0


@dataclass(eq=False)
class TileDma:
    """An explicit DMA program of one tile."""

    tile: LogicalTile
    channels: list[ChannelProgram]
    loc: Loc = UNKNOWN


@dataclass(eq=False)
class Cascade:
    """A cascade link between two neighbouring cores."""

    source: LogicalTile
    dest: LogicalTile
    loc: Loc = UNKNOWN


@dataclass(eq=False)
class KernelDecl:
    """An external kernel: its name, the types of its arguments and where its code comes from."""

    name: str
    arg_types: tuple[MemRefType | str, ...]
    object_file: str | None = None
    source_file: str | None = None
    source_string: str | None = None
    source_name: str | None = None  # the function's name in the source, where a symbol prefix goes before it
    compile_flags: tuple[str, ...] = ()
    include_dirs: tuple[str, ...] = ()
    loc: Loc = UNKNOWN


@dataclass(eq=False)
class Core:
    """The program of one compute tile: a traced body (the while_true loop included)."""

    tile: LogicalTile
    body: Region
    name: str = "core"
    stack_size: int | None = None  # bytes; None means the default of 1024
    dynamic_objfifo_lowering: bool | None = None
    loc: Loc = UNKNOWN


@dataclass(eq=False)
class Sequence:
    """The host sequence. Its block arguments are the host's arrays (MemRefType) and scalars, in order."""

    body: Region
    name: str = "sequence"
    loc: Loc = UNKNOWN


@dataclass(eq=False)
class Scratchpad:
    """A host-settable scalar that every core may read."""

    name: str
    element: str


@dataclass(eq=False)
class Design:
    """Everything a frontend knows about a design."""

    device: Device
    name: str = "main"
    tiles: list[LogicalTile] = field(default_factory=list)
    fifos: list[Fifo] = field(default_factory=list)
    links: list[Link] = field(default_factory=list)
    buffers: list[Buffer] = field(default_factory=list)
    locks: list[Lock] = field(default_factory=list)
    flows: list[Flow] = field(default_factory=list)
    tile_dmas: list[TileDma] = field(default_factory=list)
    cascades: list[Cascade] = field(default_factory=list)
    kernels: list[KernelDecl] = field(default_factory=list)
    cores: list[Core] = field(default_factory=list)
    scratchpads: list[Scratchpad] = field(default_factory=list)
    sequence: Sequence | None = None
    warnings: list[str] = field(default_factory=list)
    air: Program | None = None  # of an MLIR-AIR design; then the sequence is its function, and there are no fifos

    def fifo(self, name: str) -> Fifo:
        """The fifo of that name; KeyError if there is none."""
        for fifo in self.fifos:
            if fifo.name == name:
                return fifo
        raise KeyError(name)

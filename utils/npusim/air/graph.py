"""What MLIR-AIR adds to the design graph: channels, and a function of launches, segments and herds.

The function is kept in npusim's IR with MLIR-AIR's operations (``air.launch``, ``air.segment``, ``air.herd``,
``air.channel.put`` and ``.get``, ``air.dma_memcpy_nd``). Their operands come in groups, as in MLIR; the attribute
``segments`` counts each group (MLIR calls it operandSegmentSizes). :class:`Move` reads the groups of a transfer.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Literal

from npusim.errors import DesignError
from npusim.ir import UNKNOWN, Loc, Op, Region, Value
from npusim.types import MemRefType

DYNAMIC = -(2**63)
"""How MLIR's static arrays mark an entry that is an operand."""

Entry = int | Value
Side = Literal["put", "get"]
LEVELS = ("L3", "L2", "L1")
"""Names of memory spaces 0 (DDR), 1 (MemTile) and 2 (compute tile)."""


@dataclass(eq=False)
class Channel:
    """A channel, or an array of them. A put on index i of a broadcast reaches every index that differs from i only where
    ``size`` is 1 and ``broadcast`` is not."""

    name: str
    size: tuple[int, ...] = ()
    broadcast: tuple[int, ...] = ()  # empty: none
    kind: str = "npu_dma_stream"  # or npu_cascade
    buffer_resources: int | None = None
    loc: Loc = UNKNOWN

    @property
    def extents(self) -> tuple[int, ...]:
        """How many destinations there are in each dimension."""
        return self.broadcast or self.size

    @property
    def cascade(self) -> bool:
        return self.kind == "npu_cascade"

    def put_index(self, index: tuple[int, ...]) -> tuple[int, ...]:
        """The bundle that a put with these indices uses; missing ones are 0, more than the size has are dropped."""
        return self._fit(index, self.size)

    def get_index(self, index: tuple[int, ...]) -> tuple[int, ...]:
        """The destination that a get with these indices is: each modulo the extent."""
        return self._fit(index, self.extents)

    def _fit(self, index: tuple[int, ...], extents: tuple[int, ...]) -> tuple[int, ...]:
        filled = (*index, *[0] * len(extents))[: len(extents)]
        return tuple(i % n for i, n in zip(filled, extents))

    def destinations(self, index: tuple[int, ...]) -> list[tuple[int, ...]]:
        """Every destination of a put on this bundle."""
        found: list[tuple[int, ...]] = [()]
        for i, size, extent in zip(index, self.size, self.extents):
            span = range(extent) if size == 1 < extent else (i,)
            found = [(*head, k) for head in found for k in span]
        return found

    def __str__(self) -> str:
        dims = "".join(f"[{n}]" for n in self.size)
        return f"channel {self.name!r}{dims}"


@dataclass
class Options:
    """What the real compiler is told by options: which memory levels get no double buffering (``""``, ``L1``, ``L2``,
    ``all``), and the stack of each core in bytes."""

    omit_pingpong: str = ""
    stack_size: int = 1024

    def double(self, space: int) -> bool:
        """Whether buffers of a memory space may be doubled."""
        return self.omit_pingpong not in ("all", LEVELS[space])


@dataclass(eq=False)
class Program:
    """The AIR part of a design; the host's arrays are the arguments of ``function``."""

    channels: dict[str, Channel]
    function: Region
    name: str = "main"
    link_with: dict[str, str] = field(default_factory=dict)  # kernel name -> object file
    options: Options = field(default_factory=Options)


@dataclass(frozen=True)
class Pattern:
    """Which elements of a memref a transfer touches, in order: offsets, sizes and strides (elements), outermost first.

    No sizes: the whole memref. Offsets are multiplied with the strides they stand under (aligned at the right).
    """

    memref: Value
    offsets: tuple[Entry, ...]
    sizes: tuple[Entry, ...]
    strides: tuple[Entry, ...]

    @property
    def type(self) -> MemRefType:
        assert isinstance(self.memref.type, MemRefType)
        return self.memref.type


@dataclass(frozen=True)
class Move:
    """One side of a transfer: a put or get on a channel, or one end of a ``dma_memcpy_nd``."""

    op: Op
    side: Side
    channel: str  # "" for a dma_memcpy_nd
    indices: tuple[Value, ...]
    pattern: Pattern


def put_or_get(op: Op) -> Move:
    """The groups of an ``air.channel.put`` or ``.get``."""
    side: Side = "put" if op.name.endswith("put") else "get"
    end = "src" if side == "put" else "dst"
    _, indices, memref, *rest = groups(op)
    return Move(op, side, str(op.attrs["chan_name"]), tuple(indices), _pattern(op, memref[0], end, rest))


def ends_of_dma(op: Op) -> tuple[Move, Move]:
    """Source (a put) and destination (a get) of an ``air.dma_memcpy_nd``."""
    _, dst, *rest = groups(op)
    to = _pattern(op, dst[0], "dst", rest[:3])
    source = _pattern(op, rest[3][0], "src", rest[4:7])
    return Move(op, "put", "", (), source), Move(op, "get", "", (), to)


def groups(op: Op) -> list[list[Value]]:
    """The operands by group."""
    found, begin = [], 0
    for count in op.attrs["segments"]:
        found.append(list(op.operands[begin : begin + count]))
        begin += count
    return found


def _pattern(op: Op, memref: Value, end: str, dynamic: list[list[Value]]) -> Pattern:
    entries: list[tuple[Entry, ...]] = []
    for part, values in zip(("offsets", "sizes", "strides"), dynamic):
        rest = iter(values)
        static = op.attrs.get(f"static_{end}_{part}", ())
        entries.append(tuple(next(rest) if n == DYNAMIC else int(n) for n in static))
    return Pattern(memref, *entries)


def sizes_and_operands(op: Op) -> tuple[list[Value], list[Value]]:
    """The sizes of a launch, segment or herd, and what is passed in; its block has ids, sizes and then these."""
    _, sizes, operands = groups(op)
    return sizes, operands


def elements(pattern: Pattern) -> int | None:
    """How many elements a transfer moves; None if that is only known at run time."""
    if not pattern.sizes:
        return pattern.type.size
    if any(isinstance(n, Value) for n in pattern.sizes):
        return None
    return math.prod(int(n) for n in pattern.sizes if not isinstance(n, Value))


def check_pattern(pattern: Pattern, where: str) -> None:
    """Raise DesignError for offsets, sizes and strides that do not go together."""
    offsets, sizes, strides = (len(p) for p in (pattern.offsets, pattern.sizes, pattern.strides))
    if sizes != strides or (offsets > sizes and sizes):
        raise DesignError(
            f"{where}: {offsets} offsets, {sizes} sizes and {strides} strides; give as many strides as sizes, and an "
            "offset for each (or none of all, for the whole memref)"
        )
    if offsets and not sizes:
        raise DesignError(f"{where}: offsets without sizes and strides")

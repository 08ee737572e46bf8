"""Transfers of a projection: which channel, which buffer, which elements; what is known only while running stays a value."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from npusim.air.graph import Move, Side
from npusim.ir import Loc, Op, Value
from npusim.types import MemRefType

if TYPE_CHECKING:
    from npusim.air.project import Index, Projector

Entry = int | Value


class Walk(NamedTuple):
    """Which elements of a buffer, in order: the first one and (size, stride) pairs, outermost first. In elements."""

    offset: int
    dims: tuple[tuple[int, int], ...]

    @property
    def length(self) -> int:
        n = 1
        for size, _ in self.dims:
            n *= size
        return n

    @property
    def last(self) -> int:
        """The element furthest from the start of the buffer."""
        return self.offset + sum((size - 1) * stride for size, stride in self.dims)


@dataclass(eq=False)
class Moved:
    """One put or get in a projection.

    ``dma`` is the dma_memcpy_nd that it is an end of (then there is no channel name); ``instance`` is the segment instance it
    stands in, None in the launch itself; ``core`` its place in the herd, empty outside.
    """

    side: Side
    channel: str
    dma: Op | None
    instance: Index | None
    core: Index
    memref: Value
    indices: tuple[Entry, ...]
    offset: Entry
    sizes: tuple[Entry, ...]
    strides: tuple[Entry, ...]
    loc: Loc

    @property
    def type(self) -> MemRefType:
        """The type of the whole buffer."""
        assert isinstance(self.memref.type, MemRefType)
        return self.memref.type

    @property
    def entries(self) -> tuple[Entry, ...]:
        """Indices, offset, sizes and strides in one row."""
        return (*self.indices, self.offset, *self.sizes, *self.strides)

    @property
    def dynamic(self) -> tuple[Value, ...]:
        """Those entries that are known only while running."""
        return tuple(e for e in self.entries if isinstance(e, Value))

    def filled(self, numbers: tuple[int, ...]) -> tuple[tuple[int, ...], Walk]:
        """The channel indices and the walk, with numbers for the dynamic entries in their order."""
        rest = iter(numbers)
        row = [next(rest) if isinstance(e, Value) else e for e in self.entries]
        n, m = len(self.indices), len(self.sizes)
        sizes, strides = row[n + 1 : n + 1 + m], row[n + 1 + m :]
        return tuple(row[:n]), Walk(row[n], tuple(zip(sizes, strides, strict=True)))

    def __str__(self) -> str:
        what = f"channel {self.channel!r}" if self.channel else "a dma_memcpy_nd"
        return f"the {self.side} on {what} at {self.loc}"


def moved(move: Move, instance: Index | None, core: Index, by: Projector) -> Op:
    """The operation ``air.put`` or ``air.get`` of a projection. Its operands are the buffer and the dynamic entries."""
    scalars, view, pattern, loc = by.scalars, by.view(move.pattern.memref), move.pattern, move.op.loc
    offset: Entry = view.offset
    sizes: tuple[Entry, ...] = view.shape
    strides: tuple[Entry, ...] = view.strides
    if pattern.sizes:
        sizes = tuple(scalars.index(n) for n in pattern.sizes)
        strides = tuple(scalars.index(n) for n in pattern.strides)
        under = strides[len(strides) - len(pattern.offsets) :]
        for entry, stride in zip(pattern.offsets, under, strict=True):
            offset = scalars.add(offset, scalars.times(scalars.index(entry), stride, loc), loc)
    indices = tuple(scalars.index(i) for i in move.indices)
    dma = None if move.channel else move.op
    made = Moved(move.side, move.channel, dma, instance, core, view.root, indices, offset, sizes, strides, loc)
    op = Op(f"air.{move.side}", (made.memref, *made.dynamic), {"move": made}, loc=loc)
    return op

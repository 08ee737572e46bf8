"""Layout transforms of descriptors on compute tiles and MemTiles: what the hardware and the compiler allow.

Sources: mlir-aie's DMABDOp verifier (lib/Dialect/AIE/IR/AIEDialect.cpp, August 2026) for what it refuses; field widths
from the device tables for what would be cut off silently.
"""

from __future__ import annotations

import math

from npusim import walk
from npusim.devices import TileLimits
from npusim.errors import CapacityError, DesignError
from npusim.machine import BufferDescriptor, DmaChannel
from npusim.messages import explain
from npusim.place.draft import Draft, label
from npusim.place.links import last_index

COMPILER_SIZE_MAX = 512
"""The compiler refuses larger sizes in tile DMA programs, although its message speaks of 1023 (DMABDOp verifier)."""


def check_patterns(draft: Draft) -> None:
    """Raise DesignError or CapacityError for descriptors that cannot be encoded; warn about lengths that do not fit."""
    warned: set[tuple[str | None, bool]] = set()
    for channel in draft.channels:
        for descriptor in channel.descriptors:
            _Check(draft, channel, descriptor).run()
        if channel.descriptors:
            _warn_about_length(draft, channel, channel.descriptors[0], warned)


class _Check:
    """The checks of one descriptor."""

    def __init__(self, draft: Draft, channel: DmaChannel, descriptor: BufferDescriptor) -> None:
        self.device, self.channel, self.descriptor = draft.design.device, channel, descriptor
        self.limits: TileLimits = draft.limits(channel.tile)
        self.width = descriptor.buffer.type.dtype.itemsize
        self.where = f"{channel.direction} {channel.index} of {label(channel.tile)}"
        self.what = f"fifo {channel.fifo!r}" if channel.fifo else f"buffer {descriptor.buffer.name!r}"

    def run(self) -> None:
        self.length()
        if self.descriptor.dims:
            self.dimensions()
            self.bounds()
            self.strides()
            self.sizes()
        elif self.descriptor.offset + self.descriptor.length > self.descriptor.buffer.type.size and not self._padded():
            self.refuse(
                f"{self.what} moves {self.descriptor.length} elements from element {self.descriptor.offset} of buffer "
                f"{self.descriptor.buffer.name!r}, which has {self.descriptor.buffer.type.size}.",
                hint="the two ends of a forward must have the same number of elements.",
            )
        if self.descriptor.pad:
            self.padding()

    def refuse(self, problem: str, *, phrase: str | None = None, hint: str, capacity: bool = False) -> None:
        dims = [f"dims (size, stride): {list(self.descriptor.dims)}"] if self.descriptor.dims else []
        text = explain(problem, details=[*dims, f"on {self.where}"], phrase=phrase, hint=hint, loc=self.channel.loc)
        raise (CapacityError if capacity else DesignError)(text)

    def length(self) -> None:
        nbytes = self.descriptor.nbytes
        if nbytes % 4:
            self.refuse(
                f"{self.what} moves {nbytes} bytes at a time, which is no multiple of 4 bytes.",
                phrase="transfer length must be multiple of 4 (i.e., represent 4 byte aligned address)",
                hint="streams carry 4-byte words: pad the object to a multiple of 4 bytes.",
            )
        if self.descriptor.offset * self.width % 4:
            self.refuse(
                f"{self.what} starts {self.descriptor.offset * self.width} bytes into its buffer, which is no multiple "
                "of 4 bytes.",
                phrase="bd address must be 4 byte (32b) aligned",
                hint="cut the object at multiples of 4 bytes.",
            )
        words, most = nbytes // 4, self.limits.length_max.value
        if words > most:
            self.refuse(
                f"{self.what} moves {words} words at a time; the length field of a descriptor there ends at {most} words "
                f"({most * 4} bytes).",
                phrase=f"buffer descriptor length ({words} 32-bit words) exceeds the maximum of {most} words supported "
                "by this tile type",
                hint="use smaller objects.",
                capacity=True,
            )

    def dimensions(self) -> None:
        have, most = len(self.descriptor.dims), self.limits.dims.value
        if have > most:
            self.refuse(
                f"the layout transform of {self.what} has {have} dimensions; a descriptor there has {most}.",
                phrase=f"Cannot give more than {most} dimensions for step sizes and wraps on this tile (got {have} "
                "dimensions).",
                hint="merge dimensions, or transform on a MemTile, which has 4.",
                capacity=True,
            )

    def bounds(self) -> None:
        last, size = self.descriptor.offset + last_index(self.descriptor.dims), self.descriptor.buffer.type.size
        if last >= size:
            self.refuse(
                f"the layout transform of {self.what} reaches element {last} of a buffer of {size} elements.",
                phrase="Specified stride(s) and size(s) result in out of bounds access in buffer, for index "
                f"{last} in memref of length {size}.",
                hint="the sum of (size - 1) * stride must stay below the number of elements.",
            )

    def strides(self) -> None:
        *outer, (_, inner) = self.descriptor.dims
        if any(stride == 0 for _, stride in self.descriptor.dims):
            self.refuse(
                f"the layout transform of {self.what} has a stride of 0.",
                phrase="Invalid step size; must be a positive integer.",
                hint="use repeat_count to send an object several times.",
            )
        if self.width != 4 and inner != 1:
            self.refuse(
                f"the inner stride of the layout transform of {self.what} is {inner}, but elements of "
                f"{self.descriptor.buffer.type.element} are {self.width} bytes wide and the DMA moves 4-byte words.",
                phrase=f"For {'<' if self.width < 4 else '>'}32b width datatypes, inner-most dim stride must be 1",
                hint="keep the inner dimension contiguous; swap single small elements in the kernel instead.",
            )
        for level, (_, stride) in enumerate(outer):
            if stride * self.width % 4 and not self._reads_on():
                self.refuse(
                    f"a stride of the layout transform of {self.what} is {stride} elements = {stride * self.width} bytes, "
                    "which is no multiple of 4 bytes.",
                    hint="the DMA steps in 4-byte words; the real toolchain would round this stride down silently.",
                )
            words, most = stride * self.width // 4, self.limits.stride_max.value
            if words > most:
                self.refuse(
                    f"a stride of the layout transform of {self.what} is {words} words; the field ends at {most}.",
                    phrase=f"Stride {len(outer) - level} exceeds the [1:{most}] range.",
                    hint="use smaller objects.",
                    capacity=True,
                )

    def sizes(self) -> None:
        dims = self.descriptor.dims
        if dims[-1][0] * self.width % 4 and not self._reads_on():
            self.refuse(
                f"the inner size of the layout transform of {self.what} is {dims[-1][0]} elements = "
                f"{dims[-1][0] * self.width} bytes, which is no multiple of 4 bytes.",
                hint="the DMA moves 4-byte words: make the inner dimension a multiple of 4 bytes.",
            )
        for level, (size, _) in enumerate(dims):
            hardware = size * self.width // 4 if level == len(dims) - 1 else size
            most = self.limits.size_max.value
            over_hardware = hardware > most and level > 0
            if over_hardware or size > COMPILER_SIZE_MAX:
                self.refuse(
                    f"a size of the layout transform of {self.what} is {size}; the hardware's field ends at {most}, the "
                    f"compiler accepts up to {COMPILER_SIZE_MAX}.",
                    phrase="Size may not exceed 1023."
                    if most == 1023
                    else f"Size {len(dims) - 1 - level} exceeds the [0:{most}] range.",
                    hint="split the dimension into two.",
                    capacity=True,
                )

    def _reads_on(self) -> bool:
        """Whether parts of a word do no harm: an inner size below a word becomes 0, which makes the DMA read on, and that
        is what the transform wants. mlir-aie's cascade example, which is tested on XDNA 1, has such a one."""
        dims, length = self.descriptor.dims, self.descriptor.length
        return walk.endless(dims, self.width) and walk.merged(dims) in ((), ((length, 1),))

    def _padded(self) -> bool:
        return bool(self.descriptor.pad)

    def padding(self) -> None:
        pad, dims = self.descriptor.pad, self.descriptor.dims
        self.padding_exists()
        if len(pad) != len(dims):
            self.refuse(
                f"{self.what} pads {len(pad)} dimensions of {len(dims)}.",
                phrase="Mismatch number of dimensions between padding(s) and wrap(s) and stride(s).",
                hint="give dims_to_stream and pad_dimensions with the same number of dimensions.",
            )
        total = math.prod(before + size + after for (before, after), (size, _) in zip(pad, dims))
        if total > self.descriptor.length:
            self.refuse(
                f"{self.what} is padded to {total} elements, but its object has {self.descriptor.length}.",
                phrase="Data exceeds len after padding.",
                hint="the object type of the padded fifo must have the padded sizes.",
            )
        if any(n * self.width % 4 for n in pad[-1]):
            self.refuse(
                f"the inner padding of {self.what} is {pad[-1]} elements of {self.width} bytes, no multiple of 4 bytes.",
                phrase="Inner-most padding-before count must result in padding in 32-bit words.",
                hint="pad the inner dimension by multiples of 4 bytes.",
            )


    def padding_exists(self) -> None:
        if self.channel.tile.row != 1 or self.channel.direction != "MM2S":
            self.refuse(
                f"{self.what} is padded by {self.where}, but only what a MemTile sends (MM2S) can be padded.",
                phrase="Padding is only supported by memtile dma bds.",
                hint="send the data through a MemTile, and pad it there.",
            )
        if self.descriptor.pad_value and self.device.family == "npu1":
            self.refuse(
                f"{self.what} is padded with {self.descriptor.pad_value}, but {self.device.name} pads with zeros only.",
                phrase="pad_value requires the CONSTANT_PAD_VALUE register, unavailable on this target",
                hint="leave pad_value out, or choose an npu2 device.",
            )


def _warn_about_length(
    draft: Draft, channel: DmaChannel, descriptor: BufferDescriptor, warned: set[tuple[str | None, bool]]
) -> None:
    """The real tools accept a transform that covers fewer elements than the descriptor moves."""
    covered = math.prod(n for n, _ in descriptor.dims)
    pads = descriptor.pad or ((0, 0),) * len(descriptor.dims)
    covered = math.prod(n + a + b for (n, _), (a, b) in zip(descriptor.dims, pads)) if descriptor.dims else covered
    key = (channel.fifo, channel.direction == "MM2S")
    linear = walk.endless(descriptor.dims, descriptor.buffer.type.dtype.itemsize)
    if not descriptor.dims or covered == descriptor.length or linear or key in warned:
        return
    warned.add(key)
    side = "dims_to_stream" if channel.direction == "MM2S" else "dims_from_stream"
    draft.warn(
        explain(
            f"{side} of fifo {channel.fifo!r} covers {covered} elements, but {descriptor.length} are moved: the transform "
            "goes on past its outermost size.",
            details=[f"dims (size, stride): {list(descriptor.dims)}"],
            hint="the product of the sizes should be the number of elements of the object; the real toolchain accepts "
            "this silently.",
            loc=channel.loc,
        )
    )

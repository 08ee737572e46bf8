"""Access patterns of AIR transfers on compute tiles and MemTiles: what a buffer descriptor there can say.

Sources: mlir-aie's DMABDOp verifier (lib/Dialect/AIE/IR/AIEDialect.cpp, August 2026) and the device tables. At the shim the
compiler cuts and folds patterns by itself; only the granularity of four bytes remains.
"""

from __future__ import annotations

from npusim import walk
from npusim.air.moves import Walk
from npusim.air.parts import End, Parties
from npusim.errors import CapacityError, DesignError
from npusim.machine import DmaChannel
from npusim.messages import explain
from npusim.place.draft import label
from npusim.types import numpy_dtype


def check_patterns(parties: Parties, channels: dict[End, DmaChannel]) -> None:
    """Raise DesignError or CapacityError for the first pattern that its DMA cannot walk."""
    for end, channel in channels.items():
        for _, at in end.walks:
            _check(parties, end, channel, at)


def _check(parties: Parties, end: End, channel: DmaChannel, at: Walk) -> None:
    width, dims = numpy_dtype(end.element).itemsize, walk.merged(at.dims)
    limits = parties.device.limits(channel.tile.row)
    what = f"the {end.side} on {end.name} (at {end.where})"
    where = [
        f"sizes {[n for n, _ in at.dims]}, strides {[s for _, s in at.dims]}",
        f"on {channel.direction} of {label(channel.tile)}",
    ]
    if dims and width < 4 and dims[-1][1] != 1:
        raise DesignError(
            explain(
                f"{what} has an innermost stride of {dims[-1][1]} elements of {width} bytes; a DMA addresses words of 4 bytes.",
                details=where,
                phrase=f"For {8 * width}b width datatypes, inner-most dim stride must be 1",
                hint="move whole rows, and transpose single elements in a kernel.",
            )
        )
    if at.length * width % 4:
        raise DesignError(
            explain(
                f"{what} moves {at.length * width} bytes at a time, which is no multiple of 4 bytes.",
                details=where,
                phrase="transfer length must be multiple of 4 (i.e., represent 4 byte aligned address)",
                hint="streams carry 4-byte words: pad the buffer to a multiple of 4 bytes.",
            )
        )
    if channel.tile.row == 0:
        return
    if len(dims) > limits.dims.value:
        raise CapacityError(
            explain(
                f"{what} walks {len(dims)} dimensions; a descriptor there has {limits.dims.value}.",
                details=where,
                phrase=f"Cannot give more than {limits.dims.value} dimensions for step sizes and wraps on this tile (got "
                f"{len(dims)} dimensions).",
                hint="merge dimensions, or change the layout on a MemTile, which has 4.",
            )
        )
    words = at.length * width // 4
    if words > limits.length_max.value:
        raise CapacityError(
            explain(
                f"{what} moves {words} words at a time; the length field of a descriptor there ends at "
                f"{limits.length_max.value} words ({limits.length_max.value * 4} bytes).",
                details=where,
                phrase=f"buffer descriptor length ({words} 32-bit words) exceeds the maximum of {limits.length_max.value} words "
                "supported by this tile type",
                hint="move it in smaller pieces.",
            )
        )

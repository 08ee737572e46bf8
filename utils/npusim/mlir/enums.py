"""The enumerations of the ``aie`` dialect that modules carry as numbers (include/aie/Dialect/AIE/IR/AIEAttrs.td)."""

from __future__ import annotations

from typing import Literal

from npusim.graph import TileKind

DEVICES: dict[int, str] = {
    4: "npu1",
    **{5 + n: f"npu1_{1 + n}col" for n in range(3)},
    8: "npu2",
    **{9 + n: f"npu2_{1 + n}col" for n in range(7)},
}
"""AIEDevice, without what is not an NPU."""
KINDS: tuple[TileKind, ...] = ("core", "mem", "shim")
"""AIETileType, without ShimPLTile, which NPUs do not have."""
BUNDLES = ("Core", "DMA", "FIFO", "South", "West", "North", "East", "PLIO", "NOC", "Trace", "TileControl")
"""WireBundle."""
DIRECTIONS: tuple[Literal["S2MM"], Literal["MM2S"]] = ("S2MM", "MM2S")
"""DMAChannelDir."""
PRODUCE, CONSUME = 0, 1
"""ObjectFifoPort."""
EXACT, RELEASE, AT_LEAST = 0, 1, 2
"""LockAction: Acquire, Release, AcquireGreaterEqual."""

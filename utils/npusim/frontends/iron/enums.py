"""The enumerations of the aie dialect that designs name, with MLIR-AIE's values."""

from __future__ import annotations

from enum import IntEnum

from npusim.errors import UnsupportedError
from npusim.graph import TileKind


class _Named(IntEnum):
    def __str__(self) -> str:
        return self.name


class AIEArch(_Named):
    AIE1 = 1
    AIE2 = 2
    AIE2p = 3


class AIEDevice(_Named):
    xcvc1902 = 1
    xcve2302 = 2
    xcve2802 = 3
    npu1 = 4
    npu1_1col = 5
    npu1_2col = 6
    npu1_3col = 7
    npu2 = 8
    npu2_1col = 9
    npu2_2col = 10
    npu2_3col = 11
    npu2_4col = 12
    npu2_5col = 13
    npu2_6col = 14
    npu2_7col = 15


class AIETileType(_Named):
    CoreTile = 0
    MemTile = 1
    ShimNOCTile = 2
    ShimPLTile = 3


class DMAChannelDir(_Named):
    S2MM = 0
    MM2S = 1


class LockAction(_Named):
    Acquire = 0
    Release = 1
    AcquireGreaterEqual = 2


class ObjectFifoPort(_Named):
    Produce = 0
    Consume = 1


class WireBundle(_Named):
    Core = 0
    DMA = 1
    FIFO = 2
    South = 3
    West = 4
    North = 5
    East = 6
    PLIO = 7
    NOC = 8
    Trace = 9
    TileControl = 10


class TraceMode(_Named):
    EventTime = 0
    EventPC = 1
    Execution = 2


KINDS: dict[AIETileType, TileKind] = {
    AIETileType.CoreTile: "core",
    AIETileType.MemTile: "mem",
    AIETileType.ShimNOCTile: "shim",
}


def kind_of(tile_type: AIETileType) -> TileKind:
    """The graph's kind of a tile type; UnsupportedError for the PL shim tiles, which no NPU has."""
    if tile_type not in KINDS:
        raise UnsupportedError(f"tiles of type {tile_type} are not served: they belong to Versal devices, not to NPUs")
    return KINDS[tile_type]

"""Device tables of XDNA 1 (``npu1``) and XDNA 2 (``npu2``): shapes, memories, DMA limits, ports, peaks.

Every entry is a :class:`Fact` with unit, source and confidence: H read in code or a specification or measured by a named
source, M one secondary source or a direct inference, L a reconstruction. What is unsettled says so and is a parameter
(:meth:`Device.with_options`). Abbreviations: AIE = Xilinx/mlir-aie; TM = its include/aie/Dialect/AIE/IR/
AIETargetModel.h and lib/.../AIETargetModel.cpp as recorded from mlir-aie of August 2026; AM020 / AM027 = AMD's AIE-ML /
AIE-ML v2 architecture manuals.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Generic, Literal, TypeVar

from npusim.errors import DesignError

T = TypeVar("T")
Confidence = Literal["H", "M", "L"]


@dataclass(frozen=True)
class Fact(Generic[T]):
    """A value with its unit, where it comes from and how sure it is."""

    value: T
    unit: str
    source: str
    confidence: Confidence
    note: str = ""


@dataclass(frozen=True)
class TileLimits:
    """What one kind of tile has. Sizes in bytes, lengths in 4-byte words, counts per tile unless said."""

    memory: Fact[int]
    banks: Fact[int]
    locks: Fact[int]
    lock_max: Fact[int]
    bds: Fact[int]
    bds_per_channel: Fact[int]
    s2mm: Fact[int]
    mm2s: Fact[int]
    dims: Fact[int]  # DMA dimensions without the iteration
    size_max: Fact[int]  # largest size of a dimension but the outermost
    stride_max: Fact[int]  # words
    length_max: Fact[int]  # words
    iteration_max: Fact[int]
    ports: Fact[dict[str, tuple[int, int]]]  # direction -> (outputs of the switchbox, inputs of it)


_TM = "AIE TM"
_BD_BITS = "AIE lib/Dialect/AIEX/IR/AIEXDialect.cpp: field widths of the buffer descriptor"
_WORDS = "AIE skills/aie-code-creator/references/architecture.md"


def _n(value: int, unit: str, source: str, confidence: Confidence = "H", note: str = "") -> Fact[int]:
    return Fact(value, unit, source, confidence, note)


CORE_TILE = TileLimits(
    memory=_n(64 * 1024, "B", f"{_TM} getLocalMemorySize"),
    banks=_n(4, "logical banks", f"{_TM} getNumBanks", note="8 physical banks, interleaved in pairs (AM020)"),
    locks=_n(16, "locks", f"{_TM} getNumLocks"),
    lock_max=_n(63, "count", f"{_TM} getMaxLockValue"),
    bds=_n(16, "descriptors", f"{_TM} getNumBDs"),
    bds_per_channel=_n(16, "descriptors", f"{_TM} isBdChannelAccessible"),
    s2mm=_n(2, "channels", f"{_TM} getNumDestSwitchboxConnections"),
    mm2s=_n(2, "channels", f"{_TM} getNumSourceSwitchboxConnections"),
    dims=_n(3, "dimensions", "AIE lib/Dialect/AIE/IR/AIEDialect.cpp, DMABDOp verifier"),
    size_max=_n(255, "elements", _BD_BITS),
    stride_max=_n(8192, "words", _BD_BITS),
    length_max=_n(2**14 - 1, "words", _WORDS, "M"),
    iteration_max=_n(64, "passes", _BD_BITS),
    ports=Fact({"North": (6, 4), "South": (4, 6), "East": (4, 4), "West": (4, 4)}, "ports", _TM, "H"),
)
MEM_TILE = TileLimits(
    memory=_n(512 * 1024, "B", f"{_TM} getMemTileSize"),
    banks=_n(8, "logical banks", f"{_TM} getNumBanks", note="AM020 chapter 2: 16 of 128 bit"),
    locks=_n(64, "locks", f"{_TM} getNumLocks"),
    lock_max=_n(63, "count", f"{_TM} getMaxLockValue"),
    bds=_n(48, "descriptors", f"{_TM} getNumBDs"),
    bds_per_channel=_n(24, "descriptors", f"{_TM} isBdChannelAccessible", note="even channels 0-23, odd ones 24-47"),
    s2mm=_n(6, "channels", f"{_TM} getNumDestSwitchboxConnections"),
    mm2s=_n(6, "channels", f"{_TM} getNumSourceSwitchboxConnections"),
    dims=_n(4, "dimensions", "AIE lib/Dialect/AIE/IR/AIEDialect.cpp, DMABDOp verifier"),
    size_max=_n(1023, "elements", _BD_BITS),
    stride_max=_n(131072, "words", _BD_BITS),
    length_max=_n(2**17 - 1, "words", _WORDS, "M"),
    iteration_max=_n(64, "passes", _BD_BITS),
    ports=Fact(
        {"North": (6, 4), "South": (4, 6)}, "ports", _TM, "H", "no East or West: MemTiles have none between them"
    ),
)
SHIM_TILE = TileLimits(
    memory=_n(0, "B", _TM),
    banks=_n(0, "logical banks", _TM),
    locks=_n(16, "locks", f"{_TM} getNumLocks"),
    lock_max=_n(63, "count", f"{_TM} getMaxLockValue"),
    bds=_n(16, "descriptors", f"{_TM} getNumBDs"),
    bds_per_channel=_n(16, "descriptors", f"{_TM} isBdChannelAccessible"),
    s2mm=_n(2, "channels", f"{_TM} getNumDestShimMuxConnections"),
    mm2s=_n(2, "channels", f"{_TM} getNumSourceShimMuxConnections"),
    dims=_n(3, "dimensions", "AIE lib/Dialect/AIE/IR/AIEDialect.cpp, DMABDOp verifier"),
    size_max=_n(1023, "elements", _BD_BITS),
    stride_max=_n(2**20, "words", _BD_BITS, note="observed: 2^20 passes, 2^20 + 1 is refused"),
    length_max=_n(2**32 - 1, "words", _WORDS, "M"),
    iteration_max=_n(64, "passes", _BD_BITS),
    ports=Fact({"North": (6, 4), "South": (6, 8), "East": (4, 4), "West": (4, 4)}, "ports", _TM, "H"),
)


@dataclass(frozen=True)
class Device:
    """One NPU, or a partition of its columns.

    ``clock_hz`` and ``stream_bytes_per_cycle`` are parameters because their facts are unsettled; the other values are
    read from the facts. Columns count from 0 at the left; row 0 is the shim, row 1 the MemTiles, rows 2-5 the compute
    tiles.
    """

    name: str
    arch: Literal["AIE2", "AIE2P"]
    columns: int
    clock: Fact[float]
    stream: Fact[int]
    macs: Fact[dict[str, int]]  # multiply-accumulates a cycle and compute tile, by element type
    load_bytes: Fact[int]  # bytes a cycle that a core can load, both load units together
    store_bytes: Fact[int]
    cascade_bytes: Fact[int]
    ddr_read: Fact[float]  # B/s, all shim MM2S together
    ddr_write: Fact[float]
    ddr_total: Fact[float]  # B/s, read and write together
    rows: int = 6
    partition_of: str | None = None
    core: TileLimits = field(default=CORE_TILE, repr=False)
    mem: TileLimits = field(default=MEM_TILE, repr=False)
    shim: TileLimits = field(default=SHIM_TILE, repr=False)

    @property
    def family(self) -> str:
        """``npu1`` or ``npu2``, also for a partition."""
        return self.partition_of or self.name

    @property
    def clock_hz(self) -> float:
        return self.clock.value

    @property
    def stream_bytes_per_cycle(self) -> int:
        return self.stream.value

    @property
    def compute_tiles(self) -> int:
        return self.columns * (self.rows - 2)

    def kind(self, row: int) -> Literal["shim", "mem", "core"]:
        """What a row consists of."""
        return "shim" if row == 0 else "mem" if row == 1 else "core"

    def limits(self, row: int) -> TileLimits:
        """The limits of the tiles of a row."""
        return {"shim": self.shim, "mem": self.mem, "core": self.core}[self.kind(row)]

    def contains(self, col: int, row: int) -> bool:
        return 0 <= col < self.columns and 0 <= row < self.rows

    def with_options(self, *, clock_hz: float | None = None, stream_bytes_per_cycle: int | None = None) -> Device:
        """The same device under another assumption about its clock or stream width (4 or 8 B/cycle)."""
        device = self
        if clock_hz is not None:
            if not clock_hz > 0:
                raise DesignError(f"clock_hz must be positive, got {clock_hz}")
            device = replace(device, clock=replace(self.clock, value=clock_hz, note="chosen by the caller"))
        if stream_bytes_per_cycle is not None:
            if stream_bytes_per_cycle not in (4, 8):
                raise DesignError(f"stream_bytes_per_cycle must be 4 or 8, got {stream_bytes_per_cycle}")
            chosen = replace(self.stream, value=stream_bytes_per_cycle, note="chosen by the caller")
            device = replace(device, stream=chosen)
        return device


_SIL = "jdominick05/ryzen-ai-xdna1-quantization docs/SILICON.md 1.6, 1.7 (Ryzen 7 8700G)"
_YAML = "AMD device.yaml, quoted in jdominick05's W4A8 study"
_MACS_1 = f"{_YAML}; i8 also AIE programming_examples/ml/conv2d/README.md; i16: AIE programming_guide section-4c"
_MACS_2 = f"{_YAML}; bfp16: scalable-analyses/xdna xdna2_kernel.rst; i16: from the shapes of aie::mmul"
_CASCADE = f"{_TM} getAccumulatorCascadeSize (512 bit)"

NPU1 = Device(
    name="npu1",
    arch="AIE2",
    columns=4,
    clock=Fact(
        1.0e9,
        "Hz",
        "AM020 quotes 1 GHz; Phoenix laptop in default mode 1.028 GHz (FIM43-Redeye/xdna-emu, findings 2026-08-04)",
        "M",
        f"unsettled: the 8700G desktop measures 1.8 GHz ({_SIL})",
    ),
    stream=Fact(4, "B/cycle", "AM020 tables 3-6; FIM43-Redeye/xdna-emu findings 2026-05-25: 1.05 cycles a word", "H"),
    macs=Fact({"i8": 256, "i16": 64, "bf16": 128}, "MAC/cycle/tile", _MACS_1, "M"),
    load_bytes=Fact(64, "B/cycle", "AM020 chapter 4: 2 x 256 bit", "H"),
    store_bytes=Fact(32, "B/cycle", "AM020 chapter 4: 1 x 256 bit", "H"),
    cascade_bytes=Fact(64, "B/cycle", _CASCADE, "H"),
    ddr_read=Fact(28.1e9, "B/s", f"{_SIL}: memcpy, shared cap 26-28 GB/s a direction", "H"),
    ddr_write=Fact(28.1e9, "B/s", f"{_SIL}: memcpy, shared cap 26-28 GB/s a direction", "H"),
    ddr_total=Fact(56.2e9, "B/s", f"{_SIL}: memcpy on 4 channels, read + write", "H"),
)
NPU2 = Device(
    name="npu2",
    arch="AIE2P",
    columns=8,
    clock=Fact(
        1.8e9,
        "Hz",
        "torvalds/linux drivers/accel/amdxdna/npu4_regs.c, highest level; 1.76 GHz measured on Strix (mlir-aie architecture.md)",
        "M",
        "pin it with xrt-smi configure --pmode turbo before measuring",
    ),
    stream=Fact(
        4,
        "B/cycle",
        "mlir-aie models npu2 as AIE2 (32-bit streams)",
        "L",
        "unsettled: AM027 documents 64-bit streams and mlir-air's fused_decode reports 10.2 GB/s on one shim channel; "
        "4 and 8 are both served",
    ),
    macs=Fact(
        {"i8": 512, "i16": 128, "bf16": 256, "bfp16": 512},
        "MAC/cycle/tile",
        _MACS_2,
        "M",
        "i16 is inferred (4x4x8 where npu1 has 4x4x4) and of confidence L; bf16 is a peak: exact products of 4x8x8 take "
        "8 multiplies (aie_api detail/aie2p/mmul_bf16_bf16.hpp), 32 MAC/cycle",
    ),
    load_bytes=Fact(128, "B/cycle", "AM027 chapter 4: 2 x 512 bit", "M"),
    store_bytes=Fact(64, "B/cycle", "AM027 chapter 4: 1 x 512 bit", "M"),
    cascade_bytes=Fact(64, "B/cycle", _CASCADE, "H"),
    ddr_read=Fact(66.6e9, "B/s", "ddr_total", "L", "no cap of one direction is published; eltwise add reads 42 GB/s"),
    ddr_write=Fact(66.6e9, "B/s", "ddr_total", "L", "no cap of one direction is published"),
    ddr_total=Fact(66.6e9, "B/s", "mlir-aie pull request 2559: memcpy after AxCache=2", "M"),
)


def _partition(base: Device, columns: int) -> Device:
    return replace(base, name=f"{base.name}_{columns}col", columns=columns, partition_of=base.name)


DEVICES: dict[str, Device] = {
    d.name: d
    for d in (
        NPU1,
        NPU2,
        *(_partition(NPU1, n) for n in range(1, 4)),
        *(_partition(NPU2, n) for n in range(1, 8)),
    )
}


def device(name: str) -> Device:
    """The device of that name (``npu1``, ``npu2``, or a partition such as ``npu2_4col``); DesignError if unknown."""
    try:
        return DEVICES[name]
    except KeyError:
        raise DesignError(f"no device {name!r}; known: {', '.join(DEVICES)}") from None


def facts(of: Device) -> list[tuple[str, Fact[Any]]]:
    """Every (name, fact) of a device and its tiles, for the device reference of the book."""
    rows = [(k, v) for k, v in vars(of).items() if isinstance(v, Fact)]
    for prefix, limits in (("compute tile", of.core), ("MemTile", of.mem), ("shim tile", of.shim)):
        rows += [(f"{prefix}: {k}", v) for k, v in vars(limits).items()]
    return rows

"""What the kernels cost, in core cycles: a bound from what a core can issue in a cycle, and a calibrated cost.

The bound counts the busiest unit only: loads, stores, or the vector unit. The calibrated cost is what compiled kernels of
this shape were measured to take. Almost all of it is waiting: each 32-lane vector goes through load, operation and store
before the next one starts, because the compiler does not overlap them (mlir-air pull request 2006 calls the passes of
AMD's example "latency-bound", 17 to 27 cycles a vector). Every constant is in :data:`CONSTANTS`, with source and
confidence; :mod:`designs.kernels.calibration` says which one was fitted to what, and what is left over.

Costs do not depend on the data. A masked block costs as much as any other, unless the design skips it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil
from typing import Any

from npusim.devices import Device, Fact
from npusim.kernel_models.timing import GUIDE, MATMUL_EFFICIENCY, START_AND_END

Dims = Mapping[str, int]

LANES = 32
"""bf16 elements of a vector: 64 bytes, four rows of a panel."""


@dataclass(frozen=True)
class Cost:
    """Core cycles of one call: at least, and as calibrated."""

    bound: int
    calibrated: int

    def __add__(self, other: Cost) -> Cost:
        return Cost(self.bound + other.bound, self.calibrated + other.calibrated)


def _c(value: float, unit: str, source: str, confidence: str, note: str = "") -> Fact[float]:
    return Fact(value, unit, source, confidence, note)  # type: ignore[arg-type]


_PR = "mlir-air pull request 2006: 17-27 cycles a 32-lane vector for max_g, mul_r_gp and exp_g of its fused attention"
_ISA = "scalable-analyses/xdna isa.rst: load 7, VMAC.F 6, store 2 cycles, in order"
_ASSUMED = "assumed"

CONSTANTS: dict[str, Fact[float]] = {
    # A vector's way through load, operation and store, not overlapped with the next one's.
    "max": _c(17, "cycles/vector", _PR, "M", "the shortest of the three passes: nothing is stored in the loop"),
    "scale": _c(20, "cycles/vector", _PR, "M", "between the two: load 7, multiply 6, convert and store"),
    "exp": _c(27, "cycles/vector", _PR, "M", "the longest: subtract, convert, clamp, multiply, two exp2, store"),
    "exp_sum": _c(31, "cycles/vector", f"as exp, and added to float sums before the next vector; {_ISA}", "L"),
    "sum": _c(17, "cycles/vector", f"as max, for the same loop; {_ISA}", "L"),
    "merge": _c(24, "cycles/vector", f"as scale, with a second load and a multiply-accumulate; {_ISA}", "L"),
    "mask": _c(12, "cycles/vector", f"load, select, store; {_ISA}", "L"),
    "move": _c(2, "cycles/vector", "load and store of successive vectors do overlap; assumed", "L"),
    # Row vectors.
    "spread": _c(10, "cycles/8 rows", f"a load and three interleaves, one after the other; {_ISA}", "L"),
    "fold": _c(24, "cycles/8 rows", f"three rounds of two filters and one operation, a store; {_ISA}", "L"),
    "broadcast": _c(10, "cycles/row", f"a scalar load, 7 cycles, and its way to all lanes; {_ISA}", "L"),
    "reciprocal": _c(48, "cycles/vector", f"aie_api's aie::inv: six dependent multiplications and conversions; {_ISA}", "L"),
    "row": _c(60, "cycles/row", "plain softmax: reductions of one row to a number, reciprocal, broadcasts; assumed", "L"),
    "call": _c(START_AND_END, "cycles/call", f"{GUIDE}: start and end of a pipelined loop", "M"),
    # XDNA 1 on top of XDNA 2: float operations and stores take 16 lanes at a time, exponentials come from tables.
    "halves": _c(2, "cycles/vector", "two operations of 16 lanes instead of one of 32; AM020 chapter 4", "L"),
    "lookup": _c(16, "cycles/vector", "two tables, four lookups a cycle on both load units (aie::lut<4>)", "M"),
    # Matrix products.
    "emulated_step": _c(
        15.0,
        "cycles/2x2x1 blocks of 8x8x8",
        "CALIBRATED on AMD's fused attention, 16384 tokens, 2 heads, 40.1 ms; see designs.kernels.calibration",
        "M",
        "beside it: mlir-air's whole-array bf16 GEMM at its best, 9797 GFLOP/s, is 24.1 cycles a step at 1.8 GHz",
    ),
    "efficiency": _c(MATMUL_EFFICIENCY, "of the multiply slots", f"{GUIDE}: 2535 cycles where 2048 are ideal, i16", "M"),
    "hand_npu1": _c(40.4, "cycles/call", "CALIBRATED: scalable-analyses/xdna, 398 GFLOP/s for 32x32x32 at 1.8 GHz", "H"),
    "hand_npu2": _c(36.3, "cycles/call", "CALIBRATED: scalable-analyses/xdna, 1760 GFLOP/s for 64x96x64 at 1.8 GHz", "H"),
}


def constant(name: str) -> float:
    """The value of a constant."""
    return CONSTANTS[name].value


# ---- loops over the vectors of a tile


@dataclass(frozen=True)
class Pass:
    """One pass over vectors of 32 bf16: vectors loaded and stored, float operations on the vector unit, exponentials a
    vector; and the constant that says what a vector takes when compiled."""

    constant: str
    loads: int = 1
    stores: int = 0
    operations: int = 1
    exponentials: int = 0

    def bound(self, device: Device) -> float:
        """Cycles a vector."""
        narrow = device.arch == "AIE2"
        loads = self.loads * 64 / device.load_bytes.value
        stores = self.stores * 64 / device.store_bytes.value
        vector = self.operations * (2 if narrow and self.constant != "max" else 1)
        if narrow:
            loads += self.exponentials * constant("lookup")
            vector += self.exponentials * 8  # to fixed point (two additions), indices, product: each on halves
        else:
            vector += self.exponentials * 2  # 16 lanes an instruction
        return max(loads, stores, vector)

    def calibrated(self, device: Device) -> float:
        """Cycles a vector."""
        value = constant(self.constant)
        if device.arch == "AIE2":
            value += constant("halves") + self.exponentials * constant("lookup")
        return value

    def over(self, elements: int, device: Device) -> Cost:
        """The whole pass, without what is around it."""
        vectors = ceil(elements / LANES)
        return Cost(ceil(vectors * self.bound(device)), ceil(vectors * self.calibrated(device)))


MAX = Pass("max")
SUM = Pass("sum")
SCALE = Pass("scale", stores=1)
EXP = Pass("exp", stores=1, operations=2, exponentials=1)
EXP_SUM = Pass("exp_sum", stores=1, operations=3, exponentials=1)
MERGE = Pass("merge", loads=2, stores=1, operations=2)
FILL = Pass("move", loads=0, stores=1, operations=0)
COPY = Pass("move", stores=1, operations=0)
SELECT = Pass("mask", stores=1)


def call(device: Device, *parts: Cost) -> Cost:
    """Parts one after the other, once around a call."""
    bound = sum(part.bound for part in parts)
    return Cost(max(bound, 1), sum(part.calibrated for part in parts) + ceil(constant("call")))


def rows(name: str, count: int) -> Cost:
    """Work a row (``row``, ``broadcast``) or on eight rows at a time (``spread``, ``fold``); left out of the bound but for its store."""
    groups = count if name in ("row", "broadcast") else ceil(count / 8)
    return Cost(groups, ceil(groups * constant(name)))


# ---- matrix products


def matmul(m: int, k: int, n: int, device: Device, *, blocks: bool = True) -> Cost:
    """C (m x n) += A (m x k) B (k x n) in bf16, C loaded and stored once.

    XDNA 1 multiplies 4x8x4 (128 products a cycle). XDNA 2 multiplies BFP16 8x8x8; a step of four such products also takes
    two multiplications that move B to an accumulator for its conversion (aie_api detail/aie2p/mmul_bf16_bf16.hpp). Without
    BFP16 (``blocks`` false) it multiplies 32 pairs an operation (same file).
    """
    if device.arch == "AIE2P" and blocks:
        steps = ceil(m * k * n / (16 * 8 * 16))
        return Cost(6 * steps, ceil(steps * constant("emulated_step")))
    slots = m * k * n / (device.macs.value["bf16"] if device.arch == "AIE2" else LANES)
    return Cost(ceil(slots), ceil(slots / constant("efficiency")))


def matmul_whole(m: int, k: int, n: int, device: Device, element: str) -> Cost:
    """The matrix kernels of the matmul chapter: i16 with i32 sums, bf16 with float sums."""
    if element == "bf16":
        return matmul(m, k, n, device)
    slots = m * k * n / device.macs.value[element]
    return Cost(ceil(slots), ceil(slots / constant("efficiency")))


def hand_scheduled(m: int, k: int, n: int, device: Device) -> int:
    """Cycles of a matrix kernel written in assembly for this size (BFP16 operands on XDNA 2): every cycle multiplies, but
    for what is around the loop."""
    products, around = (m * k * n / 128, "hand_npu1") if device.arch == "AIE2" else (m * k * n / 512, "hand_npu2")
    return round(products + constant(around))


# ---- other loops


def elementwise(elements: int, loads: int, stores: int, device: Device, size: int = 2, operations: int = 1) -> Cost:
    """A pipelined loop over vectors of 64 bytes; ``loads`` and ``stores`` are arrays, ``size`` is bytes an element."""
    vectors = ceil(elements * size / 64)
    narrow = 2 if device.arch == "AIE2" and operations else 1
    busiest = max(loads * 64 / device.load_bytes.value, stores * 64 / device.store_bytes.value, operations * narrow)
    # Conversions to and from the accumulators share the cycle of a load or a store, but not each other's (saxpy: 4).
    compiled = max(busiest, loads + stores) if operations else max(busiest, 1)
    return Cost(ceil(vectors * busiest), ceil(vectors * compiled) + START_AND_END)


def table() -> list[dict[str, Any]]:
    """The constants as rows: name, value, unit, source, confidence, note."""
    return [
        {"name": name, "value": f.value, "unit": f.unit, "source": f.source, "confidence": f.confidence, "note": f.note}
        for name, f in CONSTANTS.items()
    ]

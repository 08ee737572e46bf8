"""What the cycle models were fitted to, and what is left over at every published point.

``python -m designs.kernels.calibration`` prints the table. Three numbers are fitted, each to one published measurement that
is set aside for it: the two microkernels and fused attention at 16384 tokens. The fourth such point, the IRON operator at
2048 tokens, is not used: what it leaves over (:func:`unexplained_host_seconds`) is time between kernels, which no kernel
constant should hide. Every other point is compared only. Estimates of whole designs are sums over their stages (formulas
below), with the host's time in the fused mapping's launches but not in IRON's groups; the simulated designs refine them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from designs.kernels import cycles
from designs.kernels.models import KERNELS
from npusim.devices import NPU2, Device

CLOCK = 1.8e9  # Hz: both microkernels and all attention points were measured at or near it
BLOCK = 64  # queries and keys of a block, and head dimension, in every published attention point
FUSED_STEP = ("zero_scores", "matmul_qk", "softmax_step", "rescale_output", "matmul_pv", "accumulate_sums")
STREAM = 4  # bytes a cycle (npusim.devices.NPU2.stream)
FUSED_LAUNCH = 147_811
"""Cycles of a launch beside its rounds, from the simulated design (designs/attention_fused) at 2048 and 16384 tokens: half of
it is the host's, pushing 24 transfers of 3 us each (npusim.costs, task_push); the same figure for one and for twelve heads."""
CALLS_AND_LOCKS = len(FUSED_STEP) * 10 + 2 * (7 + 4)  # npusim.costs: a kernel call, and a lock taken and given back for K, V
SHIM_START = 747 + 171  # npusim.costs: cold start of a read and a write


@dataclass(frozen=True)
class Point:
    """A published measurement. ``heads`` is 0 for the microkernels; time in seconds."""

    design: Literal["fused", "iron", "hand_npu1", "hand_npu2"]
    length: int
    heads: int
    seconds: float
    use: Literal["calibrated", "set aside", "compare"]
    source: str


_REGISTRY = "mlir-air programming_examples/kernel_registry/details/FlashAttention_bf16.md"
_COMMIT = "mlir-air commit 23d171f2e"
_PAPER = "abstract and a published review of the FlashAttention case study (arXiv 2026), GFLOP/s turned into time"
_TNZR = "scalable-analyses/xdna xdna1_kernel.rst, xdna2_kernel.rst"
POINTS = (
    Point("hand_npu1", 32, 0, 2 * 32**3 / 398e9, "calibrated", _TNZR),
    Point("hand_npu2", 64, 0, 2 * 64 * 96 * 64 / 1760e9, "calibrated", _TNZR),
    Point("fused", 16384, 2, 40.1e-3, "calibrated", _REGISTRY),
    Point("iron", 2048, 12, 11.89e-3, "set aside", _COMMIT),
    Point("fused", 32768, 12, 910.7e-3, "compare", _PAPER),
    Point("iron", 32768, 12, 1828e-3, "compare", _PAPER),
    Point("fused", 2048, 12, 5.48e-3, "compare", _COMMIT),
    Point("fused", 1024, 12, 2.36e-3, "compare", _REGISTRY),
)


def kernel_cycles(name: str, device: Device = NPU2) -> int:
    """Calibrated cycles of a kernel on 64 x 64 blocks."""
    dims = {"BQ": BLOCK, "BK": BLOCK, "DK": BLOCK, "DV": BLOCK}
    return KERNELS[name].cost(dims, device).calibrated


# ---- the fused mapping: launches of 256 queries of two heads, each stage a quarter of the keys


def fused_round() -> int:
    """Cycles of a tile for one block of keys."""
    return sum(kernel_cycles(name) for name in FUSED_STEP) + CALLS_AND_LOCKS


def fused_launch() -> int:
    """Cycles of a launch beside its rounds: the host's pushes, four query tiles down a stream, three merges one after the other,
    the division, the output up a stream."""
    return FUSED_LAUNCH


def fused_seconds(length: int, heads: int) -> float:
    """Time of the fused mapping on XDNA 2."""
    launches, rounds = length // 256 * (heads // 2), length // 256
    return launches * (fused_launch() + rounds * fused_round()) / CLOCK


def fitted_step(launch: int | None = None) -> float:
    """Cycles of a 2x2 step of emulated products that make the fused point of 16384 tokens come out exactly.

    ``launch`` is the cycles of a launch beside its rounds (default: :func:`fused_launch`).
    """
    point = next(p for p in POINTS if p.design == "fused" and p.use == "calibrated")
    launches, rounds = point.length // 256 * (point.heads // 2), point.length // 256
    measured = (point.seconds * CLOCK / launches - (fused_launch() if launch is None else launch)) / rounds
    steps = 2 * (BLOCK // 16) * (BLOCK // 16) * (BLOCK // 8)
    return cycles.constant("emulated_step") + (measured - fused_round()) / steps


# ---- the IRON mapping: eight pipelines of three tiles, 512 queries of one head at a time


def iron_stages() -> dict[str, int]:
    """Cycles of each tile of a pipeline for one block of keys; the slowest sets the pace."""
    return {
        "scores": kernel_cycles("zero_scores") + kernel_cycles("matmul_qk"),
        "softmax": kernel_cycles("online_softmax"),
        "output": kernel_cycles("rescale_output") + kernel_cycles("matmul_pv"),
    }


def iron_seconds(length: int, heads: int) -> float:
    """Time of the IRON mapping on XDNA 2, no block skipped, no host time."""
    groups, steps = max(length // 512, 1) * heads, max(length, 512) // BLOCK
    stages = iron_stages()
    filling = sum(stages.values()) - max(stages.values()) + 4 * BLOCK * BLOCK * 2 // STREAM
    return groups * (steps * max(stages.values()) + filling + SHIM_START) / CLOCK


def unexplained_host_seconds() -> float:
    """What the IRON point of 2048 tokens takes longer than its stages, a group of 512 queries: about 90 us. Groups end with
    the host waiting for a token and starting new transfers; the fit of two fused points gives 67 us a launch likewise."""
    point = next(p for p in POINTS if p.use == "set aside")
    return (point.seconds - iron_seconds(point.length, point.heads)) / (point.length // 512 * point.heads)


def estimate(point: Point) -> float:
    """Estimated time of a point, in seconds."""
    if point.design == "fused":
        return fused_seconds(point.length, point.heads)
    if point.design == "iron":
        return iron_seconds(point.length, point.heads)
    if point.design == "hand_npu1":
        return round(32**3 / 128 + cycles.constant("hand_npu1"), 1) / CLOCK
    return round(64 * 96 * 64 / 512 + cycles.constant("hand_npu2"), 1) / CLOCK


def residuals() -> list[dict[str, object]]:
    """A row a point: design, length, heads, published and estimated milliseconds, error in percent, use, source."""
    return [
        {
            "design": p.design,
            "length": p.length,
            "heads": p.heads,
            "published_ms": p.seconds * 1e3,
            "estimated_ms": estimate(p) * 1e3,
            "error_percent": 100 * (estimate(p) / p.seconds - 1),
            "use": p.use,
            "source": p.source,
        }
        for p in POINTS
    ]


def main() -> None:
    """Print constants, stages and residuals."""
    for row in cycles.table():
        print(f"{row['name']:14} {row['value']:8.4g} {row['unit']:30} {row['confidence']}  {row['source']}")
    print(f"\nfused: {fused_round()} cycles a block of keys, {fused_launch()} a launch; fitted step {fitted_step():.2f}")
    print("iron: " + ", ".join(f"{name} {n}" for name, n in iron_stages().items()) + " cycles a block of keys")
    print(f"iron, 2048 tokens: {unexplained_host_seconds() * 1e6:.0f} us a group unexplained\n")
    for r in residuals():
        print(
            f"{r['design']:10} {r['length']:6} {r['heads']:3}  published {r['published_ms']:9.4g} ms  "
            f"estimated {r['estimated_ms']:9.4g} ms  {r['error_percent']:+6.1f} %  {r['use']}"
        )


if __name__ == "__main__":
    main()

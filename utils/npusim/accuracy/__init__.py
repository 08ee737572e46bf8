"""Published measurements beside what the simulator says, outside of attention: how far to trust it.

No number is fitted to a point. Where a constant of the device or cost tables was itself taken from the measurement, the
point says so: it then only shows that the constant arrives where it should.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

from npusim.accuracy.eltwise import add_rate
from npusim.accuracy.gemm import XDNA, XDNA2, gemm_rate
from npusim.accuracy.microkernel import XDNA2_BFP16, XDNA_BF16, microkernel_rate
from npusim.accuracy.streams import copy_rate, start_up
from npusim.devices import NPU1, NPU2

_DESKTOP = NPU1.with_options(clock_hz=1.8e9)
_TRACED = NPU1.with_options(clock_hz=1.028e9)

_SILICON = "jdominick05/ryzen-ai-xdna1-quantization docs/SILICON.md 1.6 (Ryzen 7 8700G, 1.8 GHz)"
_EMU = "FIM43-Redeye/xdna-emu docs/superpowers/findings 2026-05-25 shim-throughput (Phoenix, 1.028 GHz)"
_ADD = "mlir-air programming_examples kernel_registry/details/EltwiseAdd_bf16.md"
_PAPER = "arXiv:2512.13282"
_KERNELS = "scalable-analyses/xdna xdna1_kernel.rst, xdna2_kernel.rst (1.8 GHz)"

_LOOP = (
    "a turn of the kernel's loop is the sum of its latencies, since one column's figure shows that it is not pipelined; "
    "only the measurement includes the driver's launch"
)
_TILES = "tile sizes are ours; DDR is as fast as copying memory was measured to be"
_CALL = "its instructions are counted, only calling it is simulated"


@dataclass(frozen=True)
class Point:
    """One measurement and its simulation, both in ``unit``."""

    name: str
    published: float
    unit: str
    source: str
    simulate: Callable[[], float]
    note: str = ""


class Result(NamedTuple):
    """A point with what the simulation gave; ``error`` is relative to the published figure."""

    point: Point
    simulated: float
    error: float


def _scaled(scale: float, rate: Callable[..., float], *args: object) -> Callable[[], float]:
    return lambda: rate(*args) / scale


def _add(columns: int, published: float, millions: int) -> Point:
    name = f"npu2: add bf16 vectors of {millions} Mi, {columns} column{'s' * (columns > 1)}"
    simulate = _scaled(1e9, add_rate, NPU2, columns, millions * 2**20)
    return Point(name, published, "GB/s", _ADD, simulate, _LOOP)


def _cold(direction: str, published: float, constant: str) -> Point:
    name = f"npu1 at 1.028 GHz: first shim {direction} transfer, start-up"
    return Point(name, published, "cycles", _EMU, partial(start_up, _TRACED, direction), f"gave {constant}")


POINTS = (
    Point(
        "npu1 at 1.8 GHz: copy memory on 4 channels each way", 56.2, "GB/s", _SILICON, _scaled(1e9, copy_rate, _DESKTOP),
        "gave ddr_total",
    ),
    _add(1, 9.1, 4),
    _add(2, 19.0, 4),
    _add(4, 35.7, 4),
    _add(8, 57.7, 4),
    _add(8, 63.0, 8),
    Point("npu1 at 1.0 GHz: GEMM bf16, 16 tiles", 3.14, "TFLOP/s", _PAPER, _scaled(1e12, gemm_rate, NPU1, XDNA), _TILES),
    Point(
        "npu2: GEMM bf16 as BFP16, 32 tiles", 14.71, "TFLOP/s", _PAPER, _scaled(1e12, gemm_rate, NPU2, XDNA2), _TILES
    ),
    Point(
        "npu1 at 1.8 GHz: matrix kernel bf16, 1 tile", 398, "GFLOP/s", _KERNELS,
        _scaled(1e9, microkernel_rate, _DESKTOP, XDNA_BF16), _CALL,
    ),
    Point(
        "npu2: matrix kernel BFP16, 1 tile", 1760, "GFLOP/s", _KERNELS,
        _scaled(1e9, microkernel_rate, NPU2, XDNA2_BFP16), _CALL,
    ),
    _cold("MM2S", 747, "shim_read_start"),
    _cold("S2MM", 171, "shim_write_start"),
)  # fmt: skip


def results() -> list[Result]:
    """Every point, simulated now (a few seconds)."""
    found = []
    for point in POINTS:
        simulated = point.simulate()
        found.append(Result(point, simulated, simulated / point.published - 1))
    return found


def table(found: list[Result]) -> str:
    """The results in columns, with notes and sources below."""
    notes = list(dict.fromkeys(r.point.note for r in found if r.point.note))
    width = max(len(r.point.name) for r in found)
    lines = [f"{'':{width}}  {'published':>9}  {'simulated':>9}  {'':7}  {'error':>7}  note"]
    for point, simulated, error in found:
        number = f"{notes.index(point.note) + 1}" if point.note else ""
        lines.append(
            f"{point.name:{width}}  {point.published:9.4g}  {simulated:9.4g}  {point.unit:7}  {100 * error:+6.1f}%  {number}"
        )
    lines += ["", "Notes"] + [f"{i}: {note}" for i, note in enumerate(notes, 1)]
    lines += ["", "Published in"] + list(dict.fromkeys(r.point.source for r in found))
    return "\n".join(lines)


def main() -> None:
    """Print the table."""
    print(table(results()))

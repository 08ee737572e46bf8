"""The least time of a transpose, from what it moves and what its kernel takes."""

from __future__ import annotations

from collections.abc import Mapping

from designs.transpose import models, reference
from npulab import roofline
from npusim.devices import device as device_named
from npusim.report import Level
from npusim.types import MemRefType


def kernel_cycles(m: int, n: int, device: str) -> int:
    """Core cycles that the kernel takes for a tile of m x n bf16 elements."""
    a, b = MemRefType((m, n), "bf16"), MemRefType((n, m), "bf16")
    return models.cycles(a, b, 1.0, device=device_named(device))


def prediction(M: int, N: int, m: int, n: int, columns: int, device: str, dtype: str) -> roofline.Prediction:
    """The least time: the kernel (bf16 only) without a pause, and each level's bytes over the channels in use. What short
    pieces cost at DDR is not in it; see :func:`designs.transpose.reference.ddr_busy`."""
    through = 2 * columns if dtype == "bf16" else columns
    used: Mapping[Level, tuple[int, int]] = {
        "ddr": (columns, columns),
        "memtile": (through, through),
        "l1": (columns, columns),
    }
    speed = m * n / kernel_cycles(m, n, device)
    roof = roofline.roofline(device, tiles=columns, channels=used, flops_per_cycle_and_tile=speed, convention="both ways")
    moved = {level: traffic.total for level, traffic in reference.traffic(M, N, dtype).items() if traffic.total}
    return roofline.predict(reference.flops(M, N, dtype), moved, roof, name="transpose")

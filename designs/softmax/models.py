"""What kernels.cc computes, in numpy, and how long it takes; with the shared kernels that it includes."""

from __future__ import annotations

from typing import Any

import numpy as np

from designs.kernels import cycles as cost
from designs.kernels.arithmetic import LOWEST, Arithmetic, to_bf16
from designs.kernels.models import KERNELS as SHARED
from designs.kernels.models_softmax import difference
from designs.kernels.spec import Dims, Kernel, prototype
from npusim.devices import Device

Array = np.ndarray[Any, np.dtype[Any]]
F32 = np.float32


def begin_rows(a: Arithmetic, m: Array, l: Array) -> None:
    """m = LOWEST, l = 0."""
    m[...], l[...] = LOWEST, 0


def piece_maxima(a: Arithmetic, s: Array, m: Array) -> None:
    """m = the larger of m and of each row of s."""
    np.maximum(m, np.maximum(s.max(axis=-1), LOWEST), out=m)


def piece_sums(a: Arithmetic, s: Array, m: Array, l: Array, scale: Any) -> None:
    """l = l + sum of 2**((s - m) * scale) of each row; float32 sums, rounded to bf16 once a piece."""
    powers = a.exp(difference(s, m[:, None]), to_bf16(F32(scale)))
    l[...] = to_bf16(l.astype(F32) + powers.astype(F32).sum(axis=-1, dtype=F32))


def _cost_begin(d: Dims, device: Device) -> cost.Cost:
    return cost.call(device, cost.FILL.over(2 * d["ROWS"], device))


def _cost(of: cost.Pass) -> Any:
    def cycles(d: Dims, device: Device) -> cost.Cost:
        return cost.call(device, of.over(d["ROWS"] * d["COLS"], device), cost.rows("row", d["ROWS"]))

    return cycles


KERNELS = [
    Kernel("begin_rows", "kernels.cc", prototype("m[ROWS] l[ROWS]"), begin_rows, _cost_begin),
    Kernel("piece_maxima", "kernels.cc", prototype("s[ROWS,COLS] m[ROWS]"), piece_maxima, _cost(cost.MAX)),
    Kernel(
        "piece_sums", "kernels.cc", prototype("s[ROWS,COLS] m[ROWS] l[ROWS] scale:f32"), piece_sums, _cost(cost.EXP)
    ),
]
MODELS = {
    k.name: k.model() for k in [*KERNELS, *(SHARED[n] for n in ("softmax_rows", "softmax_stats", "softmax_apply"))]
}

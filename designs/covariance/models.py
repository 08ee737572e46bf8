"""What kernels.cc computes, in numpy, and how long it takes; and the compute ceilings that one may have in mind."""

from __future__ import annotations

from typing import Any

import numpy as np

from designs.covariance.reference import FEATURES, SAMPLES
from designs.kernels import cycles as cost
from designs.kernels.arithmetic import Arithmetic
from designs.kernels.layout import panels
from designs.kernels.models import KERNELS as SHARED
from designs.kernels.spec import Dims, Kernel, prototype
from npusim.costs import Costs
from npusim.devices import Device
from npusim.devices import device as device_named

Array = np.ndarray[Any, np.dtype[Any]]
BLOCK, BLOCKS = 32, SAMPLES // 32  # samples of a block, blocks of a window


def take_rows(a: Arithmetic, x: Array, band: Array, number: Any) -> None:
    """band (BQ, DK) = rows number*BQ to number*BQ + BQ-1 of x (BK, DK), both in panels of eight columns."""
    rows = len(band)
    panels(band)[...] = panels(x)[:, int(number) * rows : (int(number) + 1) * rows]


def _cost(d: Dims, device: Device) -> cost.Cost:
    return cost.call(device, cost.COPY.over(d["BQ"] * d["DK"], device))


KERNELS = [Kernel("take_rows", "kernels.cc", prototype("x[BK,DK] band[BQ,DK] number:i32"), take_rows, _cost)]
MODELS = {kernel.name: kernel.model() for kernel in KERNELS}


def ceilings(on: Device | str, rows: int = 64) -> dict[str, float]:
    """FLOP a cycle of one compute tile, by what is taken to limit it, the largest first:

    * ``BFP16 peak``: a block product in every cycle, of BFP16 operands, as the kernel has them (XDNA 2 only);
    * ``bf16 peak``: the rate of bf16 products that is quoted for the device;
    * ``instruction count``: what the matrix kernel's busiest unit allows; on XDNA 2 it must also convert operands;
    * ``compiled kernel``: what a tile takes for a block and bands of ``rows`` rows: kernels as calibrated, calls, locks;
    * ``vector code``: one multiply-accumulate of all float lanes in every cycle, without the matrix unit.
    """
    of = device_named(on) if isinstance(on, str) else on
    dims = {"BQ": rows, "BK": FEATURES, "DK": BLOCK}
    flops = 2 * rows * FEATURES * BLOCK
    multiply, zero, take = (k.cost(dims, of) for k in (SHARED["matmul_qk"], SHARED["zero_scores"], KERNELS[0]))
    fixed = Costs()
    around = 2 * fixed.kernel_call.value + fixed.lock_acquire.value + fixed.lock_release.value
    lanes = cost.LANES // (2 if of.arch == "AIE2" else 1)
    peaks = {name: 2.0 * of.macs.value[dtype] for name, dtype in (("BFP16 peak", "bfp16"), ("bf16 peak", "bf16")) if dtype in of.macs.value}
    values = {
        **peaks,
        "instruction count": flops / multiply.bound,
        "compiled kernel": flops / (multiply.calibrated + take.calibrated + zero.calibrated / BLOCKS + around),
        "vector code": 2.0 * lanes,
    }
    return dict(sorted(values.items(), key=lambda item: -item[1]))

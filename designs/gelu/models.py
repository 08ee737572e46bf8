"""What kernels.cc computes, in numpy, and how long it takes.

The simulated NPU finds ``MODELS`` by the kernel's name. Each operation rounds as the core does: a float result, then bf16, to
nearest even.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from npusim.devices import Device
from npusim.kernel_models.rounding import bf16
from npusim.kernel_models.timing import START_AND_END
from npusim.kernels import KernelModel
from npusim.types import MemRefType

LIMIT = 2.75  # from here on, share is 0 or 1
COEFFICIENTS = (0.375, -179 / 4096, 5 / 2048)  # of share = 1/2 + u (c0 + c1 u^2 + c2 u^4), each a bf16 number
PER_TURN = 64  # elements of one iteration of the kernel's loop
OPERATIONS = 6  # of a vector, each of which needs the one before: bias, square, three multiply-adds, product
TURN = 7 + 1 + OPERATIONS * (6 + 1) + 4 + 3 + 3


def bias_gelu_bf16(x: Any, bias: Any, y: Any) -> None:
    """``y = gelu(x + bias)``, shapes (FEATURES,), bf16."""
    z = bf16(x.astype(np.float32) + bias.astype(np.float32))
    u = np.maximum(np.minimum(z, np.float32(LIMIT)), np.float32(-LIMIT))
    c0, c1, c2 = (np.float32(c) for c in COEFFICIENTS)
    square = bf16(u * u)
    slope = bf16(square * bf16(square * c2 + c1) + c0)
    share = np.maximum(np.minimum(bf16(u * slope + np.float32(0.5)), np.float32(1)), np.float32(0))
    y[...] = (z * share).astype(y.dtype)


def bound(x: MemRefType, bias: MemRefType, y: MemRefType, *, device: Device) -> int:
    """Core cycles if only the vector unit counts: six operations on floats and four comparisons an element. A float operation
    takes 16 lanes on AIE2 and 32 on AIE2P, a comparison of bf16 numbers 32 on either (aie_api, as npusim.hostcc counts)."""
    vectors = x.size // 32
    return vectors * (OPERATIONS * (2 if device.arch == "AIE2" else 1) + 4)


def cycles(x: MemRefType, bias: MemRefType, y: MemRefType, *, device: Device) -> int:
    """Core cycles: TURN an iteration of 64 elements, and the start and end of the loop.

    A turn is the sum of its latencies, since each operation needs the result of the one before: two loads (7 + 1), six operations of
    6 cycles and their conversions, four comparisons, three cycles until the second vector has been through as well, and the
    loop's three (scalable-analyses/xdna isa.rst). The same sum for an addition reproduces the published rates of mlir-air's
    element-wise example within five per cent (npusim.accuracy.eltwise). Not measured for this kernel.
    """
    return START_AND_END + x.size // PER_TURN * TURN


MODELS = {
    "bias_gelu_bf16": KernelModel(
        compute=bias_gelu_bf16,
        cycles=cycles,
        bound=bound,
        source="sum of the latencies of scalable-analyses/xdna isa.rst, as npusim.accuracy.eltwise; not measured",
        confidence="L",
    )
}

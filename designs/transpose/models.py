"""What kernels.cc computes, in numpy, and how long it takes.

The simulated NPU finds ``MODELS`` by the kernel's name.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from ml_dtypes import bfloat16

from npusim.devices import Device
from npusim.kernel_models.timing import START_AND_END
from npusim.kernels import KernelModel
from npusim.types import MemRefType

SIDE = 8
MICRO = SIDE * SIDE
TURN = 7 + 1 + 2 + 2 + 6 + 1 + 2 + 3


def transpose_bf16(a: Any, b: Any, alpha: Any) -> None:
    """``b = alpha * a`` with each 8 x 8 micro tile transposed; bf16, micro tiles one after the other; alpha rounded to bf16."""
    turned = a.reshape(-1, SIDE, SIDE).transpose(0, 2, 1).astype(np.float32)
    b.reshape(-1, SIDE, SIDE)[...] = (np.float32(bfloat16(alpha)) * turned).astype(b.dtype)


def bound(a: MemRefType, b: MemRefType, alpha: Any, *, device: Device) -> int:
    """Core cycles if only the load, store and vector slots count."""
    loads, stores = (2 * MICRO / width.value for width in (device.load_bytes, device.store_bytes))
    products = MICRO // (16 if device.arch == "AIE2" else 32)
    return int(a.size // MICRO * max(loads, stores, products))


def cycles(a: MemRefType, b: MemRefType, alpha: Any, *, device: Device) -> int:
    """Core cycles: TURN a micro tile, and the start and end of the loop.

    A turn is the sum of its latencies: two loads (7 + 1), two rounds of shuffles (2 + 2), a product (6) and its conversion (1),
    two more cycles for the other half and its store, and the loop's three (scalable-analyses/xdna isa.rst). The same sum for an
    addition reproduces the published rates of mlir-air's element-wise example within five per cent (npusim.accuracy.eltwise).
    Not measured for this kernel.
    """
    return START_AND_END + a.size // MICRO * TURN


MODELS = {
    "transpose_bf16": KernelModel(
        compute=transpose_bf16,
        cycles=cycles,
        bound=bound,
        source="sum of the latencies of scalable-analyses/xdna isa.rst, as npusim.accuracy.eltwise; not measured",
        confidence="L",
    )
}

"""What kernels.cc computes, in numpy, and how long it takes.

The simulated NPU finds ``MODELS`` by the kernel's name. Rounding is the core's: a float accumulator, then one rounding to
bf16, to nearest even (numpy's and ml_dtypes' conversion).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from ml_dtypes import bfloat16

from npusim.devices import Device
from npusim.kernels import KernelModel
from npusim.types import MemRefType

LANES = 32  # elements of one iteration of the kernel's loop


def saxpy_bf16(x: Any, y: Any, out: Any, a: Any) -> None:
    """``out = a*x + y``, shapes (TILE,), bf16; a float32, rounded to bf16."""
    factor = np.float32(bfloat16(a))
    out[...] = (factor * x.astype(np.float32) + y.astype(np.float32)).astype(bfloat16)


def bound(x: MemRefType, y: MemRefType, out: MemRefType, a: Any, *, device: Device) -> int:
    """Core cycles if only the load and store slots count (bytes over ``load_bytes`` and ``store_bytes`` a cycle)."""
    loads = -(-(x.nbytes + y.nbytes) // device.load_bytes.value)
    return max(loads, -(-out.nbytes // device.store_bytes.value))


def cycles(x: MemRefType, y: MemRefType, out: MemRefType, a: Any, *, device: Device) -> int:
    """Core cycles: 4 an iteration of 32 elements (on AIE2 and AIE2P), 30 for set-up, filling and emptying the pipeline.

    An iteration issues two conversions of y to the accumulator, two multiply-accumulates and two conversions back, each on
    16 float lanes; two of these go together with a load and a store. Derived by hand from the instruction set
    (scalable-analyses/xdna isa.rst), not measured.
    """
    return 30 + 4 * (x.size // LANES)


MODELS = {
    "saxpy_bf16": KernelModel(
        compute=saxpy_bf16,
        cycles=cycles,
        bound=bound,
        source="counted by hand from the issue slots in scalable-analyses/xdna isa.rst; not measured",
        confidence="L",
    )
}

"""``iron.kernels``: factories of mlir-aie's library kernels, with the real package's names, arguments and defaults."""

from __future__ import annotations

from npusim.frontends.iron.kernel_library import refused
from npusim.frontends.iron.kernel_library.activation import (
    bf16_exp,
    bf16_exp_ref,
    gelu,
    gelu_ref,
    relu_ref,
    silu,
    silu_ref,
    softmax,
    softmax_ref,
    swiglu,
)
from npusim.frontends.iron.kernel_library.eltwise import add, mul, passthrough, relu, scale
from npusim.frontends.iron.kernel_library.linalg import cascade_mm, mm, mv
from npusim.frontends.iron.kernel_library.reduce import compute_max, reduce_add, reduce_max, reduce_min

__all__ = [
    "passthrough",
    "scale",
    "add",
    "mul",
    "relu",
    "reduce_add",
    "reduce_min",
    "reduce_max",
    "compute_max",
    "softmax",
    "gelu",
    "silu",
    "swiglu",
    "bf16_exp",
    "relu_ref",
    "silu_ref",
    "gelu_ref",
    "bf16_exp_ref",
    "softmax_ref",
    "mm",
    "mv",
    "cascade_mm",
]

globals().update({name: refused.refuse(name) for name in refused.NAMES})
__all__ += refused.NAMES

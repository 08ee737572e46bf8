"""Activations on bf16 tiles: exp, softmax, GELU, SiLU, SwiGLU.

XDNA 2 has exp2 and tanh in hardware, XDNA 1 looks them up in tables; both are modelled as exact functions whose results
are rounded to bf16, and so is every intermediate result that the kernels keep in bf16. XDNA 1's softmax does not subtract
the row's maximum and overflows for inputs above 88; the model subtracts it, as XDNA 2's does.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from ml_dtypes import bfloat16

from npusim.devices import Device
from npusim.kernel_models.rounding import bf16
from npusim.kernel_models.timing import START_AND_END
from npusim.kernels import KernelModel
from npusim.types import MemRefType

Array = np.ndarray[Any, np.dtype[Any]]

_LOG2E = np.float32(1.4453125)  # log2(e) as bf16, the constant of the softmax kernel
_VECTOR = 32  # elements of what the published figure counts


def _exp(x: Array, out: Array) -> None:
    out[...] = np.exp(x.astype(np.float32)).astype(bfloat16)


def _softmax(x: Array, out: Array, size: int) -> None:
    """Of the first ``size`` elements together: maximum, exponentials and their sum, division."""
    scaled = x.reshape(-1)[:size].astype(np.float32) * _LOG2E
    powers = bf16(np.exp2(scaled - bf16(scaled).max()))
    out.reshape(-1)[:size] = (powers * bf16(1 / powers.sum(dtype=np.float32))).astype(bfloat16)


def _sigmoid_times(x: Array) -> Array:
    """x * sigmoid(x) by way of tanh, as the kernels compute it."""
    half = bf16(np.tanh(x * np.float32(0.5)))
    return bf16(x * bf16(bf16(half + 1) * np.float32(0.5)))


def _silu(x: Array, out: Array) -> None:
    out[...] = _sigmoid_times(x.astype(np.float32)).astype(bfloat16)


def _gelu(x: Array, out: Array) -> None:
    """The tanh approximation."""
    v = x.astype(np.float32)
    cubed = bf16(v * bf16(v * v))
    inner = bf16(v + bf16(cubed * bf16(0.044715)))
    tanh = bf16(np.tanh(inner * bf16(0.79788456)))
    out[...] = (v * bf16(np.float32(0.5) * bf16(tanh + 1))).astype(bfloat16)


def _swiglu(x: Array, first: Array, second: Array, out: Array) -> None:
    v = x.astype(np.float32)
    gate = _sigmoid_times(bf16(v * second.astype(np.float32)))
    out[...] = (bf16(v * first.astype(np.float32)) * gate).astype(bfloat16)


# Vector operations for 16 elements, conversions to bf16 included, on (XDNA 2, XDNA 1); the tables of XDNA 1 take four
# loads and a multiplication for each of two lookups.
_OPERATIONS = {"exp": (4, 14), "silu": (10, 20), "gelu": (18, 28), "swiglu": (16, 26)}


def _ops(kind: str, device: Device) -> int:
    return _OPERATIONS[kind][0 if device.arch == "AIE2P" else 1]


def _elementwise(kind: str, compute: Callable[..., None]) -> KernelModel:
    def slots(x: MemRefType, *rest: Any, device: Device) -> int:
        return -(-x.size // 16) * _ops(kind, device)

    def cycles(x: MemRefType, *rest: Any, device: Device) -> int:
        return -(-x.size // 16) * _ops(kind, device) + START_AND_END

    source = "vector operations counted in the loop of aie_kernels, one a cycle; table lookups of XDNA 1 assumed"
    silent = np.errstate(over="ignore", invalid="ignore")(compute)  # a core says nothing of infinities and NaNs
    return KernelModel(silent, cycles, slots, source=source, confidence="L")


def _softmax_slots(x: MemRefType, out: MemRefType, size: int, *, device: Device) -> int:
    return -(-size // _VECTOR) * (3 + 2 * _ops("exp", device) + 2)


def _softmax_cycles(x: MemRefType, out: MemRefType, size: int, *, device: Device) -> int:
    # Three passes that the compiler does not pipeline: 17, 27 and 17 cycles for 32 elements; 60 for the two reductions.
    return -(-size // _VECTOR) * (17 + 27 + 17) + 60 + START_AND_END


_PASSES = "mlir-air pull request 2006: max, exp and multiply passes took 17 to 27 cycles for 32 elements on XDNA 2"

MODELS = {
    "exp_bf16_1024": _elementwise("exp", _exp),
    "softmax_bf16": KernelModel(_softmax, _softmax_cycles, _softmax_slots, source=_PASSES, confidence="L"),
    "silu_bf16": _elementwise("silu", _silu),
    "gelu_bf16": _elementwise("gelu", _gelu),
    "swiglu_bf16": _elementwise("swiglu", _swiglu),
}

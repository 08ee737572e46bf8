"""Elementwise kernels: copy, scale, add, multiply, ReLU."""

from __future__ import annotations

from typing import Any

import numpy as np
from ml_dtypes import bfloat16

from npusim.devices import Device
from npusim.kernel_models.timing import GUIDE, START_AND_END, pipelined, scalar
from npusim.kernels import KernelModel
from npusim.types import MemRefType

Array = np.ndarray[Any, np.dtype[Any]]


def _copy(source: Array, target: Array, size: int) -> None:
    target.reshape(-1)[:size] = source.reshape(-1)[:size]


def _copy_slots(source: MemRefType, target: MemRefType, size: int, *, device: Device) -> int:
    lanes = 64 // source.dtype.itemsize
    return pipelined(device, size, lanes, 64, 64, 1)


def _copy_cycles(source: MemRefType, target: MemRefType, size: int, *, device: Device) -> int:
    return _copy_slots(source, target, size, device=device) + START_AND_END


def _scale(source: Array, target: Array, factor: Array, size: int) -> None:
    """Integer multiplication; what does not fit the type is cut off."""
    wide = source.reshape(-1)[:size].astype(np.int64) * int(factor.reshape(-1)[0])
    target.reshape(-1)[:size] = wide.astype(target.dtype)


def _scale_slots(source: MemRefType, target: MemRefType, factor: MemRefType, size: int, *, device: Device) -> int:
    if source.dtype.itemsize == 2:
        return pipelined(device, size, 32, 64, 64, 1)
    return pipelined(device, size, 16, 64, 64, 5)  # a 32-bit multiplication takes several; 339 cycles for 64 turns


def _scale_cycles(source: MemRefType, target: MemRefType, factor: MemRefType, size: int, *, device: Device) -> int:
    around = START_AND_END if source.dtype.itemsize == 2 else 19
    return _scale_slots(source, target, factor, size, device=device) + around


def _scalar_scale_cycles(source: MemRefType, target: MemRefType, factor: Any, size: int, *, device: Device) -> int:
    return scalar(size)


def _add(a: Array, b: Array, out: Array) -> None:
    out[...] = (a.astype(np.float32) + b.astype(np.float32)).astype(bfloat16)


def _mul(a: Array, b: Array, out: Array) -> None:
    out[...] = (a.astype(np.float32) * b.astype(np.float32)).astype(bfloat16)


def _binary_slots(a: MemRefType, b: MemRefType, out: MemRefType, *, device: Device) -> int:
    return pipelined(device, out.size, 16, 64, 32, 1)


def _add_cycles(a: MemRefType, b: MemRefType, out: MemRefType, *, device: Device) -> int:
    # A bf16 addition is a move into an fp32 accumulator and an addition there: two vector operations.
    return pipelined(device, out.size, 16, 64, 32, 2) + START_AND_END


def _mul_cycles(a: MemRefType, b: MemRefType, out: MemRefType, *, device: Device) -> int:
    return _binary_slots(a, b, out, device=device) + START_AND_END


def _scalar_binary_cycles(a: MemRefType, b: MemRefType, out: MemRefType, *, device: Device) -> int:
    return scalar(out.size, 24)


def _relu(x: Array, out: Array) -> None:
    out[...] = np.maximum(x.astype(np.float32), 0).astype(bfloat16)


def _relu_slots(x: MemRefType, out: MemRefType, *, device: Device) -> int:
    return pipelined(device, x.size, 32, 64, 64, 1)


def _relu_cycles(x: MemRefType, out: MemRefType, *, device: Device) -> int:
    return _relu_slots(x, out, device=device) + START_AND_END


_SLOTS = f"issue slots of the loop in aie_kernels, start and end from {GUIDE}"
_NO_FLOAT = "assumed: twice the integer loop, floating point on the scalar side goes through the vector unit"

MODELS = {
    "passThroughLine": KernelModel(_copy, _copy_cycles, _copy_slots, source=_SLOTS, confidence="M"),
    "vector_scalar_mul_vector": KernelModel(_scale, _scale_cycles, _scale_slots, source=GUIDE, confidence="H"),
    "vector_scalar_mul_scalar": KernelModel(_scale, _scalar_scale_cycles, source=GUIDE, confidence="H"),
    "eltwise_add_bf16_vector": KernelModel(_add, _add_cycles, _binary_slots, source=_SLOTS, confidence="L"),
    "eltwise_mul_bf16_vector": KernelModel(_mul, _mul_cycles, _binary_slots, source=_SLOTS, confidence="L"),
    "eltwise_add_bf16_scalar": KernelModel(_add, _scalar_binary_cycles, source=_NO_FLOAT, confidence="L"),
    "eltwise_mul_bf16_scalar": KernelModel(_mul, _scalar_binary_cycles, source=_NO_FLOAT, confidence="L"),
    "bf16_relu": KernelModel(_relu, _relu_cycles, _relu_slots, source=_SLOTS, confidence="M"),
}

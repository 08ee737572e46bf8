"""Reductions of a tile to one number: sum, smallest, largest."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from npusim.devices import Device
from npusim.kernel_models.timing import GUIDE, START_AND_END, pipelined, scalar
from npusim.kernels import KernelModel
from npusim.types import MemRefType

Array = np.ndarray[Any, np.dtype[Any]]

_FOLD = 5 * 4
"""Cycles to fold a vector to one number: five shifts and operations, each waiting for the one before (assumed)."""


def _sum(source: Array, target: Array, size: int) -> None:
    """In 32 bits, as the vector unit adds: what does not fit is cut off."""
    total = source.reshape(-1)[:size].astype(np.int64).sum()
    target.reshape(-1)[0] = total.astype(target.dtype)


def _min(source: Array, target: Array, size: int) -> None:
    target.reshape(-1)[0] = source.reshape(-1)[:size].min()


def _max(source: Array, target: Array, size: int) -> None:
    target.reshape(-1)[0] = source.reshape(-1)[:size].max()


def _larger(a: Array, b: Array, out: Array) -> None:
    out.reshape(-1)[0] = max(a.reshape(-1)[0], b.reshape(-1)[0])


def _slots(source: MemRefType, target: MemRefType, size: int, *, device: Device) -> int:
    return pipelined(device, size, 64 // source.dtype.itemsize, 64, 0, 1)


def _cycles(source: MemRefType, target: MemRefType, size: int, *, device: Device) -> int:
    # Each turn needs the result of the one before, and a vector addition or comparison takes two cycles.
    return pipelined(device, size, 64 // source.dtype.itemsize, 64, 0, 2) + _FOLD + START_AND_END


def _scalar_cycles(source: MemRefType, target: MemRefType, size: int, *, device: Device) -> int:
    return scalar(size, 10)  # as the scalar multiplication, without a store and a multiplication's second cycle


def _pair_cycles(a: MemRefType, b: MemRefType, out: MemRefType, *, device: Device) -> int:
    return 20


def _vector(compute: Callable[..., None]) -> KernelModel:
    source = f"issue slots of the loop in aie_kernels; folding assumed; start and end from {GUIDE}"
    return KernelModel(compute, _cycles, _slots, source=source, confidence="L")


def _scalar(compute: Callable[..., None]) -> KernelModel:
    return KernelModel(compute, _scalar_cycles, source=f"from the scalar loop in {GUIDE}", confidence="L")


_PAIR = KernelModel(_larger, _pair_cycles, source="assumed: two loads, a comparison and a store", confidence="L")

MODELS = {
    "reduce_add_vector": _vector(_sum),
    "reduce_add_scalar": _scalar(_sum),
    "reduce_min_vector": _vector(_min),
    "reduce_min_scalar": _scalar(_min),
    "reduce_max_vector": _vector(_max),
    "reduce_max_scalar": _scalar(_max),
    "reduce_max_vector_bfloat16": _vector(_max),
    "reduce_max_scalar_bfloat16": _scalar(_max),
    "compute_max": _PAIR,
    "compute_max_bfloat16": _PAIR,
}

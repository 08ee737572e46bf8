"""Reductions of a tile to one number: ``reduce_add``, ``reduce_min``, ``reduce_max``, and ``compute_max`` of two."""

from __future__ import annotations

import numpy as np
from ml_dtypes import bfloat16

from npusim.errors import DesignError
from npusim.frontends.iron.kernel import ExternalFunction
from npusim.frontends.iron.kernel_library.common import array, dma_aligned, extern

_MAX_OBJECT = "reduce_max.cc.o"


def _reduce_i32(op: str, tile_size: int, dtype: type, vectorized: bool) -> ExternalFunction:
    if np.dtype(dtype) != np.dtype(np.int32):
        raise DesignError(f"reduce_{op}() dtype must be np.int32, got {dtype}. Only the int32 variant exists.")
    types = [array(tile_size, np.int32), array(1, np.int32), np.int32]
    return extern(f"reduce_{op}_{'vector' if vectorized else 'scalar'}", f"reduce_{op}.cc", types)


def reduce_add(tile_size: int = 1024, dtype: type = np.int32, vectorized: bool = True) -> ExternalFunction:
    """Sum of an int32 tile: (in, out, number of elements)."""
    return _reduce_i32("add", tile_size, dtype, vectorized)


def reduce_min(tile_size: int = 1024, dtype: type = np.int32, vectorized: bool = True) -> ExternalFunction:
    """Smallest element of an int32 tile: (in, out, number of elements)."""
    return _reduce_i32("min", tile_size, dtype, vectorized)


def reduce_max(tile_size: int = 1024, dtype: type = np.int32, vectorized: bool = True) -> ExternalFunction:
    """Largest element of an int32 or bf16 tile: (in, out, number of elements). A bf16 output has two elements, the
    least that a DMA moves; the first is written."""
    kind, suffix = _max_kind("reduce_max", dtype)
    name = f"reduce_max_{'vector' if vectorized else 'scalar'}{suffix}"
    types = [array(tile_size, kind), array(dma_aligned(kind), kind), np.int32]
    return extern(name, "reduce_max.cc", types, shared_object=_MAX_OBJECT)


def compute_max(dtype: type = np.int32) -> ExternalFunction:
    """The larger of two numbers: (a, b, out), each the least array that a DMA moves."""
    kind, suffix = _max_kind("compute_max", dtype)
    one = array(dma_aligned(kind), kind)
    return extern(f"compute_max{suffix}", "reduce_max.cc", [one, one, one], shared_object=_MAX_OBJECT)


def _max_kind(factory: str, dtype: type) -> tuple[type, str]:
    if np.dtype(dtype) == np.dtype(bfloat16):
        return bfloat16, "_bfloat16"
    if np.dtype(dtype) == np.dtype(np.int32):
        return np.int32, ""
    raise DesignError(f"{factory}() dtype must be np.int32 or bfloat16, got {dtype}")

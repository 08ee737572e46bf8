"""Elementwise kernels: ``passthrough``, ``scale``, ``add``, ``mul``, ``relu``."""

from __future__ import annotations

import numpy as np
from ml_dtypes import bfloat16

from npusim.errors import DesignError, UnsupportedError
from npusim.frontends.iron.kernel import ExternalFunction
from npusim.frontends.iron.kernel_library.common import array, bit_width, extern, require_tile_size


def passthrough(tile_size: int = 4096, dtype: type = np.int32) -> ExternalFunction:
    """Copy of a tile: (in, out, number of elements)."""
    width = bit_width(dtype, "passthrough")
    tile = array(tile_size, dtype)
    return extern("passThroughLine", "passThrough.cc", [tile, tile, np.int32], [f"-DBIT_WIDTH={width}"])


def scale(
    tile_size: int = 1024, dtype: type = np.int32, vectorized: bool = True, use_chess: bool = False
) -> ExternalFunction:
    """A tile times a number: (in, out, factor as a one-element array, number of elements)."""
    width = bit_width(dtype, "scale")
    if width == 8:
        raise UnsupportedError("kernels.scale of uint8: its C++ treats the data as 32 bit wide, which is not modelled")
    tile = array(tile_size, dtype)
    variant = "vector" if vectorized else "scalar"
    return extern(
        f"vector_scalar_mul_{variant}",
        "scale.cc",
        [tile, tile, array(1, np.int32), np.int32],
        [f"-DBIT_WIDTH={width}"],
        use_chess=use_chess,
    )


def _binary(op: str, tile_size: int, dtype: type, vectorized: bool) -> ExternalFunction:
    require_tile_size(op, tile_size)
    if dtype is not bfloat16:
        raise DesignError(f"{op}() dtype must be bfloat16, got {dtype}. Only the bf16 variant exists.")
    tile = array(tile_size, bfloat16)
    return extern(f"eltwise_{op}_bf16_{'vector' if vectorized else 'scalar'}", f"{op}.cc", [tile, tile, tile])


def add(tile_size: int = 1024, dtype: type = bfloat16, vectorized: bool = True) -> ExternalFunction:
    """Sum of two bf16 tiles of 1024: (a, b, out)."""
    return _binary("add", tile_size, dtype, vectorized)


def mul(tile_size: int = 1024, dtype: type = bfloat16, vectorized: bool = True) -> ExternalFunction:
    """Product of two bf16 tiles of 1024, element by element: (a, b, out)."""
    return _binary("mul", tile_size, dtype, vectorized)


def relu(tile_size: int = 1024) -> ExternalFunction:
    """max(x, 0) of a bf16 tile of 1024: (in, out)."""
    require_tile_size("relu", tile_size)
    tile = array(tile_size, bfloat16)
    return extern("bf16_relu", "relu.cc", [tile, tile])

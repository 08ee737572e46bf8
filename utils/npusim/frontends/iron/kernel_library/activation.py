"""Activations on bf16 tiles of 1024: ``softmax``, ``gelu``, ``silu``, ``swiglu``, ``bf16_exp``; and fp32 references."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from ml_dtypes import bfloat16

from npusim.errors import DesignError
from npusim.frontends.iron.kernel import ExternalFunction
from npusim.frontends.iron.kernel_library.common import arch, array, require_tile_size, source_of


def _kernel(factory: str, name: str, filename: str, tile_size: int, arrays: int, *scalars: type) -> ExternalFunction:
    """On XDNA 1 the kernel is compiled together with its lookup tables, as one source text."""
    require_tile_size(factory, tile_size)
    types: Sequence[Any] = [array(tile_size, bfloat16)] * arrays + list(scalars)
    if arch() == "aie2":
        text = f'#include "{source_of(filename)}"\n#include "lut_based_ops.cpp"\n'
        return ExternalFunction(name, source_string=text, arg_types=list(types))
    return ExternalFunction(name, source_file=source_of(filename), arg_types=list(types))


def softmax(tile_size: int = 1024) -> ExternalFunction:
    """Softmax over a tile: (in, out, number of elements)."""
    return _kernel("softmax", "softmax_bf16", "softmax.cc", tile_size, 2, np.int32)


def gelu(tile_size: int = 1024) -> ExternalFunction:
    """GELU by its tanh approximation: (in, out)."""
    return _kernel("gelu", "gelu_bf16", "gelu.cc", tile_size, 2)


def silu(tile_size: int = 1024) -> ExternalFunction:
    """x * sigmoid(x): (in, out)."""
    return _kernel("silu", "silu_bf16", "silu.cc", tile_size, 2)


def swiglu(tile_size: int = 1024) -> ExternalFunction:
    """(x * w1) * silu(x * w2): (x, w1, w2, out)."""
    return _kernel("swiglu", "swiglu_bf16", "swiglu.cc", tile_size, 4)


def bf16_exp(tile_size: int = 1024) -> ExternalFunction:
    """e to the x: (in, out)."""
    return _kernel("bf16_exp", "exp_bf16_1024", "bf16_exp.cc", tile_size, 2)


def relu_ref(x: Any) -> Any:
    """max(x, 0) in fp32, rounded to x's dtype."""
    return np.maximum(x.astype(np.float32), 0).astype(x.dtype)


def silu_ref(x: Any) -> Any:
    """x * sigmoid(x) in fp32, rounded to x's dtype."""
    v = x.astype(np.float32)
    with np.errstate(over="ignore"):
        return (v / (1 + np.exp(-v))).astype(x.dtype)


def gelu_ref(x: Any) -> Any:
    """GELU's tanh approximation in fp32, rounded to x's dtype."""
    v = x.astype(np.float32)
    inner = np.sqrt(np.float32(2 / np.pi)) * (v + np.float32(0.044715) * v**3)
    return (np.float32(0.5) * v * (1 + np.tanh(inner))).astype(x.dtype)


def bf16_exp_ref(x: Any) -> Any:
    """e to the x in fp32, rounded to x's dtype."""
    with np.errstate(over="ignore", invalid="ignore"):
        return np.exp(x.astype(np.float32)).astype(x.dtype)


def softmax_ref(x: Any, *, tile_size: int = 1024) -> Any:
    """Softmax of each ``tile_size`` elements in fp32, rounded to x's dtype. DesignError if x is no whole number of tiles."""
    if x.size % tile_size:
        raise DesignError(f"softmax_ref: x has {x.size} elements; not a multiple of tile_size={tile_size}")
    rows = x.astype(np.float32).reshape(-1, tile_size)
    powers = np.exp(rows - rows.max(axis=1, keepdims=True))
    return (powers / powers.sum(axis=1, keepdims=True)).reshape(x.shape).astype(x.dtype)

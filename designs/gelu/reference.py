"""The truth that the design is held against, what the work counts as, and the bytes that it moves."""

from __future__ import annotations

from math import erf, sqrt
from typing import Any

import numpy as np
from ml_dtypes import bfloat16

from npusim.report import Level, Traffic

FEATURES = 3072
FLOP_PER_ELEMENT = 9
"""Bias 1, square 1, three multiply-adds 6, product 1. Comparisons are not counted."""
BYTES_PER_ELEMENT = 2 + 2  # read x, write y, bf16 each
RTOL, ATOL = 2.0**-7, 0.012
"""Two roundings to bf16 (x + bias, the result), and the error of the polynomial."""


def inputs(tokens: int, seed: int = 0) -> tuple[Any, Any, Any]:
    """x (tokens, FEATURES) and a bias (FEATURES,), normally distributed bf16, and room for y."""
    rng = np.random.default_rng(seed)
    x = (1.5 * rng.standard_normal((tokens, FEATURES), np.float32)).astype(bfloat16)
    bias = (0.5 * rng.standard_normal(FEATURES, np.float32)).astype(bfloat16)
    return x, bias, np.zeros_like(x)


def gelu(z: Any) -> Any:
    """``z`` times the probability that a standard normal number is below ``z``, in float64."""
    wide = np.asarray(z, np.float64)
    grid = np.linspace(-9.0, 9.0, 36_001)
    below = 0.5 * (1 + np.array([erf(v / sqrt(2)) for v in grid]))
    return wide * np.interp(wide, grid, below)  # the grid's own error is below 1e-8


def bias_gelu(x: Any, bias: Any) -> Any:
    """``gelu(x + bias)`` in float64; x of shape (tokens, features), bias (features,)."""
    return gelu(np.asarray(x, np.float64) + np.asarray(bias, np.float64))


def traffic(tokens: int, columns: int, rows: int) -> dict[Level, Traffic]:
    """Bytes that DMA moves at each level: x and y once through all of them, and twice through the MemTiles' channels, once in
    and once out; the bias once out of DDR, and into every compute tile."""
    matrix, bias = 2 * tokens * FEATURES, 2 * FEATURES
    return {
        "ddr": Traffic(read=matrix + bias, written=matrix),
        "memtile": Traffic(read=2 * matrix, written=2 * matrix),
        "l1": Traffic(read=matrix, written=matrix + columns * rows * bias),
    }

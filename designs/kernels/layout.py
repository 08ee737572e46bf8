"""How a tile lies in a core's memory: panels of eight columns.

A tile of R rows and C columns is stored as [C/8][R][8]: for each group of eight columns, all rows one after the other.
Read in other ways, the same bytes are a column-major grid of row-major 8x8 blocks (what XDNA 2 multiplies) and a
column-major grid of row-major 4x8 blocks (the left operand of XDNA 1's 4x8x4); right operands of 8x4 and results of 4x4
are halves of it, taken apart and put together in registers. So one layout serves every operand on both devices, and a DMA
makes it of a row-major matrix with ``[C/8, R, 8]`` sizes and ``[8, row stride, 1]`` strides, in runs of 16 bytes.
(The blocks of AMD's fused example are the same bytes: mlir-air flash_attention/kernel_fusion_based/attn_npu2.py.)
"""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]

WIDTH = 8
"""Columns of a panel."""


def panels(tile: Array) -> Array:
    """A view [C/8, R, 8] of a tile whose declared shape is (R, C)."""
    rows, columns = tile.shape
    return tile.reshape(columns // WIDTH, rows, WIDTH)


def matrix(tile: Array) -> Array:
    """A copy of a tile's values as a matrix of R rows and C columns."""
    return panels(tile).transpose(1, 0, 2).reshape(tile.shape)


def set_matrix(tile: Array, values: Array) -> None:
    """Store a matrix of R rows and C columns into a tile (converted to the tile's type)."""
    rows, columns = tile.shape
    panels(tile)[...] = values.reshape(rows, columns // WIDTH, WIDTH).transpose(1, 0, 2)


def tile_of(values: Any, dtype: Any) -> Array:
    """A new tile with the values of a matrix."""
    values = np.asarray(values)
    tile = np.empty(values.shape, dtype)
    set_matrix(tile, values)
    return tile

"""Fills, copies, changes of layout, masks."""

from __future__ import annotations

from typing import Any

import numpy as np

from designs.kernels import cycles as cost
from designs.kernels.arithmetic import LOWEST, MASKED, Arithmetic
from designs.kernels.layout import WIDTH, panels, set_matrix
from designs.kernels.spec import Dims, Kernel, prototype
from npusim.devices import Device

Array = np.ndarray[Any, np.dtype[Any]]


def _zero(a: Arithmetic, x: Array) -> None:
    x[...] = 0


def _lowest(a: Arithmetic, m: Array) -> None:
    """Where a running maximum starts."""
    m[...] = LOWEST


def _copy(a: Arithmetic, source: Array, target: Array) -> None:
    target[...] = source


def pack_panels(a: Arithmetic, x: Array, y: Array) -> None:
    """y = x in panels; x lies row by row."""
    set_matrix(y, x)


def unpack_panels(a: Arithmetic, x: Array, y: Array) -> None:
    """y = x row by row; x lies in panels."""
    y.reshape(y.shape[0], -1, WIDTH)[...] = panels(x).transpose(1, 0, 2)


# ---- masks; blocks are numbered from 0, queries and keys alike


def _fill_masked(s: Array, masked: Array) -> None:
    """Write minus infinity where ``masked`` (BQ, BK) says so."""
    rows, columns = s.shape
    panels(s)[masked.reshape(rows, columns // WIDTH, WIDTH).transpose(1, 0, 2)] = MASKED


def mask_causal(a: Arithmetic, s: Array, q_block: Any, k_block: Any) -> None:
    """Keys after the query: all of a later block, the upper triangle of the same one (BQ = BK), none of an earlier one."""
    if k_block > q_block:
        s[...] = MASKED
    elif k_block == q_block:
        _fill_masked(s, np.tri(*s.shape) == 0)


def mask_window(a: Arithmetic, s: Array, q_block: Any, k_block: Any, window: Any) -> None:
    """Keys after the query, and keys ``window`` blocks before it or more: query i sees keys i - window * BQ + 1 to i."""
    oldest = q_block - window
    if k_block > q_block or k_block < oldest:
        s[...] = MASKED
    elif k_block == q_block:
        _fill_masked(s, np.tri(*s.shape) == 0)
    elif k_block == oldest:
        _fill_masked(s, np.tri(*s.shape) == 1)


def mask_keys(a: Arithmetic, s: Array, k_block: Any, keys: Any) -> None:
    """Padded keys: those numbered ``keys`` and more (all rows alike)."""
    columns = s.shape[1]
    valid = int(np.clip(int(keys) - int(k_block) * columns, 0, columns))
    masked = np.zeros(s.shape, bool)
    masked[:, valid:] = True
    _fill_masked(s, masked)


# ---- costs


def _over(p: cost.Pass, *dims: str) -> Any:
    def of(d: Dims, device: Device) -> cost.Cost:
        return cost.call(device, p.over(int(np.prod([d[name] for name in dims])), device))

    return of


def _cost_mask(d: Dims, device: Device) -> cost.Cost:
    """As for the diagonal block, whatever the block: the upper triangle of panels is read and written, or all is filled."""
    return cost.call(device, cost.SELECT.over(d["BQ"] * (d["BK"] + WIDTH) // 2, device))


def _cost_keys(d: Dims, device: Device) -> cost.Cost:
    return cost.call(device, cost.FILL.over(d["BQ"] * d["BK"], device))


KERNELS = [
    Kernel("zero_scores", "tiles.cc", prototype("s[BQ,BK]"), _zero, _over(cost.FILL, "BQ", "BK")),
    Kernel("zero_output", "tiles.cc", prototype("o[BQ,DV]"), _zero, _over(cost.FILL, "BQ", "DV")),
    Kernel("zero_sums", "tiles.cc", prototype("l[BQ]"), _zero, _over(cost.FILL, "BQ")),
    Kernel("lowest_maxima", "tiles.cc", prototype("m[BQ]"), _lowest, _over(cost.FILL, "BQ")),
    Kernel("copy_queries", "tiles.cc", prototype("x[BQ,DK] y[BQ,DK]"), _copy, _over(cost.COPY, "BQ", "DK")),
    Kernel("copy_rows", "tiles.cc", prototype("x[BQ] y[BQ]"), _copy, _over(cost.COPY, "BQ")),
    Kernel("pack_panels", "layout.cc", prototype("x[ROWS,COLS] y[ROWS,COLS]"), pack_panels, _over(cost.SELECT, "ROWS", "COLS")),
    Kernel(
        "unpack_panels", "layout.cc", prototype("x[ROWS,COLS] y[ROWS,COLS]"), unpack_panels, _over(cost.SELECT, "ROWS", "COLS")
    ),
    Kernel("mask_causal", "masks.cc", prototype("s[BQ,BK] q_block:i32 k_block:i32"), mask_causal, _cost_mask),
    Kernel("mask_window", "masks.cc", prototype("s[BQ,BK] q_block:i32 k_block:i32 window:i32"), mask_window, _cost_mask),
    Kernel("mask_keys", "masks.cc", prototype("s[BQ,BK] k_block:i32 keys:i32"), mask_keys, _cost_keys),
]

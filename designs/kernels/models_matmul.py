"""Matrix products: of attention's tiles in panels, and of the matmul chapter's micro tiles.

Products are exact in float32 and summed there; the sum's order is the multiplier's and BLAS's own, which changes the last
bit of a float32 sum and so, rarely, the last bit of the bf16 result. Sums of small whole numbers are exact in any order.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from designs.kernels import cycles as cost
from designs.kernels.arithmetic import Arithmetic, to_bf16
from designs.kernels.layout import WIDTH, panels
from designs.kernels.spec import Dims, Kernel, prototype
from npusim.devices import Device

Array = np.ndarray[Any, np.dtype[Any]]
F32 = np.float32


def _left(a: Arithmetic, tile: Array) -> Array:
    """(R, K): a tile multiplied along its columns, which is along panels."""
    return a.operand(panels(tile)).transpose(1, 0, 2).reshape(tile.shape)


def _right(a: Arithmetic, tile: Array) -> Array:
    """(N, K): a tile multiplied along its rows, transposed; blocks of eight rows share an exponent."""
    rows, columns = tile.shape
    blocks = panels(tile).reshape(columns // WIDTH, rows // WIDTH, WIDTH, WIDTH).swapaxes(-1, -2)
    return a.operand(blocks).transpose(0, 2, 1, 3).reshape(columns, rows)


def _add(tile: Array, product: Array) -> None:
    rows, columns = tile.shape
    view = panels(tile)
    view[...] = to_bf16(view.astype(F32) + product.reshape(rows, columns // WIDTH, WIDTH).transpose(1, 0, 2))


def matmul_qk(a: Arithmetic, q: Array, k: Array, s: Array) -> None:
    """S += Q Kᵀ, unscaled."""
    _add(s, _left(a, q) @ _left(a, k).T)


def matmul_pv(a: Arithmetic, p: Array, v: Array, o: Array) -> None:
    """O += P V."""
    _add(o, _left(a, p) @ _right(a, v).T)


def _cost_qk(d: Dims, device: Device) -> cost.Cost:
    return cost.call(device, cost.matmul(d["BQ"], d["DK"], d["BK"], device, blocks=bool(d.get("EMULATED", 1))))


def _cost_pv(d: Dims, device: Device) -> cost.Cost:
    return cost.call(device, cost.matmul(d["BQ"], d["BK"], d["DV"], device, blocks=bool(d.get("EMULATED", 1))))


# ---- the matmul chapter: micro tiles of aie::mmul's shape, tiles and their elements row by row


def _grid(x: Array, r: int, c: int) -> Array:
    """(M, N) values of a matrix stored as [M/r][N/c][r][c]."""
    m, n = x.shape
    return x.reshape(m // r, n // c, r, c).transpose(0, 2, 1, 3).reshape(m, n)


def _set_grid(x: Array, r: int, c: int, values: Array) -> None:
    m, n = x.shape
    x.reshape(m // r, n // c, r, c)[...] = values.reshape(m // r, r, n // c, c).transpose(0, 2, 1, 3)


def micro_tile(a: Arithmetic, element: str) -> tuple[int, int, int]:
    """aie::mmul's shape (rows of A, columns of A, columns of B) that the matrix kernels use."""
    narrow = a.name.startswith("AIE2:")
    if element == "i16":
        return (4, 4, 4) if narrow else (4, 4, 8)
    return (4, 8, 4) if narrow else (8, 8, 8)


def matmul_i16_i32(a: Arithmetic, x: Array, y: Array, c: Array) -> None:
    """C += A B in whole numbers; what does not fit 32 bits is cut off."""
    r, s, t = micro_tile(a, "i16")
    # float64 is exact here: |products| <= 2**30, and a core's memory holds less than 2**15 of them in a row.
    product = (_grid(x, r, s).astype(np.float64) @ _grid(y, s, t).astype(np.float64)).astype(np.int64)
    _set_grid(c, r, t, (_grid(c, r, t).astype(np.int64) + product).astype(np.int32))


def matmul_bf16_f32(a: Arithmetic, x: Array, y: Array, c: Array) -> None:
    """C += A B, float32 sums kept as they are."""
    r, s, t = micro_tile(a, "bf16")
    left = a.operand(_grid(x, r, s))
    right = a.operand(np.ascontiguousarray(_grid(y, s, t).T))
    _set_grid(c, r, t, _grid(c, r, t) + left @ right.T)


def _zero(a: Arithmetic, c: Array) -> None:
    c[...] = 0


def _cost_whole(element: str) -> Any:
    def of(d: Dims, device: Device) -> cost.Cost:
        return cost.call(device, cost.matmul_whole(d["DIM_M"], d["DIM_K"], d["DIM_N"], device, element))

    return of


def _cost_zero(size: int) -> Any:
    def of(d: Dims, device: Device) -> cost.Cost:
        return cost.call(device, cost.FILL.over(d["DIM_M"] * d["DIM_N"] * size // 2, device))

    return of


KERNELS = [
    Kernel("matmul_qk", "matmul_block.cc", prototype("q[BQ,DK] k[BK,DK] s[BQ,BK]"), matmul_qk, _cost_qk),
    Kernel("matmul_pv", "matmul_block.cc", prototype("p[BQ,BK] v[BK,DV] o[BQ,DV]"), matmul_pv, _cost_pv),
    Kernel(
        "matmul_i16_i32",
        "matmul.cc",
        prototype("a[DIM_M,DIM_K]:i16 b[DIM_K,DIM_N]:i16 c[DIM_M,DIM_N]:i32"),
        matmul_i16_i32,
        _cost_whole("i16"),
    ),
    Kernel("matmul_bf16_f32", "matmul.cc", prototype("a[DIM_M,DIM_K] b[DIM_K,DIM_N] c[DIM_M,DIM_N]:f32"), matmul_bf16_f32, _cost_whole("bf16")),
    Kernel("zero_i32", "matmul.cc", prototype("c[DIM_M,DIM_N]:i32"), _zero, _cost_zero(4)),
    Kernel("zero_f32", "matmul.cc", prototype("c[DIM_M,DIM_N]:f32"), _zero, _cost_zero(4)),
]

"""What the product should be, in more precision than any of it."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from npusim.report import Level

TOLERANCE: Mapping[str, float] = {"npu1": 1e-6, "npu2": 2e-2}
"""Of the largest element: float32 sums of exact products; on XDNA 2, products of BFP16, which has 7 bits and a sign."""


def matmul(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """A B in float64 (shapes (M, K) and (K, N)); for whole numbers in int64."""
    wide = np.int64 if np.issubdtype(a.dtype, np.integer) else np.float64
    product: np.ndarray = a.astype(wide) @ b.astype(wide)
    return product


def flops(M: int, K: int, N: int) -> int:
    """Multiplications and additions."""
    return 2 * M * K * N


def traffic(
    M: int, K: int, N: int, m: int, n: int, rows: int, columns: int, element: int = 2
) -> dict[Level, tuple[int, int]]:
    """Bytes (read, written) that DMA moves at each level, with factors of ``element`` bytes and sums of 4.

    From DDR, A passes once for every ``n * columns`` columns of C and B once for every ``m * rows`` rows. MemTiles pass on
    what they get. Compute tiles get A for every n columns of C and B for every m rows.
    """
    c = 4 * M * N
    factors = element * (M * K * (N // (n * columns)) + K * N * (M // (m * rows)))
    arriving = element * (M * K * (N // n) + K * N * (M // m))
    return {"ddr": (factors, c), "memtile": (factors + c, factors + c), "l1": (c, arriving)}

"""What the product should be, in more precision than any of it."""

from __future__ import annotations

import numpy as np


def matmul(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """A B in float64 (shapes (M, K) and (K, N)); for whole numbers in int64."""
    wide = np.int64 if np.issubdtype(a.dtype, np.integer) else np.float64
    product: np.ndarray = a.astype(wide) @ b.astype(wide)
    return product


def flops(M: int, K: int, N: int) -> int:
    """Multiplications and additions."""
    return 2 * M * K * N

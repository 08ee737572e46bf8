"""The truth that the designs are held against, what the work counts as, and the bytes that they move."""

from __future__ import annotations

from math import ceil
from typing import Any

import numpy as np
from ml_dtypes import bfloat16

from npusim.report import Level, Traffic

ITEMSIZE = {"bf16": 2, "i32": 4}
RTOL = 2.0**-8  # alpha * a is rounded to bf16 once
BURST = 64  # bytes that DDR is busy for at least (npusim.engine.transfer, confidence M)


def inputs(M: int, N: int, dtype: str, seed: int = 0) -> tuple[Any, Any]:
    """a (M, N), random, and room for b (N, M); dtype ``bf16`` or ``i32``."""
    rng = np.random.default_rng(seed)
    if dtype == "i32":
        a = rng.integers(-(2**31), 2**31, (M, N), np.int32)
    else:
        a = rng.standard_normal((M, N), np.float32).astype(bfloat16)
    return a, np.zeros((N, M), a.dtype)


def transpose(a: Any, alpha: float = 1.0) -> Any:
    """``alpha * a^T`` in fp32 (whole numbers stay what they are, and alpha is 1)."""
    if a.dtype == np.int32:
        return a.T
    return np.float32(bfloat16(alpha)) * a.T.astype(np.float32)


def flops(M: int, N: int, dtype: str) -> int:
    """A multiplication an element; none for words, which no core sees."""
    return M * N if dtype == "bf16" else 0


def traffic(M: int, N: int, dtype: str) -> dict[Level, Traffic]:
    """Bytes that DMA moves at each level. With a core, a matrix enters and leaves the MemTiles twice."""
    matrix = ITEMSIZE[dtype] * M * N
    passes = 2 if dtype == "bf16" else 1
    return {
        "ddr": Traffic(matrix, matrix),
        "memtile": Traffic(passes * matrix, passes * matrix),
        "l1": Traffic(matrix, matrix) if dtype == "bf16" else Traffic(),
    }


def ddr_busy(M: int, N: int, m: int, n: int, dtype: str) -> int:
    """Bytes that DDR is busy for: each piece in a row (n elements read, m written) counts as whole bursts."""
    size = ITEMSIZE[dtype]
    read, written = (M * N // run * ceil(run * size / BURST) * BURST for run in (n, m))
    return read + written

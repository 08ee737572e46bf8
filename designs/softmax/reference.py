"""What the designs must compute, and what they must move: closed formulas, exact to the byte."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from npusim.report import Level

FLOP_PER_ELEMENT = 5
"""Compare, subtract, raise, add, multiply: a way of counting, not a law."""
TOLERANCE: Mapping[str, float] = {"npu1": 0.08, "npu2": 0.14}
"""Relative to each value over a millionth, of rows in one piece. The largest part is the rounding of s - max to bf16:
between 16 and 32 its last bit is 1/8, and half of it is worth 6.4 %. XDNA 2's exp2 is up to 6.1 % too high besides, some
of which the division takes back."""
STREAMING: Mapping[str, float] = {"npu1": 0.12, "npu2": 0.25}
"""The same for rows in pieces: the running sum is rounded to bf16 after each piece, and on XDNA 2 corrected by powers
that are too high."""


def softmax(s: Any, d: int = 1) -> Any:
    """Along the last axis, in float64; rows that are minus infinity throughout give 0."""
    wide = np.asarray(s).astype(np.float64) / np.sqrt(d)
    largest = wide.max(axis=-1, keepdims=True)
    powers = np.exp(wide - np.where(np.isfinite(largest), largest, 0.0))
    total = powers.sum(axis=-1, keepdims=True)
    return powers / np.where(total > 0, total, 1.0)


def traffic(rows: int, cols: int, passes: int = 1) -> Mapping[Level, tuple[int, int]]:
    """(bytes read, bytes written) at each level if all scores are read ``passes`` times and written once."""
    once = 2 * rows * cols
    return {
        "ddr": (passes * once, once),
        "memtile": (passes * once + once, passes * once + once),
        "l1": (once, passes * once),
    }

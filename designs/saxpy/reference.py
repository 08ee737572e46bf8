"""The truth that the design is held against, in fp32, and the error that bf16 storage allows."""

from __future__ import annotations

from typing import Any

import numpy as np

FLOP_PER_ELEMENT = 2  # one multiplication, one addition
BYTES_PER_ELEMENT = 3 * 2  # read x and y, write y, bf16 each
RTOL = 2.0**-8  # one rounding of the result to bf16: half a unit in the last of 8 bits


def saxpy(x: Any, y: Any, a: float) -> Any:
    """``a*x + y`` in fp32; shapes (n,)."""
    return np.float32(a) * np.asarray(x, np.float32) + np.asarray(y, np.float32)

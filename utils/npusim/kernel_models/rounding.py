"""Number formats as the vector unit stores them: bf16 and block floating point."""

from __future__ import annotations

from typing import Any

import numpy as np
from ml_dtypes import bfloat16

Array = np.ndarray[Any, np.dtype[Any]]

BLOCK = 8
"""Values that share an exponent in bfp16ebs8 (TNZR xdna2_kernel.rst: 8x8x8 BFP16)."""


def bf16(x: Any) -> Array:
    """To bf16 and back to float32: round to nearest, ties to even (the rounding mode that AIE kernels set, conv_even)."""
    return np.asarray(x, dtype=np.float32).astype(bfloat16).astype(np.float32)


def bfp16(x: Any) -> Array:
    """To bfp16ebs8 along the last axis (a multiple of 8 long) and back to float32.

    Eight values share the largest one's exponent; each keeps a sign and 7 bits of magnitude. The rounding of the
    hardware's conversion is not published; nearest-even is assumed.
    """
    values = np.asarray(x, dtype=np.float32)
    blocks = values.reshape(*values.shape[:-1], -1, BLOCK)
    largest = np.abs(blocks).max(axis=-1, keepdims=True)
    _, exponent = np.frexp(largest)  # largest < 2 ** exponent
    step = np.ldexp(np.float32(1), exponent - 7)
    rounded: Array = np.clip(np.rint(blocks / step), -127, 127) * step
    return rounded.astype(np.float32).reshape(values.shape)

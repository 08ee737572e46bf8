"""Number formats as the vector unit stores them: bf16 and block floating point.

The block format's rounding is not in a manual. The rule below reproduces what mlir-air reports of its bf16 GEMM on XDNA 2
(pull request 1841: mean relative L1 and largest error of five shapes with seeded inputs) to every digit printed;
``tests/designs/kernels/test_published.py`` holds it to that.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from ml_dtypes import bfloat16

Array = np.ndarray[Any, np.dtype[Any]]

BLOCK = 8
"""Values that share an exponent in bfp16ebs8 (TNZR xdna2_kernel.rst: 8x8x8 BFP16)."""

_WHOLE = np.float32(1.5 * 2.0**23)  # x + c - c rounds x to a whole number, ties to even, for |x| < 2**22
_TO_128 = np.float32(127.5 / 64)  # from here on (in powers of two) a value rounds to +128: ties go to even
_LARGEST = 2.0**100  # above it the trick would overflow float32
_SMALLEST = 2.0**-100  # below it the step's reciprocal would


def bf16(x: Any) -> Array:
    """To bf16 and back to float32: round to nearest, ties to even (the rounding mode that AIE kernels set, conv_even)."""
    return np.asarray(x, dtype=np.float32).astype(bfloat16).astype(np.float32)


def bfp16(x: Any) -> Array:
    """To bfp16ebs8 along the last axis (a multiple of 8 long) and back to float32; finite values only.

    The largest magnitude of eight values, in [2**e, 2**(e+1)), sets the step 2**(e-6). Mantissas are two's complement
    8-bit whole numbers, rounded to nearest, ties to even. If one rounds to +128, which has no code, the shared exponent is
    one more and all eight are rounded again, from what they were; -128 has a code and stays.
    """
    values = np.asarray(x, dtype=np.float32)
    blocks = values.reshape(-1, BLOCK)
    largest = np.abs(blocks.T.copy()).max(axis=0)  # (much faster than along the short axis)
    top = largest.max(initial=0.0)
    if top >= _LARGEST or 0 < top < _SMALLEST:  # far from one: scale by a power of two, which rounds nothing
        scale = np.float32(2.0 ** np.clip(-np.frexp(top)[1], -126, 126))
        return (bfp16(values * scale) / scale).astype(np.float32)
    power = _power_of_two(largest)
    rounded = _round(blocks, power)
    full = np.flatnonzero(largest >= _TO_128 * power)
    full = full[blocks[full].max(axis=-1) >= _TO_128 * power[full]]
    rounded[full] = _round(blocks[full], 2 * power[full])
    return rounded.reshape(values.shape)


def _power_of_two(x: Array) -> Array:
    """The largest power of two not above each positive number (0 for 0): its exponent bits alone."""
    bits: Array = x.view(np.uint32) & np.uint32(0x7F800000)
    return bits.view(np.float32)


def _round(blocks: Array, power: Array) -> Array:
    """Blocks (n, 8) to multiples of power (n) / 64, ties to even."""
    trick = np.repeat(power * (_WHOLE / np.float32(64)), BLOCK).reshape(blocks.shape)
    rounded: Array = (blocks + trick) - trick
    return rounded

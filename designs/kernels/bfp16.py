"""BFP16 (bfp16ebs8), the format in which XDNA 2 multiplies: eight values along k share an exponent.

What it does to a value: the step is 2**-6 of the power of two at or below the largest magnitude of its eight, so the error
of one value is at most half a step, between 2**-8 and 2**-7 of the largest. Small values beside a large one lose all bits.

The rule (:func:`npusim.kernel_models.rounding.bfp16`) is two's complement, round to nearest, ties to even, and an exponent
one higher only where a value would be +128. It is inferred, not from a manual: of the rules tried, it alone reproduces the
error statistics that mlir-air pull request 1841 prints for seeded GEMMs on an XDNA 2 device, all digits of five shapes.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from npusim.kernel_models.rounding import BLOCK, bfp16

Array = np.ndarray[Any, np.dtype[Any]]

__all__ = ["BLOCK", "bfp16", "bfp16_along"]


def bfp16_along(x: Array, axis: int) -> Array:
    """``x`` rounded to BFP16 with blocks along ``axis`` (a multiple of 8 long); float32."""
    return np.moveaxis(bfp16(np.moveaxis(x, axis, -1)), -1, axis)

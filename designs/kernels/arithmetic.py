"""What the two generations compute differently: how they multiply, and how they raise two to a power.

Everything else is common: bf16 in memory, fp32 in accumulators, one rounding to nearest even on the way back.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from ml_dtypes import bfloat16

from npusim.devices import Device
from npusim.kernel_models.rounding import bf16, bfp16

Array = np.ndarray[Any, np.dtype[Any]]
F32 = np.float32

MASKED = np.uint16(0xFF80).view(bfloat16)
"""What a mask writes: minus infinity."""
LOWEST = np.uint16(0xFF7F).view(bfloat16)
"""Where a running maximum starts: the lowest finite bf16. LOWEST - LOWEST is 0 where infinities would give NaN."""
TINY = np.uint16(0x0080).view(bfloat16)
"""2**-126, the smallest normal bf16: what a sum of nothing is divided by, so that 0 / 0 is 0."""

EMULATION = "-DAIE_API_EMULATE_BFLOAT16_MMUL_WITH_BFP16"


def to_bf16(x: Any) -> Any:
    """float32 (array or number) to bf16, to nearest even."""
    return x.astype(bfloat16)


# ---- powers of two


def exp2_hardware(y: Array) -> Array:
    """XDNA 2's instruction: straight lines between powers of two. float32 -> bf16.

    ``y`` is cut off after 11 fractional bits, towards zero; then 2**(i + f) is approximated by 2**i * (1 + f), cut off to
    bf16: up to 6.1 % too much, exact at whole numbers. Below 2**-126 it is 0 (assumed: subnormals are flushed).

    AMD's AIE-ML v2 intrinsics guide (exp2): "11 fractional bits ... are considered", the rest "truncated", then "an
    approximation". That the approximation is linear is inferred: two public kernels say so (5.9 % measured), and with it
    this model reproduces the mean errors that mlir-air prints for FlashAttention with seeded inputs, where an exact
    exponential gives a third of them (tests/designs/kernels/test_published.py).
    """
    fixed = (np.clip(y, F32(-200), F32(128)) * F32(2048)).astype(np.int32)
    bits = (fixed + 127 * 2048) >> 4  # the exponent and seven bits of f, as bf16 has them
    return np.where(bits < 0x0080, 0, bits).astype(np.uint16).view(bfloat16)


FRACTIONS = np.exp2(np.arange(256) / 256).astype(np.float32).astype(bfloat16)
"""XDNA 1's second table: 2**(j/256) in bf16. The first holds 2**i, and 0 below 2**-126."""


def exp2_tables(y: Array) -> Array:
    """XDNA 1's two tables of 256 entries: 2**i times 2**(j/256), y = i + j/256 to nearest even. float32 -> bf16."""
    fixed = np.rint(np.clip(y, F32(-128), F32(32767 / 256)) * F32(256)).astype(np.int32)
    bits = FRACTIONS.view(np.uint16)[fixed & 255] + ((fixed >> 8) << 7)
    return np.where(fixed < -126 * 256, 0, bits).astype(np.uint16).view(bfloat16)


def exp2_exact(y: Array) -> Array:
    """What both stand for: 2**y, in float32 and then in bf16 (for comparison; no core computes it)."""
    return to_bf16(np.exp2(y.astype(np.float64)).astype(np.float32))


# ---- reciprocals

_MAGIC, _K2 = np.int16(0x7EB5), F32(1.436142)
_K1 = bf16(F32(1.9395974))


def reciprocal(x: Array) -> Array:
    """``aie::inv`` of bf16 vectors, as both generations compute it: a guess from the bits, two refinements. bf16 -> bf16.

    aie_api detail/aie2/elementary.hpp and detail/aie2p/elementary.hpp; at most 0.6 % off for normal numbers.
    """
    v = x.astype(np.float32)
    y = (_MAGIC - x.view(np.int16)).view(bfloat16).astype(np.float32)
    t = bf16(bf16(-(v * y) + _K2) * y)
    minus_y = bf16(-(t * _K1))
    refined = bf16(minus_y * v + F32(2))
    return to_bf16(-(minus_y * refined))


# ---- the two generations


@dataclass(frozen=True)
class Arithmetic:
    """How a core multiplies bf16 matrices and raises two to a power.

    ``blocks`` is true where operands are rounded to BFP16 along k first. ``exp2`` takes float32 and gives bf16.
    """

    name: str
    blocks: bool
    exp2: Callable[[Array], Array]

    def operand(self, x: Array) -> Array:
        """A bf16 operand whose last axis lies along k, as the multiplier sees it; float32."""
        values = x.astype(np.float32)
        return bfp16(values) if self.blocks else values

    def exp(self, difference: Array, scale: Any) -> Array:
        """2**(difference * scale) of bf16 differences and a bf16 scale: the product is exact in float32."""
        return self.exp2(difference.astype(np.float32) * F32(scale))


AIE2 = Arithmetic("AIE2: bf16 products, exponentials from tables", False, exp2_tables)
AIE2P = Arithmetic("AIE2P: BFP16 products, linear exp2", True, exp2_hardware)
AIE2P_EXACT = Arithmetic("AIE2P: bf16 products, linear exp2", False, exp2_hardware)


def arithmetic_of(device: Device, flags: tuple[str, ...] = (EMULATION,)) -> Arithmetic:
    """The arithmetic of a kernel compiled with these flags for this device."""
    if device.arch == "AIE2":
        return AIE2
    return AIE2P if any(flag.startswith(EMULATION) for flag in flags) else AIE2P_EXACT

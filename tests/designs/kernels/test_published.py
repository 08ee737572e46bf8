"""The arithmetic of XDNA 2 as modelled here, against what was published of real devices with seeded inputs.

These tests are the evidence for two rules that no manual states: how bf16 becomes BFP16, and what the exp2 instruction
computes. Each number is compared with every digit that was printed.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

from designs.kernels.numerics import attention, bf16, exact, published_error, published_inputs, variant
from npusim.kernel_models.rounding import bfp16

# mlir-air pull request 1841, comment of 20 August 2026 (Strix): M, K, N, mean relative L1, largest error. np.random.seed(42),
# randn / sqrt(K) in bf16, float32 sums and output, against numpy's float32 product.
GEMMS = [
    (512, 512, 512, "9.273e-03", "1.969e-03"),
    (128, 2048, 2048, "9.250e-03", "1.062e-03"),
    (128, 2048, 512, "9.274e-03", "8.528e-04"),
    (128, 2048, 8192, "9.284e-03", "1.075e-03"),
    (128, 8192, 2048, "9.280e-03", "5.273e-04"),
]


@pytest.mark.parametrize(("m", "k", "n", "mean", "worst"), GEMMS)
def test_gemm_in_block_format(m, k, n, mean, worst):
    legacy = np.random.RandomState(42)  # what np.random.seed(42) starts
    a = bf16(legacy.randn(m, k) / math.sqrt(k))
    b = bf16(legacy.randn(k, n) / math.sqrt(k))
    truth = a @ b
    got = bfp16(a) @ bfp16(np.ascontiguousarray(b.T)).T
    error = np.abs(got.astype(np.float64) - truth)
    assert f"{error.mean() / np.abs(truth).mean():.3e}" == mean
    assert f"{error.max():.3e}" == worst


# mlir-air kernel_registry/details/FlashAttention_bf16.md, "Tested shapes": heads, KV heads, length, causal, mean relative L1.
ATTENTION = [
    (2, 2, 512, False, "4.4e-02"),
    (12, 6, 512, False, "4.6e-02"),
    (64, 8, 512, False, "4.6e-02"),
    (12, 12, 1024, False, "4.8e-02"),
    pytest.param(14, 2, 2048, True, "3.8e-02", marks=pytest.mark.slow),
]


@pytest.mark.parametrize(("heads", "kv_heads", "length", "causal", "mean"), ATTENTION)
def test_fused_attention(heads, kv_heads, length, causal, mean):
    got, worst = published_error(heads, kv_heads, length, causal=causal)
    assert f"{got:.1e}" == mean
    assert worst < 1e-1


def test_fused_attention_of_16384_tokens():
    got, _ = published_error(2, 2, 16384, rows=192)  # of all rows: 5.5e-2
    assert abs(got - 5.5e-2) < 1e-3


@pytest.mark.parametrize("length", [128, 512, 2048])
def test_published_tolerance_holds_for_gaussian_inputs(length):
    """rtol 1.6e-2, atol 1e-1, all elements (causal, where the errors are largest)."""
    q, k, v = (x[0] for x in published_inputs(1, 1, length))
    got, truth = attention(variant("bfp16-linear"), q, k, v, first=0), exact(q, k, v, 0)
    assert (np.abs(got - truth) <= 1e-1 + 1.6e-2 * np.abs(truth)).all()


def test_the_exponential_makes_most_of_the_error():
    """With an exact exponential the published mean error would be a third of what it is."""
    q, k, v = (x[0] for x in published_inputs(2, 2, 512))
    truth = exact(q, k, v)
    means = {
        name: np.abs(attention(variant(name), q, k, v) - truth).mean() / np.abs(truth).mean()
        for name in ("bf16", "bfp16", "bf16-linear", "bfp16-linear")
    }
    assert means["bf16"] < 0.008
    assert 0.012 < means["bfp16"] < 0.020
    assert means["bf16-linear"] > 0.035
    assert 0.040 < means["bfp16-linear"] < 0.048


def test_the_rule_for_overflow_matters():
    """Saturating at +127 instead of raising the exponent would be seen in the published digits."""
    legacy = np.random.RandomState(42)
    a, b = (bf16(legacy.randn(512, 512) / math.sqrt(512)) for _ in range(2))
    truth = a @ b

    def saturated(x):
        blocks = x.reshape(-1, 8)
        _, e = np.frexp(np.abs(blocks).max(axis=1, keepdims=True))
        step = np.ldexp(np.float32(1), e - 7)
        return (np.clip(np.rint(blocks / step), -128, 127) * step).reshape(x.shape)

    error = np.abs(saturated(a) @ saturated(np.ascontiguousarray(b.T)).T - truth)
    assert f"{error.mean() / np.abs(truth).mean():.3e}" == "9.261e-03"

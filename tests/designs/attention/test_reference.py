"""The fp32 truth against float64 elsewhere, and the tolerance."""

from __future__ import annotations

import numpy as np
import pytest
from ml_dtypes import bfloat16

from designs.attention import reference
from designs.attention.parameters import Parameters
from designs.kernels.numerics import exact


@pytest.mark.parametrize("causal", [False, True])
def test_attention(causal: bool) -> None:
    p = Parameters(lq=192, num_heads=4, num_kv_heads=2, causal=causal)
    q, k, v = reference.inputs(p, seed=3)
    assert (q.shape, k.shape, v.shape) == ((4, 192, 64), (2, 192, 64), (2, 192, 64))
    got = reference.attention(q, k, v, causal=causal)
    for head in range(4):
        want = exact(q[head].astype(float), k[head // 2].astype(float), v[head // 2].astype(float), 0 if causal else None)
        assert np.abs(got[head] - want).max() < 2e-6


def test_error_beside_a_truth_of_zeros() -> None:
    zeros = np.zeros((1, 10, 10), np.float32)
    assert reference.error(zeros, zeros, "npu2").relative_l1 == 0
    assert reference.error(zeros + 1, zeros, "npu2").relative_l1 == np.inf


def test_seeds_are_at_least_0() -> None:
    with pytest.raises(ValueError, match="seed = -1: it must be at least 0"):
        reference.inputs(Parameters(lq=64), -1)


def test_inputs_depend_on_the_seed_only() -> None:
    p = Parameters(lq=64, num_heads=1)
    assert all(np.array_equal(a, b) for a, b in zip(reference.inputs(p, 1), reference.inputs(p, 1)))
    assert not np.array_equal(reference.inputs(p, 1)[0], reference.inputs(p, 2)[0])


def test_tolerance() -> None:
    want = np.ones((1, 100, 10), np.float32)
    assert reference.error(want.astype(bfloat16), want, "npu2").within
    off = want.copy()
    off[0, 3, 4] += 0.12  # more than atol + rtol = 0.116
    strict, loose = reference.error(off, want, "npu2"), reference.error(off, want, "npu1")
    assert (strict.missed, strict.within, loose.missed) == (1e-3, False, 0.0)
    assert "NOT within" in str(strict) and "0.1 % beyond" in str(strict) and "99.5 %" in str(loose)
    for no_number in (np.nan, np.inf):  # where half a per cent may be off, too
        off[0, 0, 0] = no_number
        assert not any(reference.error(off, want, device).within for device in ("npu1", "npu2"))
    off[0, :10, :10] = np.nan
    broken = reference.error(off, want, "npu1")
    assert not broken.within and broken.missed >= 0.1

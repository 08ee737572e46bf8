"""designs/gelu/kernels.cc against its numpy model, bit for bit, on both generations."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from ml_dtypes import bfloat16

from designs.gelu import models
from npusim.devices import NPU1, NPU2
from npusim.hostcc import rates
from npusim.types import MemRefType
from tests.designs.hostcheck import (
    ARCHES,
    PROGRAM_MEMORY,
    adversarial,
    compiled,
    mutated,
    needs_compiler,
    needs_peano,
    peano_sizes,
    same_bits,
)

FEATURES = 3072
pytestmark = needs_compiler


@pytest.fixture(scope="module")
def source(root: Any) -> Any:
    return root / "designs" / "gelu" / "kernels.cc"


def numbers(seed: int) -> Any:
    """Numbers of every sort but NaN, which comparisons treat differently; half of them where the polynomial works."""
    values = adversarial(FEATURES, seed)
    values[np.isnan(values.astype(np.float32))] = 1
    values[1::2] = np.random.default_rng(seed).uniform(-3, 3, FEATURES // 2).astype(bfloat16)
    return values


def kernel(source: Any, arch: Any, x: Any, bias: Any) -> Any:
    y = np.zeros(FEATURES, bfloat16)
    compiled(source, ["bias_gelu_bf16"], arch, {"FEATURES": FEATURES}).bias_gelu_bf16(x, bias, y)
    return y


def expected(x: Any, bias: Any) -> Any:
    y = np.zeros(FEATURES, bfloat16)
    with np.errstate(all="ignore"):
        models.bias_gelu_bf16(x, bias, y)
    return y


@pytest.mark.parametrize("arch", ARCHES)
@pytest.mark.parametrize("seed", range(4))
def test_bit_for_bit(source: Any, arch: Any, seed: int) -> None:
    x = numbers(seed)
    bias = np.random.default_rng(seed).standard_normal(FEATURES).astype(bfloat16)
    assert same_bits(kernel(source, arch, x, bias), expected(x, bias))


@pytest.mark.parametrize("arch", ARCHES)
@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("load_v<lanes>(bias + i + lanes)", "load_v<lanes>(bias + i)"),  # an index
        ("store_v(y + i + lanes", "store_v(y + i"),  # where it goes
        ("conv_even", "floor"),  # a rounding
        ("-179.f / 4096", "-178.f / 4096"),  # a coefficient
        ("all(-2.75f)", "all(-2.5f)"),  # a limit
        ("aie::min(share, all(1.f))", "share"),  # a comparison
    ],
)
def test_a_broken_kernel_differs(source: Any, arch: Any, old: str, new: str) -> None:
    x, bias = numbers(1), numbers(2)[::-1].copy()
    assert not same_bits(kernel(mutated(source, old, new), arch, x, bias), expected(x, bias))


@pytest.mark.parametrize("device", [NPU1, NPU2], ids=lambda d: d.name)
def test_the_cycles_lie_between_the_slots_and_one_vector_at_a_time(source: Any, device: Any) -> None:
    row = np.zeros(FEATURES, bfloat16)
    kernels = compiled(source, ["bias_gelu_bf16"], device.arch, {"FEATURES": FEATURES})
    counts = kernels.bias_gelu_bf16(row.copy(), row.copy(), row).counts
    of = MemRefType((FEATURES,), "bf16")
    assert counts.vector == pytest.approx(models.bound(of, of, of, device=device), rel=0.02)
    assert models.bound(of, of, of, device=device) < models.cycles(of, of, of, device=device)
    assert rates.cycles(counts, device) <= models.cycles(of, of, of, device=device) < FEATURES / 32 * models.TURN


@needs_peano
@pytest.mark.parametrize("arch", ARCHES)
def test_fits_the_core(source: Any, arch: Any, tmp_path: Any) -> None:
    code, stack = peano_sizes(source, arch, {"FEATURES": FEATURES}, tmp_path)
    assert code < PROGRAM_MEMORY
    assert all(used <= 1024 for used in stack.values())

"""designs/transpose/kernels.cc against its numpy model, bit for bit, on both generations."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from ml_dtypes import bfloat16

from designs.transpose import models
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

ELEMENTS = 16 * 24
pytestmark = needs_compiler


@pytest.fixture(scope="module")
def source(root: Any) -> Any:
    return root / "designs" / "transpose" / "kernels.cc"


def kernel(source: Any, arch: Any, a: Any, alpha: float) -> Any:
    b = np.zeros(ELEMENTS, bfloat16)
    compiled(source, ["transpose_bf16"], arch, {"ELEMENTS": ELEMENTS}).transpose_bf16(a, b, np.float32(alpha))
    return b


def expected(a: Any, alpha: float) -> Any:
    b = np.zeros(ELEMENTS, bfloat16)
    with np.errstate(all="ignore"):
        models.transpose_bf16(a, b, alpha)
    return b


@pytest.mark.parametrize("arch", ARCHES)
@pytest.mark.parametrize("alpha", [1.0, -0.3, 3.0e38, 1e-40, float("inf"), 1 + 2.0**-8])
def test_bit_for_bit(source: Any, arch: Any, alpha: float) -> None:
    a = adversarial(ELEMENTS, 3)
    assert same_bits(kernel(source, arch, a, alpha), expected(a, alpha))


@pytest.mark.parametrize("arch", ARCHES)
@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("side, side)", "4, 16)"),  # a shape
        ("b + i + j * half", "b + i + (1 - j) * half"),  # where it goes
        ("load_v<micro>(a + i)", "load_v<micro>(a + i / 2 / micro * micro)"),  # an index
        ("conv_even", "floor"),  # a rounding
    ],
)
def test_a_broken_kernel_differs(source: Any, arch: Any, old: str, new: str) -> None:
    a = adversarial(ELEMENTS, 3)
    assert not same_bits(kernel(mutated(source, old, new), arch, a, 3.1), expected(a, 3.1))


@pytest.mark.parametrize("device", [NPU1, NPU2], ids=lambda d: d.name)
def test_the_cycles_are_above_what_the_slots_allow(source: Any, device: Any) -> None:
    a = np.zeros(ELEMENTS, bfloat16)
    kernels = compiled(source, ["transpose_bf16"], device.arch, {"ELEMENTS": ELEMENTS})
    counts = kernels.transpose_bf16(a, a.copy(), np.float32(1)).counts
    of = MemRefType((ELEMENTS,), "bf16")
    by_hand = models.cycles(of, of, 1.0, device=device)
    assert models.bound(of, of, 1.0, device=device) < by_hand
    assert rates.cycles(counts, device) < by_hand


@needs_peano
@pytest.mark.parametrize("arch", ARCHES)
def test_fits_the_core(source: Any, arch: Any, tmp_path: Any) -> None:
    code, stack = peano_sizes(source, arch, {"ELEMENTS": ELEMENTS}, tmp_path)
    assert code < PROGRAM_MEMORY
    assert all(used <= 1024 for used in stack.values())

"""designs/softmax/kernels.cc against its numpy models, on both generations; broken on purpose, it differs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ml_dtypes import bfloat16

from designs.kernels.arithmetic import AIE2, AIE2P
from designs.softmax import models
from tests.designs.hostcheck import (
    ARCHES,
    PROGRAM_MEMORY,
    compiled,
    mutated,
    needs_compiler,
    needs_peano,
    peano_sizes,
    same_bits,
)

SOURCE = Path(models.__file__).with_name("kernels.cc")
SHARED = SOURCE.parents[1] / "kernels"
ROWS, COLS, SCALE = 32, 128, np.float32(1.4426950408889634)
FLAGS = {"ROWS": ROWS, "COLS": COLS}
FUNCTIONS = [k.name for k in models.KERNELS]
ARITHMETIC = {"AIE2": AIE2, "AIE2P": AIE2P}
pytestmark = needs_compiler


def scores(seed: int) -> np.ndarray:
    """Ordinary rows, and rows that are huge, equal, masked in part, masked altogether."""
    s = (3 * np.random.default_rng(seed).standard_normal((ROWS, COLS))).astype(bfloat16)
    s[1], s[2], s[3, 5:], s[4], s[5, 3] = 3e38, -3e38, -np.inf, -np.inf, 1e30
    return s


def state(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Maxima and sums after some earlier piece."""
    rng = np.random.default_rng(seed + 100)
    m, l = (2 * rng.standard_normal(ROWS)).astype(bfloat16), (50 * rng.random(ROWS)).astype(bfloat16)
    m[::7], l[::7] = models.LOWEST, 0
    return m, l


def through(arch: Any, seed: int, source: Path | str = SOURCE) -> list[np.ndarray]:
    """All three functions in turn, in C++."""
    kernels = compiled(source, FUNCTIONS, arch, FLAGS, include_dirs=[SHARED])
    s, (m, l) = scores(seed), state(seed)
    begun = [np.ones(ROWS, bfloat16) for _ in range(2)]
    kernels.begin_rows(*begun)
    kernels.piece_maxima(s, m)
    kernels.piece_sums(s, m, l, SCALE)
    return [*begun, m, l]


def expected(arch: Any, seed: int) -> list[np.ndarray]:
    """The same with the models."""
    a, s, (m, l) = ARITHMETIC[arch], scores(seed), state(seed)
    begun = [np.ones(ROWS, bfloat16) for _ in range(2)]
    models.begin_rows(a, *begun)
    models.piece_maxima(a, s, m)
    models.piece_sums(a, s, m, l, SCALE)
    return [*begun, m, l]


def alike(got: list[np.ndarray], want: list[np.ndarray]) -> bool:
    """Bit for bit, but for sums: theirs may be off by the last bit, for the order of adding."""
    exact = all(same_bits(a, b) for a, b in zip(got[:3], want[:3]))
    sums, wanted = (x[3].astype(np.float64) for x in (got, want))
    return exact and bool(np.allclose(sums, wanted, rtol=2.0**-7, atol=0))


@pytest.mark.parametrize("arch", ARCHES)
@pytest.mark.parametrize("seed", range(4))
def test_as_the_models_say(arch: Any, seed: int) -> None:
    assert alike(through(arch, seed), expected(arch, seed))


def test_sums_of_equal_powers_are_exact() -> None:
    """Where every power is 1 the sums are whole numbers, exact in any order."""
    for arch in ARCHES:
        kernels = compiled(SOURCE, FUNCTIONS, arch, FLAGS, include_dirs=[SHARED])
        s, m, l = np.full((ROWS, COLS), 2, bfloat16), np.full(ROWS, 2, bfloat16), np.arange(ROWS).astype(bfloat16)
        kernels.piece_sums(s, m, l, SCALE)
        assert same_bits(l, (np.arange(ROWS) + COLS).astype(np.float32).astype(bfloat16))


@pytest.mark.parametrize("arch", ARCHES)
@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("fill(m, ROWS, lowest())", "fill(m, ROWS, masked())"),  # where maxima start
        ("everywhere(m[row]), lowest())).get(0)", "everywhere(m[0]), lowest())).get(0)"),  # an index
        ("++row, s += COLS)\n    m[row]", "++row, s += lanes)\n    m[row]"),  # a stride
        ("from_vector(everywhere(l[row]))", "from_vector(everywhere(l[row ^ 1]))"),  # whose sum
        ("row_sum_of_exponentials(s, everywhere(m[row])", "row_sum_of_exponentials(s, lowest()"),  # which maximum
    ],
)
def test_a_broken_kernel_differs(arch: Any, old: str, new: str) -> None:
    assert not alike(through(arch, 1, mutated(SOURCE, old, new)), expected(arch, 1))


@needs_peano
@pytest.mark.parametrize("arch", ARCHES)
def test_fits_the_core(arch: Any, tmp_path: Path) -> None:
    code, stack = peano_sizes(SOURCE, arch, FLAGS, tmp_path)
    assert code < PROGRAM_MEMORY
    assert all(used <= 1024 for used in stack.values())

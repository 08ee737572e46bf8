"""designs/covariance/kernels.cc against its numpy model, on both generations; broken on purpose, it differs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ml_dtypes import bfloat16

from designs.covariance import models
from designs.kernels.arithmetic import AIE2
from npusim.errors import DesignError
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

SOURCE = Path(models.__file__).with_name("kernels.cc")
SHARED = SOURCE.parents[1] / "kernels"
FEATURES, SAMPLES = 128, 32
pytestmark = needs_compiler


def flags(rows: int) -> dict[str, int]:
    return {"BQ": rows, "BK": FEATURES, "DK": SAMPLES}


def taken(arch: Any, rows: int, number: int, source: Path | str = SOURCE) -> np.ndarray:
    band = np.zeros((rows, SAMPLES), bfloat16)
    x = adversarial(FEATURES * SAMPLES, 7).reshape(FEATURES, SAMPLES)
    kernels = compiled(source, ["take_rows"], arch, flags(rows), include_dirs=[SHARED])
    kernels.take_rows(x, band, np.int32(number))
    return band


def expected(rows: int, number: int) -> np.ndarray:
    band = np.zeros((rows, SAMPLES), bfloat16)
    models.take_rows(AIE2, adversarial(FEATURES * SAMPLES, 7).reshape(FEATURES, SAMPLES), band, number)
    return band


@pytest.mark.parametrize("arch", ARCHES)
@pytest.mark.parametrize(("rows", "number"), [(16, 0), (16, 5), (16, 7), (32, 3), (64, 0), (64, 1)])
def test_bit_for_bit(arch: Any, rows: int, number: int) -> None:
    assert same_bits(taken(arch, rows, number), expected(rows, number))


@pytest.mark.parametrize("arch", ARCHES)
@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("number * BQ) * width", "number * width) * width"),
        ("j * BQ * width", "(3 - j) * BQ * width"),
        ("(j * BK +", "(j * BQ +"),
    ],
)
def test_a_broken_kernel_differs(arch: Any, old: str, new: str) -> None:
    assert not same_bits(taken(arch, 32, 2, mutated(SOURCE, old, new)), expected(32, 2))


def test_a_band_that_is_not_there_is_caught() -> None:
    with pytest.raises(DesignError, match="out of bounds"):
        taken("AIE2", 32, 4)


@needs_peano
@pytest.mark.parametrize("arch", ARCHES)
def test_fits_the_core(arch: Any, tmp_path: Path) -> None:
    code, _ = peano_sizes(SOURCE, arch, flags(64), tmp_path)
    assert code < PROGRAM_MEMORY

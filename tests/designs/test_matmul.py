"""The matrix product on one compute tile, on some, on all: right on both devices, and simulated fast."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ml_dtypes import bfloat16

from designs.matmul import reference
from npusim.frontends.finder import simulated
from npusim.frontends.iron import current, tensor_factory
from npusim.frontends.iron.device import NPU1, NPU2
from npusim.load import python_file

DESIGN = Path(reference.__file__).with_name("design.py")
DEVICES = {"npu1": NPU1, "npu2": NPU2}
TOLERANCE = {"npu1": 1e-6, "npu2": 2e-2}
"""Of the largest element: float32 sums of exact products; on XDNA 2, products of BFP16, which has 7 bits and a sign."""


@pytest.fixture(scope="module")
def matmul() -> Iterator[Any]:
    with simulated(), python_file(DESIGN) as module:
        yield module.matmul
    current.set_current_device(None)


def product(matmul: Any, device: str, M: int, K: int, N: int, **options: Any) -> tuple[np.ndarray, np.ndarray, Any]:
    """(what the NPU gives, what it should, the report)."""
    current.set_current_device(DEVICES[device]())
    rng = np.random.default_rng(3)
    whole = options.get("dtype") == "i16"
    draw = (lambda s: rng.integers(-2000, 2000, s).astype(np.int16)) if whole else rng.standard_normal
    a, b = (np.asarray(draw(shape)).astype(np.int16 if whole else bfloat16) for shape in ((M, K), (K, N)))
    flat = [tensor_factory.tensor(x.reshape(-1), dtype=x.dtype) for x in (a, b)]
    c = tensor_factory.zeros(M * N, dtype=np.int32 if whole else np.float32)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        _, result = matmul(*flat, c, M=M, K=K, N=N, **options)
    assert result.report.warnings == []
    return c.numpy().reshape(M, N), reference.matmul(a, b), result.report


SHAPES: list[tuple[int, int, int, dict[str, Any]]] = [
    (128, 192, 128, {"rows": 1, "columns": 1}),
    (256, 128, 256, {"rows": 2, "columns": 2}),
    (256, 64, 256, {"rows": 4, "columns": 1}),
    (256, 64, 256, {"rows": 4, "columns": 2}),
    (192, 64, 192, {"rows": 3, "columns": 3}),
    (96, 96, 384, {"rows": 1, "columns": 4, "m": 48, "k": 32, "n": 48}),
    (256, 128, 512, {}),
]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", ["bf16", "i16"])
@pytest.mark.parametrize(("M", "K", "N", "options"), SHAPES)
def test_right(matmul: Any, device: str, dtype: str, M: int, K: int, N: int, options: dict[str, Any]) -> None:
    got, want, report = product(matmul, device, M, K, N, dtype=dtype, **options)
    if dtype == "i16":
        assert np.array_equal(got, want)
    else:
        assert np.abs(got - want).max() <= TOLERANCE[device] * np.abs(want).max()
    assert len(report.cores) == options.get("rows", 4) * options.get("columns", 4)


def test_eight_columns(matmul: Any) -> None:
    got, want, report = product(matmul, "npu2", 256, 128, 1024, columns=8)
    assert np.abs(got - want).max() <= TOLERANCE["npu2"] * np.abs(want).max()
    assert len(report.cores) == 32


@pytest.mark.parametrize("device", DEVICES)
def test_every_byte_from_ddr_once_for_all_that_share_it(matmul: Any, device: str) -> None:
    """A passes once for each tile of C in a block row (N/(n columns) passes), B once for each block row."""
    _, _, report = product(matmul, device, 512, 256, 512)
    assert report.traffic["ddr"].read == 2 * (512 * 256 * 2 + 256 * 512 * 2)
    assert report.traffic["ddr"].written == 4 * 512 * 512


@pytest.mark.parametrize("device", DEVICES)
def test_fast(matmul: Any, device: str) -> None:
    """512 x 512 x 512 in bf16 with data on 4 x 4 compute tiles, design made and placed anew: under a second."""
    taken = []
    for _ in range(2):
        matmul._kernel_cache.clear()
        begun = time.perf_counter()
        got, want, _ = product(matmul, device, 512, 512, 512)
        taken.append(time.perf_counter() - begun)
        assert np.abs(got - want).max() <= TOLERANCE[device] * np.abs(want).max()
    assert min(taken) < 1


def test_sizes_that_do_not_fit_are_named(matmul: Any) -> None:
    current.set_current_device(NPU2())
    for options, words in (
        ({"M": 300}, "M = 300 is not a positive multiple of 256"),
        ({"m": 40}, "m = 40 is not a positive multiple of 16"),
        ({"dtype": "f64"}, "dtype is one of bf16, i16, not 'f64'"),
        ({"M": 192, "rows": 3, "columns": 2}, "3 rows cannot share 2 columns evenly"),
    ):
        with pytest.raises(ValueError, match=words):
            matmul.specialize(**{"M": 256, "K": 64, "N": 256, **options}).compile()

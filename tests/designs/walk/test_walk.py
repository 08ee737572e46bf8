"""The bench for walks: what leaves a tile is what numpy says, and what a descriptor cannot say is refused."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from ml_dtypes import bfloat16

import npulab
from designs.walk import reference
from npusim.errors import CapacityError, DesignError
from npusim.frontends import finder

X = np.arange(24 * 16, dtype=np.int32).reshape(24, 16)


@pytest.fixture(scope="module")
def walk() -> Iterator[Any]:
    npulab.use("sim", "npu2", quiet=True)
    yield npulab.load("designs.walk.design").walk
    finder.deactivate()


def outcome(walk: Any, x: Any, want: Any, **options: Any) -> Any:
    run = npulab.run(walk, [x, np.zeros(want.size, x.dtype)], shape=x.shape, **options)
    assert run.report is not None and run.report.warnings == []
    assert np.array_equal(run.output, want)
    assert run.traffic is not None
    assert run.traffic["ddr"].written == want.nbytes
    return run


WALKS = {
    "by columns": ((16, 1), (24, 16)),
    "micro tiles": ((3, 128), (2, 8), (8, 16), (8, 1)),
    "even rows, then odd ones": ((2, 16), (12, 32), (16, 1)),
}


@pytest.mark.parametrize("device", ["npu1", "npu2"])
@pytest.mark.parametrize("row", [0, 1, 2])
@pytest.mark.parametrize("name", WALKS)
def test_walks(walk: Any, device: str, row: int, name: str) -> None:
    dims = WALKS[name]
    want = reference.walk(X, dims)
    if row == 2 and len(dims) > 3:
        with pytest.raises(CapacityError, match="4 dimensions"):
            outcome(walk, X, want, dims=dims, row=row, device=device)
    else:
        outcome(walk, X, want, dims=dims, row=row, device=device)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.permutations([0, 1, 2]), st.tuples(*[st.integers(1, 6)] * 3), st.sampled_from([0, 1, 2]))
def test_any_order_of_three_axes(walk: Any, order: list[int], shape: tuple[int, int, int], row: int) -> None:
    x = np.arange(np.prod(shape), dtype=np.int32).reshape(shape)
    strides = [shape[1] * shape[2], shape[2], 1]
    dims = tuple((shape[axis], strides[axis]) for axis in order)
    assert np.array_equal(reference.walk(x, dims), x.transpose(order).ravel())
    outcome(walk, x.reshape(shape[0], -1), reference.walk(x, dims), dims=dims, row=row)


def test_some_of_the_elements(walk: Any) -> None:
    square = X[:16]
    outcome(walk, square, np.diag(square), dims=((16, 17),), row=0)


@pytest.mark.parametrize("device", ["npu1", "npu2"])
def test_zeros_around_and_repeats(walk: Any, device: str) -> None:
    pad = ((1, 2), (2, 2))
    rows = ((24, 16), (16, 1))
    want = np.pad(X, pad).ravel()
    assert np.array_equal(reference.walk(X, rows, pad), want)
    outcome(walk, X, want, dims=rows, pad=pad, device=device)
    run = outcome(walk, X, np.tile(X.ravel(), 5), repeat=5, device=device)
    assert run.traffic["ddr"].read == X.nbytes and run.traffic["memtile"].read == 5 * X.nbytes


@pytest.mark.parametrize(
    ("x", "options", "words"),
    [
        (X, {"dims": ((2, 192), (2, 96), (3, 32), (2, 16), (16, 1)), "row": 1}, "5 dimensions; a descriptor there has 4"),
        (X.astype(bfloat16), {"dims": ((16, 1), (24, 16)), "dtype": "bf16", "row": 1}, "4-byte words"),
        (X.astype(bfloat16), {"dims": ((16, 1), (24, 16)), "dtype": "bf16", "row": 2}, "4-byte words"),
        (X.astype(bfloat16), {"dims": ((16, 1), (24, 16)), "dtype": "bf16", "row": 0}, "no multiple of 4 bytes"),
        (np.zeros((2, 2048), np.int32), {"dims": ((2048, 1), (2, 2048)), "row": 1}, "2048"),
    ],
)
def test_what_a_descriptor_cannot_say(walk: Any, x: Any, options: dict[str, Any], words: str) -> None:
    with pytest.raises((CapacityError, DesignError), match=words):
        npulab.run(walk, [x, np.zeros(x.size, x.dtype)], shape=x.shape, **options)


def test_every_second_half_word_is_a_trap(walk: Any) -> None:
    """The real tools accept it, and the hardware reads on instead."""
    x = np.arange(64).astype(bfloat16)
    with pytest.warns(match="contiguous"):
        run = npulab.run(walk, [x, np.zeros(32, bfloat16)], shape=x.shape, dims=((32, 2),), row=0, dtype="bf16")
    assert run.output.astype(int).tolist() == list(range(32))

"""Designs that must not run say why: who, where, and which rule or limit."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ml_dtypes import bfloat16

import npulab
from npusim.errors import CapacityError, DeadlockError, DesignError
from npusim.frontends import finder

VARIANTS = Path(__file__).with_name("variants.py")


@pytest.fixture(scope="module")
def build() -> Iterator[Any]:
    npulab.use("sim", "npu2", quiet=True)
    yield npulab.load(VARIANTS).build
    finder.deactivate()


def vectors(n: int = 4096) -> list[Any]:
    return [np.ones(n, bfloat16), np.ones(n, bfloat16)]


def line_of(words: str) -> str:
    """``variants.py:<number>`` of the only line that holds the words."""
    (number,) = (i for i, line in enumerate(VARIANTS.read_text().splitlines(), 1) if words in line)
    return f"variants.py:{number}"


def test_the_variant_without_a_mistake_runs(build: Any) -> None:
    run = npulab.run(build, vectors())
    assert (run.output == bfloat16(2)).all()


def test_a_fifo_that_nobody_drains(build: Any) -> None:
    with pytest.raises(DesignError) as caught:
        npulab.run(build, vectors(), drained=False)
    message = str(caught.value)
    assert isinstance(caught.value, ValueError)
    assert "'out'" in message and "nobody consumes from" in message
    assert line_of("of_x, of_y, of_out =") in message


def test_a_drain_longer_than_what_is_produced(build: Any) -> None:
    with pytest.raises(DeadlockError) as caught:
        npulab.run(build, vectors(), missing=1024)
    message = str(caught.value)
    assert "host sequence waits" in message and "drain of" in message and "'out'" in message
    assert "6,144 of 8,192 bytes" in message, "three of four objects"
    assert "'core_body'" in message and "(0,2)" in message and "'x'" in message, "who waits, and for what"
    assert line_of("end.drain(") in message and line_of("x_in.acquire(1), y_in.acquire(1)") in message


def test_an_object_too_large_for_the_tile(build: Any) -> None:
    with pytest.raises(CapacityError) as caught:
        npulab.machine(build, tile=16384, n=32768)
    message = str(caught.value)
    assert "compute tile (0,2)" in message and "65536 bytes (64 KiB)" in message, "the tile and its limit"
    for fifo in ("x", "y", "out"):
        assert f"fifo '{fifo}': 2 x 32768 bytes" in message
    assert "197632 bytes" in message, "six buffers of 32 KiB and the stack"


def test_the_largest_object_that_fits(build: Any) -> None:
    """63 KiB for six buffers: 5,376 elements of 2 bytes each; one vector more is refused."""
    npulab.machine(build, tile=5376, n=5376)
    with pytest.raises(CapacityError):
        npulab.machine(build, tile=5376 + 32, n=5376 + 32)


@pytest.mark.parametrize("n", [1000, 0])
def test_sizes_that_do_not_divide(build: Any, n: int) -> None:
    with pytest.raises(ValueError, match=f"n = {n} is no positive multiple of 1024"):
        npulab.run("designs.saxpy.design", vectors(n), n=n)


# ---- the embedded package never stands in for the real one

IMPORT = """
import importlib.machinery, sys
import npulab, npusim, designs.saxpy.models, npusim.frontends.iron, npusim.engine
{before}
real = importlib.machinery.PathFinder.find_spec("aie")
try:
    import aie.iron as iron
except ModuleNotFoundError:
    print("none" if real is None else "hidden")
else:
    print("real" if real is not None and iron.__file__.startswith(tuple(real.submodule_search_locations)) else "embedded")
"""


@pytest.mark.parametrize(
    ("before", "embedded"),
    [
        ("", False),
        ("npulab.use('sim', quiet=True)", True),
        ("npulab.use('sim', quiet=True); from npusim.frontends import finder; finder.deactivate()", False),
    ],
)
def test_aie_is_the_embedded_package_only_on_the_simulated_backend(before: str, embedded: bool, tmp_path: Path) -> None:
    run = subprocess.run(
        [sys.executable, "-c", IMPORT.format(before=before)], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    got = run.stdout.split()[-1]
    assert got == "embedded" if embedded else got in ("none", "real")

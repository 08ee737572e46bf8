"""Every test here runs on the simulated NPU."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import npulab
from npusim.frontends import finder


@pytest.fixture(scope="session", autouse=True)
def _simulated() -> Iterator[None]:
    npulab.use("sim", "npu2", quiet=True)
    yield
    finder.deactivate()

"""Our designs are healthy: nothing that the simulated NPU warns about may happen in their tests."""

from __future__ import annotations

import warnings
from collections.abc import Iterator

import pytest

from npusim.errors import DesignWarning


@pytest.fixture(autouse=True)
def _no_design_warnings() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("error", DesignWarning)
        yield

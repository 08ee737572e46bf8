"""What all tests share."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent

# Tests mean the simulated NPU, whatever the machine has; a test of the choice itself sets the variable anew.
os.environ["NPULAB_BACKEND"] = "sim"
os.environ.setdefault("JUPYTER_PREFER_ENV_PATH", "1")
os.environ.setdefault("MPLBACKEND", "agg")
os.environ.setdefault("PYDEVD_DISABLE_FILE_VALIDATION", "1")  # quiets the kernels' debugger


@pytest.fixture(scope="session")
def root() -> Path:
    """The repository."""
    return ROOT

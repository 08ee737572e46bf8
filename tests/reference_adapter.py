"""The reference designs run through npusim: what ``check.py`` of the reference expects of a simulated NPU."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from npusim.frontends.finder import simulated
from npusim.kernels import KernelModel
from npusim.load import as_design, load_design, python_file
from npusim.mlir import read_low
from npusim.run import simulate
from npusim.types import MemRefType, numpy_dtype

CYCLES = 100
"""Core cycles of a kernel whose model is only a numpy function."""


def models(kernels: Mapping[str, Callable[..., None]]) -> dict[str, KernelModel]:
    """Kernel models from numpy functions; one that takes ``cascade`` uses the cascade."""
    return {
        name: KernelModel(f, lambda *args, device: CYCLES, uses_cascade="cascade" in inspect.signature(f).parameters)
        for name, f in kernels.items()
    }


def run_design(path: str | Path, device: str, args: list[Any], kernels: Mapping[str, Callable[..., None]]) -> None:
    """Build the design in ``path`` (its ``build(device)``) and run it; outputs are written into ``args``."""
    simulate(load_design(path, device), args, kernels=models(kernels))


def run_mlir(path: str | Path, args: list[Any], kernels: Mapping[str, Callable[..., None]]) -> None:
    """Run a recorded, lowered module in generic form."""
    simulate(read_low(Path(path).read_text()), args, kernels=models(kernels))


def refuse(path: str | Path, device: str) -> tuple[Exception | None, list[str]]:
    """Build and run the design in ``path``: (the exception that refused it or None, texts of the warnings)."""
    texts: list[str] = []
    error: Exception | None = None
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            texts += _build_and_run(Path(path), device)
        except Exception as refused:
            error = refused
    return error, [*(str(w.message) for w in caught), *texts]


def _build_and_run(path: Path, device: str) -> list[str]:
    with simulated("aie", "air"), python_file(path) as module:
        design = as_design(module.build(device), device)
    assert design.sequence is not None
    types = [value.type for value in design.sequence.body.entry.args]
    args = [np.zeros(t.shape, t.dtype) if isinstance(t, MemRefType) else numpy_dtype(str(t)).type(1) for t in types]
    report = simulate(design, args, kernels=_idle_models(design.kernels))
    return report.warnings


def _idle_models(kernels: list[Any]) -> dict[str, KernelModel]:
    """Kernels that compute nothing: only whether the design is accepted and ends is asked."""

    def nothing(*args: Any) -> None:
        """Leave every argument as it is."""

    return {k.name: KernelModel(nothing, lambda *args, device: CYCLES) for k in kernels}

"""Designs from files: a Python file with ``build(device)``, or a module of the aie dialect."""

from __future__ import annotations

import importlib.util
import itertools
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

from npusim.air.text import read_air
from npusim.errors import DesignError
from npusim.frontends.finder import simulated
from npusim.frontends.iron.current import runtime_name
from npusim.graph import Design
from npusim.mlir import read_high

_numbers = itertools.count()


def load_design(path: str | Path, device: str = "npu2", **options: Any) -> Design:
    """The design that a file describes, for a device (``npu1``, ``npu2``).

    A ``.mlir`` file is read as generated, in generic form. A Python file is run with the simulated packages behind
    ``import aie`` and ``import air`` and must offer ``build(device, **options)``. DesignError if it does not, or gives no design.
    """
    path = Path(path)
    if path.suffix == ".mlir":
        return _read(path.read_text(), device)
    with simulated("aie", "air"), python_file(path) as module:
        if not hasattr(module, "build"):
            raise DesignError(f"{path} has no build(device): it must return what resolve_program() gives")
        return as_design(module.build(device, **options), device)


def as_design(built: Any, device: str | None = None) -> Design:
    """The graph behind what a build function gave: a resolved program, the text of a module, or a design itself.

    ``device`` is for modules of MLIR-AIR, which name none; by default it is the simulated NPU's.
    """
    if isinstance(built, Design):
        return built
    if isinstance(built, str):
        return _read(built, device or runtime_name())
    if hasattr(built, "design_for"):
        made: Design = built.design_for(device)
        return made
    design = getattr(built, "design", None)
    if not isinstance(design, Design):
        raise DesignError(f"build() gave a {type(built).__name__}, not the result of resolve_program()")
    return design


def _read(text: str, device: str) -> Design:
    """A module as generated, of the aie dialect or of MLIR-AIR."""
    return read_air(text, device) if _is_air(text) else read_high(text)


def is_compiled(text: str) -> bool:
    """Whether a module is one that a compiler made (tiles, addresses, switches), not one as generated."""
    return not _is_air(text) and "aie.logical_tile" not in text


def _is_air(text: str) -> bool:
    return '"air.launch"' in text or '"air.herd"' in text


@contextmanager
def python_file(path: Path) -> Iterator[ModuleType]:
    """A Python file as a fresh module, its folder importable while the context lasts; what it imports from there is
    forgotten again."""
    name = f"_npusim_design_{next(_numbers)}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None or not path.exists():
        raise DesignError(f"{path} is no Python file that can be loaded")
    module = importlib.util.module_from_spec(spec)
    folder, before = str(path.resolve().parent), set(sys.modules)
    sys.path.insert(0, folder)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
        yield module
    finally:
        sys.path.remove(folder)
        for other in set(sys.modules) - before:
            file = getattr(sys.modules[other], "__file__", None)
            if other == name or (file and Path(file).parent == Path(folder)):
                del sys.modules[other]

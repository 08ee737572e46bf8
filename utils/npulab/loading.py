"""Designs from files, folders and modules, run afresh on the backend in use."""

from __future__ import annotations

import importlib
import importlib.util
import itertools
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

from npulab import backend, npu
from npulab.help import explained
from npusim.errors import DesignError

_PREFIX = "_npulab_design_"
_numbers = itertools.count()


def load(source: str | Path | ModuleType) -> ModuleType:
    """A design's module, run afresh on the backend in use.

    ``source`` is a Python file, a folder with a ``design.py``, a module's dotted name (``designs.saxpy.design``) or a module.

    Raises:
        DesignError: if there is no such file or module.
        ToolchainError: if it is made with a package that is not installed here.
    """
    backend.current()
    try:
        return _load(source)
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in ("aie", "air"):
            raise
        raise explained(error, "toolchain") from error


def _load(source: str | Path | ModuleType) -> ModuleType:
    if isinstance(source, ModuleType):
        mine = source.__name__.startswith(_PREFIX)
        return _from_file(Path(str(source.__file__))) if mine else importlib.reload(source)
    path = Path(source)
    path = path / "design.py" if path.is_dir() else path
    if path.suffix == ".py" and path.exists():
        return _from_file(path)
    if isinstance(source, str) and all(part.isidentifier() for part in source.split(".")):
        return _from_name(source)
    raise DesignError(f"no design in {source}: neither a Python file, a folder with a design.py, nor a module's name")


def _from_file(path: Path) -> ModuleType:
    name = f"{_PREFIX}{next(_numbers)}"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses and pickles in a design look for it there
    with _neighbours_of(path):
        spec.loader.exec_module(module)
    return module


@contextmanager
def _neighbours_of(path: Path) -> Iterator[None]:
    """A file's folder is importable within the block, as when Python runs it; what came from there is then forgotten, so
    that another folder may have modules of the same names."""
    folder, before = path.resolve().parent, set(sys.modules)
    sys.path.insert(0, str(folder))
    try:
        yield
    finally:
        sys.path.remove(str(folder))
        for other in set(sys.modules) - before:
            file = getattr(sys.modules[other], "__file__", None)
            if file and Path(file).parent == folder:
                del sys.modules[other]


def _from_name(name: str) -> ModuleType:
    known = sys.modules.get(name)
    try:
        return importlib.reload(known) if known else importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name and name.startswith(error.name):
            raise DesignError(f"no module {name!r}, and no file or folder of that name") from None
        raise


def design_in(module: ModuleType) -> Any:
    """What a module builds: its ``build``, else the one ``@iron.jit`` function in it."""
    if hasattr(module, "build"):
        return module.build
    found = [v for v in vars(module).values() if npu.is_callable_design(v)]
    if len(found) != 1:
        raise DesignError(
            f"{module.__name__} has no build(device) and {len(found)} @iron.jit functions: name the one to run"
        )
    return found[0]

"""Serving ``aie`` (and later ``air``) from npusim while the simulated backend is active.

``activate()`` puts a finder on ``sys.meta_path`` that answers for these names, ``deactivate()`` takes it away and forgets
the modules; outside of that, ``import aie`` fails or gives the real package. What a frontend serves is a
:class:`ModuleTree`: for each module name, the names in it.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

from npusim.errors import NpuError, UnsupportedError


class NotServedError(ImportError, UnsupportedError):
    """A module or name that the embedded package does not have; the real one may."""


class NoSuchNameError(AttributeError, UnsupportedError):
    """The same, asked as an attribute."""


class BackendError(ImportError, NpuError):
    """The embedded package cannot be served, because the real one is in use."""


@dataclass(frozen=True)
class ModuleTree:
    """A package: ``names(module)`` gives what a module holds, or None if there is no such module."""

    root: str
    real: str  # what the real package is called where people look for it
    names: Callable[[str], Mapping[str, Any] | None]
    reason: Callable[[str], str | None] = lambda name: None  # why a name is not served, if more can be said than that


_trees: dict[str, Callable[[], ModuleTree]] = {}
_active: dict[str, ModuleTree] = {}
_LAZY = {"aie": "npusim.frontends.iron.served", "air": "npusim.frontends.air.served"}
MARK = "__npusim__"


def register(root: str, make: Callable[[], ModuleTree]) -> None:
    """Offer a package under a root name; ``make`` is called when it is first activated."""
    _trees[root] = make


def _tree(root: str) -> ModuleTree:
    if root not in _trees and root in _LAZY:
        importlib.import_module(_LAZY[root])  # registers itself
    if root not in _trees:
        raise UnsupportedError(f"there is no embedded package {root!r}")
    return _trees[root]()


def activate(*roots: str) -> None:
    """Serve these packages (by default ``aie``). BackendError if a real one is imported already."""
    for root in roots or ("aie",):
        known = sys.modules.get(root)
        if known is not None and not hasattr(known, MARK):
            raise BackendError(
                f"the real package {root!r} ({getattr(known, '__file__', None) or 'built in'}) is imported in this process, so "
                "the simulated one cannot be served: choose the simulated backend before the first import, or in a new process"
            )
        _active[root] = _tree(root)
    if _finder not in sys.meta_path:
        sys.meta_path.insert(0, _finder)


def deactivate(*roots: str) -> None:
    """Stop serving these packages (by default all) and forget their modules; what designs hold of them keeps working."""
    for root in roots or tuple(_active):
        _active.pop(root, None)
        for name in [n for n in sys.modules if n == root or n.startswith(f"{root}.")]:
            if hasattr(sys.modules[name], MARK):
                del sys.modules[name]
    if not _active and _finder in sys.meta_path:
        sys.meta_path.remove(_finder)


def active() -> tuple[str, ...]:
    """The roots being served."""
    return tuple(_active)


@contextmanager
def simulated(*roots: str) -> Iterator[None]:
    """Serve these packages within the block; leaves alone what was served before. Refusals of what is written in the block
    name the line."""
    wanted = roots or ("aie",)
    mine = [root for root in wanted if root not in _active]
    activate(*wanted)
    try:
        yield
    except NpuError as error:
        from npusim.frontends.tracing import add_line

        add_line(error)
        raise
    finally:
        if mine:
            deactivate(*mine)


class _Finder(MetaPathFinder, Loader):
    """Finds and makes the modules of the active trees."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        tree = _active.get(name.partition(".")[0])
        if tree is None:
            return None
        if tree.names(name) is None:
            raise NotServedError(_not_served(tree, name), name=name)
        return ModuleSpec(name, self, origin="npusim", is_package=True)

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return _ServedModule(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        tree = _active[module.__name__.partition(".")[0]]
        names = tree.names(module.__name__)
        assert names is not None  # find_spec looked
        vars(module).update(names)
        setattr(module, MARK, True)


class _ServedModule(ModuleType):
    """A module that says what it lacks, and imports its submodules when they are named."""

    def __getattr__(self, name: str) -> Any:
        tree = _active.get(self.__name__.partition(".")[0])
        if name.startswith("__") or tree is None:
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        full = f"{self.__name__}.{name}"
        if tree.names(full) is not None:
            return importlib.import_module(full)
        raise NoSuchNameError(_not_served(tree, full))


def _not_served(tree: ModuleTree, name: str) -> str:
    module, _, last = name.rpartition(".")
    held = tree.names(module) if module else None
    near = "" if held is None else _suggestion(last, held)
    said = f"{name} is not served by the simulated {tree.root!r} of npusim"
    reason = tree.reason(name)
    return f"{said}: {reason}" if reason else f"{said}{near}; the real package ({tree.real}) may have it"


def _suggestion(name: str, held: Mapping[str, Any]) -> str:
    from difflib import get_close_matches

    close = get_close_matches(name, list(held), 1)
    return f" (did you mean {close[0]}?)" if close else ""


_finder = _Finder()

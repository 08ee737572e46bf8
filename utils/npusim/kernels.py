"""Models of external kernels: what one computes (numpy, in place) and how long it takes (cycles).

A kernel is found by name: first among the models passed to the run, then in ``models.py`` beside the kernel's source file
(a dict ``MODELS``), then among those registered with :func:`model`, then among the models of mlir-aie's own kernels
(:mod:`npusim.kernel_models`). What is found nowhere and has C++ source is compiled for the host (:mod:`npusim.hostcc`); so is a
source that itself defines a function of a library kernel's name.
"""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from npusim.devices import Device
from npusim.errors import UnsupportedError
from npusim.graph import KernelDecl


@dataclass(frozen=True)
class KernelModel:
    """``compute(*args)`` works in place on numpy arrays in the order of the declared arguments (keyword ``cascade`` with
    ``put(array)`` and ``get(shape, dtype)`` if ``uses_cascade``). ``cycles(*args, device)`` gets a MemRefType for each
    array and the number for each scalar and returns core cycles. ``bound`` is the same for the lower bound (issue slots
    only), or None. ``cascade_bytes(*types)`` says how many bytes a call gets and puts; only timing-only runs need it.
    ``bind(decl, device)`` gives the model that is used instead, for a kernel whose arithmetic depends on the device or on
    its compile flags.
    """

    compute: Callable[..., None]
    cycles: Callable[..., int]
    bound: Callable[..., int] | None = None
    uses_cascade: bool = False
    source: str = ""  # where the cycle model comes from
    confidence: str = "L"
    cascade_bytes: Callable[..., tuple[int, int]] | None = None
    bind: Callable[[KernelDecl, Device], KernelModel] | None = None


_REGISTRY: dict[str, KernelModel] = {}


def model(
    name: str,
    *,
    cycles: Callable[..., int],
    bound: Callable[..., int] | None = None,
    uses_cascade: bool = False,
    source: str = "",
    confidence: str = "L",
    cascade_bytes: Callable[..., tuple[int, int]] | None = None,
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Decorator that registers a numpy function as the model of kernel ``name`` (a later one replaces it)."""

    def register(compute: Callable[..., None]) -> Callable[..., None]:
        _REGISTRY[name] = KernelModel(compute, cycles, bound, uses_cascade, source, confidence, cascade_bytes)
        return compute

    return register


def add(name: str, model: KernelModel) -> None:
    """Register a model (a later one of the same name replaces it)."""
    _REGISTRY[name] = model


def lookup(
    decl: KernelDecl, given: Mapping[str, KernelModel] | None = None, device: Device | None = None
) -> KernelModel:
    """The model of a declared kernel, bound to a device if one is given; raises UnsupportedError that says how to give one.

    Without a device no C++ is compiled. Compiling raises DesignError for what is wrong with the source.
    """
    found = _find(decl, given)
    if found is None and device is not None and (decl.source_file or decl.source_string):
        from npusim.hostcc import host_model

        return host_model(decl, device)
    if found is None:
        where = f" (source {decl.source_file})" if decl.source_file else ""
        raise UnsupportedError(
            f"kernel {decl.name!r}{where} has no numpy model and no C++ source that could be compiled for the host; "
            f"register a model with @npusim.kernels.model({decl.name!r}, cycles=...) or put it in MODELS of models.py "
            "beside the kernel's source"
        )
    return found.bind(decl, device) if found.bind is not None and device is not None else found


def _find(decl: KernelDecl, given: Mapping[str, KernelModel] | None) -> KernelModel | None:
    if given and decl.name in given:
        return given[decl.name]
    beside = _beside(decl.source_file).get(decl.name) if decl.source_file else None
    return beside or _REGISTRY.get(decl.name) or (None if _defines(decl) else _of_the_library(decl.name))


def _defines(decl: KernelDecl) -> bool:
    """Whether a kernel's own source, text or an existing file outside mlir-aie's library, defines its function."""
    text = decl.source_string
    if text is None and decl.source_file and "aie_kernels" not in Path(decl.source_file).parts:
        path = Path(decl.source_file)
        text = path.read_text(errors="replace") if path.is_file() else None
    return text is not None and re.search(rf"\b{re.escape(decl.source_name or decl.name)}\s*\(", text) is not None


def _of_the_library(symbol: str) -> KernelModel | None:
    from npusim.kernel_models import find

    return find(symbol)


_LOADED: dict[Path, tuple[float, Mapping[str, KernelModel]]] = {}


def _beside(source_file: str) -> Mapping[str, KernelModel]:
    """MODELS of the models.py next to a kernel's source, loaded again when it was edited."""
    path = Path(source_file).resolve().with_name("models.py")
    if not path.exists():
        return {}
    stamp = path.stat().st_mtime
    if path not in _LOADED or _LOADED[path][0] != stamp:
        spec = importlib.util.spec_from_file_location(f"_kernel_models_{abs(hash(path))}", path)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        _LOADED[path] = (stamp, dict(getattr(module, "MODELS", {})))
    return _LOADED[path][1]


def registered() -> dict[str, Any]:
    """A copy of the registry, by kernel name."""
    return dict(_REGISTRY)

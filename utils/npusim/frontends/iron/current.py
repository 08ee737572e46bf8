"""The current device: what a design set, or else what the simulated NPU is."""

from __future__ import annotations

from typing import Any

_current: Any = None
_runtime = "npu2"


def set_current_device(device: Any) -> None:
    """Choose the device that designs are made for; None forgets the choice."""
    global _current
    _current = device


def get_current_device(*, probe_runtime: bool = True) -> Any:
    """The chosen device; else the one that the simulated NPU is, or None with ``probe_runtime=False``."""
    if _current is not None or not probe_runtime:
        return _current
    return runtime_device()


def ensure_current_device(*, probe_runtime: bool = True) -> Any:
    """Like :func:`get_current_device`, and chooses what it returns."""
    device = get_current_device(probe_runtime=probe_runtime)
    if device is not None:
        set_current_device(device)
    return device


def set_runtime_device(name: str) -> None:
    """Say which NPU is simulated (``npu1``, ``npu2`` or a partition of them); a device chosen by a design stays chosen."""
    global _runtime
    _runtime = name


def runtime_name() -> str:
    """The name of the simulated NPU: ``npu1``, ``npu2`` or a partition of them."""
    return _runtime


def runtime_device() -> Any:
    """The IRON device of the simulated NPU, all its columns unless it is a partition."""
    from npusim.frontends.iron.device import from_name

    family, _, columns = _runtime.partition("_")
    return from_name(family, n_cols=int(columns.removesuffix("col")) if columns else None)


_resolved: list[Any] = []


def note_resolved(design: Any) -> None:
    """Remember a design that ``Program.resolve_program`` made, for a generator that does not return it."""
    _resolved[:] = [design]


def take_resolved() -> Any:
    """The design noted last, forgotten hereby; None if there is none."""
    return _resolved.pop() if _resolved else None

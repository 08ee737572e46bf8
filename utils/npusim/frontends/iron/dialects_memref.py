"""Operations of the ``memref`` dialect by name: ``load`` and ``store``."""

from __future__ import annotations

from typing import Any

from npusim.frontends.control import refuse_placement
from npusim.frontends.iron.buffer import Buffer
from npusim.frontends.tracing import DesignTypeError
from npusim.frontends.values import MemRefValue


def load(memref: Any, indices: Any, *, loc: Any = None, ip: Any = None) -> Any:
    """An element."""
    refuse_placement(loc, ip)
    return _memref(memref, "load")[tuple(indices)]


def store(value: Any, memref: Any, indices: Any, *, loc: Any = None, ip: Any = None) -> None:
    """Write an element."""
    refuse_placement(loc, ip)
    _memref(memref, "store")[tuple(indices)] = value


def _memref(x: Any, what: str) -> Any:
    if not isinstance(x, (MemRefValue, Buffer)):
        raise DesignTypeError(f"memref.{what} needs a memref, got {x!r}")
    return x


NAMES: dict[str, Any] = {"load": load, "store": store, "MemRefValue": MemRefValue, "MemRef": MemRefValue}

"""``aie.extras.types``: MLIR's types by name, as functions. A scalar type is its name, a memref a MemRefType."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from npusim.errors import DesignError
from npusim.types import MemRefType, numpy_dtype

_SCALARS = "i8 i16 i32 i64 ui8 ui16 ui32 ui64 f16 bf16 f32 f64 index"


def memref(*shape: int, element_type: str | None = None) -> MemRefType:
    """``memref(16, 32, element_type=i32())``."""
    sizes, element = (shape, element_type) if element_type is not None else (shape[:-1], shape[-1])
    if not all(isinstance(n, int) and n > 0 for n in sizes) or not isinstance(element, str):
        raise DesignError(f"memref needs positive sizes and an element type, got {shape} and {element_type!r}")
    numpy_dtype(element)
    return MemRefType(tuple(sizes), element)


def _scalar(name: str) -> Callable[[], str]:
    def made() -> str:
        return name

    made.__name__ = made.__qualname__ = name
    made.__doc__ = f"The type ``{name}``."
    return made


NAMES: dict[str, Any] = {"memref": memref, "bool": _scalar("i1"), **{name: _scalar(name) for name in _SCALARS.split()}}

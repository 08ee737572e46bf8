"""Element types and memrefs, named as MLIR names them (``i32``, ``bf16``, ``index``)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, get_args

import numpy as np
from ml_dtypes import bfloat16

from npusim.errors import DesignError, UnsupportedError

_NUMPY: dict[str, np.dtype[Any]] = {
    "i1": np.dtype(np.bool_),
    "i8": np.dtype(np.int8),
    "i16": np.dtype(np.int16),
    "i32": np.dtype(np.int32),
    "i64": np.dtype(np.int64),
    "ui8": np.dtype(np.uint8),
    "ui16": np.dtype(np.uint16),
    "ui32": np.dtype(np.uint32),
    "ui64": np.dtype(np.uint64),
    "f16": np.dtype(np.float16),
    "bf16": np.dtype(bfloat16),
    "f32": np.dtype(np.float32),
    "f64": np.dtype(np.float64),
    "index": np.dtype(np.int64),
}
_NAMES = {dtype: name for name, dtype in _NUMPY.items() if name != "index"}


def numpy_dtype(element: str) -> np.dtype[Any]:
    """The numpy dtype of an MLIR element type name; raises UnsupportedError for one we do not serve."""
    try:
        return _NUMPY[element]
    except KeyError:
        raise UnsupportedError(f"element type {element!r} is not served; known: {', '.join(_NUMPY)}") from None


def element_name(dtype: Any) -> str:
    """The MLIR name of a numpy dtype (``np.int32`` -> ``i32``)."""
    try:
        return _NAMES[np.dtype(dtype)]
    except (KeyError, TypeError):
        named = dtype.__name__ if isinstance(dtype, type) else repr(dtype)
        raise UnsupportedError(f"elements of type {named} are not served; known: {', '.join(_NUMPY)}") from None


@dataclass(frozen=True)
class MemRefType:
    """A view of memory: shape in elements, element type, and, unless contiguous at 0, offset and strides in elements."""

    shape: tuple[int, ...]
    element: str
    offset: int = 0
    strides: tuple[int, ...] | None = None  # None: contiguous, row-major
    dynamic_offset: bool = False
    space: int = 0  # MLIR-AIR's memory space: 0 DDR, 1 MemTile, 2 L1; IRON writes none

    @classmethod
    def of(cls, array_type: Any) -> MemRefType:
        """From IRON's spelling ``np.ndarray[(16, 32), np.dtype[np.int32]]``."""
        args = get_args(array_type)
        if len(args) != 2 or not get_args(args[1]):
            raise DesignError(f"expected np.ndarray[(sizes...), np.dtype[element]], got {array_type!r}")
        shape = args[0] if isinstance(args[0], tuple) else get_args(args[0]) or (args[0],)
        if not all(isinstance(n, (int, np.integer)) and n > 0 for n in shape):
            raise DesignError(f"sizes must be positive integers, got {shape!r}")
        return cls(tuple(int(n) for n in shape), element_name(get_args(args[1])[0]))

    @property
    def dtype(self) -> np.dtype[Any]:
        return numpy_dtype(self.element)

    @property
    def size(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        """Size in bytes."""
        return self.size * self.dtype.itemsize

    def __str__(self) -> str:
        dims = "".join(f"{n}x" for n in self.shape)
        space = f", {self.space} : i32" if self.space else ""
        if self.strides is None:
            return f"memref<{dims}{self.element}{space}>"
        offset = "?" if self.dynamic_offset else self.offset
        at = f", offset: {offset}" if self.dynamic_offset or self.offset else ""
        return f"memref<{dims}{self.element}, strided<[{', '.join(map(str, self.strides))}]{at}>{space}>"


@dataclass(frozen=True)
class SubviewType:
    """What ``objectfifo.acquire`` gives: a window of objects of one type."""

    object: MemRefType

    def __str__(self) -> str:
        return f"!aie.objectfifosubview<{self.object}>"


Type = str | MemRefType | SubviewType
"""A scalar is its MLIR name."""

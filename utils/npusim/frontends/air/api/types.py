"""Element types of ``air.api``."""

from __future__ import annotations

from typing import Any

import numpy as np
from ml_dtypes import bfloat16

from npusim.errors import UnsupportedError
from npusim.frontends.air.runner import type_mapper


class DType:
    """An element type, and how many elements a vector has unless the design says otherwise."""

    def __init__(
        self, name: str, np_dtype: Any, default_vector_width: int, is_float: bool, is_unsigned: bool = False
    ) -> None:
        self.name, self.np_dtype, self.default_vector_width = name, np_dtype, default_vector_width
        self.is_float, self.is_unsigned = is_float, is_unsigned

    @property
    def itemsize(self) -> int:
        return int(np.dtype(self.np_dtype).itemsize)

    def mlir(self) -> Any:
        """The type as the raw bindings know it."""
        return type_mapper(self.np_dtype)

    def __repr__(self) -> str:
        return f"air.api.{self.name}"


bf16 = DType("bf16", bfloat16, 16, is_float=True)
f16 = DType("f16", np.float16, 16, is_float=True)
f32 = DType("f32", np.float32, 16, is_float=True)
i8 = DType("i8", np.int8, 32, is_float=False)
i16 = DType("i16", np.int16, 16, is_float=False)
i32 = DType("i32", np.int32, 16, is_float=False)
ui8 = DType("ui8", np.uint8, 32, is_float=False, is_unsigned=True)
ui16 = DType("ui16", np.uint16, 16, is_float=False, is_unsigned=True)
ui32 = DType("ui32", np.uint32, 16, is_float=False, is_unsigned=True)

_BY_NUMPY = {np.dtype(t.np_dtype): t for t in (bf16, f16, f32, i8, i16, i32, ui8, ui16, ui32)}


def dtype_of(np_dtype: Any) -> DType | None:
    """The element type of a numpy dtype; None if there is none."""
    return _BY_NUMPY.get(np.dtype(np_dtype))


def require_signless(dtype: DType, what: str) -> None:
    """UnsupportedError for arithmetic on unsigned elements, which the real air.api refuses, too."""
    if dtype.is_unsigned:
        raise UnsupportedError(
            f"{what} is not served for {dtype}: MLIR's arithmetic has no unsigned types. Declare it air.api.{dtype.name[1:]}"
        )

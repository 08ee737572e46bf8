"""``aie.helpers.util``: types and small tools that designs import."""

from __future__ import annotations

from typing import Any, Never, get_args, get_origin

import numpy as np

from npusim.errors import DesignError, UnsupportedError
from npusim.frontends.iron.layouts import flatten_fn_args
from npusim.types import MemRefType, element_name

__all__ = [
    "flatten_fn_args",
    "np_dtype_to_mlir_type",
    "np_ndarray_type_get_dtype",
    "np_ndarray_type_get_shape",
    "np_ndarray_type_to_memref_type",
    "pack_pad_value",
    "single_elem_or_list_to_list",
    "try_convert_np_type_to_mlir_type",
    "v16bfp16ebs16",
    "v8bfp16ebs8",
]


class v8bfp16ebs8(np.generic):
    """Block floating point, 8 values with one exponent. Not served as an element type."""

    @staticmethod
    def get() -> Never:
        raise UnsupportedError("the element type v8bfp16ebs8 (block floating point) is not served; use bfloat16")


class v16bfp16ebs16(np.generic):
    """Block floating point, 16 values with one exponent. Not served as an element type."""

    @staticmethod
    def get() -> Never:
        raise UnsupportedError("the element type v16bfp16ebs16 (block floating point) is not served; use bfloat16")


def np_ndarray_type_get_shape(ndarray_type: type[np.ndarray]) -> tuple[int, ...]:
    """The sizes of ``np.ndarray[(...), np.dtype[...]]``."""
    shape = get_args(ndarray_type)[0]
    if not isinstance(shape, tuple) or not all(isinstance(n, (int, np.integer)) for n in shape):
        raise DesignError(f"the shape of {ndarray_type} must be a tuple of ints")
    return shape


def np_ndarray_type_get_dtype(ndarray_type: type[np.ndarray]) -> Any:
    """The element type of ``np.ndarray[(...), np.dtype[...]]``."""
    return get_args(get_args(ndarray_type)[1])[0]


def np_ndarray_type_to_memref_type(ndarray_type: type[np.ndarray]) -> MemRefType:
    """The memref of an array type."""
    return MemRefType.of(ndarray_type)


def np_dtype_to_mlir_type(np_dtype: Any) -> str:
    """The MLIR name of a numpy element type, to be given to arith's conversions and constants."""
    if isinstance(np_dtype, type) and np_dtype.__name__ in ("v8bfp16ebs8", "v16bfp16ebs16"):
        np_dtype.get()  # type: ignore[attr-defined]
    return element_name(np_dtype)


def try_convert_np_type_to_mlir_type(input_type: Any) -> Any:
    """An array type or element type as MLIR's; anything else as it is."""
    if get_origin(input_type) is np.ndarray:
        return MemRefType.of(input_type)
    if isinstance(input_type, (np.dtype, type)):
        return np_dtype_to_mlir_type(input_type)
    return input_type


def pack_pad_value(value: int, elem_bytes: int) -> int:
    """The 32-bit word that fills paddings with ``value`` in elements of 1, 2 or 4 bytes."""
    if elem_bytes > 4:
        raise DesignError(f"a pad_value fits elements of at most 4 bytes, not {elem_bytes}")
    bits = 8 * elem_bytes
    masked = value & ((1 << bits) - 1)
    return sum(masked << shift for shift in range(0, 32, bits))


def single_elem_or_list_to_list(val: Any) -> list[Any]:
    """A list as it is, anything else as a list of one."""
    return val if isinstance(val, list) else [val]

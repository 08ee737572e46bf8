"""Indices and views of traced memrefs: what ``x[i]``, ``x[i, 2:6]`` become."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from npusim.errors import DesignError
from npusim.frontends import operators as ops
from npusim.frontends.tracing import DesignTypeError, emit
from npusim.ir import Value
from npusim.types import MemRefType

DYNAMIC = -(2**63)
"""How MLIR's static offset arrays mark an offset that is an operand."""


def index_values(of: MemRefType, index: Any) -> list[Any]:
    """The indices as traced scalars and slices with bounds; numbers become constants, in order, as IRON emits them."""
    parts = list(index) if isinstance(index, (tuple, list)) else [index]
    if len(parts) > len(of.shape):
        raise DesignError(f"{len(parts)} indices for {of}, which has {len(of.shape)} dimension(s)")
    return [_one(of, axis, part) for axis, part in enumerate(parts)]


def _one(of: MemRefType, axis: int, part: Any) -> Any:
    if ops.is_scalar(part):
        return part
    if isinstance(part, slice):
        return _slice(of, axis, part)
    if isinstance(part, bool) or not isinstance(part, int):
        hint = "; convert it with int()" if isinstance(part, np.integer) else ""
        raise DesignTypeError(f"{part!r} cannot index {of}: an index is an int or a run-time value{hint}")
    size = of.shape[axis]
    if not 0 <= part < size:
        also = ""
        if part < 0:
            also = "; negative indices do not count from the end here, nothing checks them on the core"
        elif size == 1 and axis == 0 and len(of.shape) > 1:
            also = "; x[i] of a matrix is a view of shape (1, N): write x[i, j] for an element"
        raise DesignError(f"index {part} is out of range for dimension {axis} of {of} (size {size}){also}")
    return ops.constant(part, "index")


def _slice(of: MemRefType, axis: int, part: slice) -> slice:
    bounds = (part.start, part.stop, part.step)
    if any(ops.is_scalar(b) for b in bounds):
        raise DesignError(f"a slice of {of} needs bounds known while tracing; index with a run-time value instead")
    if any(b is not None and (not isinstance(b, int) or b < 0) for b in bounds):
        raise DesignError(f"{part} cannot slice {of}: bounds are non-negative ints")
    start, stop, step = part.indices(of.shape[axis])
    if stop <= start or (part.stop is not None and part.stop > of.shape[axis]):
        raise DesignError(f"slice {start}:{part.stop} is empty or leaves dimension {axis} of {of}")
    return slice(start, stop, step)


def subview(source: Value, given: list[Any]) -> Value:
    """``memref.subview``: an index keeps its dimension with size 1, missing dimensions are taken whole."""
    of = source.type
    assert isinstance(of, MemRefType)
    given = given + [slice(0, n, 1) for n in of.shape[len(given) :]]
    offsets = [_offset(part) for part in given]
    sizes = tuple(len(range(p.start, p.stop, p.step)) if isinstance(p, slice) else 1 for p in given)
    steps = tuple(p.step if isinstance(p, slice) else 1 for p in given)
    moving = [ops.as_index(o).value for o in offsets if not isinstance(o, int)]
    return emit(
        "memref.subview",
        (source, *moving),
        (_view_type(of, offsets, sizes, steps),),
        static_offsets=tuple(o if isinstance(o, int) else DYNAMIC for o in offsets),
        static_sizes=sizes,
        static_strides=steps,
    ).result


def _offset(part: Any) -> Any:
    if isinstance(part, slice):
        return part.start
    return int(part) if part.is_constant() else part


def _view_type(of: MemRefType, offsets: list[Any], sizes: tuple[int, ...], steps: tuple[int, ...]) -> MemRefType:
    outer = strides_of(of)
    dynamic = of.dynamic_offset or not all(isinstance(o, int) for o in offsets)
    offset = 0 if dynamic else of.offset + sum(o * s for o, s in zip(offsets, outer))
    strides = tuple(a * b for a, b in zip(outer, steps))
    if strides == contiguous(sizes) and offset == 0 and not dynamic:
        return MemRefType(sizes, of.element, space=of.space)
    return MemRefType(sizes, of.element, offset, strides, dynamic, of.space)


def contiguous(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Row-major strides in elements."""
    return tuple(math.prod(shape[i + 1 :]) for i in range(len(shape)))


def strides_of(of: MemRefType) -> tuple[int, ...]:
    """A memref's strides in elements, also where its type leaves them out."""
    return contiguous(of.shape) if of.strides is None else of.strides

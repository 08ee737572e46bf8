"""The walk of a DMA through memory: which elements a buffer descriptor touches, in which order.

A walk starts at element ``offset`` and is written as ``dims``: (size, stride) pairs in elements, outermost first, as in
layout transforms and access patterns. ``[(2, 8), (3, 1)]`` at offset 4 visits 4 5 6 12 13 14. No pairs means contiguous.

A descriptor moves ``length`` elements whatever its sizes say. The hardware does not store the size of the outermost
dimension (Xilinx/aie-rt driver/src/dma/xaie_dma_aieml.c: the last dimension of a tile has a step but no wrap), so a walk
that is shorter than the length goes on: a DMA with a dimension to spare steps that one, whose step is one 4-byte word
unless set; a DMA whose dimensions are all used steps the outermost one further.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from npusim.errors import DesignError, UnsupportedError

Array = np.ndarray[Any, np.dtype[Any]]
Dims = tuple[tuple[int, int], ...]
Pad = tuple[tuple[int, int], ...]
"""Elements put in (before, after) each dimension, outermost first."""

WORD = 4
"""Bytes that a DMA addresses at once, and the step of a dimension that a descriptor does not set."""


def indices(offset: int, sizes: Sequence[int], strides: Sequence[int]) -> npt.NDArray[np.int64]:
    """The flat indices of the elements of a walk, in order: 1-D, ``prod(sizes)`` long. No bounds check."""
    index = np.array(offset, dtype=np.int64)
    for size, stride in zip(sizes, strides, strict=True):
        index = index[..., np.newaxis] + np.arange(size, dtype=np.int64) * stride
    return index.reshape(-1)


def view(flat: Array, offset: int, dims: Dims) -> Array:
    """A strided view of the 1-D contiguous array ``flat``: entry (i, j, ...) is the element at i*stride0 + j*stride1 + ...

    Writing to it writes to ``flat``; where a walk visits an element twice, the order of such writes is not defined (use
    :func:`scatter`). DesignError if the walk leaves the array.
    """
    plan = _plan(math.prod(size for size, _ in dims), dims, (), flat.itemsize, len(dims))
    _check(plan, offset, flat.size)
    shape = tuple(size for size, _ in dims)
    return _strided(flat, offset, shape, tuple(stride * flat.itemsize for _, stride in dims))


def gather(
    flat: Array,
    offset: int,
    length: int,
    dims: Dims = (),
    pad: Pad = (),
    pad_value: int | float = 0,
    *,
    dimensions: int = 4,
) -> Array:
    """The ``length`` elements that a descriptor reads from the 1-D contiguous array ``flat``, as a new 1-D array.

    With ``pad`` (one pair a dimension), ``length`` counts the elements put in, too. ``dimensions`` is how many the DMA
    has (3 on compute and shim tiles, 4 on MemTiles). DesignError if the walk leaves the array.
    """
    plan = _plan(length, dims, pad, flat.itemsize, dimensions)
    _check(plan, offset, flat.size)
    if plan.contiguous:
        return flat[offset : offset + length].copy()
    if plan.strided:
        return _strided(flat, offset, plan.shape, plan.byte_strides).flatten()
    if plan.padding is None:
        return flat[plan.elements + offset]
    out = np.full(length, pad_value, dtype=flat.dtype)
    out[plan.padding] = flat[plan.elements + offset]
    return out


def scatter(flat: Array, offset: int, length: int, dims: Dims, data: Array, *, dimensions: int = 4) -> None:
    """Write the ``length`` elements of ``data`` (1-D) to where a descriptor puts them in the 1-D contiguous ``flat``.

    An element that is visited twice keeps the last value. DesignError if the walk leaves the array.
    """
    plan = _plan(length, dims, (), flat.itemsize, dimensions)
    _check(plan, offset, flat.size)
    if plan.contiguous:
        flat[offset : offset + length] = data
    elif plan.strided and plan.injective:
        _strided(flat, offset, plan.shape, plan.byte_strides)[...] = data.reshape(plan.shape)
    else:
        flat[plan.elements + offset] = data


def covering(dims: Dims, length: int, itemsize: int, dimensions: int) -> Dims:
    """``dims`` extended to at least ``length`` elements the way the hardware goes on (see the module's docstring).

    ``itemsize`` in bytes; ``dimensions`` is how many the DMA has. UnsupportedError for elements wider than a word that
    would step by a part of one.
    """
    if endless(dims, itemsize):
        return ((length, 1),)
    covered = math.prod(size for size, _ in dims)
    if not dims or covered >= length:
        return dims
    passes = -(-length // covered)
    if len(dims) >= dimensions:
        return ((dims[0][0] * passes, dims[0][1]), *dims[1:])
    if WORD % itemsize:
        raise UnsupportedError(f"a transform of {covered} elements of {itemsize} bytes for an object of {length}")
    return ((passes, WORD // itemsize), *dims)


def endless(dims: Dims, itemsize: int) -> bool:
    """Whether the inner dimension never ends: a size below a word becomes 0 in the descriptor (mlir-aie's AIERT.cpp), as in
    one without dims, so the DMA reads on and steps no other dimension. Descriptors that mean something else are refused
    when they are placed."""
    return bool(dims) and dims[-1][0] * itemsize < WORD


def merged(dims: Dims) -> Dims:
    """The same walk in as few dimensions as possible: sizes of 1 dropped, dimensions that continue each other joined."""
    out: list[tuple[int, int]] = []
    for size, stride in reversed(dims):
        if size == 1:
            continue
        if out and stride == out[-1][0] * out[-1][1]:
            out[-1] = (size * out[-1][0], out[-1][1])
        else:
            out.append((size, stride))
    return tuple(reversed(out))


class _Plan(NamedTuple):
    """A walk worked out: ``reach`` is its highest index (from offset 0, lowest 0), the rest how to run it fastest."""

    reach: int
    contiguous: bool = False
    strided: bool = False
    injective: bool = False
    shape: tuple[int, ...] = ()
    byte_strides: tuple[int, ...] = ()
    elements: npt.NDArray[np.int64] = np.zeros(0, dtype=np.int64)  # from offset 0, where neither way above applies
    padding: npt.NDArray[np.int64] | None = None  # where in the stream ``elements`` go, among the padding


@lru_cache(maxsize=4096)
def _plan(length: int, dims: Dims, pad: Pad, itemsize: int, dimensions: int) -> _Plan:
    if length < 0 or any(size < 1 or stride < 0 for size, stride in dims):
        raise DesignError(f"sizes must be at least 1 and strides at least 0: length {length}, dims {list(dims)}")
    if any(pair != (0, 0) for pair in pad):
        return _padded(length, dims, pad)
    full = covering(dims, length, itemsize, dimensions)
    simple = merged(full) if full else ((length, 1),)
    if length == math.prod(size for size, _ in simple):
        return _whole(length, simple, itemsize)
    elements = _elements(full)[:length]
    return _Plan(int(elements.max(initial=0)), elements=elements)


def _whole(length: int, dims: Dims, itemsize: int) -> _Plan:
    """The plan of a walk that takes every step of its (merged) dims."""
    reach = sum((size - 1) * stride for size, stride in dims)
    if length <= 1 or dims == ((length, 1),):
        return _Plan(max(reach, length - 1), contiguous=True)
    injective = _injective(dims)
    return _Plan(
        reach,
        strided=True,
        injective=injective,
        shape=tuple(size for size, _ in dims),
        byte_strides=tuple(stride * itemsize for _, stride in dims),
        elements=np.zeros(0, dtype=np.int64) if injective else _elements(dims),
    )


def _injective(dims: Dims) -> bool:
    """Whether it is certain that no element is visited twice: each stride steps over all that the smaller ones reach."""
    reach = 0
    for size, stride in sorted(dims, key=lambda pair: pair[1]):
        if stride <= reach:
            return False
        reach += (size - 1) * stride
    return True


def _padded(length: int, dims: Dims, pad: Pad) -> _Plan:
    if len(pad) != len(dims):
        raise DesignError(
            f"padding needs one (before, after) pair a dimension: {len(pad)} pairs, {len(dims)} dimensions"
        )
    if any(n < 0 for pair in pad for n in pair):
        raise DesignError(f"padding must not be negative: {list(pad)}")
    widths = [size + before + after for (size, _), (before, after) in zip(dims, pad, strict=True)]
    if length > math.prod(widths):
        raise DesignError(f"a padded walk of {math.prod(widths)} elements ({list(dims)} with {list(pad)}) for {length}")
    steps = [math.prod(widths[i + 1 :]) for i in range(len(widths))]
    first = sum(before * step for (before, _), step in zip(pad, steps, strict=True))
    position = indices(first, [size for size, _ in dims], steps)
    kept = position < length
    elements = _elements(dims)[kept]
    return _Plan(int(elements.max(initial=0)), elements=elements, padding=position[kept])


def _elements(dims: Dims) -> npt.NDArray[np.int64]:
    return indices(0, [size for size, _ in dims], [stride for _, stride in dims])


def _check(plan: _Plan, offset: int, size: int) -> None:
    if offset < 0 or offset + plan.reach >= size:
        raise DesignError(f"a DMA walk reaches elements {offset} to {offset + plan.reach} of an array of {size}")


def _strided(flat: Array, offset: int, shape: tuple[int, ...], byte_strides: tuple[int, ...]) -> Array:
    """A view made by hand: ten times faster than numpy.lib.stride_tricks, for an array that is known to be contiguous."""
    return np.ndarray(shape, flat.dtype, flat, offset * flat.itemsize, byte_strides)

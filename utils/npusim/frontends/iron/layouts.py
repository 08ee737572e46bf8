"""Layout transforms, paddings and depths as IRON spells them, checked and turned into the graph's tuples."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from npusim.errors import DesignError, UnsupportedError
from npusim.frontends.tracing import DesignTypeError
from npusim.graph import Dims
from npusim.types import MemRefType

StreamDims = list[Sequence[int]]
PadDims = list[Sequence[int]]


def stream_dims(dims: Any, what: str) -> Dims:
    """``[(size, stride), ...]``, outermost first, in elements. Only a list of tuples will do, as in the real package."""
    pairs = _pairs(dims, what, "(size, stride)")
    for size, stride in pairs:
        if size < 1 or stride < 0:
            raise DesignError(f"{what}: ({size}, {stride}) needs a size of at least 1 and a stride of at least 0")
    return pairs


def pad_dims(dims: Any, what: str) -> Dims:
    """``[(before, after), ...]``, outermost first, in elements."""
    pairs = _pairs(dims, what, "(before, after)")
    if any(n < 0 for pair in pairs for n in pair):
        raise DesignError(f"{what}: paddings {list(pairs)} must not be negative")
    return pairs


def _pairs(dims: Any, what: str, spelling: str) -> Dims:
    if dims is None:
        return ()
    if not isinstance(dims, list) or not all(isinstance(d, tuple) for d in dims):
        raise DesignError(
            f"{what} must be a list of tuples [{spelling}, ...], outermost first, got {dims!r}: other sequences, also "
            "lists of lists and tuples of tuples, are refused by the real tools"
        )
    for d in dims:
        if len(d) != 2:
            raise DesignTypeError(f"{what}: {d} must be a pair {spelling}")
        if not all(isinstance(n, (int, np.integer)) and not isinstance(n, bool) for n in d):
            raise DesignError(f"{what}: {d} must hold ints")
    return tuple((int(a), int(b)) for a, b in dims)


def array_type(spelled: Any, what: str) -> MemRefType:
    """The memref of ``np.ndarray[(sizes...), np.dtype[element]]``; errors say of ``what``."""
    try:
        return MemRefType.of(spelled)
    except (DesignError, UnsupportedError) as error:
        raise type(error)(f"{what}: {error}") from None


def flatten_fn_args(args: Any) -> Any:
    """Every leaf of nested lists and tuples, in order."""
    for arg in args:
        if isinstance(arg, (list, tuple)):
            yield from flatten_fn_args(arg)
        else:
            yield arg

"""What a walk makes of an array, in numpy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

Dims = Sequence[tuple[int, int]]


def indices(dims: Dims) -> Any:
    """The elements that (size, stride) pairs, outermost first, visit in order; shape (all of them,)."""
    index = np.zeros(1, np.int64)
    for size, stride in dims:
        index = np.add.outer(index, stride * np.arange(size))
    return index.ravel()


def walk(x: Any, dims: Dims = (), pad: Sequence[tuple[int, int]] = (), repeat: int = 1) -> Any:
    """What leaves the tile: the elements of ``x`` in the order of ``dims``, with zeros around, ``repeat`` times. A 1-D array."""
    moved = np.ravel(x)[indices(dims)] if dims else np.ravel(x)
    if pad:
        moved = np.pad(moved.reshape([size for size, _ in dims] or np.shape(x)), list(pad)).ravel()
    return np.tile(moved, repeat)

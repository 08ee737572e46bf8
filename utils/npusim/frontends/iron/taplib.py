"""Tensor access patterns: which elements of a host array a transfer touches, in order (``aie.helpers.taplib``).

A :class:`TensorAccessPattern` is a walk (offset, sizes, strides; outermost first) over a tensor; a
:class:`TensorAccessSequence` is a list of them over one tensor; :class:`TensorTiler2D` makes the sequences of the common
tilings of a matrix. A 1-D tensor counts as a matrix of one row. All refuse nonsense with a DesignError (a ValueError).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Iterator, MutableSequence, Sequence
from copy import deepcopy
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from npusim import walk
from npusim.errors import DesignError, UnsupportedError

Ints = Sequence[int]
Map = npt.NDArray[np.int32]
"""A number for each element of a tensor."""


class TensorAccessPattern:
    """A walk over a tensor of shape ``tensor_dims``, from flat element ``offset`` with ``sizes`` and ``strides``.

    Indices beyond the tensor wrap round in what the methods say; a transfer that uses such a pattern is refused.
    """

    __hash__ = None  # type: ignore[assignment]  # as in the real package: compared by value, so not hashable

    def __init__(self, tensor_dims: Ints, offset: int, sizes: Ints, strides: Ints) -> None:
        self._tensor_dims = checked_tensor_dims(tensor_dims)
        self._offset = checked_offset(offset, self._tensor_dims)
        self._sizes, self._strides = checked_walk(sizes, strides)

    @property
    def tensor_dims(self) -> Ints:
        """Shape of the tensor in elements (a copy)."""
        return deepcopy(self._tensor_dims)

    @property
    def offset(self) -> int:
        """Flat element at which the walk starts."""
        return self._offset

    @property
    def sizes(self) -> Ints:
        """Steps of each dimension of the walk, outermost first (a copy)."""
        return deepcopy(self._sizes)

    @property
    def strides(self) -> Ints:
        """Elements between two steps of each dimension (a copy)."""
        return deepcopy(self._strides)

    @property
    def transformation_dims(self) -> Sequence[tuple[int, int]]:
        """The walk as (size, stride) pairs."""
        return list(zip(self._sizes, self._strides))

    def accesses(self) -> tuple[np.ndarray, np.ndarray]:
        """(:meth:`access_order`, :meth:`access_count`)."""
        return self.access_order(), self.access_count()

    def access_order(self) -> np.ndarray:
        """For each element of the tensor the step at which it is touched last, -1 for never. Shape ``tensor_dims``."""
        order = np.full(math.prod(self._tensor_dims), -1, dtype=np.int32)
        touched = self._indices()
        order[touched] = np.arange(touched.size)
        return order.reshape(self._tensor_dims)

    def access_count(self) -> np.ndarray:
        """For each element of the tensor how often it is touched. Shape ``tensor_dims``."""
        count = np.bincount(self._indices(), minlength=math.prod(self._tensor_dims))
        return count.astype(np.int32).reshape(self._tensor_dims)

    def access_generator(self) -> Generator[int, None, None]:
        """The flat indices of the elements touched, in order."""
        yield from self._indices().tolist()

    def compare_access_orders(self, other: TensorAccessPattern) -> bool:
        """Whether ``other`` touches the same flat indices in the same order, however it is written."""
        if not isinstance(other, TensorAccessPattern):
            raise DesignError("Can only compare access order against another TensorAccessPattern")
        return np.array_equal(self._indices(), other._indices())

    def visualize(
        self,
        show_arrows: bool | None = None,
        title: str | None = None,
        file_path: str | None = None,
        show_plot: bool = True,
        plot_access_count: bool = False,
    ) -> None:
        """Not served here: raises UnsupportedError that names what draws patterns."""
        _no_plots("TensorAccessPattern.visualize")

    def _indices(self) -> npt.NDArray[np.int64]:
        return walk.indices(self._offset, self._sizes, self._strides) % math.prod(self._tensor_dims)

    def __str__(self) -> str:
        return (
            f"TensorAccessPattern({self.tensor_dims} offset={self._offset}, "
            f"sizes={self._sizes}, strides={self._strides})"
        )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, TensorAccessPattern):
            return False
        mine = (self._tensor_dims, self._offset, self._sizes, self._strides)
        return mine == (other._tensor_dims, other._offset, other._sizes, other._strides)


class TensorAccessSequence(MutableSequence[TensorAccessPattern]):
    """A list of patterns over one tensor. The constructor makes ``num_steps`` of them.

    ``offset``, ``sizes`` and ``strides`` are either constant or the start of a series, each next value being
    ``..._fn(step, previous)``.
    """

    __hash__ = None  # type: ignore[assignment]

    def __init__(
        self,
        tensor_dims: Ints,
        num_steps: int,
        offset: int | None = None,
        sizes: Ints | None = None,
        strides: Ints | None = None,
        offset_fn: Callable[[int, int], int] | None = None,
        sizes_fn: Callable[[int, Ints], Ints] | None = None,
        strides_fn: Callable[[int, Ints], Ints] | None = None,
    ) -> None:
        self._tensor_dims = checked_tensor_dims(tensor_dims)
        self._taps: list[TensorAccessPattern] = []
        if num_steps < 0:
            raise DesignError(f"Number of steps must be positive (but is {num_steps})")
        given = (offset, sizes, strides, offset_fn, sizes_fn, strides_fn)
        if num_steps == 0 and any(value is not None for value in given):
            raise DesignError("If num_steps=0, no sizes/strides/offset information may be specified")
        if num_steps == 0:
            return
        offsets = _series("Offset", "offset_fn", num_steps, offset, offset_fn)
        all_sizes = _series("Sizes", "size_fn", num_steps, sizes, sizes_fn)
        all_strides = _series("Strides", "stride_fn", num_steps, strides, strides_fn)
        self._taps = [TensorAccessPattern(self._tensor_dims, *walk) for walk in zip(offsets, all_sizes, all_strides)]

    @classmethod
    def from_taps(cls, taps: Sequence[TensorAccessPattern]) -> TensorAccessSequence:
        """The sequence of the given patterns (at least one, all over the same tensor)."""
        if len(taps) < 1:
            raise DesignError(
                "Received no TensorAccessPatterns; must have at least one TensorAccessPatterns "
                "to create a TensorAccessSequence."
            )
        sequence = cls(taps[0].tensor_dims, num_steps=0)
        for tap in taps:
            sequence.append(tap)
        return sequence

    def accesses(self) -> tuple[np.ndarray, np.ndarray]:
        """(:meth:`access_order`, :meth:`access_count`)."""
        return self.access_order(), self.access_count()

    def access_order(self) -> np.ndarray:
        """Like the patterns' one after the other; elements that several touch add up their numbers (as in the original)."""
        order = np.zeros(self._tensor_dims, dtype=np.int32)
        for tap in self._taps:
            own = tap.access_order()
            order += np.where(own == -1, 0, own + 1 + order.max())
        return order - 1

    def access_count(self) -> np.ndarray:
        """For each element of the tensor how often the patterns touch it together."""
        return sum((tap.access_count() for tap in self._taps), np.zeros(self._tensor_dims, dtype=np.int32))

    def compare_access_orders(self, other: TensorAccessSequence) -> bool:
        """Whether both have equally many patterns that touch the same elements in the same order, pair by pair."""
        return len(self) == len(other) and all(a.compare_access_orders(b) for a, b in zip(self, other))

    def visualize(
        self,
        title: str | None = None,
        file_path: str | None = None,
        show_plot: bool = True,
        plot_access_count: bool = False,
    ) -> None:
        """Not served here: raises UnsupportedError that names what draws patterns."""
        _no_plots("TensorAccessSequence.visualize")

    def animate(self, title: str | None = None, animate_access_count: bool = False) -> Any:
        """Not served here: raises UnsupportedError that names what draws patterns."""
        _no_plots("TensorAccessSequence.animate")

    def insert(self, index: int, value: TensorAccessPattern) -> None:
        self._taps.insert(index, self._fitting(value))

    def _fitting(self, tap: TensorAccessPattern) -> TensorAccessPattern:
        if self._tensor_dims != tap.tensor_dims:
            raise DesignError(
                f"Cannot add TensorAccessPattern with tensor dims {tap.tensor_dims} to TensorAccessSequence "
                f"with tensor dims {self._tensor_dims}"
            )
        return tap

    def __contains__(self, tap: object) -> bool:
        return tap in self._taps

    def __iter__(self) -> Iterator[TensorAccessPattern]:
        return iter(self._taps)

    def __len__(self) -> int:
        return len(self._taps)

    def __getitem__(self, idx: Any) -> Any:
        return self._taps[idx]

    def __setitem__(self, idx: Any, tap: Any) -> None:
        self._taps[idx] = deepcopy(self._fitting(tap))

    def __delitem__(self, idx: Any) -> None:
        del self._taps[idx]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TensorAccessSequence) and self._taps == other._taps


def _series(what: str, function: str, steps: int, start: Any, fn: Callable[[int, Any], Any] | None) -> list[Any]:
    if fn is None:
        if start is None:
            raise DesignError(f"{what} must be provided if {function} is None")
        return [start] * steps
    values = []
    for step in range(steps):
        start = fn(step, start)
        values.append(start)
    return values


def _no_plots(what: str) -> NoReturn:
    raise UnsupportedError(f"{what} is not served by the simulated NPU; npulab.draw.pattern draws access patterns")


def checked_tensor_dims(tensor_dims: Ints, expected_dims: int | None = None) -> Ints:
    """A copy of a shape, a 1-D one as a list [1, n]; DesignError unless all sizes are at least 1."""
    dims = deepcopy(tensor_dims)
    if len(dims) == 0:
        raise DesignError(f"Number of tensor dimensions must be >= 1 (dimensions={dims})")
    if any(size <= 0 for size in dims):
        raise DesignError(f"Each tensor dimension must be >= 1 (dimensions={dims})")
    if len(dims) == 1:
        dims = [1, dims[0]]
    if expected_dims is not None and len(dims) != expected_dims:
        raise DesignError(f"Tensor dimension ({dims}) does not match expected dimension ({expected_dims})")
    return dims


def checked_offset(offset: int, tensor_dims: Ints) -> int:
    """The offset; DesignError unless it is an element of the tensor."""
    if offset < 0:
        raise DesignError(f"Offset must be >= 0 (offset={offset})")
    if offset >= math.prod(tensor_dims):
        raise DesignError(f"Offset too large: {offset}. Max value allowed for tensor: {math.prod(tensor_dims)}")
    return offset


def checked_walk(sizes: Ints, strides: Ints) -> tuple[Ints, list[int]]:
    """Copies of sizes and strides, strides of leading dimensions of size 1 set to 0; DesignError for nonsense."""
    if len(sizes) == 0 or len(strides) == 0:
        raise DesignError(f"len({'sizes' if len(sizes) == 0 else 'strides'}) must be >0")
    if len(sizes) != len(strides):
        raise DesignError(f"len(sizes) ({len(sizes)}) != len(strides) ({len(strides)})")
    if any(size < 1 for size in sizes):
        raise DesignError(f"All sizes must be >= 1, but got {sizes}")
    if any(stride < 0 for stride in strides):
        raise DesignError(f"All strides must be >= 0, but got {strides}")
    cleaned = list(strides)
    for i in range(len(sizes) - 1):
        if sizes[i] != 1:
            break
        cleaned[i] = 0
    return deepcopy(sizes), cleaned

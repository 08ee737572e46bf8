"""The common tilings of a matrix as sequences of access patterns (``TensorTiler2D`` of ``aie.helpers.taplib``)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import NamedTuple

from npusim.errors import DesignError
from npusim.frontends.iron.taplib import TensorAccessPattern, TensorAccessSequence, checked_tensor_dims, checked_walk

Ints = Sequence[int]


class TensorTiler2D:
    """Makes sequences of access patterns that cover a matrix by tiles of ``tile_dims`` elements. Not to be instantiated.

    A pattern covers a group of tiles. ``tile_col_major`` walks a tile column by column, ``tile_group_col_major`` the tiles
    of a group, ``iter_col_major`` the groups. Each pattern is done ``pattern_repeat`` times. ``prune_step`` writes tiles
    that continue each other as one.
    """

    def __init__(self) -> None:
        raise DesignError(f"{type(self)} cannot be instantiated. Use it as a factory of TensorAccessSequences.")

    @classmethod
    def simple_tiler(
        cls,
        tensor_dims: Ints,
        tile_dims: Ints | None = None,
        tile_col_major: bool = False,
        iter_col_major: bool = False,
        pattern_repeat: int = 1,
        prune_step: bool = True,
    ) -> TensorAccessSequence:
        """One pattern a tile; without ``tile_dims`` the whole tensor is one tile."""
        return cls.group_tiler(
            tensor_dims,
            tensor_dims if tile_dims is None else tile_dims,
            tile_col_major=tile_col_major,
            iter_col_major=iter_col_major,
            pattern_repeat=pattern_repeat,
            prune_step=prune_step,
        )

    @classmethod
    def group_tiler(
        cls,
        tensor_dims: Ints,
        tile_dims: Ints,
        tile_group_dims: Ints | None = None,
        tile_col_major: bool = False,
        tile_group_col_major: bool = False,
        iter_col_major: bool = False,
        pattern_repeat: int = 1,
        allow_partial: bool = False,
        prune_step: bool = True,
    ) -> TensorAccessSequence:
        """One pattern a group of ``tile_group_dims`` neighbouring tiles."""
        return cls.step_tiler(
            tensor_dims,
            tile_dims,
            (1, 1) if tile_group_dims is None else tile_group_dims,
            tile_col_major=tile_col_major,
            tile_group_col_major=tile_group_col_major,
            iter_col_major=iter_col_major,
            pattern_repeat=pattern_repeat,
            allow_partial=allow_partial,
            prune_step=prune_step,
        )

    @classmethod
    def step_tiler(
        cls,
        tensor_dims: Ints,
        tile_dims: Ints,
        tile_group_repeats: Ints,
        tile_group_steps: Ints | None = None,
        tile_col_major: bool = False,
        tile_group_col_major: bool = False,
        iter_col_major: bool = False,
        allow_partial: bool = False,
        pattern_repeat: int = 1,
        prune_step: bool = True,
    ) -> TensorAccessSequence:
        """One pattern a group of ``tile_group_repeats`` tiles that lie ``tile_group_steps`` tiles apart.

        DesignError if a tile does not divide the tensor; if groups do not divide it and ``allow_partial`` is not set; if a
        pattern with its repeat needs more than four dimensions.
        """
        tensor, tile, repeats, steps = (
            checked_tensor_dims(dims, 2)
            for dims in (tensor_dims, tile_dims, tile_group_repeats, tile_group_steps or (1, 1))
        )
        if not isinstance(pattern_repeat, int) or pattern_repeat < 1:
            raise DesignError(f"Pattern repeat must be >= 1 but is {pattern_repeat}")
        for axis in range(2):
            _check_axis(axis, tensor[axis], tile[axis], repeats[axis], steps[axis], allow_partial)
        rows, cols = (_Axis.of(*axis) for axis in zip(tensor, tile, repeats, steps))
        order = [(r, c) for r, c in product(rows.starts(), cols.starts())]
        if iter_col_major:
            order.sort(key=lambda start: start[1])
        group = _Group(tensor[1], tile_col_major, tile_group_col_major, prune_step, pattern_repeat)
        taps = [
            TensorAccessPattern(
                tensor, r * tile[0] * tensor[1] + c * tile[1], *group.walk(rows.group_at(r), cols.group_at(c))
            )
            for r, c in order
        ]
        return TensorAccessSequence.from_taps(taps)


def _check_axis(axis: int, tensor: int, tile: int, repeat: int, step: int, allow_partial: bool) -> None:
    if tensor % tile:
        raise DesignError(f"Tensor dimension {axis} ({tensor}) is not divisible by tile dim ({tile})")
    if not allow_partial and tensor % (tile * repeat * step):
        raise DesignError(
            f"allow_partial={allow_partial} but tensor does not divide evenly into tile groups in dimension {axis}"
        )


class _Span(NamedTuple):
    """One axis of a group: ``repeat`` tiles of ``tile`` elements, each ``step`` tiles after the one before."""

    tile: int
    repeat: int
    step: int


class _Axis(NamedTuple):
    """How one axis of the tensor is cut: ``tiles`` tiles of ``tile`` elements, in groups of ``repeat`` by ``step``."""

    tiles: int
    tile: int
    repeat: int
    step: int

    @classmethod
    def of(cls, tensor: int, tile: int, repeat: int, step: int) -> _Axis:
        """Repeats and steps cut down to what the tensor has."""
        tiles = tensor // tile
        return cls(tiles, tile, min(repeat, -(-tiles // step)), step if step <= tiles else 1)

    def starts(self) -> list[int]:
        """The first tile of each group: groups interleave within a block of repeat * step tiles."""
        block = self.repeat * self.step
        whole = self.tiles // block
        inside = [b * block + i for b in range(whole) for i in range(self.step)]
        rest = self.tiles - whole * block
        return inside + [whole * block + i for i in range(min(self.step, rest))]

    def group_at(self, start: int) -> _Span:
        """The group that starts at a tile, cut at the tensor's edge."""
        left = self.tiles - start
        return _Span(self.tile, min(self.repeat, -(-left // self.step)), self.step if self.step <= left else 1)


class _Group(NamedTuple):
    """How the walk over a group is written. ``width`` is the tensor's, in elements."""

    width: int
    tile_col_major: bool
    group_col_major: bool
    prune: bool
    pattern_repeat: int

    def walk(self, rows: _Span, cols: _Span) -> tuple[list[int], list[int]]:
        """Sizes and strides of the four dimensions: group, group, tile, tile."""
        if self.prune:
            rows, cols = self._joined(rows, cols)
        inner = [(rows.tile, self.width), (cols.tile, 1)]
        outer = [(rows.repeat, self.width * rows.tile * rows.step), (cols.repeat, cols.tile * cols.step)]
        if self.tile_col_major:
            inner.reverse()
        if self.group_col_major:
            outer.reverse()
        used = [pair for pair in outer if pair[0] > 1]
        dims = [(1, 0)] * (2 - len(used)) + used + inner
        sizes = [size for size, _ in dims]
        _, strides = checked_walk(sizes, [stride for _, stride in dims])
        if self.pattern_repeat != 1:
            # Only the outermost dimension of a shim DMA may repeat (stride 0), so the repeat always goes there.
            if sizes[0] != 1:
                raise DesignError(f"Ran out of dimensions for repeat (sizes={sizes}, strides={strides})")
            sizes[0] = self.pattern_repeat
        return sizes, strides

    def _joined(self, rows: _Span, cols: _Span) -> tuple[_Span, _Span]:
        """Tiles that follow each other in the direction of the walk as one larger tile."""
        if self.group_col_major and not self.tile_col_major and rows.step == 1:
            return _Span(rows.tile * rows.repeat, 1, 1), cols
        if not self.group_col_major and self.tile_col_major and cols.step == 1:
            return rows, _Span(cols.tile * cols.repeat, 1, 1)
        return rows, cols

"""An access pattern or layout transform: in which order its elements are visited, how often, and as a strip of frames."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from npulab.draw.svg import Canvas, Picture, fit, number

CELLS = 64  # at most so many cells along a side; beyond that, cells stand for blocks of elements
SHADES = 12

Dims = Sequence[tuple[int, int]]
Ints = np.ndarray[Any, np.dtype[np.int64]]


def walk(dims: Dims, offset: int = 0) -> Ints:
    """The element indices that sizes and strides (outermost first) visit, in order."""
    index = np.array([offset], dtype=np.int64)
    for size, stride in dims:
        index = (index[:, None] + np.arange(size, dtype=np.int64) * stride).ravel()
    return index


def _one(of: Any) -> tuple[Dims, int, tuple[int, ...] | None]:
    """(dims, offset, shape) of a tensor access pattern, or of a list of (size, stride)."""
    if hasattr(of, "sizes") and hasattr(of, "strides"):
        shape = getattr(of, "tensor_dims", None)
        return (
            list(zip(of.sizes, of.strides)),
            int(getattr(of, "offset", 0)),
            tuple(shape) if shape is not None else None,
        )
    dims = [(int(size), int(stride)) for size, stride in of]
    return dims, 0, None


def _patterns(of: Any) -> list[Any]:
    """A sequence of access patterns (a tiler's result) as a list; a single one as a list of one."""
    if hasattr(of, "sizes"):
        return [of]
    items = list(of)
    return items if items and all(hasattr(i, "sizes") for i in items) else [items]


def _grid(shape: tuple[int, ...] | None, indices: Ints) -> tuple[int, int]:
    """Rows and columns of the picture: the last dimension across, the others down."""
    if shape is None:
        shape = (int(indices.max()) + 1,)
    size = math.prod(shape)
    if len(shape) > 1:
        return size // shape[-1], shape[-1]
    if size <= 32:
        return 1, size
    across = next((w for w in (32, 64, 16) if size % w == 0), 32)
    return -(-size // across), across


class _Field:
    """Values on the grid, averaged over blocks where there are too many elements."""

    def __init__(self, rows: int, cols: int) -> None:
        self.rows, self.cols = rows, cols
        self.block_r, self.block_c = -(-rows // CELLS), -(-cols // CELLS)
        self.high, self.wide = -(-rows // self.block_r), -(-cols // self.block_c)

    def mean(self, values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """Block means of a flat array with NaN where there is nothing."""
        full = np.full((self.high * self.block_r, self.wide * self.block_c), np.nan)
        full[: self.rows, : self.cols] = np.resize(values, (self.rows, self.cols))
        blocks = full.reshape(self.high, self.block_r, self.wide, self.block_c)
        seen = np.isfinite(blocks).sum(axis=(1, 3))
        total = np.nansum(blocks, axis=(1, 3))
        return np.where(seen > 0, total / np.maximum(seen, 1), np.nan)


def _cells(c: Canvas, x: float, y: float, cell: float, shade: np.ndarray[Any, Any], hue: str) -> None:
    """Cells from 0 (light) to 1 (strong), as one path a shade; NaN stays empty."""
    high, wide = shade.shape
    c.rect(x, y, wide * cell, high * cell, "well")
    level = np.where(np.isfinite(shade), np.clip(np.ceil(shade * SHADES), 1, SHADES), 0).astype(int)
    gap = 0.8 if cell >= 7 else 0.0
    tall = number(cell - gap)
    for step in range(1, SHADES + 1):
        d = []
        for row, start, length in _runs(level == step, apart=gap > 0):
            wide = number(length * cell - gap)
            d.append(f"M{number(x + start * cell)} {number(y + row * cell)}h{wide}v{tall}h-{wide}z")
        if d:
            sharp = {} if gap else {"shape_rendering": "crispEdges"}  # no seams between cells that touch
            c.path("".join(d), f"f-{hue}", fill_opacity=0.1 + 0.85 * step / SHADES, **sharp)


def _runs(marked: np.ndarray[Any, Any], *, apart: bool) -> Iterator[tuple[int, int, int]]:
    """(row, first column, length) of the marked cells, neighbours in a row together unless they are to be seen apart."""
    if apart:
        yield from ((row, col, 1) for row, col in np.argwhere(marked).tolist())
        return
    edges = np.diff(np.pad(marked.astype(np.int8), ((0, 0), (1, 1))), axis=1)
    starts, stops = np.argwhere(edges == 1).tolist(), np.argwhere(edges == -1).tolist()
    yield from ((row, start, stop - start) for (row, start), (_, stop) in zip(starts, stops))


class _Pattern:
    """One drawing in progress."""

    def __init__(self, items: list[Any], shape: tuple[int, ...] | None) -> None:
        pieces = [_one(item) for item in items]
        self.dims = pieces[0][0]
        self.visits = [walk(dims, offset) for dims, offset, _ in pieces]
        self.indices = np.concatenate(self.visits)
        shape = shape or pieces[0][2]
        self.rows, self.cols = _grid(shape, self.indices)
        size = self.rows * self.cols if shape is None else math.prod(shape)
        if not len(self.indices) or self.indices.min() < 0 or self.indices.max() >= size:
            low, high = int(self.indices.min()), int(self.indices.max())
            raise ValueError(
                f"the pattern visits elements {low} to {high}, but shape {shape} has elements 0 to {size - 1}"
            )
        self.field = _Field(self.rows, self.cols)
        self.first = np.full(self.rows * self.cols, np.nan)
        self.first[self.indices[::-1]] = np.arange(len(self.indices))[::-1]
        self.count = np.bincount(self.indices, minlength=self.rows * self.cols)

    def order(self, c: Canvas, x: float, y: float, cell: float) -> None:
        shade = (self.field.mean(self.first) + 1) / len(self.indices)
        _cells(c, x, y, cell, shade, "blue")
        if self.field.block_r != 1 or self.field.block_c != 1:
            return
        if 2 <= len(self.indices) <= 300:
            self.way(c, x, y, cell)
        if cell >= 17 and len(self.indices) < 1000:
            self.numbers(c, x, y, cell, self.first, len(self.indices))

    def numbers(self, c: Canvas, x: float, y: float, cell: float, values: np.ndarray[Any, Any], top: float) -> None:
        """The values in their cells, where there is one; light on strong cells."""
        for i in np.flatnonzero(np.isfinite(values)).tolist():
            px, py = x + (i % self.cols + 0.5) * cell - 0.4, y + (i // self.cols + 0.5) * cell + 3
            c.text(px, py, str(int(values[i])), "tiny on" if values[i] / top > 0.5 else "tiny", "middle")

    def way(self, c: Canvas, x: float, y: float, cell: float) -> None:
        """A thin line from each element to the next one."""
        at = [(x + (i % self.cols + 0.5) * cell, y + (i // self.cols + 0.5) * cell) for i in self.indices.tolist()]
        d = "M" + "L".join(f"{number(px)} {number(py)}" for px, py in at)
        c.path(d, "wire s-orange", stroke_width=1.2, stroke_opacity=0.6)
        c.circle(*at[0], min(cell * 0.36, 8.0), "wire s-orange", stroke_width=1.4)

    def counts(self, c: Canvas, x: float, y: float, cell: float) -> None:
        top = max(int(self.count.max()), 4)
        values = np.where(self.count > 0, self.count, np.nan)
        _cells(c, x, y, cell, self.field.mean(values) / top, "green")
        if self.field.block_r == self.field.block_c == 1 and cell >= 13 and self.rows * self.cols <= 400:
            self.numbers(c, x, y, cell, values, top)

    def frames(self, n: int) -> list[tuple[str, Ints, Ints]]:
        """(caption, visited before, visited in this frame): one an access pattern of a sequence, else equal parts."""
        if len(self.visits) > 1:
            parts, names = self.visits[:n], [f"pattern {i}" for i in range(min(n, len(self.visits)))]
        else:
            parts = np.array_split(self.indices, min(n, len(self.indices)))
            ends = np.cumsum([len(p) for p in parts])
            names = [f"{e - len(p)} to {e - 1}" for p, e in zip(parts, ends)]
        before = np.array([], dtype=np.int64)
        found = []
        for name, part in zip(names, parts):
            found.append((name, before, part))
            before = np.concatenate([before, part])
        return found

    def frame(self, c: Canvas, x: float, y: float, cell: float, before: Ints, now: Ints) -> None:
        past, new = (np.zeros(self.rows * self.cols) for _ in range(2))
        past[before], new[now] = 0.35, 1.0
        past, new = self.field.mean(past), self.field.mean(new)
        _cells(c, x, y, cell, np.where(past > 0, past, np.nan), "blue")
        _cells(c, x, y, cell, np.where(new > 0, new, np.nan), "orange")

    def words(self) -> str:
        most, least = int(self.count.max()), int(self.count.min())
        seen = int((self.count > 0).sum())
        text = f"{len(self.indices)} visits to {seen} of {self.rows * self.cols} elements"
        return text + (
            f", each {most} times" if most == least and most > 1 else f", {least} to {most} times" if most > 1 else ""
        )


def dims_text(dims: Dims) -> str:
    """``sizes [4, 8], strides [8, 1]``."""
    return f"sizes {[s for s, _ in dims]}, strides {[s for _, s in dims]}"


def pattern(of: Any, shape: tuple[int, ...] | None = None, *, frames: int = 6, title: str | None = None) -> Picture:
    """Order and count of an access pattern, and a strip of ``frames`` pictures of its progress (0: none).

    ``of`` is a tensor access pattern (``sizes``, ``strides``, ``offset``, ``tensor_dims``), a sequence of them (one frame
    each), or the ``[(size, stride), ...]`` of a layout transform, outermost first, in elements. ``shape`` is the tensor's; for
    a pattern without one, the elements are laid out row by row.

    Raises:
        ValueError: if an element outside ``shape`` is visited.
    """
    items = _patterns(of)
    p = _Pattern(items, shape)
    cell = (
        min(28.0, 330.0 / p.field.wide, 330.0 / p.field.high) if p.field.wide <= 16 else min(330.0 / p.field.wide, 20.0)
    )
    cell = max(cell, 2.0)
    wide, high = cell * p.field.wide, cell * p.field.high
    c = Canvas(max(2 * wide + 60, 560.0), 0)
    name = title or "Access pattern"
    c.text(8, 18, name, "head")
    many = f"{len(items)} patterns, the first: " if len(items) > 1 else ""
    c.text(8, 33, fit(f"{many}{dims_text(p.dims)}; {p.words()}", c.width - 16, 10), "small faint")
    second = 8 + wide + 36
    c.text(8, 54, "order: pale first, strong last", "small")
    c.text(second, 54, "count: visits to each element", "small")
    p.order(c, 8, 62, cell)
    p.counts(c, second, 62, cell)
    c.height = _strip(c, p, 62 + high + 24, frames) if frames else 62 + high + 12
    block = (
        ""
        if p.field.block_r == p.field.block_c == 1
        else f" A cell stands for {p.field.block_r} by {p.field.block_c} elements."
    )
    first = ", ".join(map(str, p.indices[:12].tolist())) + (", ..." if len(p.indices) > 12 else "")
    alt = f"{many}{dims_text(p.dims)} on {p.rows} by {p.cols} elements: {p.words()}. Elements in order: {first}.{block}"
    return c.picture(name, alt)


def _strip(c: Canvas, p: _Pattern, y: float, frames: int) -> float:
    """The frames in rows; returns the y below."""
    shown = p.frames(frames)
    cell = max(min(104.0 / p.field.wide, 104.0 / p.field.high, 14.0), 1.0)
    wide, high = max(cell * p.field.wide, 64.0) + 14, cell * p.field.high + 26
    across = max(int((c.width - 8) // wide), 1)
    many = f" (the first {len(shown)} of {len(p.visits)} patterns)" if len(p.visits) > len(shown) else ""
    c.text(8, y, f"step by step: now in orange, before in blue{many}", "small")
    for i, (caption, before, now) in enumerate(shown):
        x, at = 8 + (i % across) * wide, y + 12 + (i // across) * high
        p.frame(c, x, at, cell, before, now)
        c.text(x, at + cell * p.field.high + 12, fit(caption, wide - 4, 9), "tiny faint")
    return y + 12 + -(-len(shown) // across) * high

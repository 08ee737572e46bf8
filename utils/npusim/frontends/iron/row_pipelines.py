"""Loops over the rows of an image, called inside a worker's core function (the other half of ``iron.algorithms``).

Each acquires what a kernel needs, calls ``do_kernel`` and releases. Weights that come by a fifo (``of_wts``) are held
throughout; without one, ``do_kernel`` gets None for them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from npusim.frontends.iron.controlflow import range_


def row_at_a_time(of_in: Any, of_out: Any, *, n_rows: int, do_kernel: Callable[..., None], of_wts: Any = None) -> None:
    """For each row ``do_kernel(row in, row out, weights)``; weights are held throughout, None without ``of_wts``."""
    row_at_a_time_tiled(of_in, of_out, n_rows=n_rows, n_tiles_per_row=None, do_kernel=do_kernel, of_wts=of_wts)


def row_at_a_time_tiled(
    of_in: Any,
    of_out: Any,
    *,
    n_rows: int,
    n_tiles_per_row: int | None,
    do_kernel: Callable[..., None],
    of_wts: Any = None,
) -> None:
    """For each tile of each row ``do_kernel(tile in, tile out, weights)``."""

    def one() -> None:
        do_kernel(of_in.acquire(1), of_out.acquire(1), weights)
        of_in.release(1)
        of_out.release(1)

    weights = None if of_wts is None else of_wts.acquire(1)
    for _ in range_(n_rows):
        if n_tiles_per_row is None:
            one()
        else:
            for _ in range_(n_tiles_per_row):
                one()
    if of_wts is not None:
        of_wts.release(1)


def row_at_a_time_with_skip(
    of_in: Any, of_out: Any, of_skip: Any, *, n_rows: int, do_kernel: Callable[..., None], of_wts: Any = None
) -> None:
    """For each row ``do_kernel(row in, row out, skip row, weights)``."""
    weights = None if of_wts is None else of_wts.acquire(1)
    for _ in range_(n_rows):
        do_kernel(of_in.acquire(1), of_out.acquire(1), of_skip.acquire(1), weights)
        for end in (of_in, of_out, of_skip):
            end.release(1)
    if of_wts is not None:
        of_wts.release(1)


def sliding_3row(
    of_in: Any, of_out: Any, *, n_out_rows: int, do_kernel: Callable[..., None], of_wts: Any = None
) -> None:
    """For each output row ``do_kernel(above, middle, below, row out, weights, border)``; edge rows stand in for missing ones.

    ``border`` is 0 for the first row, 2 for the last, else 1.
    """

    def row(window: Sequence[Any], border: int, leave: int) -> None:
        do_kernel(*window, of_out.acquire(1), weights, border)
        if leave:
            of_in.release(leave)
        of_out.release(1)

    weights = None if of_wts is None else of_wts.acquire(1)
    first = of_in.acquire(2)
    row((first[0], first[0], first[1]), 0, leave=0)
    for _ in range_(n_out_rows - 2):
        row(of_in.acquire(3), 1, leave=1)
    last = of_in.acquire(2)
    row((last[0], last[1], last[1]), 2, leave=2)
    if of_wts is not None:
        of_wts.release(1)

"""The exercises of the tiling chapter teach: its solutions pass, and each mistake that people make gets a hint that fits."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pytest

import npulab
from designs.transpose.exercises import CASES, MICRO, verdict
from designs.walk import reference as walk
from npulab.check import CheckFailed
from npusim.errors import NpuError
from npusim.frontends import finder
from tests.book.chapter import Chapter, fails, solution

PREPARED = """
import numpy as np
from aie.helpers.taplib import TensorTiler2D
from ml_dtypes import bfloat16
"""
COMPLEX = ("complex-walks", "complex-design")
CELLS: dict[str, tuple[str, ...]] = {"walks": (), "sayable": (), "buffers": (), "complex": COMPLEX}


@pytest.fixture(scope="module")
def chapter() -> Iterator[Chapter]:
    yield Chapter("tiling", "use", "checks", "complex-setup", prepared=PREPARED)
    finder.deactivate()


@pytest.mark.parametrize("exercise", CELLS)
def test_solutions_pass(chapter: Chapter, exercise: str, capsys: pytest.CaptureFixture[str]) -> None:
    chapter.attempt(exercise, *CELLS[exercise])
    assert "ok: " in capsys.readouterr().out


@pytest.mark.parametrize("exercise", CELLS)
def test_untouched_exercises_fail(chapter: Chapter, exercise: str) -> None:
    with pytest.raises(CheckFailed, match="empty"):
        chapter.untouched(exercise, *CELLS[exercise])


# ---- 1: walks

WALKS = {
    "by_columns": "[16, 16], [1, 16]",
    "bricks": "[4, 2, 4, 8], [64, 8, 16, 1]",
    "diagonal": "[16], [17]",
}


@pytest.mark.parametrize(
    ("name", "wrong", "hint"),
    [
        ("by_columns", "[16, 16], [16, 1]", "row by row, as the matrix lies in memory"),
        ("by_columns", "[16, 16], [1, 1]", "more than once"),
        ("by_columns", "[16, 16], [16, 16]", "the last element is at"),
        ("by_columns", "[16], [16]", "fewer elements"),
        ("by_columns", "[16, 16], [1]", "each size needs its stride"),
        ("by_columns", "256", "two lists"),
        ("bricks", "[4, 2, 8, 4], [64, 8, 1, 16]", "a brick is read row by row"),
        ("bricks", "[2, 4, 4, 8], [8, 64, 16, 1]", "which comes next"),
        ("bricks", "[4, 2, 4, 8], [64, 8, 8, 1]", "more than once"),
        ("bricks", "[16, 16, 4, 8], [64, 8, 16, 1]", "the sizes multiply to"),
        ("diagonal", "[16], [16]", "one to the right"),
        ("diagonal", "[16], [15]", "one to the right"),
        ("diagonal", "[16], [18]", "the last element is at"),
    ],
)
def test_walks(chapter: Chapter, name: str, wrong: str, hint: str) -> None:
    answers = {**WALKS, name: wrong}
    with fails(hint):
        chapter.attempt("walks", walks="\n".join(f"{key} = {value}" for key, value in answers.items()))


# ---- 2: what a descriptor can say


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("transpose_words", "that is two dimensions"),
        ("transpose_halves", "words of four bytes"),
        ("transpose_pairs", "a pair has four bytes"),
        ("micro_tiles", "what a MemTile's descriptor has"),
        ("micro_tiles_on_a_core", "what a compute tile's descriptor has"),
        ("backwards", "not negative"),
        ("a_border", "in bytes"),
    ],
)
def test_sayable(chapter: Chapter, name: str, hint: str) -> None:
    assert set(CASES) == set(eval(chapter.cells["sayable"].split("### BEGIN")[0].partition("=")[2]))
    turned = solution(chapter.cells["sayable"]) + f"\nanswers[{name!r}] = not answers[{name!r}]"
    with fails(hint):
        chapter.attempt("sayable", sayable=turned)


def test_verdicts_do_not_depend_on_the_order() -> None:
    assert [bool(verdict(name)) for name in reversed(CASES)] == [bool(verdict(name)) for name in CASES][::-1]


def merged(walk: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """The same order in as few loops as possible: two are one where the outer step is the inner loop's whole length."""
    loops: list[tuple[int, int]] = []
    for size, stride in walk:
        if loops and loops[-1][1] == size * stride:
            size *= loops.pop()[0]
        loops.append((size, stride))
    return loops


def test_which_walks_a_compute_tile_can_say() -> None:
    """Micro tiles column by column take three loops, which fit a compute tile; row by row, and rows again, take four."""
    from designs.transpose.design import to_micro, to_rows

    m, n = 32, 64
    columns = [(n // 8, 8), (m, n), (8, 1)]
    assert merged(to_micro(m, n)) == columns
    assert np.array_equal(walk.indices(to_micro(m, n)), walk.indices(columns))
    assert merged(to_rows(m, n)) == to_rows(m, n) and merged(MICRO) == list(MICRO)
    rows = np.arange(m * n).reshape(m // 4, 4, n // 8, 8).transpose(0, 2, 1, 3)
    assert np.array_equal(walk.indices(list(MICRO)), rows.ravel())
    assert not refusal(m, n, columns, row=2) and not refusal(m, n, MICRO, row=1)
    assert "has 4 dimensions" in refusal(m, n, MICRO, row=2) and "has 4 dimensions" in verdict("micro_tiles_on_a_core")


def refusal(m: int, n: int, dims: Sequence[tuple[int, int]], row: int) -> str:
    """Why a tile of this row cannot send an object in this order; empty if it can, and does."""
    x = np.arange(m * n, dtype=np.int32).reshape(m, n)
    try:
        run = npulab.run("designs.walk.design", [x, np.zeros(m * n, np.int32)], shape=x.shape, dims=tuple(dims), row=row)
    except NpuError as refused:
        return str(refused)
    assert np.array_equal(run.output, walk.indices(list(dims)))
    return ""


# ---- 3: buffers


@pytest.mark.parametrize(
    ("old", "new", "hint"),
    [
        ("one_buffer = channel + kernel", "one_buffer = 2 * channel + kernel", "while a result leaves"),
        ("one_buffer = channel + kernel", "one_buffer = max(channel, kernel)", "while the channel is filling it"),
        ("two_buffers = max(channel, kernel)", "two_buffers = channel + kernel", "that is one buffer"),
        ("two_buffers = max(channel, kernel)", "two_buffers = kernel", "the slower of the two"),
        ("channel = 2 * 64 * 96 / 4", "channel = 64 * 96 / 4", "4 bytes a cycle"),
        ("worst = channel", "worst = kernel", "the kernel as it is"),
        ("worst = channel", "worst = 32", "one micro tile"),
        ("two_buffers = max(channel, kernel)", "two_buffers = 32", "one micro tile"),
        ("one_buffer = channel + kernel", "one_buffer = 56", "one micro tile"),
        ("worst = channel", "worst = 2 * channel", "when is the ratio 2"),
    ],
)
def test_buffers(chapter: Chapter, old: str, new: str, hint: str) -> None:
    with fails(hint):
        chapter.attempt("buffers", buffers=chapter.changed("buffers", old, new))


# ---- 4: complex numbers


@pytest.mark.parametrize(
    ("old", "new", "hint"),
    [
        ("[(n, 2), (m, 2 * n), (2, 1)]", "[(2 * n, 1), (m, 2 * n)]", "the inner dimension must be a pair"),
        ("[(n, 2), (m, 2 * n), (2, 1)]", "[(m, 2 * n), (n, 2), (2, 1)]", "each tile is in its place"),
        ("[(n, 2), (m, 2 * n), (2, 1)]", "[(n, 1), (m, n), (2, 1)]", "the inner dimension must be a pair"),
        (", tile_group_col_major=True", "", "the values are right, their order is not"),
        ("return by_column, a_walk, b_walk", "return a_walk, b_walk", "returns three things"),
        ("tiles)[0]", "tiles)", r"take its first, \[0\]"),
        (")[0]\nreturn", ")\nreturn", r"take its first, \[0\]"),
        ("(M, 2 * N), (m, 2 * n)", "(M, N), (m, n)", "must move the same number of tiles"),
        ("(N, 2 * M), (n, 2 * m)", "(N, M), (n, m)", "half of b"),
    ],
)
def test_complex(chapter: Chapter, old: str, new: str, hint: str) -> None:
    with fails(hint):
        chapter.attempt("complex", *COMPLEX, complex_walks=chapter.changed("complex-walks", old, new))

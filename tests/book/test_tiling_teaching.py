"""The exercises of the tiling chapter teach: its solutions pass, and each mistake that people make gets a hint that fits."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from designs.transpose.exercises import CASES, verdict
from npulab.check import CheckFailed
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
        ("(M, 2 * N), (m, 2 * n)", "(M, N), (m, n)", "must move the same number of tiles"),
        ("(N, 2 * M), (n, 2 * m)", "(N, M), (n, m)", "half of b"),
    ],
)
def test_complex(chapter: Chapter, old: str, new: str, hint: str) -> None:
    with fails(hint):
        chapter.attempt("complex", *COMPLEX, complex_walks=chapter.changed("complex-walks", old, new))

"""The exercises of the rooflines chapter teach: its solutions pass, and each mistake that people make gets a hint that fits."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from npulab.check import CheckFailed
from npusim.frontends import finder
from tests.book.chapter import Chapter, fails


@pytest.fixture(scope="module")
def chapter() -> Iterator[Chapter]:
    yield Chapter("rooflines", "use", "graph", "ceilings", "checks", "both-setup")
    finder.deactivate()


# ---- 1: by hand

CLOCK = {
    "ridge_tile": "tile / 4",
    "ridge_slow": "16 * tile / 28.1",
    "ridge_fast": "1.8 * 16 * tile / 28.1",
    "speedup": "128 * 28.1 / (16 * tile)",
}


def by_hand(chapter: Chapter, **wrong: str) -> None:
    answers = {**CLOCK, **wrong}
    chapter.attempt("clock", "clock", clock="\n".join(f"{name} = {value}" for name, value in answers.items()))


def test_clock_solution(chapter: Chapter, capsys: pytest.CaptureFixture[str]) -> None:
    chapter.attempt("clock", "clock")
    by_hand(chapter)
    out = capsys.readouterr().out
    assert out.count("ok: ") == 8 and "times as fast (simulated)" in out
    slow, fast = (float(found) for found in re.findall(r"([\d.]+) times the bound", out)[:2])
    assert slow > fast, "so the runs gain more than the bounds, as the check says"


@pytest.mark.parametrize(
    ("name", "wrong", "hint"),
    [
        ("ridge_tile", "tile / 8", "by one channel"),
        ("ridge_tile", "16 * tile / 4", "over the channel of one"),
        ("ridge_tile", "4 / tile", "a ceiling over a bandwidth"),
        ("ridge_slow", "16 * tile / 56.2", "in one direction"),
        ("ridge_slow", "tile / 28.1", "all 16 tiles draw"),
        ("ridge_slow", "16 * tile / 28.1e9", "same unit"),
        ("ridge_slow", "28.1 / (16 * tile)", "a ceiling over a bandwidth"),
        ("ridge_fast", "16 * tile / 28.1", "know nothing of the NPU's clock"),
        ("ridge_fast", "16 * tile / 28.1 / 1.8", "moves to the right"),
        ("speedup", "1.8", "still to the right"),
        ("speedup", "1", "does help"),
        ("speedup", "128 / ridge_fast", "compare it with the ceiling at 1.0 GHz"),
    ],
)
def test_clock_mistakes(chapter: Chapter, name: str, wrong: str, hint: str) -> None:
    with fails(hint):
        by_hand(chapter, **{name: wrong})


# ---- 2: intensities

LEVELS = {
    "tile": "flops / (128 // rows * x)",
    "memtile": "flops / (128 // rows // share * x + (c if share > 1 else 0))",
    "ddr": "flops / (128 // rows // share // keep * x + c)",
}


def levels(chapter: Chapter, **wrong: str) -> None:
    answers = {**LEVELS, **wrong}
    chapter.attempt("levels", "levels", levels="\n".join(f"{name} = {value}" for name, value in answers.items()))


def test_levels_solution(chapter: Chapter, capsys: pytest.CaptureFixture[str]) -> None:
    chapter.attempt("levels", "levels")
    levels(chapter)
    assert capsys.readouterr().out.count("ok: all three levels") == 2


@pytest.mark.parametrize(
    ("name", "wrong", "hint"),
    [
        ("tile", "flops / (128 // rows * x + c)", "X alone"),
        ("tile", "rows * share", "each arrival counts"),
        ("tile", "flops / x", "once for every band"),
        ("memtile", "flops / (128 // rows // share * x)", "C passes through the MemTile"),
        ("memtile", "flops / (128 // rows // share * x + c)", "past the MemTile"),
        ("memtile", "flops / (128 // rows * x + (c if share > 1 else 0))", "reads it once"),
        ("memtile", "flops / (128 // rows // share // keep * x + (c if share > 1 else 0))", "sent `keep` times"),
        ("ddr", "rows * share * keep", "C is written to DDR"),
        ("ddr", "flops / (128 // rows // share * x + c)", "not read from DDR again"),
        ("ddr", "flops / (x + c)", "comes from DDR several times"),
    ],
)
def test_levels_mistakes(chapter: Chapter, name: str, wrong: str, hint: str) -> None:
    with fails(hint):
        levels(chapter, **{name: wrong})


def test_levels_in_which_one_is_left_out(chapter: Chapter) -> None:
    with pytest.raises(CheckFailed, match="still empty"):
        levels(chapter, ddr="...")


# ---- 3: a design

BOTH = ("both-body", "both-design")
LOOP = "for _ in range_(SAMPLES // BLOCK // 2):\n"
FIRST = "    block = x_in.acquire(1)\n    take_rows(block, band, kept * 4 + mine)\n    multiply(band, block, c)\n    x_in.release(1)\n"
SECOND = FIRST.replace("x_in", "y_in")


def test_both_solution(chapter: Chapter, capsys: pytest.CaptureFixture[str]) -> None:
    chapter.attempt("both", *BOTH)
    chapter.attempt("both", *BOTH, both_body=LOOP + FIRST + SECOND)
    out = capsys.readouterr().out
    assert out.count("ok: ") == 6 and out.count("as good as the best known") == 2 and "times the bound" in out


@pytest.mark.parametrize(
    ("body", "hint"),
    [
        ("pass\n", "blocks from both streams"),
        (LOOP + FIRST, "blocks from both streams"),
        (LOOP + FIRST + SECOND.replace("    multiply(band, block, c)\n", ""), "left halves alone"),
        (LOOP + FIRST.replace("    multiply(band, block, c)\n", "") + SECOND, "right halves alone"),
        (LOOP + FIRST.replace("multiply(band, block, c)", "multiply(band, block, c)\n    multiply(band, block, c)") + SECOND.replace("    multiply(band, block, c)\n", ""), "counted twice"),
        (LOOP + (FIRST + SECOND).replace("kept * 4 + mine", "mine"), "depends on `kept` and `mine`"),
        (LOOP + (FIRST + SECOND).replace("kept * 4 + mine", "kept"), "depends on `kept` and `mine`"),
        (LOOP.replace(" // 2", "") + FIRST + SECOND, "4 blocks a window"),
        (LOOP + FIRST + SECOND.replace("    y_in.release(1)\n", ""), "right halves. first block"),
        (LOOP + FIRST.replace("    x_in.release(1)\n", "") + SECOND, "left halves. first block"),
        (LOOP + FIRST + LOOP + SECOND, "one from the other"),
    ],
)  # fmt: skip
def test_both_bodies(chapter: Chapter, body: str, hint: str) -> None:
    with fails(hint):
        chapter.attempt("both", *BOTH, both_body=body)


@pytest.mark.parametrize(
    ("halves", "hint"),
    [
        ("halves = [stage_in('x', 0, keep, SAMPLES // 2)] * 2", "takes two stages"),
        ("halves = [stage_in('x', 0, keep, SAMPLES // 2)]", "halves holds two pairs"),
        ("halves = [stage_in('x', 0, keep, SAMPLES // 2) for _ in 'xy']", "names of their own"),
        ("halves = [stage_in(name, 0, 1, SAMPLES // 2) for name in 'xy']", "both told of `keep`"),
        ("halves = [stage_in(name, 0, keep) for name in 'xy']", "windows of SAMPLES // 2 samples"),
        ("halves = [stage_in(name, i, keep, SAMPLES // 2) for i, name in enumerate('xy')]", "from either stage"),
        ("halves = []", "halves holds two pairs"),
    ],
)
def test_both_stages(chapter: Chapter, halves: str, hint: str) -> None:
    with fails(hint):
        chapter.attempt("both", *BOTH, both_design=halves)

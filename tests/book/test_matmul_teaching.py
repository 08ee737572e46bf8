"""The exercises of the Matmul chapter teach: its solutions pass, and each mistake that people make gets a hint that fits."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from npulab.check import CheckFailed
from npusim.frontends import finder
from tests.book.chapter import Chapter, code, fails, solution

PREPARED = """
from designs.matmul.design import blocked
from npulab import roofline
import numpy as np
roof, compiled = roofline.roofline("npu2"), {}
"""
"""What the exercises' cells use of the chapter, without its runs."""


@pytest.fixture(scope="module")
def chapter() -> Iterator[Chapter]:
    made = Chapter("matmul", "use", "checks", "once-setup", prepared=PREPARED)
    made.prepare(made.cells["by-hand-levels"].partition("\n\n")[0])
    yield made
    finder.deactivate()


# ---- 1: by hand

RIGHT = {"l1_bytes": "57344", "tile_intensity": "25.6", "ddr_bytes": "13631488", "limit": "'ddr'"}


def test_tall_solution(chapter: Chapter, capsys: pytest.CaptureFixture[str]) -> None:
    chapter.attempt("tall")
    chapter.attempt("tall", tall="\n".join(f"{name} = {value}" for name, value in RIGHT.items()))
    out = capsys.readouterr().out
    assert out.count("ok: ") == 8 and "times the bound" in out


@pytest.mark.parametrize(
    ("name", "wrong", "hint"),
    [
        ("l1_bytes", "2 * 32 * 64 + 2 * 64 * 128 + 4 * 32 * 128", "two buffers each"),
        ("l1_bytes", "2 * (2 * 32 * 64 + 2 * 64 * 128 + 4 * 32 * 128)", "only one tile of C"),
        ("l1_bytes", "4 * 32 * 64 + 4 * 64 * 128 + 2 * 32 * 128", "float32"),
        ("l1_bytes", "40960", "and C one"),
        ("l1_bytes", "2 * 32 * 64 + 4 * 64 * 128 + 4 * 32 * 128", "A has two buffers"),
        ("l1_bytes", "58368", "without the stack"),
        ("tile_intensity", "32 * 64 * 128 / (2 * 32 * 64 + 2 * 64 * 128)", "two operations"),
        ("tile_intensity", "2 * 32 * 128 / (32 + 128)", "2 bytes"),
        ("tile_intensity", "1 / 25.6", "other way round"),
        ("tile_intensity", "2 * 32 * 64 * 128 / (2 * 32 * 64 + 2 * 64 * 128 + 4 * 32 * 128)", "without C"),
        ("ddr_bytes", "2 * 512 * 512 + 2 * 512 * 2048 + 4 * 512 * 2048", "how often do A and B pass"),
        ("ddr_bytes", "2 * 2 * 512 * 512 + 4 * 2 * 512 * 2048", "C has to get out"),
        ("ddr_bytes", "4 * 2 * 512 * 512 + 2 * 2 * 512 * 2048 + 4 * 512 * 2048", "the other way round"),
        ("ddr_bytes", "16 * 2 * 512 * 512 + 16 * 2 * 512 * 2048 + 4 * 512 * 2048", "one compute tile alone"),
        ("ddr_bytes", "2 * 2 * 512 * 512 + 4 * 2 * 512 * 2048 + 2 * 512 * 2048", "float32"),
        ("limit", "'compute'", "65,536 cycles"),
        ("limit", "'memtile'", "256 B/cycle"),
        ("limit", "'l1'", "384 B/cycle"),
        ("limit", "'shim'", "takes most cycles"),
    ],
)
def test_tall_mistakes(chapter: Chapter, name: str, wrong: str, hint: str) -> None:
    answers = {**RIGHT, name: wrong}
    with fails(hint):
        chapter.attempt("tall", tall="\n".join(f"{name} = {value}" for name, value in answers.items()))


# ---- 2: a layout transform


def test_down_solution(chapter: Chapter, capsys: pytest.CaptureFixture[str]) -> None:
    chapter.attempt("down")
    assert "as good as the best known" in capsys.readouterr().out
    chapter.attempt("down", down="return [(cols // c, c), (rows // r, r * cols), (r, cols), (c, 1)]")
    assert "4 dimensions, of the 4 that a MemTile's descriptor has; 3 are possible" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("wrong", "hint"),
    [
        ("return blocked(rows, cols, r, c)", "the next block is the one below"),
        ("return [(cols // c, c), (rows // r, r * cols), (c, 1), (r, cols)]", "within a block go row by row"),
        ("return [(rows // r, r * cols), (cols // c, c), (c, 1), (r, cols)]", "both orders"),
        ("return [(rows, cols), (cols, 1)]", "row by row, as it lies"),
        ("return [(cols // c, c), (rows // r, r * c), (r, c), (c, 1)]", "strides are in elements"),
        ("return [(cols, c), (rows, cols), (c, 1)]", "product of the sizes"),
        ("return [(cols // c, c), (rows // r, r * cols), (r, cols), (c // 4, 4), (4, 1)]", "has four"),
        ("return (cols // c, c)", "list of pairs"),
    ],
)
def test_down_mistakes(chapter: Chapter, wrong: str, hint: str) -> None:
    with fails(hint):
        chapter.attempt("down", down=wrong)


# ---- 3: a design

ONCE = solution(code("matmul")["once"])


def test_once_solution(chapter: Chapter, capsys: pytest.CaptureFixture[str]) -> None:
    done = chapter.attempt("once")
    assert "as good as the best known" in capsys.readouterr().out
    before, after = done["before"], done["after"]
    assert before.bytes("ddr") - after.bytes("ddr") == 3 * 2 * 256 * 512
    assert after.cycles < 0.97 * before.cycles


@pytest.mark.parametrize(
    ("old", "new", "hint"),
    [
        (', "repeat_count": passes', "", "how often does its MemTile send it"),
        ("(steps * m, k), dtype", "(m, k), dtype", "hold a whole strip"),
        ("strip = np.ndarray[(steps * m, k), dtype]", "strip, steps = tile, 1", "it is the strip that has to be repeated"),
        ("blocked(steps * m, k", "blocked(m, steps * k", "one tile below the other"),
        ("blocked(steps * m, k", "blocked(m, k", "walk through the strip"),
        ("*micro", "micro[0] // 2, micro[1]", "wrong order"),
        ('"obj_type": tile, ', "", "strips as its objects"),
        ('"repeat_count": passes', '"repeat_count": steps', "buffer descriptor"),
        ("Tile(row, 1)", "Tile(0, 1)", "another column"),
    ],
)
def test_once_mistakes(chapter: Chapter, old: str, new: str, hint: str) -> None:
    with fails(hint):
        chapter.attempt("once", once=chapter.changed("once", old, new))


@pytest.mark.parametrize(
    ("without", "hint"), [("dims_to_stream", "wrong order"), ("parts.append", "one fifo for each of the four rows")]
)
def test_once_with_a_line_left_out(chapter: Chapter, without: str, hint: str) -> None:
    kept = [line for line in ONCE.splitlines() if without not in line]
    assert len(kept) == len(ONCE.splitlines()) - 1
    with fails(hint):
        chapter.attempt("once", once="\n".join(kept))


@pytest.mark.parametrize(("device", "columns"), [("npu1", 4), ("npu2", 4)])
def test_strips_are_right_on_both_devices(chapter: Chapter, device: str, columns: int) -> None:
    """The design around the exercise, with its solution: as exact as the chapter's, and A from DDR once."""
    import numpy as np

    import npulab
    from designs.matmul import __main__ as command
    from designs.matmul import reference
    from designs.matmul.strips import design_with

    M, K, N = 512, 128, 512
    stage_a = chapter.attempt("once")["stage_a"]
    a, b = command.factors(M, K, N)
    arrays = [a.reshape(-1), b.reshape(-1), np.zeros(M * N, np.float32)]
    run = npulab.run(design_with(stage_a), arrays, device=device, M=M, K=K, N=N, columns=columns)
    want = reference.matmul(a, b)
    assert np.abs(run.output.reshape(want.shape) - want).max() <= reference.TOLERANCE[device] * np.abs(want).max()
    assert run.traffic is not None and run.traffic["ddr"].read == 2 * M * K + 2 * K * N * (M // 256)


def test_once_from_the_host_each_time_is_too_much(chapter: Chapter) -> None:
    """Right values, but the bytes that were to be saved still pass DDR."""
    from designs.matmul import exercises
    from designs.matmul.__main__ import execute as multiply

    def no_change(*_: Any, **__: Any) -> Any:
        return multiply(*exercises.factors(256, 512, 2048), "npu2", columns=8)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(exercises.check, "runs", no_change)
        with fails("more than once"):
            exercises.once(no_change)


# ---- all of them


@pytest.mark.parametrize(
    ("exercise", "words"), [("tall", "still empty"), ("down", "still empty"), ("once", "one fifo for each")]
)
def test_an_untouched_skeleton_is_told_to_begin(chapter: Chapter, exercise: str, words: str) -> None:
    with pytest.raises(CheckFailed, match=words):
        chapter.untouched(exercise)


def test_lines_fit_the_page(chapter: Chapter) -> None:
    assert [line for source in chapter.cells.values() for line in source.splitlines() if len(line) > 76] == []

"""The exercises of the Matmul chapter teach: its solutions pass, and each mistake that people make gets a hint that fits.

The notebook's own cells run here, in one process; a wrong answer takes the place of a solution.
"""

from __future__ import annotations

import linecache
import re
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbformat
import pytest

from npulab.check import CheckFailed
from npulab.student import solution_blocks, solution_source, student_source
from npusim.frontends import finder

NOTEBOOK = Path(__file__).resolve().parents[2] / "book" / "matmul.ipynb"
NOTES = nbformat.read(NOTEBOOK, as_version=4)["cells"]
CELLS = {cell["id"]: cell["source"] for cell in NOTES if cell["cell_type"] == "code"}
PREPARED = """
from designs.matmul.design import blocked
from npulab import roofline
import numpy as np
roof, compiled = roofline.roofline("npu2"), {}
"""
"""What the exercises' cells use of the chapter, without its runs."""


def execute(source: str, name: str, namespace: dict[str, Any]) -> None:
    """Run a cell as a notebook does, with its lines at hand for messages."""
    file = f"<cell {name}>"
    linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
    exec(compile(source, file, "exec"), namespace)


@pytest.fixture(scope="module")
def chapter() -> Iterator[dict[str, Any]]:
    namespace: dict[str, Any] = {"__name__": "__main__"}
    execute(CELLS["use"], "use", namespace)
    execute(PREPARED, "prepared", namespace)
    function = CELLS["by-hand-levels"].partition("\n\n")[0]
    for name, source in (("bytes_at", function), ("checks", CELLS["checks"]), ("once-setup", CELLS["once-setup"])):
        execute(source, name, namespace)
    yield namespace
    finder.deactivate()


def planted(source: str, wrong: str) -> str:
    """A cell with ``wrong`` in place of its solution, indented like it."""
    lines = source.splitlines()
    (block,) = solution_blocks(source)
    indent = lines[block.first][: len(lines[block.first]) - len(lines[block.first].lstrip())]
    lines[block.first : block.last + 1] = [indent + line for line in wrong.splitlines()]
    return "\n".join(lines)


def attempt(chapter: dict[str, Any], exercise: str, wrong: str | None = None) -> dict[str, Any]:
    """Run an exercise's cell, with a wrong answer if one is given, and then its check."""
    namespace = dict(chapter)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        source = CELLS[exercise]
        execute(solution_source(source) if wrong is None else planted(source, wrong), exercise, namespace)
        execute(CELLS[f"check-{exercise}"], f"check-{exercise}", namespace)
    return namespace


def solution(exercise: str) -> str:
    """The lines of a solution, without their indent."""
    (block,) = solution_blocks(CELLS[exercise])
    lines = CELLS[exercise].splitlines()[block.first + 1 : block.last]
    return "\n".join(line.strip() for line in lines) + "\n"


def fails(words: str) -> Any:
    """The check fails, and says this (a regular expression) in its last hint."""
    return pytest.raises(CheckFailed, match=rf"(?s)not yet: .*Hint: [^\n]*({words})[^\n]*\Z")


# ---- 1: by hand

RIGHT = {"l1_bytes": "57344", "tile_intensity": "25.6", "ddr_bytes": "13631488", "limit": "'ddr'"}


def test_tall_solution(chapter: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> None:
    attempt(chapter, "tall")
    attempt(chapter, "tall", "\n".join(f"{name} = {value}" for name, value in RIGHT.items()))
    out = capsys.readouterr().out
    assert out.count("ok: ") == 8 and "times the bound" in out


@pytest.mark.parametrize(
    ("name", "wrong", "hint"),
    [
        ("l1_bytes", "2 * 32 * 64 + 2 * 64 * 128 + 4 * 32 * 128", "two buffers each"),
        ("l1_bytes", "2 * (2 * 32 * 64 + 2 * 64 * 128 + 4 * 32 * 128)", "only one tile of C"),
        ("l1_bytes", "4 * 32 * 64 + 4 * 64 * 128 + 2 * 32 * 128", "float32"),
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
def test_tall_mistakes(chapter: dict[str, Any], name: str, wrong: str, hint: str) -> None:
    answers = {**RIGHT, name: wrong}
    with fails(hint):
        attempt(chapter, "tall", "\n".join(f"{name} = {value}" for name, value in answers.items()))


# ---- 2: a layout transform


def test_down_solution(chapter: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> None:
    attempt(chapter, "down")
    assert "as good as the best known" in capsys.readouterr().out
    attempt(chapter, "down", "return [(cols // c, c), (rows // r, r * cols), (r, cols), (c, 1)]")
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
def test_down_mistakes(chapter: dict[str, Any], wrong: str, hint: str) -> None:
    with fails(hint):
        attempt(chapter, "down", wrong)


# ---- 3: a design

ONCE = solution("once")


def test_once_solution(chapter: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> None:
    done = attempt(chapter, "once")
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
        ("*micro", "micro[0] // 2, micro[1]", "wrong order"),
        ('"obj_type": tile, ', "", "strips as its objects"),
        ('"repeat_count": passes', '"repeat_count": steps', "buffer descriptor"),
        ("Tile(row, 1)", "Tile(0, 1)", "another column"),
    ],
)
def test_once_mistakes(chapter: dict[str, Any], old: str, new: str, hint: str) -> None:
    assert old in ONCE
    with fails(hint):
        attempt(chapter, "once", ONCE.replace(old, new))


@pytest.mark.parametrize(
    ("without", "hint"), [("dims_to_stream", "wrong order"), ("parts.append", "one fifo for each of the four rows")]
)
def test_once_with_a_line_left_out(chapter: dict[str, Any], without: str, hint: str) -> None:
    kept = [line for line in ONCE.splitlines() if without not in line]
    assert len(kept) == len(ONCE.splitlines()) - 1
    with fails(hint):
        attempt(chapter, "once", "\n".join(kept))


@pytest.mark.parametrize(("device", "columns"), [("npu1", 4), ("npu2", 4)])
def test_strips_are_right_on_both_devices(chapter: dict[str, Any], device: str, columns: int) -> None:
    """The design around the exercise, with its solution: as exact as the chapter's, and A from DDR once."""
    import numpy as np

    import npulab
    from designs.matmul import __main__ as command
    from designs.matmul import reference
    from designs.matmul.strips import design_with

    M, K, N = 512, 128, 512
    namespace = dict(chapter)
    execute(solution_source(CELLS["once"]), "once", namespace)
    a, b = command.factors(M, K, N)
    arrays = [a.reshape(-1), b.reshape(-1), np.zeros(M * N, np.float32)]
    run = npulab.run(design_with(namespace["stage_a"]), arrays, device=device, M=M, K=K, N=N, columns=columns)
    want = reference.matmul(a, b)
    assert np.abs(run.output.reshape(want.shape) - want).max() <= reference.TOLERANCE[device] * np.abs(want).max()
    assert run.traffic is not None and run.traffic["ddr"].read == 2 * M * K + 2 * K * N * (M // 256)


def test_once_from_the_host_each_time_is_too_much(chapter: dict[str, Any]) -> None:
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


@pytest.mark.parametrize("exercise", ["tall", "down", "once"])
def test_an_untouched_skeleton_is_told_to_begin(chapter: dict[str, Any], exercise: str) -> None:
    namespace = dict(chapter)
    execute(student_source(CELLS[exercise]), exercise, namespace)
    with pytest.raises(CheckFailed, match=r"still empty|one fifo for each"):
        execute(CELLS[f"check-{exercise}"], f"check-{exercise}", namespace)


def test_cells_are_short() -> None:
    assert {name: len(source.splitlines()) for name, source in CELLS.items() if len(source.splitlines()) > 15} == {}
    wide = [line for source in CELLS.values() for line in source.splitlines() if len(line) > 76]
    assert wide == []


def test_every_number_of_the_text_has_a_run() -> None:
    """Each name that the text glues is given a value by ``npulab.numbers``, and each value is used."""
    text = "\n".join(cell["source"] for cell in NOTES if cell["cell_type"] == "markdown")
    used = set(re.findall(r"\{glue:text\}`(\w+)", text))
    given: set[str] = set()
    for source in CELLS.values():
        for call in re.findall(r"npulab\.numbers\((.*?)\)$", source, re.S | re.M):
            given |= set(re.findall(r"(?:^|\(|,\s|\s)(\w+)=", call))
    assert used == given

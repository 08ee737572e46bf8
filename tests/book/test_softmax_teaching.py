"""The exercises of the softmax chapter teach: its solutions pass, and each mistake that people make gets a hint that fits.

The notebook's own cells run here, in one process; a wrong answer takes the place of a solution.
"""

from __future__ import annotations

import linecache
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbformat
import pytest

from npulab.check import CheckFailed
from npulab.student import solution_blocks, solution_source
from npusim.frontends import finder

NOTEBOOK = Path(__file__).resolve().parents[2] / "book" / "softmax.ipynb"
CELLS = {
    cell["id"]: cell["source"]
    for cell in nbformat.read(NOTEBOOK, as_version=4)["cells"]
    if cell["cell_type"] == "code"
}
BEFORE = "import numpy as np\nfrom ml_dtypes import bfloat16\n"
NEEDED = ("use", "minus-infinity", "checks", "weighted-setup")
"""The cells of the chapter that its exercises build on."""


def execute(source: str, name: str, namespace: dict[str, Any]) -> None:
    """Run a cell as a notebook does, with its lines at hand for messages."""
    file = f"<cell {name}>"
    linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
    exec(compile(source, file, "exec"), namespace)


@pytest.fixture(scope="module")
def chapter() -> Iterator[dict[str, Any]]:
    namespace: dict[str, Any] = {"__name__": "__main__"}
    execute(BEFORE, "before", namespace)
    for name in NEEDED:
        execute(CELLS[name], name, namespace)
    yield namespace
    finder.deactivate()


def planted(source: str, wrong: str) -> str:
    """A cell with ``wrong`` in place of its solution, indented like it."""
    lines = source.splitlines()
    (block,) = solution_blocks(source)
    indent = lines[block.first][: len(lines[block.first]) - len(lines[block.first].lstrip())]
    lines[block.first : block.last + 1] = [indent + line for line in wrong.splitlines()]
    return "\n".join(lines)


def attempt(chapter: dict[str, Any], exercise: str, *cells: str, **wrong: str) -> None:
    """Run an exercise's cells, wrong answers planted in some (``_`` for ``-`` in their names), and then its check."""
    namespace = dict(chapter)
    if exercise != "merge":
        execute("LOWEST = float(lowest)", "lowest", namespace)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in cells:
            answer = wrong.get(name.replace("-", "_"))
            execute(solution_source(CELLS[name]) if answer is None else planted(CELLS[name], answer), name, namespace)
        execute(CELLS[f"check-{exercise}"], f"check-{exercise}", namespace)


def fails(words: str) -> Any:
    """The check fails, and says this (a regular expression) in its hint."""
    return pytest.raises(CheckFailed, match=f"(?s)not yet: .*Hint: [^\n]*({words})")


# ---- 1: two halves


def test_merge_solution(chapter: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> None:
    attempt(chapter, "merge", "merge")
    attempt(chapter, "merge", "merge", merge="m = np.maximum(m1, m2)\nl = np.exp(m1 - m) * l1 + np.exp(m2 - m) * l2")
    assert capsys.readouterr().out.count("ok: maximum and sum are right") == 2


@pytest.mark.parametrize(
    ("answer", "hint"),
    [
        ("m = max(m1, m2)\nl = l1 + l2", "bring both to the common one"),
        ("m = max(m1, m2)\nl = l1 * np.exp(m1 - m) + l2", "bring both to the common one"),
        ("m = max(m1, m2)\nl = l1 + l2 * np.exp(m2 - m)", "bring both to the common one"),
        ("m = max(m1, m2)\nl = np.exp(m1 - m) + np.exp(m2 - m)", "the sums l1 and l2"),
        ("m = max(m1, m2)\nl = l1 * np.exp(m - m1) + l2 * np.exp(m - m2)", "the other way round"),
        ("m = max(m1, m2)\nl = l1 * np.exp(m2 - m) + l2 * np.exp(m1 - m)", "its own maximum's difference"),
        ("m = max(m1, m2)\nl = (l1 * np.exp(m1) + l2 * np.exp(m2)) / np.exp(m)", "subtract the larger maximum first"),
        ("m = min(m1, m2)\nl = l1 * np.exp(m1 - m) + l2 * np.exp(m2 - m)", "the larger of the two"),
        ("m = m1\nl = l1", "the larger of the two"),
    ],
)
def test_merge_mistakes(chapter: dict[str, Any], answer: str, hint: str) -> None:
    with fails(hint):
        attempt(chapter, "merge", "merge", merge=answer)


def test_merge_that_is_half_done(chapter: dict[str, Any]) -> None:
    with pytest.raises(CheckFailed, match="l is still empty"):
        attempt(chapter, "merge", "merge", merge="m = max(m1, m2)")


# ---- 2: in one pass

LARGER = "larger = np.maximum(m, s.max(axis=1))\n"
SUM = "l = l * np.exp(m - larger) + np.exp(s - larger[:, None]).sum(axis=1)\n"
KEEP = "m = larger"


def test_online_solution(chapter: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> None:
    attempt(chapter, "online", "online")
    attempt(chapter, "online", "online", online=LARGER + SUM + KEEP)
    assert capsys.readouterr().out.count("ok: m and l are right") == 2


@pytest.mark.parametrize(
    ("answer", "hint"),
    [
        (LARGER + SUM.replace(" * np.exp(m - larger)", "") + KEEP, "when the maximum grows"),
        (LARGER + SUM.replace("l * np.exp(m - larger) + ", "") + KEEP, "add to what l was"),
        (LARGER + "l = (l + np.exp(s - larger[:, None]).sum(axis=1)) * np.exp(m - larger)\n" + KEEP, "first correct, then add"),
        (LARGER + SUM.replace("m - larger", "larger - m") + KEEP, "at most 1|infinity times 0"),
        (LARGER.replace("np.maximum(m, s.max(axis=1))", "s.max(axis=1)") + SUM + KEEP, "the larger of the old one|the larger of both"),
        (LARGER.replace("np.maximum(m, ", "np.maximum(np.where(m == LOWEST, -np.inf, m), ") + SUM + KEEP, "start the maximum at LOWEST"),
        (LARGER + SUM, "keep the larger maximum"),
        ("m = np.maximum(m, s.max(axis=1))\nl = l + np.exp(s - m[:, None]).sum(axis=1)", "when the maximum grows"),
        ("s = np.concatenate([s, *pieces], axis=1)\n" + LARGER + SUM + KEEP, "they pass once"),
    ],
)  # fmt: skip
def test_online_mistakes(chapter: dict[str, Any], answer: str, hint: str) -> None:
    with fails(hint):
        attempt(chapter, "online", "online", online=answer)


# ---- 3: a weighted sum

WEIGHTED = ("weighted-body", "weighted-design")
LOOP = "for _ in range_(blocks):\n"
STEP = "    step(s_in.acquire(1), p, m, l, r, scale)\n"
RESCALE = "    rescale(r, o)\n"
MULTIPLY = "    multiply(p, v_in.acquire(1), o)\n"
GIVE = "    s_in.release(1)\n    v_in.release(1)\n"
DIVIDE = "divide(l, o)\n"


def test_weighted_solution(chapter: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> None:
    attempt(chapter, "weighted", *WEIGHTED)
    out = capsys.readouterr().out
    assert out.count("ok: ") == 3 and "as good as the best known" in out and "add up to between" in out


@pytest.mark.parametrize(
    ("body", "hint"),
    [
        (LOOP + STEP + RESCALE + MULTIPLY + GIVE, "not divided by l yet"),
        (LOOP + STEP + MULTIPLY + GIVE + DIVIDE, "weighted under smaller maxima"),
        (LOOP + STEP + MULTIPLY + RESCALE + GIVE + DIVIDE, "before multiply"),
        (LOOP + STEP + RESCALE + MULTIPLY + GIVE + "    " + DIVIDE, "divide once"),
        (LOOP + STEP + RESCALE + MULTIPLY + GIVE.replace("    v_in.release(1)\n", "") + DIVIDE, "first block of V"),
        (LOOP + STEP + RESCALE + MULTIPLY + GIVE.replace("    s_in.release(1)\n", "") + DIVIDE, "first block of S"),
        (LOOP + STEP + RESCALE + "    zero(o)\n" + MULTIPLY + GIVE + DIVIDE, "last block alone"),
        (LOOP + STEP + RESCALE + GIVE + DIVIDE, "acquire what you release"),
        ("pass\n", "still empty"),
        (LOOP + STEP.replace(", r, scale", "") + RESCALE + MULTIPLY + GIVE + DIVIDE, "step\\(s, p, m, l, r, scale\\)"),
        (LOOP.replace("blocks", "2 * blocks") + STEP + RESCALE + MULTIPLY + GIVE + DIVIDE, "in every turn"),
    ],
)
def test_weighted_mistakes(chapter: dict[str, Any], body: str, hint: str) -> None:
    with fails(hint):
        attempt(chapter, "weighted", *WEIGHTED, weighted_body=body)


def test_too_much_work_costs_too_much(chapter: dict[str, Any]) -> None:
    idle = "for _ in range_(2000):\n    zero_l(r)\n"
    with pytest.raises(CheckFailed, match="costs too much"):
        attempt(chapter, "weighted", *WEIGHTED, weighted_body=idle + LOOP + STEP + RESCALE + MULTIPLY + GIVE + DIVIDE)

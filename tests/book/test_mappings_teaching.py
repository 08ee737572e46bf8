"""The exercises of the chapter on the four mappings teach: its solutions pass, and each mistake that people make gets a hint that fits."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

import nbformat
import pytest

from npulab.check import CheckFailed
from npulab.student import student_notebook
from npusim.frontends import finder
from tests.book.chapter import BOOK, Chapter, code, fails

PREPARED = """
import json
from dataclasses import replace
from designs import attention_dato, attention_fused, attention_iron, attention_layerwise
from designs.attention import ablations
from designs.attention.parameters import Parameters
mappings = {"layers": attention_layerwise, "DATO": attention_dato, "IRON": attention_iron, "fused": attention_fused}
changed = json.loads(ablations.DATA.read_text())
ms = {(r["mapping"], r["change"]): r["ms"] for r in changed if (r["device"], r["length"]) == ("npu2", 12288)}
"""


@pytest.fixture(scope="module")
def chapter() -> Iterator[Chapter]:
    yield Chapter("mappings", "use", "describe", "predict", "checks", prepared=PREPARED)
    finder.deactivate()


# ---- 1: a second softmax tile

SECOND = {
    "stages": 'scores, npulab.Stage("softmax", 16, softmax.cycles, softmax.blocks), output',
    "streams": (
        '[npulab.Stream("s", "l1", "memtile", size, 8), npulab.Stream("s", "memtile", "l1", size, 16), '
        'npulab.Stream("p", "l1", "memtile", size, 16), npulab.Stream("p", "memtile", "l1", size, 8)]'
    ),
    "slowest": '"output"',
    "gain": "softmax.cycles / output.cycles",
}
STAGE = "softmax.cycles, softmax.blocks"
FROM_MEMTILE = '"s", "memtile", "l1", size, 16'


def second(chapter: Chapter, **wrong: str) -> None:
    answers = {**SECOND, **wrong}
    chapter.attempt("second", "second", second="\n".join(f"{name} = {value}" for name, value in answers.items()))


def test_second_solution(chapter: Chapter, capsys: pytest.CaptureFixture[str]) -> None:
    chapter.attempt("second", "second")
    second(chapter, stages=SECOND["stages"].replace(STAGE, "softmax.cycles / 2, 2 * softmax.blocks"))
    second(chapter, stages='output, scores, replace(softmax, tiles=16, most=softmax.most / 2)')
    out = capsys.readouterr().out
    assert out.count("ok: ") == 12 and " ms become " in out and "simulated 1." in out


@pytest.mark.parametrize(
    ("stages", "hint"),
    [
        (SECOND["stages"].replace("16", "8"), "two softmax tiles in each of the eight"),
        (SECOND["stages"].replace("16", "24"), "of this stage alone"),
        (SECOND["stages"].replace("16", "2"), "of all pipelines together"),
        (SECOND["stages"].replace(STAGE, "softmax.cycles / 2, softmax.blocks"), "half as many blocks each: leave `cycles` alone"),
        (SECOND["stages"].replace(STAGE, "softmax.cycles, softmax.blocks / 2"), "half as many blocks each: leave `blocks` alone"),
        (SECOND["stages"].replace(STAGE, "softmax.cycles, softmax.blocks / 4"), "for 32,768 tokens and 12 heads"),
        (SECOND["stages"].replace(STAGE, "softmax.cycles, 2 * softmax.blocks"), "each takes half of the cycles"),
        (SECOND["stages"].replace(STAGE, f"{STAGE}, most=softmax.most"), "leave it out"),
        ("replace(scores, tiles=16, most=None), replace(softmax, tiles=16, most=None), output", "only softmax gets more"),
        ("scores, replace(softmax, tiles=16, most=None), replace(output, cycles=1)", "does what it did, for 32,768 tokens"),
        (SECOND["stages"].replace('"softmax"', '"softmax 2"'), "with the names"),
        ("scores, softmax.cycles, output", "made by npulab.Stage"),
    ],
)
def test_second_stages(chapter: Chapter, stages: str, hint: str) -> None:
    with fails(hint):
        second(chapter, stages=stages)


@pytest.mark.parametrize(
    ("streams", "hint"),
    [
        (SECOND["streams"].replace(FROM_MEMTILE, '"s", "memtile", "l1", size, 8'), "one channel for each softmax tile"),
        (SECOND["streams"].replace(FROM_MEMTILE, '"s", "memtile", "l1", size, 8, 2'), "more channels, with one receiver"),
        (SECOND["streams"].replace(FROM_MEMTILE, '"s", "memtile", "l1", 2 * size, 16'), "all together carry what they did"),
        (SECOND["streams"].replace(FROM_MEMTILE, '"s", "memtile", "l1", size // 2, 16'), "all tiles together carry all"),
        (SECOND["streams"].replace(FROM_MEMTILE, '"s", "memtile", "l1", size // 16, 16'), "of all channels together"),
        (SECOND["streams"].replace('"p", "l1", "memtile", size, 16', '"p", "l1", "memtile", size, 8'), "one channel for each softmax tile"),
        (SECOND["streams"].replace('"s", "l1", "memtile", size, 8', '"s", "l1", "memtile", size, 16'), "one channel for each scores tile"),
        (SECOND["streams"].replace('"p", "memtile", "l1", size, 8', '"p", "memtile", "l1", size, 16'), "one channel for each output tile"),
        (SECOND["streams"].replace('"s", "l1", "memtile"', '"s", "l1", "l1"'), "four streams"),
        ('npulab.Stream("s", "l1", "memtile", size, 8)', "four streams"),
        ("base.stages", "made by npulab.Stream"),
    ],
)  # fmt: skip
def test_second_streams(chapter: Chapter, streams: str, hint: str) -> None:
    with fails(hint):
        second(chapter, streams=streams)


@pytest.mark.parametrize(
    ("name", "wrong", "hint"),
    [
        ("slowest", '"softmax"', "compare all three stages again"),
        ("slowest", "output", "the stage's name"),
        ("slowest", "softmax", "the stage's name"),
        ("gain", "2", "not the slowest stage any more"),
        ("gain", "32 / 24", "ratio of the tiles"),
        ("gain", "output.cycles / softmax.cycles", "the other way round"),
        ("gain", "softmax.cycles / scores.cycles", "that is the fastest stage"),
    ],
)
def test_second_guesses(chapter: Chapter, name: str, wrong: str, hint: str) -> None:
    with fails(hint):
        second(chapter, **{name: wrong})


def test_second_for_fewer_tokens(chapter: Chapter) -> None:
    """Everything right, but for another length."""
    source = chapter.cells["second"].replace("lq=32768", "lq=16384")
    assert source != chapter.cells["second"]
    with pytest.MonkeyPatch.context() as patch, fails("this stage does what it did, for 32,768 tokens and 12 heads"):
        patch.setitem(chapter.cells, "second", source)
        chapter.attempt("second", "second")


# ---- 2: intensity at the MemTiles


def memtile(chapter: Chapter, formula: str) -> None:
    chapter.attempt("memtile", "memtile", memtile=f"intensity = {formula}")


def test_memtile_solution(chapter: Chapter, capsys: pytest.CaptureFixture[str]) -> None:
    chapter.attempt("memtile", "memtile")
    memtile(chapter, "d / 2 / (1 + d / bq / shared)")
    chapter.attempt("clears", "memtile", "clears")
    out = capsys.readouterr().out
    assert out.count("ok: at_memtile is right") == 2 and "ok: width is 112" in out


@pytest.mark.parametrize(
    ("formula", "hint"),
    [
        ("d / (1 + d / bq / shared)", "both ways"),
        ("d / 4 / (1 + d / bq / shared)", "two products"),
        ("d / 2", "K and V pass the MemTiles"),
        ("d / 2 / (1 + d / bq)", "bears its share"),
        ("4 * bq * bk * d / (8 * bq * bk + 4 * bk * d / shared + 4 * bk * d)", "a broadcast leaves a MemTile once"),
        ("d / 2 / (1 + d / 2 / bq / shared)", "keys and values"),
        ("d / 2 / (0.5 + d / bq / shared)", "scores and probabilities"),
        ("d / 2 / (1 + d * shared / bq)", "divide by `shared`, do not multiply"),
        ("4 * bq * bk * d / (8 * bq * bk + 8 * bk * d / shared + 8 * bq * d)", "Q and O pass once"),
        ("4 * bq * bk * d / (8 * bq * bk + 8 * bk * d / shared + 4 * bq * d)", "Q and O pass once"),
    ],
)
def test_memtile_mistakes(chapter: Chapter, formula: str, hint: str) -> None:
    with fails(hint):
        memtile(chapter, formula)


CLEARS = {"clears_kernels": "True", "clears_units": "False", "width": "112"}


@pytest.mark.parametrize(
    ("name", "wrong", "hint"),
    [
        ("clears_kernels", "False", "compare 28.4 FLOP/B"),
        ("clears_units", "True", "compare 28.4 FLOP/B"),
        ("clears_kernels", '"yes"', "True or False"),
        ("clears_units", '"no"', "True or False"),
        ("clears_units", "0", "True or False"),
        ("width", "96", "K and V pass as well"),
        ("width", "86", "K and V pass as well, .* a multiple of 16"),
        ("width", "102.4", "a multiple of 16"),
        ("width", "128", "a smaller one"),
        ("width", "64", "still left of the ridge"),
    ],
)
def test_what_it_clears(chapter: Chapter, name: str, wrong: str, hint: str) -> None:
    answers = {**CLEARS, name: wrong}
    with fails(hint):
        chapter.attempt("clears", "memtile", "clears", clears="\n".join(f"{key} = {value}" for key, value in answers.items()))


def test_what_numpy_says_of_a_ridge_is_an_answer_too(chapter: Chapter) -> None:
    answers = {**CLEARS, "clears_units": "__import__('numpy').float64(28.4) >= peak['IRON'].ridge('memtile')"}
    chapter.attempt("clears", "memtile", "clears", clears="\n".join(f"{key} = {value}" for key, value in answers.items()))


def test_memtile_left_empty(chapter: Chapter) -> None:
    with pytest.raises(CheckFailed, match="empty"):
        memtile(chapter, "...")


# ---- 3: fused over DATO

SPLIT = {
    "total": 'ms["dato", "as it is"] / ms["fused", "as it is"]',
    "balance": 'ms["dato", "as it is"] / ms["dato", "equal stages"]',
    "host": 'ms["fused", "no host time"] / ms["fused", "as it is"]',
    "rest": "total / balance / host",
    "kernels": 'before["fused"].roofline.ceiling / before["DATO"].roofline.ceiling',
}


def split(chapter: Chapter, **wrong: str) -> None:
    answers = {**SPLIT, **wrong}
    chapter.attempt("split", "split", split="\n".join(f"{name} = {value}" for name, value in answers.items()))


def test_split_solution(chapter: Chapter, capsys: pytest.CaptureFixture[str]) -> None:
    chapter.attempt("split", "split")
    split(chapter)
    assert capsys.readouterr().out.count("ok: ") == 10


@pytest.mark.parametrize(
    ("name", "wrong", "hint"),
    [
        ("total", 'ms["fused", "as it is"] / ms["dato", "as it is"]', "the time before over the time after"),
        ("total", 'ms["dato", "as it is"] / ms["fused", "no host time"]', "a factor of its own"),
        ("balance", 'ms["dato", "equal stages"] / ms["dato", "as it is"]', "the time before over the time after"),
        ("balance", 'ms["dato", "equal stages"] / ms["fused", "as it is"]', "DATO beside DATO"),
        ("host", 'ms["fused", "as it is"] / ms["fused", "no host time"]', "under 1"),
        ("total", 'ms["iron", "as it is"] / ms["fused", "as it is"]', "about DATO"),
        ("balance", 'ms["iron", "as it is"] / ms["iron", "equal stages"]', "about DATO"),
        ("balance", 'before["DATO"].balance', "what equal stages gain"),
        ("balance", '1 / before["DATO"].balance', "what equal stages gain"),
        ("host", "1", '"no host time"'),
        ("rest", "total / balance", "the host is a factor, too"),
        ("rest", "total / balance * host", "do not multiply"),
        ("rest", "total - balance - host", "factors multiply"),
        ("rest", "balance * host / total", "the other way round"),
        ("kernels", 'before["DATO"].roofline.ceiling / before["fused"].roofline.ceiling', "fused over DATO"),
        ("kernels", 'peak["fused"].roofline.ceiling / peak["DATO"].roofline.ceiling', "not of the matrix units"),
        ("kernels", 'peak["fused"].roofline.ceiling / before["DATO"].roofline.ceiling', "not of the matrix units"),
        ("kernels", 'before["fused"].roofline.ceiling / peak["DATO"].roofline.ceiling', "not of the matrix units"),
        ("kernels", "rest", "rest comes from the times"),
    ],
)
def test_split_mistakes(chapter: Chapter, name: str, wrong: str, hint: str) -> None:
    with fails(hint):
        split(chapter, **{name: wrong})


@pytest.mark.parametrize(("exercise", "cells"), [("second", ("second",)), ("memtile", ("memtile",)), ("clears", ("clears",)), ("split", ("split",))])
def test_an_untouched_skeleton_fails(chapter: Chapter, exercise: str, cells: tuple[str, ...]) -> None:
    with pytest.raises(CheckFailed, match="empty"):
        chapter.untouched(exercise, *cells)


def test_the_text_speaks_of_the_solution(chapter: Chapter) -> None:
    from designs.attention import exercises

    own = chapter.attempt("second", "second")
    found = exercises.second_softmax(own["stages"], own["streams"], own["slowest"], own["gain"])
    assert found.seconds == exercises.two_softmax_tiles().seconds


def test_the_student_version_holds_no_answer() -> None:
    """Neither in words nor in a number that the notebook prints."""
    told = student_notebook(nbformat.read(BOOK / "mappings.ipynb", as_version=4), "mappings")["cells"]
    names = [cell["id"] for cell in told]
    assert not [name for name in names if name.startswith("answer-")]
    assert not {"numbers-second", "numbers-split"} & set(names)
    assert not [cell["id"] for cell in told if "Worked answer" in cell["source"]]


def test_hidden_cells_say_what_the_text_was_written_for() -> None:
    """A reader who changes a size above meets a sentence and not a bare AssertionError."""
    bare, named = [], {"WRITTEN"}
    for name, source in code("mappings").items():
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.Assign) and "WRITTEN.format" in ast.unparse(node.value):
                named |= {ast.unparse(target) for target in node.targets}
            if isinstance(node, ast.Assert) and (node.msg is None or not named & set(re.findall(r"\w+", ast.unparse(node.msg)))):
                bare.append(f"{name}: {ast.unparse(node)}")
    assert bare == [] and len(named) > 1

"""Checks: what passes prints a line, what fails says why, and knows common mistakes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ml_dtypes import bfloat16

import npulab
from npulab import backend, check
from npulab.check import CheckFailed
from npulab.record import Run
from npusim.devices import device
from npusim.frontends import finder
from tests.npulab import machines

DESIGNS = Path(__file__).parent / "designs"
WANT = np.arange(12.0).reshape(3, 4)
EMPTY = [None, ..., NotImplemented]


def said(capsys: pytest.CaptureFixture[str]) -> str:
    out = capsys.readouterr().out
    assert out.count("\n") == 1 and out.startswith("ok: ")
    return out


def fails(*words: str) -> Any:
    return pytest.raises(CheckFailed, match="(?s)" + ".*".join(words))


# ---- values


def test_close_passes_and_says_how_close(capsys: pytest.CaptureFixture[str]) -> None:
    check.close(WANT + 1e-3, WANT, rtol=0, atol=0.01)
    assert "within rtol 0, atol 0.01, 12 values" in said(capsys)
    check.close(WANT.astype(bfloat16), WANT)
    assert "exact" in said(capsys)


@pytest.mark.parametrize("empty", EMPTY)
@pytest.mark.parametrize("kind", [check.close, check.equal, check.number])
def test_an_untouched_skeleton_is_recognised(kind: Any, empty: Any) -> None:
    with fails("still empty", "fill in the skeleton"):
        kind(empty, 1.0)


def test_the_first_difference_is_shown() -> None:
    got = WANT.copy()
    got[1, 2] += 1
    with fails(r"first difference at \[1, 2\]: got 7, want 6", "1 of 12 values differ; largest error 1"):
        check.close(got, WANT)


@pytest.mark.parametrize(
    ("got", "word"),
    [
        (np.zeros((3, 4)), "drained"),
        (WANT + np.nan, "NaN"),
        (WANT.ravel()[::-1].reshape(3, 4), "order"),
        (np.where(WANT < 8, WANT, -1.0), "the first 8 elements are right"),
    ],
)
def test_common_mistakes_are_recognised(got: np.ndarray, word: str) -> None:
    with fails("Hint", word):
        check.close(got, WANT)


def test_a_transpose_is_recognised() -> None:
    square = np.arange(9.0).reshape(3, 3)
    with fails("transpose"):
        check.close(square.T, square)


def test_foreseen_mistakes_come_before_the_general_hint() -> None:
    mistakes = [(2 * WANT, "you added twice"), (lambda got, want: got.min() < 0, "a sign is wrong")]
    with fails("you added twice"):
        check.close(2 * WANT, WANT, hint="think", mistakes=mistakes)
    with fails("a sign is wrong"):
        check.close(-WANT, WANT, hint="think", mistakes=mistakes)
    with fails("Hint: think"):
        check.close(WANT + 0.5, WANT, hint="think", mistakes=mistakes)


def test_shapes_must_agree() -> None:
    with fails(r"shape \(12,\), not \(3, 4\)"):
        check.close(WANT.ravel(), WANT)


def test_words_are_no_numbers() -> None:
    with fails("is a str"):
        check.close("twelve", WANT)


def test_a_run_stands_for_its_output(capsys: pytest.CaptureFixture[str]) -> None:
    check.close(Run("simulated", device("npu1"), 1.0, (WANT,)), WANT)
    said(capsys)


def test_nan_is_right_where_nan_is_wanted(capsys: pytest.CaptureFixture[str]) -> None:
    check.close([np.nan, 1.0], [np.nan, 1.0])
    said(capsys)


def test_equal(capsys: pytest.CaptureFixture[str]) -> None:
    check.equal("ddr", "ddr", name="the limit")
    assert "the limit is 'ddr'" in said(capsys)
    with fails("the limit is not right", "got 'l1'", "Hint: look again"):
        check.equal("l1", "ddr", name="the limit", mistakes={"l1": "look again"})
    with fails("first difference"):
        check.equal(np.array([1, 2]), np.array([1, 3]))


@pytest.mark.parametrize(
    ("got", "words"),
    [
        (0.4, "too large"),
        (0.1, "too small"),
        (2 / 3, "factor of 2"),
        (8 / 3, "bits or bytes"),
        (333.333333, "power of 1000"),
    ],
)
def test_number_tells_which_way_and_by_which_factor(got: float, words: str) -> None:
    with fails(words):
        check.number(got, 1 / 3)


def test_number(capsys: pytest.CaptureFixture[str]) -> None:
    check.number(0.3334, 1 / 3, unit="FLOP/B", name="the intensity")
    assert "the intensity is right: 0.3334 FLOP/B" in said(capsys)
    check.number(13_631_488, 13_631_488, unit="B", name="the sum")
    assert "the sum is right: 13,631,488 B" in said(capsys)
    with fails("array of shape"):
        check.number([1, 2], 1.0)
    with pytest.raises(CheckFailed) as caught:
        check.number(5.0, 7.25)
    assert "7.25" not in str(caught.value), "the answer is given away"
    with fails("you forgot to divide"):
        check.number(5.0, 7.25, mistakes=[(5.0, "you forgot to divide")])


# ---- structure and cost


def test_structure(capsys: pytest.CaptureFixture[str]) -> None:
    report = machines.saxpy_report()
    check.structure(
        report, tiles=1, fifos=3, dma_channels=3, shim_channels=3, memtiles=0, columns=1, streams=3, depth={"x": 2}
    )
    assert "1 compute tiles with a worker" in said(capsys)
    check.structure(Run.of_report(report), cascades=0)
    check.structure(report.machine, memtile_channels=0)


@pytest.mark.parametrize(
    ("wanted", "words"),
    [
        ({"tiles": 4}, "compute tiles with a worker: 1, wanted 4"),
        ({"dma_channels": 2}, "DMA channels on compute tiles: 3, wanted 2"),
        ({"depth": {"x": 3}}, "buffers of fifo 'x' on a tile: 2, wanted 3"),
        ({"depth": {"q": 2}}, "there is no fifo 'q'"),
        ({"kernels": ["saxpy_bf16"]}, "does not declare saxpy_bf16"),
    ],
)
def test_structure_says_what_is_there_and_what_is_wanted(wanted: dict[str, Any], words: str) -> None:
    with fails(words, "Hint: one worker a tile"):
        check.structure(machines.saxpy_machine(), hint="one worker a tile", **wanted)


def test_structure_knows_mistakes() -> None:
    with fails("you left out the fifos"):
        mistakes = [(lambda machine, counts: len(machine.cores) == 1, "you left out the fifos")]
        check.structure(machines.saxpy_machine(), tiles=2, mistakes=mistakes)


def test_structure_refuses_what_it_cannot_look_at() -> None:
    with pytest.raises(TypeError, match="unknown count workers"):
        check.structure(machines.saxpy_machine(), workers=1)
    with pytest.raises(TypeError, match="no structure"):
        check.structure(Run("measured", device("npu1"), 1.0), tiles=1)
    with fails("still empty"):
        check.structure(None, tiles=1)


def test_cost_within_limits(capsys: pytest.CaptureFixture[str]) -> None:
    check.cost(machines.saxpy_report(), level="ddr", bytes=98304, l1_bytes=65536, cycles=20_000)
    line = said(capsys)
    assert (
        "DDR (shim DMA) moved 98,304 B" in line and "(0,2) 13,312 B" in line and "simulated time 18,131 cycles" in line
    )


def test_a_wasteful_answer_passes_and_is_seen_to_be_one(capsys: pytest.CaptureFixture[str]) -> None:
    check.cost(machines.saxpy_report(), level="ddr", bytes=(49152, 100_000))
    assert "score 50%: 49,152 B is possible" in said(capsys)
    check.cost(machines.saxpy_report(), level="ddr", bytes=(98304, 100_000))
    assert "as good as the best known" in said(capsys)


@pytest.mark.parametrize(
    ("limit", "words"),
    [
        ({"level": "ddr", "bytes": 90_000}, "98,304 B, at most 90,000 B"),
        ({"l1_bytes": 8192}, "13,312 B, at most 8,192 B"),
        ({"cycles": (9_000, 10_000)}, "18,131 cycles, at most 10,000 cycles"),
    ],
)
def test_cost_beyond_a_limit(limit: dict[str, Any], words: str) -> None:
    with fails("right, but it costs too much", words, "Hint: use broadcast"):
        check.cost(Run.of_report(machines.saxpy_report()), hint="use broadcast", **limit)


def test_cost_refuses_half_a_question_and_measured_runs() -> None:
    with pytest.raises(ValueError, match="together"):
        check.cost(machines.saxpy_report(), bytes=3)
    measured = Run("measured", device("npu1"), 1.0)
    for limit in ({"cycles": 3}, {"level": "ddr", "bytes": 3}):
        with pytest.raises(ValueError, match="measured"):
            check.cost(measured, **limit)  # type: ignore[arg-type]


# ---- whole designs


@pytest.fixture
def scale(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    monkeypatch.setattr(backend, "_current", None)
    npulab.use("sim", "npu1", quiet=True)
    yield npulab.load(DESIGNS / "scale.py").build
    finder.deactivate()


X = np.arange(256, dtype=np.int32)


def test_a_design_that_is_right_in_every_way(scale: Any, capsys: pytest.CaptureFixture[str]) -> None:
    run = check.design(
        scale,
        [X, 0 * X],
        3 * X,
        structure={"tiles": 1, "depth": {"x": 2}},
        cost={"level": "ddr", "bytes": (2048, 4096)},
    )
    assert isinstance(run, Run)
    out = capsys.readouterr().out
    assert out.count("ok: ") == 3 and "as good as the best known" in out


def test_a_design_with_wrong_values(scale: Any) -> None:
    with fails("the result is wrong", "Hint: it is the factor"):
        check.design(scale, [X, 0 * X], 4 * X, hint="it is the factor")


def test_a_design_that_is_built_differently(scale: Any) -> None:
    with fails("built differently"):
        check.design(scale, [X, 0 * X], 3 * X, structure={"tiles": 2})


def test_a_design_with_another_number_of_outputs(scale: Any) -> None:
    with fails("writes 1 of its arguments, wanted 2"):
        check.design(scale, [X, 0 * X], (X, X))


def test_a_design_that_is_refused_fails_with_the_simulators_words(scale: Any) -> None:
    with fails("does not run", "DesignError", "takes 2 arguments"):
        check.design(scale, [X], 3 * X)


@pytest.mark.parametrize("empty", EMPTY)
def test_no_design_at_all(scale: Any, empty: Any) -> None:
    with fails("your design is still empty"):
        check.design(empty, [X], X)


def test_a_build_function_that_returns_nothing(scale: Any) -> None:
    def skeleton(on: str) -> None: ...

    with fails("your design is still empty"):
        check.design(skeleton, [X], X)


def test_a_jit_function_that_returns_nothing(scale: Any) -> None:
    with fails("your design is still empty"):
        check.design(DESIGNS / "skeleton.py", [X, X], X)


def test_a_design_with_a_hole(scale: Any) -> None:
    def half(on: str) -> object:
        tile = ...
        return tile + 1  # type: ignore[operator]

    with fails("part of your design is still empty"):
        check.design(half, [X], X)


def test_other_errors_in_a_learners_design_keep_their_traceback(scale: Any) -> None:
    def broken(on: str) -> object:
        return "a" + 1  # type: ignore[operator]

    with pytest.raises(TypeError, match="str"):
        check.design(broken, [X], X)


@pytest.mark.parametrize(
    ("args", "words"), [([X], ["DesignError", "Hint: two arrays"]), ([X, 0 * X], ["TypeError", "in core, line", r"a \+ b"])]
)
def test_foreseen_errors_have_a_hint(scale: Any, args: list[Any], words: list[str]) -> None:
    known = [("takes 2 arguments", "two arrays"), ("unsupported operand", "one element at a time")]
    design = scale if len(args) == 1 else npulab.load(DESIGNS / "whole.py").build
    with fails("the design does not run", *words):
        check.design(design, args, X, errors=known)


def test_loops_and_library_kernels_are_part_of_the_structure(scale: Any) -> None:
    machine = npulab.machine(npulab.load(DESIGNS / "jitted.py"), n=64)
    check.structure(machine, loops=1)
    with fails("loops in the cores' programs: 1, wanted 2"):
        check.structure(machine, loops=2)
    machine.kernels = dict.fromkeys(["0123abcd_bf16_relu", "my_relu"])  # type: ignore[arg-type]
    check.structure(machine, kernels=["bf16_relu", "my_relu"])
    with fails("does not declare relu"):
        check.structure(machine, kernels=["relu"])


# ---- how a failure looks


def test_a_notebook_shows_the_message_without_the_stack() -> None:
    from IPython.core.interactiveshell import InteractiveShell

    shell = InteractiveShell.instance()
    with pytest.raises(CheckFailed) as caught:
        check.number(1.0, 2.0, hint="count both loads")
    lines = "\n".join(caught.value._render_traceback_())
    assert "count both loads" in lines and "Traceback" not in lines
    result = shell.run_cell("from npulab import check\ncheck.number(1.0, 2.0, hint='count both loads')")
    assert isinstance(result.error_in_exec, CheckFailed)
    InteractiveShell.clear_instance()

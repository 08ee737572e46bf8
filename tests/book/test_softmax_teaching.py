"""The exercises of the softmax chapter teach: its solutions pass, and each mistake that people make gets a hint that fits."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from ml_dtypes import bfloat16

from designs.kernels.arithmetic import AIE2P, AIE2P_EXACT, LOWEST, Arithmetic, exp2_exact
from designs.kernels.models_matmul import matmul_pv
from designs.kernels.models_softmax import divide_output, online_softmax, rescale_output
from npulab.check import CheckFailed
from npusim.frontends import finder
from tests.book.chapter import Chapter, fails

PREPARED = "import numpy as np\nfrom ml_dtypes import bfloat16\n"


@pytest.fixture(scope="module")
def chapter() -> Iterator[Chapter]:
    made = Chapter("softmax", "use", "minus-infinity", "checks", "weighted-setup", prepared=PREPARED)
    made.prepare("LOWEST = float(lowest)")
    yield made
    finder.deactivate()


# ---- 1: two halves


def test_merge_solution(chapter: Chapter, capsys: pytest.CaptureFixture[str]) -> None:
    chapter.attempt("merge", "merge")
    chapter.attempt("merge", "merge", merge="m = np.maximum(m1, m2)\nl = np.exp(m1 - m) * l1 + np.exp(m2 - m) * l2")
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
def test_merge_mistakes(chapter: Chapter, answer: str, hint: str) -> None:
    with fails(hint):
        chapter.attempt("merge", "merge", merge=answer)


def test_merge_that_is_half_done(chapter: Chapter) -> None:
    with pytest.raises(CheckFailed, match="l is still empty"):
        chapter.attempt("merge", "merge", merge="m = max(m1, m2)")


# ---- 2: in one pass

LARGER = "larger = np.maximum(m, s.max(axis=1))\n"
SUM = "l = l * np.exp(m - larger) + np.exp(s - larger[:, None]).sum(axis=1)\n"
KEEP = "m = larger"


def test_online_solution(chapter: Chapter, capsys: pytest.CaptureFixture[str]) -> None:
    chapter.attempt("online", "online")
    chapter.attempt("online", "online", online=LARGER + SUM + KEEP)
    assert capsys.readouterr().out.count("ok: m and l are right") == 2


@pytest.mark.parametrize(
    ("answer", "hint"),
    [
        (LARGER + SUM.replace(" * np.exp(m - larger)", "") + KEEP, "when the maximum grows"),
        (LARGER + SUM.replace("l * np.exp(m - larger) + ", "") + KEEP, "add to what l was"),
        (LARGER + "l = (l + np.exp(s - larger[:, None]).sum(axis=1)) * np.exp(m - larger)\n" + KEEP, "first correct, then add"),
        (LARGER + SUM.replace("m - larger", "larger - m") + KEEP, "at most 1|infinity times 0"),
        (LARGER.replace("np.maximum(m, s.max(axis=1))", "s.max(axis=1)") + SUM + KEEP, "the larger of the old one"),
        (LARGER.replace("np.maximum(m, ", "np.maximum(np.where(m == LOWEST, -np.inf, m), ") + SUM + KEEP, "start the maximum at LOWEST"),
        (LARGER + SUM, "keep the larger maximum"),
        ("m = np.maximum(m, s.max(axis=1))\nl = l + np.exp(s - m[:, None]).sum(axis=1)", "when the maximum grows"),
        ("s = np.concatenate([s, *pieces], axis=1)\n" + LARGER + SUM + KEEP, "they pass once"),
    ],
)  # fmt: skip
def test_online_mistakes(chapter: Chapter, answer: str, hint: str) -> None:
    with fails(hint):
        chapter.attempt("online", "online", online=answer)


# ---- 3: a weighted sum

WEIGHTED = ("weighted-body", "weighted-design")
LOOP = "for _ in range_(blocks):\n"
STEP = "    step(s_in.acquire(1), p, m, l, r, scale)\n"
RESCALE = "    rescale(r, o)\n"
MULTIPLY = "    multiply(p, v_in.acquire(1), o)\n"
GIVE = "    s_in.release(1)\n    v_in.release(1)\n"
DIVIDE = "divide(l, o)\n"


def test_weighted_solution(chapter: Chapter, capsys: pytest.CaptureFixture[str]) -> None:
    chapter.attempt("weighted", *WEIGHTED)
    out = capsys.readouterr().out
    assert out.count("ok: ") == 3 and "as good as the best known" in out and "add up to 0.997 on average" in out


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
def test_weighted_mistakes(chapter: Chapter, body: str, hint: str) -> None:
    with fails(hint):
        chapter.attempt("weighted", *WEIGHTED, weighted_body=body)


def test_why_the_weights_do_not_add_up_to_one() -> None:
    """The last column of O by the kernels' own models, one thing changed at a time, as the worked answer has it."""
    linear, exact, bf16 = (sums(a) for a in (AIE2P, EXACT_POWERS, AIE2P_EXACT))
    assert abs(linear.mean() - exact.mean()) < 0.001, "the linear exponential is not the cause"
    assert linear.mean() < 0.998 < 0.9985 < bf16.mean(), "BFP16 products are, of the mean"
    assert abs(bf16 - 1).max() > 2 * 2.0**-8, "and many roundings to bf16, of single rows"


EXACT_POWERS = Arithmetic("BFP16 products, exact powers", True, exp2_exact)


def sums(a: Arithmetic, rows: int = 64, keys: int = 1024) -> Any:
    """What each row's weights add up to, by the loop of the solution; shape (rows,)."""
    s = (16 * np.random.default_rng(8).standard_normal((keys // 64, rows, 64))).astype(bfloat16)
    p, v, o = np.empty((rows, 64), bfloat16), np.ones((64, 64), bfloat16), np.zeros((rows, 64), bfloat16)
    m, l, r = (np.full(rows, value, bfloat16) for value in (LOWEST, 0, 0))
    for block in s:
        online_softmax(a, block, p, m, l, r, np.log2(np.e) / 8)
        rescale_output(a, r, o)
        matmul_pv(a, p, v, o)
    divide_output(a, l, o)
    return o[:, 0].astype(np.float64)


def test_too_much_work_costs_too_much(chapter: Chapter) -> None:
    idle = "for _ in range_(2000):\n    zero_l(r)\n"
    with pytest.raises(CheckFailed, match="costs too much"):
        chapter.attempt("weighted", *WEIGHTED, weighted_body=idle + LOOP + STEP + RESCALE + MULTIPLY + GIVE + DIVIDE)

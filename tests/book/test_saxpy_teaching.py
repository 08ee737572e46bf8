"""The exercises of the SAXPY chapter teach: its solutions pass, and each mistake that people make gets a hint that fits."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from npulab.check import CheckFailed
from npusim.frontends import finder
from tests.book.chapter import Chapter, code, fails, solution


@pytest.fixture(scope="module")
def chapter() -> Iterator[Chapter]:
    yield Chapter("saxpy", "use", "array", "by-hand", "predict-all", "run-it", "checks", "add-setup")
    finder.deactivate()


# ---- 1: by hand

RIGHT = {"bytes_moved": "4 * n", "intensity": "1 / 4", "least_cycles": "n / 2"}


def by_hand(chapter: Chapter, **wrong: str) -> None:
    answers = {**RIGHT, **wrong}
    chapter.attempt("scale", "scale", scale="\n".join(f"{name} = {value}" for name, value in answers.items()))


def test_scale_solution(chapter: Chapter, capsys: pytest.CaptureFixture[str]) -> None:
    chapter.attempt("scale", "scale")
    by_hand(chapter)
    assert capsys.readouterr().out.count("ok: ") == 6


@pytest.mark.parametrize(
    ("name", "wrong", "hint"),
    [
        ("bytes_moved", "6 * n", "only written"),
        ("bytes_moved", "2 * n", "both vectors"),
        ("bytes_moved", "2 + 2", "one element"),
        ("bytes_moved", "8 * n", "2 bytes"),
        ("bytes_moved", "32 * n", "bits or bytes"),
        ("intensity", "bytes_moved / n", "the other way round"),
        ("intensity", "2 * n / bytes_moved", "no addition"),
        ("intensity", "1 / 3", "that is SAXPY"),
        ("least_cycles", "bytes_moved / 12", "how many does this design use"),
        ("least_cycles", "bytes_moved / 4", "at the same time"),
        ("least_cycles", "n / 2 / clock_hz * 1e6", "not microseconds"),
    ],
)
def test_scale_mistakes(chapter: Chapter, name: str, wrong: str, hint: str) -> None:
    with fails(hint):
        by_hand(chapter, **{name: wrong})


# ---- 2: a core body

ADD = ("add-body", "add-design")
TAKE = "a, b, out = x_in.acquire(1), y_in.acquire(1), y_out.acquire(1)\n"
SUM = "for i in range_(TILE):\n    out[i] = a[i] + b[i]\n"
GIVE = "x_in.release(1)\ny_in.release(1)\ny_out.release(1)\n"


def test_add_solution(chapter: Chapter, capsys: pytest.CaptureFixture[str]) -> None:
    chapter.attempt("add", *ADD)
    out = capsys.readouterr().out
    assert out.count("ok: ") == 3 and "times the bound" in out


@pytest.mark.parametrize(
    ("body", "hint"),
    [
        (TAKE + SUM + "y_out.release(1)\n", "release both inputs"),
        (TAKE + SUM + "x_in.release(1)\ny_out.release(1)\n", "release both inputs"),
        (TAKE + SUM + "x_in.release(1)\ny_in.release(1)\n", "one release for each acquire"),
        (TAKE + "out[0] = a[0] + b[0]\n" + GIVE, "loop over all TILE"),
        (TAKE + SUM.replace("+", "*") + GIVE, "not the product"),
        (TAKE + SUM.replace("a[i] + b[i]", "b[i]") + GIVE, "stored into the output"),
        (TAKE + "c = a + b\n" + GIVE, "one element at a time"),
        (TAKE + SUM.replace("range_", "range") + GIVE, "use range_"),
        (TAKE + SUM.replace("TILE", "TILE + 1") + GIVE, "TILE elements, numbered from 0"),
        (TAKE + "for _ in range_(objects):\n    " + SUM.replace("\n    ", "\n        ") + GIVE, "use range_"),
    ],
)
def test_add_mistakes(chapter: Chapter, body: str, hint: str) -> None:
    with fails(hint):
        chapter.attempt("add", *ADD, add_body=body)


# ---- 3: a design

RELU = ("relu-body", "relu-design")
BOTH = "saxpy_bf16(x_in.acquire(1), y_in.acquire(1), between, a)\nrelu(between, y_out.acquire(1))\n"
WORKER = solution(code("saxpy")["relu-design"])


def test_relu_solution(chapter: Chapter, capsys: pytest.CaptureFixture[str]) -> None:
    chapter.attempt("relu", *RELU)
    out = capsys.readouterr().out
    assert out.count("ok: ") == 3 and "as good as the best known" in out


@pytest.mark.parametrize(
    ("body", "worker", "hint"),
    [
        ("saxpy_bf16(x_in.acquire(1), y_in.acquire(1), y_out.acquire(1), a)\n" + GIVE, WORKER, "relu has not been"),
        (
            "x = x_in.acquire(1)\nrelu(x, between)\nsaxpy_bf16(between, y_in.acquire(1), y_out.acquire(1), a)\n" + GIVE,
            WORKER,
            "comes after the addition",
        ),
        (
            "y = y_in.acquire(1)\nsaxpy_bf16(x_in.acquire(1), y, between, a)\nrelu(y, y_out.acquire(1))\n" + GIVE,
            WORKER,
            "relu of y alone",
        ),
        (BOTH + "x_in.release(1)\ny_in.release(1)\n", WORKER, "one release for each acquire"),
        (BOTH + GIVE, WORKER.replace("between]", "between, between]"), "item by item"),
        (BOTH + GIVE, WORKER.replace(", a, n", ", n"), "item by item"),
        (
            BOTH.replace("relu(between, ", "relu(between[0], between[1])\nrelu(between[1], ").replace("between, a", "between[0], a") + GIVE,
            WORKER.replace("between]", "[between, Buffer(TileType, name='more')]]"),
            "one buffer of TILE elements is enough",
        ),
    ],
)
def test_relu_mistakes(chapter: Chapter, body: str, worker: str, hint: str) -> None:
    with fails(hint):
        chapter.attempt("relu", *RELU, relu_body=body, relu_design=worker)


def test_relu_through_a_further_fifo(chapter: Chapter) -> None:
    """A fifo from the tile to itself holds the intermediate result too, but it is not what was asked for."""
    body = (
        "s_out, s_in = between\nsaxpy_bf16(x_in.acquire(1), y_in.acquire(1), s_out.acquire(1), a)\ns_out.release(1)\n"
        "relu(s_in.acquire(1), y_out.acquire(1))\ns_in.release(1)\n" + GIVE
    )
    worker = WORKER.replace('Buffer(TileType, name="between")', 'ObjectFifo(TileType, name="s")').replace(
        "between]", "[between.prod(), between.cons()]]"
    )
    with fails("no further worker, no further fifo"):
        chapter.attempt("relu", *RELU, relu_body=body, relu_design=worker)


# ---- all of them


@pytest.mark.parametrize(("exercise", "cells"), [("scale", ("scale",)), ("add", ADD), ("relu", RELU)])
def test_an_untouched_skeleton_is_told_to_begin(chapter: Chapter, exercise: str, cells: tuple[str, ...]) -> None:
    with pytest.raises(CheckFailed, match=r"still empty"):
        chapter.untouched(exercise, *cells)

"""Shim access patterns: the recorded probes of the real compiler, and that cutting keeps the order of elements."""

from __future__ import annotations

import itertools
import math
import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from npusim.place.access import Pattern, Refusal, as_walked, encode

PROBES = (Path(__file__).parents[2] / "data" / "reference" / "semantics" / "shim_bd_probes.txt").read_text()
WIDTH = {"i8": 1, "bf16": 2, "i32": 4}

# name of the probe -> element, sizes, strides (outermost first), offset
CASES: dict[str, tuple[str, tuple[int, ...], tuple[int, ...], int]] = {
    "bf16 s2": ("bf16", (1, 1, 1, 64), (0, 0, 0, 2), 0),
    "bf16 s1": ("bf16", (1, 1, 1, 64), (0, 0, 0, 1), 0),
    "i32 s2": ("i32", (1, 1, 1, 64), (0, 0, 0, 2), 0),
    "i32 s3 2d": ("i32", (1, 1, 8, 8), (0, 0, 64, 3), 0),
    "bf16 s2 2d": ("bf16", (1, 1, 8, 8), (0, 0, 64, 2), 0),
    "i8 inner 3": ("i8", (1, 1, 4, 3), (0, 0, 64, 1), 0),
    "i8 inner 3 lin": ("i8", (1, 1, 1, 3), (0, 0, 0, 1), 0),
    "i32 lin 4096": ("i32", (1, 1, 1, 4096), (0, 0, 0, 1), 0),
    "i32 1024 s2": ("i32", (1, 1, 1, 1024), (0, 0, 0, 2), 0),
    "i32 d1 1024": ("i32", (1, 1, 1024, 4), (0, 0, 8, 1), 0),
    "i32 d1 2048x16": ("i32", (1, 1, 2048, 16), (0, 0, 16, 1), 0),
    "i32 d2 1024": ("i32", (1, 1024, 2, 4), (0, 16, 8, 1), 0),
    "i32 d0 1024+d1": ("i32", (1, 1, 4, 1024), (0, 0, 2048, 1), 0),
    "i32 d0 2046 d1 4": ("i32", (1, 1, 4, 2046), (0, 0, 2048, 1), 0),
    "rep 64": ("i32", (64, 1, 1, 64), (0, 0, 0, 1), 0),
    "rep 65": ("i32", (65, 1, 1, 64), (0, 0, 0, 1), 0),
    "rep 256": ("i32", (256, 1, 1, 64), (0, 0, 0, 1), 0),
    "rep 3 stride": ("i32", (3, 1, 1, 64), (1024, 0, 0, 1), 0),
    "off odd bf16": ("bf16", (1, 1, 1, 64), (0, 0, 0, 1), 1),
    "off odd i8": ("i8", (1, 1, 1, 64), (0, 0, 0, 1), 2),
    "stride 2^20": ("i32", (1, 1, 2, 4), (0, 0, 1 << 20, 1), 0),
    "stride 2^20+1": ("i32", (1, 1, 2, 4), (0, 0, (1 << 20) + 1, 1), 0),
    "zero stride d1": ("i32", (1, 1, 4, 16), (0, 0, 0, 1), 0),
    "zero stride d0": ("i32", (1, 1, 1, 16), (0, 0, 0, 0), 0),
    "rep 128": ("i32", (128, 1, 1, 64), (0, 0, 0, 1), 0),
    "rep 255": ("i32", (255, 1, 1, 64), (0, 0, 0, 1), 0),
    "rep 257": ("i32", (257, 1, 1, 64), (0, 0, 0, 1), 0),
    "rep 65 st": ("i32", (65, 1, 1, 64), (64, 0, 0, 1), 0),
    "rep 64 st2": ("i32", (64, 1, 1, 64), (1024, 0, 0, 2), 0),
    "1024 x2 s4": ("i32", (1, 1, 1024, 2), (0, 0, 4, 1), 0),
    "2048 x2 s4": ("i32", (1, 1, 2048, 2), (0, 0, 4, 1), 0),
    "2048 x1 s4": ("i32", (1, 1, 2048, 1), (0, 0, 4, 1), 0),
    "1031(prime) d0 s2": ("i32", (1, 1, 1, 1031), (0, 0, 0, 2), 0),
    "1031 d1": ("i32", (1, 1, 1031, 4), (0, 0, 8, 1), 0),
    "4d all": ("i32", (2, 3, 4, 5), (1000, 100, 10, 1), 0),
    "4d all big d0 1030": ("i32", (2, 3, 4, 1030), (100000, 10000, 2000, 1), 0),
}


def answer(name: str) -> str:
    """What the real compiler said to a probe: ``OK [words]`` or ``ERR message``."""
    found = re.search(rf"^{re.escape(name)} ((?:OK|ERR) .*)$", PROBES, re.MULTILINE)
    assert found, name
    return found.group(1)


def encoded(name: str) -> list[Pattern] | Refusal:
    element, sizes, strides, offset = CASES[name]
    return encode(Pattern.of(sizes, strides, offset), math.prod(sizes[1:]), WIDTH[element])


@pytest.mark.parametrize("name", CASES)
def test_accepted_and_refused_as_by_the_real_compiler(name: str) -> None:
    result, real = encoded(name), answer(name)
    if real.startswith("OK"):
        assert not isinstance(result, Refusal), result
    else:
        assert isinstance(result, Refusal)
        phrase = result.phrase if isinstance(result.phrase, str) else result.phrase[0]
        assert phrase[:60] in real  # its exact words, as far as they were recorded


def registers(piece: Pattern, element: str) -> dict[str, int]:
    """The fields that the recorded descriptor words hold for a pattern that is not contiguous."""
    width = WIDTH[element]
    words = piece.sizes[0] * width // 4
    step = [max(s * width // 4 - 1, 0) if n > 1 else 0 for n, s in zip(piece.sizes, piece.strides, strict=True)]
    return {
        "length": piece.per_iteration * width // 4,
        "d0": words,
        "d1": piece.sizes[1],
        "s0": step[0],
        "s1": step[1],
        "s2": step[2],
    }


@pytest.mark.parametrize("name", [n for n in CASES if answer(n).startswith("OK") and "rep" not in n])
def test_the_pieces_are_those_of_the_real_compiler(name: str) -> None:
    """The first descriptor of each probe was recorded as its eight register words."""
    words = [int(w) & 0xFFFFFFFF for w in re.search(r"\[(-?\d+(?:, -?\d+)*)\]", answer(name)).group(1).split(",")]  # type: ignore[union-attr]
    result = encoded(name)
    assert not isinstance(result, Refusal)
    theirs = {
        "length": words[0],
        "d0": words[3] >> 20,
        "d1": (words[4] >> 20) & 0x3FF,
        "s0": words[3] & 0xFFFFF,
        "s1": words[4] & 0xFFFFF,
        "s2": words[5] & 0xFFFFF,
    }
    if result[0].contiguous:
        assert theirs == {"length": words[0], "d0": 0, "d1": 0, "s0": 0, "s1": 0, "s2": 0}
        assert words[0] == math.prod(CASES[name][1]) * WIDTH[CASES[name][0]] // 4
    else:
        assert registers(result[0], CASES[name][0]) == theirs
    further = int(re.search(r"(\d+) bds", answer(name)).group(1)) - 3  # type: ignore[union-attr]
    assert len(result) == (2 if further == 2 else 1)


def elements(pattern: Pattern) -> list[int]:
    """Every element index in order, by brute force."""
    ranges = [range(n) for n, _ in pattern.dims]
    strides = [s for _, s in pattern.dims]
    return [pattern.offset + sum(i * s for i, s in zip(at, strides, strict=True)) for at in itertools.product(*ranges)]


@settings(max_examples=60, deadline=None)
@given(
    sizes=st.tuples(st.integers(1, 3), st.integers(1, 4), st.integers(1, 2600)),
    strides=st.tuples(st.integers(1, 9), st.integers(1, 9), st.integers(1, 9)),
    offset=st.integers(0, 9),
)
def test_cutting_keeps_every_element_in_order(sizes: tuple[int, ...], strides: tuple[int, ...], offset: int) -> None:
    pattern = Pattern.of((1, *sizes), (0, *strides), offset)
    result = encode(pattern, math.prod(sizes), 4)
    if not isinstance(result, Refusal):
        assert [e for piece in result for e in elements(piece)] == elements(pattern)
        assert len(result) <= 16


def test_what_the_shim_walks_with_small_elements() -> None:
    """Two bf16 at each step: an inner stride of 2 reads contiguously, one of 4 takes every other pair."""
    assert as_walked(((64, 2),), 2) == ((32, 2), (2, 1))
    assert as_walked(((8, 100), (4, 4)), 2) == ((8, 100), (2, 4), (2, 1))
    assert as_walked(((64, 2),), 4) == ((64, 2),)
    assert as_walked(((64, 1),), 1) == ((64, 1),)

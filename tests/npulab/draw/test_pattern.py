"""Access patterns."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from npulab import draw
from npulab.draw.pattern import _Pattern, walk
from tests.npulab.draw.pictures import legible, texts


@dataclass
class Tap:
    """Looks like a tensor access pattern of the real package."""

    tensor_dims: tuple[int, ...]
    offset: int
    sizes: list[int] = field(default_factory=list)
    strides: list[int] = field(default_factory=list)


TILED = [(2, 32), (2, 4), (4, 8), (4, 1)]
EVERY = {
    "tiled": lambda: draw.pattern(TILED, (8, 8)),
    "repeated": lambda: draw.pattern([(4, 4), (2, 0), (4, 1)], (4, 4), frames=4),
    "large": lambda: draw.pattern([(8, 8), (512, 64), (8, 1)], (512, 64)),
    "line": lambda: draw.pattern([(3, 8), (8, 1)]),
    "tap": lambda: draw.pattern(Tap((4, 8), 8, [2, 4], [8, 2])),
    "sequence": lambda: draw.pattern([Tap((4, 8), 8 * i, [1, 8], [0, 1]) for i in range(4)]),
    "no frames": lambda: draw.pattern(TILED, (8, 8), frames=0),
}


@pytest.mark.parametrize("name", EVERY)
def test_words_neither_overlap_nor_leave_the_picture(name: str) -> None:
    legible(EVERY[name]())


@given(st.lists(st.tuples(st.integers(1, 4), st.integers(0, 5)), min_size=1, max_size=4), st.integers(0, 9))
def test_walk_is_nested_loops(dims: list[tuple[int, int]], offset: int) -> None:
    loops = itertools.product(*(range(size) for size, _ in dims))
    want = [offset + sum(i * stride for i, (_, stride) in zip(index, dims)) for index in loops]
    assert walk(dims, offset).tolist() == want


def test_order_and_count() -> None:
    p = _Pattern([[(4, 4), (2, 0), (4, 1)]], (4, 4))
    assert p.count.tolist() == [2] * 16
    assert p.first.reshape(4, 4)[1].tolist() == [8, 9, 10, 11]


def test_elements_never_visited_are_empty() -> None:
    p = _Pattern([[(4, 2)]], (8,))
    assert np.isnan(p.first[1::2]).all() and p.count[1::2].sum() == 0
    assert "4 visits to 4 of 8 elements" in p.words()


def test_the_alternative_lists_the_order() -> None:
    assert "Elements in order: 0, 1, 2, 3, 8, 9, 10, 11, 16" in draw.pattern(TILED, (8, 8)).alt


def test_numbers_in_the_cells_are_the_order() -> None:
    numbers = [t for t in texts(EVERY["tiled"]()) if t.isdigit()]
    assert sorted(map(int, numbers[:64])) == list(range(64))


def test_a_sequence_shows_one_frame_a_pattern() -> None:
    assert [t for t in texts(EVERY["sequence"]()) if t.startswith("pattern ")] == [f"pattern {i}" for i in range(4)]


def test_a_long_sequence_says_how_much_of_it_is_shown() -> None:
    picture = draw.pattern([Tap((4, 8), 4 * i, [1, 4], [0, 1]) for i in range(8)], frames=3)
    assert any("(the first 3 of 8 patterns)" in t for t in texts(picture))


def test_large_tensors_are_shown_in_blocks() -> None:
    picture = EVERY["large"]()
    assert "A cell stands for 8 by 1 elements" in picture.alt
    assert len(picture.svg) < 400_000


@pytest.mark.parametrize(("dims", "shape"), [([(9, 1)], (8,)), ([(2, 8), (4, 3)], (4, 4))])
def test_visits_outside_the_tensor_are_refused(dims: list[tuple[int, int]], shape: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="visits elements"):
        draw.pattern(dims, shape)


def test_an_offset_before_the_tensor_is_refused() -> None:
    with pytest.raises(ValueError, match="-1 to"):
        draw.pattern(Tap((8,), -1, [4], [1]))

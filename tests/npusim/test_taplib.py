"""Access patterns and tilers: the recorded answers of the real package, and properties against brute force."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from npusim.errors import DesignError, UnsupportedError
from npusim.frontends.iron.taplib import TensorAccessPattern, TensorAccessSequence
from npusim.frontends.iron.tiler import TensorTiler2D

P = TensorAccessPattern


def texts(sequence):
    return [str(tap).removeprefix("TensorAccessPattern((4, 8) ").removesuffix(")") for tap in sequence]


def test_recorded_repr():
    assert str(P((4, 8), 2, [2, 4], [8, 1])) == "TensorAccessPattern((4, 8) offset=2, sizes=[2, 4], strides=[8, 1])"
    assert str(P((4096,), 0, [1, 1, 1, 4096], [0, 0, 0, 1])) == (
        "TensorAccessPattern([1, 4096] offset=0, sizes=[1, 1, 1, 4096], strides=[0, 0, 0, 1])"
    )


@pytest.mark.parametrize(
    ("offset", "sizes", "strides", "message"),
    [
        (0, [2], [8, 1], r"len\(sizes\) \(1\) != len\(strides\) \(2\)"),
        (0, [4, 8], [-8, 1], r"All strides must be >= 0, but got \[-8, 1\]"),
        (0, [0, 4], [8, 1], r"All sizes must be >= 1, but got \[0, 4\]"),
        (99, [4, 8], [8, 1], "Offset too large: 99. Max value allowed for tensor: 32"),
        (-1, [4, 8], [8, 1], "Offset must be >= 0"),
        (0, [], [], "must be >0"),
    ],
)
def test_recorded_refusals(offset, sizes, strides, message):
    with pytest.raises(ValueError, match=message):
        P((4, 8), offset, sizes, strides)


def test_more_steps_than_the_tensor_has_wrap_round():
    assert P((4, 8), 0, [5, 8], [8, 1]).access_count()[0].tolist() == [2] * 8


def test_properties_are_copies():
    tap = P((4, 8), 0, [2, 4], [8, 1])
    tap.sizes[0] = 99
    assert tap.sizes == [2, 4]
    assert tap.transformation_dims == [(2, 8), (4, 1)]


walks = st.tuples(
    st.integers(0, 23),
    st.lists(st.tuples(st.integers(1, 4), st.integers(0, 9)), min_size=1, max_size=4),
)


@given(walks)
def test_maps_against_brute_force(case):
    offset, dims = case
    order, count = np.full(24, -1), np.zeros(24, int)
    steps = itertools.product(*(range(size) for size, _ in dims))
    touched = [(offset + sum(i * stride for i, (_, stride) in zip(at, dims))) % 24 for at in steps]
    for step, index in enumerate(touched):
        order[index] = step
        count[index] += 1
    tap = P((4, 6), offset, *zip(*dims))
    assert list(tap.access_generator()) == touched
    assert np.array_equal(tap.accesses()[0], order.reshape(4, 6))
    assert np.array_equal(tap.accesses()[1], count.reshape(4, 6))


def test_comparing():
    rows, flat = P((4, 8), 0, [4, 8], [8, 1]), P((4, 8), 0, [32], [1])
    assert rows.compare_access_orders(flat)
    assert rows != flat
    assert rows == P((4, 8), 0, [4, 8], [8, 1])
    assert not rows.compare_access_orders(P((4, 8), 0, [31], [1]))
    with pytest.raises(ValueError, match="another TensorAccessPattern"):
        rows.compare_access_orders("rows")


def test_sequences_from_functions():
    columns = TensorAccessSequence((4, 8), 8, 0, [4], [8], offset_fn=lambda step, _: step)
    assert [tap.offset for tap in columns] == list(range(8))
    assert columns.access_order().T.reshape(-1).tolist() == list(range(32))
    growing = TensorAccessSequence((4, 8), 3, 0, [1], [1], sizes_fn=lambda _, sizes: [sizes[0] + 1])
    assert [tap.sizes for tap in growing] == [[2], [3], [4]]


def test_sequences_are_lists_over_one_tensor():
    a, b = P((4, 8), 0, [8], [1]), P((4, 8), 8, [8], [1])
    sequence = TensorAccessSequence.from_taps([a])
    sequence.append(b)
    assert len(sequence) == 2
    assert b in sequence
    sequence[0] = b
    del sequence[1]
    assert list(sequence) == [b]
    with pytest.raises(ValueError, match="tensor dims"):
        sequence.append(P((8, 4), 0, [8], [1]))
    with pytest.raises(ValueError, match="at least one"):
        TensorAccessSequence.from_taps([])
    with pytest.raises(ValueError, match="num_steps=0"):
        TensorAccessSequence((4, 8), 0, offset=0)
    with pytest.raises(ValueError, match="Sizes must be provided"):
        TensorAccessSequence((4, 8), 1, offset=0, strides=[1])


def test_recorded_simple_tiler():
    assert texts(TensorTiler2D.simple_tiler((4, 8), (2, 4))) == [
        f"offset={offset}, sizes=[1, 1, 2, 4], strides=[0, 0, 8, 1]" for offset in (0, 4, 16, 20)
    ]


def test_recorded_group_tiler():
    assert texts(TensorTiler2D.group_tiler((4, 8), (2, 4), (1, 2))) == [
        f"offset={offset}, sizes=[1, 2, 2, 4], strides=[0, 4, 8, 1]" for offset in (0, 16)
    ]


def test_tiler_refusals():
    with pytest.raises(ValueError, match=r"Tensor dimension 0 \(4\) is not divisible by tile dim \(3\)"):
        TensorTiler2D.simple_tiler((4, 8), (3, 4))
    with pytest.raises(ValueError, match="allow_partial"):
        TensorTiler2D.group_tiler((4, 8), (2, 2), (1, 3))
    with pytest.raises(ValueError, match="Ran out of dimensions"):
        TensorTiler2D.group_tiler((8, 8), (2, 2), (2, 2), pattern_repeat=2)
    with pytest.raises(ValueError, match="does not match expected dimension"):
        TensorTiler2D.simple_tiler((2, 8, 16))
    with pytest.raises(ValueError, match="Pattern repeat"):
        TensorTiler2D.simple_tiler((4, 8), pattern_repeat=0)
    with pytest.raises(DesignError, match="cannot be instantiated"):
        TensorTiler2D()


tilings = st.tuples(
    *(st.tuples(st.integers(1, 3), st.integers(1, 6), st.integers(1, 4), st.integers(1, 3)) for _ in "rc")
)


@given(tilings, st.booleans(), st.booleans(), st.booleans(), st.booleans())
def test_every_tiling_touches_every_element_once(axes, tile_col, group_col, iter_col, prune):
    (tile, tiles, repeats, steps) = zip(*axes)
    tensor = tuple(a * b for a, b in zip(tile, tiles))
    taps = TensorTiler2D.step_tiler(tensor, tile, repeats, steps, tile_col, group_col, iter_col, True, 1, prune)
    assert np.all(taps.access_count() == 1)


@pytest.mark.parametrize("tile_col", [False, True])
@pytest.mark.parametrize("group_col", [False, True])
@pytest.mark.parametrize("prune", [False, True])
def test_group_order_against_brute_force(tile_col, group_col, prune):
    """A group of 2x3 tiles of 2x4 elements, 1 and 2 tiles apart, in an 8x24 tensor: the first pattern, step by step."""
    first = TensorTiler2D.step_tiler((8, 24), (2, 4), (2, 3), (1, 2), tile_col, group_col, prune_step=prune)[0]
    tiles = [(r, c) for r in range(2) for c in range(3)]
    inner = [(i, j) for i in range(2) for j in range(4)]
    tiles.sort(key=lambda at: at[::-1] if group_col else at)
    inner.sort(key=lambda at: at[::-1] if tile_col else at)
    if prune and group_col and not tile_col:
        # tiles below each other become one tile of double height: the same order, one dimension less
        assert first.sizes[0] == 1
    expected = [(r * 2 + i) * 24 + c * 8 + j for r, c in tiles for i, j in inner]
    assert list(first.access_generator()) == expected


def test_iteration_order_and_repeat():
    by_columns = TensorTiler2D.simple_tiler((4, 8), (2, 4), iter_col_major=True, pattern_repeat=3)
    assert [tap.offset for tap in by_columns] == [0, 16, 4, 20]
    assert by_columns[0].sizes == [3, 1, 2, 4]
    assert by_columns.access_count().tolist() == [[3] * 8] * 4


def test_drawing_names_what_draws():
    with pytest.raises(UnsupportedError, match=r"npulab\.draw\.pattern"):
        P((4, 8), 0, [8], [1]).visualize()
    with pytest.raises(UnsupportedError, match=r"npulab\.draw\.pattern"):
        TensorTiler2D.simple_tiler((4, 8)).animate()

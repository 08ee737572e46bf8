"""DMA walks against a brute-force list of indices."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ml_dtypes import bfloat16

from npusim import walk
from npusim.errors import DesignError, UnsupportedError

dims_of = st.lists(st.tuples(st.integers(1, 5), st.integers(0, 40)), min_size=1, max_size=4).map(tuple)


def brute_force(offset, dims):
    """The indices of a walk as nested loops give them."""
    loops = itertools.product(*(range(size) for size, _ in dims))
    return [offset + sum(i * stride for i, (_, stride) in zip(at, dims)) for at in loops]


def brute_force_padded(offset, dims, pad):
    """The padded stream: an index, or None where an element is put in."""
    loops = itertools.product(*(range(-before, size + after) for (size, _), (before, after) in zip(dims, pad)))
    for at in loops:
        inside = all(0 <= i < size for i, (size, _) in zip(at, dims))
        yield offset + sum(i * stride for i, (_, stride) in zip(at, dims)) if inside else None


def memory(dims, offset=0, dtype=np.int32):
    """An array that the walk just fits into, each element its own index."""
    return np.arange(max(brute_force(offset, dims)) + 1).astype(dtype)


@given(st.integers(0, 9), dims_of)
def test_indices_are_nested_loops(offset, dims):
    assert walk.indices(offset, *zip(*dims)).tolist() == brute_force(offset, dims)


@given(st.integers(0, 9), dims_of)
def test_view_is_the_same_walk(offset, dims):
    flat = memory(dims, offset)
    assert walk.view(flat, offset, dims).reshape(-1).tolist() == brute_force(offset, dims)


@given(st.integers(0, 9), dims_of)
def test_merged_dims_walk_alike(offset, dims):
    short = walk.merged(dims)
    assert len(short) <= len(dims)
    assert brute_force(offset, short) == brute_force(offset, dims)


@given(st.integers(0, 9), dims_of, st.data())
def test_gather_takes_the_first_length_elements(offset, dims, data):
    length = data.draw(st.integers(1, math.prod(size for size, _ in dims)))
    flat = memory(dims, offset)
    got = walk.gather(flat, offset, length, dims)
    assert got.tolist() == brute_force(offset, dims)[:length]
    assert got.flags.c_contiguous
    assert not np.shares_memory(got, flat)


@given(st.integers(0, 9), dims_of)
def test_scatter_writes_in_order(offset, dims):
    order = brute_force(offset, dims)
    flat = np.full(max(order) + 1, -1)
    expected = flat.copy()
    for value, index in enumerate(order):
        expected[index] = value
    walk.scatter(flat, offset, len(order), dims, np.arange(len(order)))
    assert flat.tolist() == expected.tolist()


@given(dims_of, st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2)), min_size=4, max_size=4), st.data())
@settings(max_examples=60)
def test_padding_goes_around_each_dimension(dims, pairs, data):
    pad = tuple(pairs[: len(dims)])
    expected = [-1 if index is None else index for index in brute_force_padded(3, dims, pad)]
    length = data.draw(st.integers(1, len(expected)))
    got = walk.gather(memory(dims, 3), 3, length, dims, pad, -1)
    assert got.tolist() == expected[:length]


def test_recorded_padded_transfer():
    """6x16 padded by (1, 1) and (2, 2) is 8x20 = 160 elements, as the recorded iron_repeat_pad has it."""
    image = np.arange(1, 97, dtype=np.int32)
    got = walk.gather(image, 0, 160, ((6, 16), (16, 1)), ((1, 1), (2, 2)))
    assert np.array_equal(got.reshape(8, 20), np.pad(image.reshape(6, 16), ((1, 1), (2, 2))))


@pytest.mark.parametrize("dtype", [np.int8, np.int16, bfloat16, np.float32, np.int64])
def test_blocks_of_a_matrix_for_every_element_width(dtype):
    """The 4-D transform of the recorded iron_memtile_4d: 4x8 blocks of a 32x64 matrix, row by row."""
    matrix = (np.arange(32 * 64) % 100).astype(dtype)
    dims = ((8, 256), (8, 8), (4, 64), (8, 1))
    expected = matrix.reshape(8, 4, 8, 8).transpose(0, 2, 1, 3).reshape(-1)
    got = walk.gather(matrix, 0, 2048, dims)
    assert got.dtype == matrix.dtype
    assert np.array_equal(got, expected)
    back = np.zeros_like(matrix)
    walk.scatter(back, 0, 2048, dims, got)
    assert np.array_equal(back, matrix)


def test_contiguous_without_dims():
    flat = np.arange(10)
    assert walk.gather(flat, 2, 5).tolist() == [2, 3, 4, 5, 6]
    walk.scatter(flat, 8, 2, (), np.array([-1, -2]))
    assert flat[8:].tolist() == [-1, -2]


def test_a_short_walk_goes_on_in_the_next_dimension():
    """Two of four dimensions set: the third steps by a word, here one i32 or two i16 elements."""
    dims = ((2, 8), (3, 1))
    passes = [0, 1, 2, 8, 9, 10], [1, 2, 3, 9, 10, 11]
    assert walk.gather(np.arange(64, dtype=np.int32), 0, 12, dims).tolist() == [*passes[0], *passes[1]]
    second = [2, 3, 4, 10, 11, 12]
    assert walk.gather(np.arange(64, dtype=np.int16), 0, 12, dims).tolist() == [*passes[0], *second]


def test_a_short_walk_with_all_dimensions_used_steps_the_outermost_on():
    dims = ((2, 16), (2, 8), (3, 1))
    got = walk.gather(np.arange(64, dtype=np.int32), 0, 18, dims, dimensions=3)
    assert got.tolist() == brute_force(0, ((3, 16), (2, 8), (3, 1)))


@pytest.mark.parametrize("dims", [((1, 2), (1, 1)), ((8, 1), (1, 8), (1, 1)), ((3, 4), (1, 1))])
def test_an_inner_size_below_a_word_never_ends(dims):
    flat = np.arange(16, dtype=np.int16)
    assert walk.gather(flat, 2, 8, dims).tolist() == list(range(2, 10))
    walk.scatter(flat, 4, 4, dims, np.zeros(4, np.int16))
    assert np.flatnonzero(flat == 0).tolist() == [0, 4, 5, 6, 7]


def test_a_short_walk_of_wide_elements_is_refused():
    with pytest.raises(UnsupportedError, match="8 bytes"):
        walk.gather(np.arange(64, dtype=np.int64), 0, 12, ((2, 8), (3, 1)))


@pytest.mark.parametrize(
    ("offset", "length", "dims"),
    [
        (0, 65, ()),
        (-1, 3, ()),
        (60, 5, ()),
        (0, 64, ((8, 9), (8, 1))),
        (1, 64, ((8, 8), (8, 1))),
        (0, 128, ((8, 8), (8, 1))),
    ],
)
def test_leaving_the_array_is_refused(offset, length, dims):
    with pytest.raises(DesignError, match="of an array of 64"):
        walk.gather(np.arange(64, dtype=np.int32), offset, length, dims)
    with pytest.raises(DesignError, match="of an array of 64"):
        walk.scatter(np.arange(64, dtype=np.int32), offset, length, dims, np.arange(length))


@pytest.mark.parametrize("dims", [((0, 1),), ((4, -1),)])
def test_sizes_and_strides_must_be_sensible(dims):
    with pytest.raises(DesignError, match="at least"):
        walk.gather(np.arange(64), 0, 4, dims)


def test_padding_needs_a_pair_a_dimension():
    with pytest.raises(DesignError, match="one \\(before, after\\) pair"):
        walk.gather(np.arange(64), 0, 10, ((8, 1),), ((1, 1), (1, 1)))


def test_a_padded_length_has_to_match():
    with pytest.raises(DesignError, match="10 elements"):
        walk.gather(np.arange(64), 0, 12, ((8, 1),), ((1, 1),))

"""Channels: which destinations a put reaches, which index a get is."""

from __future__ import annotations

import pytest

from npusim.air.graph import Channel, Options


@pytest.mark.parametrize(
    ("size", "broadcast", "put", "reached"),
    [
        ((2, 2), (), (1, 0), [(1, 0)]),
        ((1, 1), (1, 4), (0, 0), [(0, 0), (0, 1), (0, 2), (0, 3)]),
        ((2, 1), (2, 3), (1, 0), [(1, 0), (1, 1), (1, 2)]),
        ((2, 1, 1), (2, 1, 2), (1, 0, 0), [(1, 0, 0), (1, 0, 1)]),
        ((), (), (), [()]),
    ],
)
def test_a_broadcast_reaches_every_index_of_its_row(size, broadcast, put, reached):
    channel = Channel("c", size, broadcast)
    assert channel.destinations(channel.put_index(put)) == reached


def test_indices_wrap_and_missing_ones_are_zero():
    channel = Channel("c", (2, 1), (2, 4))
    assert channel.put_index((3, 7)) == (1, 0)
    assert channel.get_index((3, 7)) == (1, 3)
    assert channel.get_index((1,)) == (1, 0)
    assert Channel("c", (2,)).put_index((1, 5)) == (1,)


def test_levels_without_double_buffering():
    assert [Options(omit).double(space) for omit in ("", "L1", "L2", "all") for space in (1, 2)] == [
        *(True, True),
        *(True, False),
        *(False, True),
        *(False, False),
    ]

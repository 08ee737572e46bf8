"""Access patterns that a DMA cannot walk are refused, with the place and a way out."""

from __future__ import annotations

from math import prod

import pytest

from npusim.errors import CapacityError, DesignError
from tests.npusim.air.designs import AllocOp, ChannelGet, ChannelPut, T, herd, memory, one_launch, placed, segment


def relayed(sizes, strides, element=None, n=1024, where="memtile"):
    """A tile that goes out of a MemTile (or a core) with a pattern."""
    element = element or T.i32()
    walk = {"offsets": [0] * len(sizes), "sizes": sizes, "strides": strides}

    def around(a, b):
        ChannelPut("in", a)
        ChannelGet("out", b)

        @segment(name="s")
        def _():
            if where == "memtile":
                staged = AllocOp(memory(n, 1, element), [], [])
                ChannelGet("in", staged)
                ChannelPut("out", staged, **walk)
                return

            @herd(name="h", sizes=[1, 1])
            def _(tx, ty, sx, sy):
                x = AllocOp(memory(n, 2, element), [], [])
                ChannelGet("in", x)
                ChannelPut("out", x, **walk)

    return one_launch([memory(n, 0, element), memory(prod(sizes), 0, element)], around, {"in": {}, "out": {}})


def test_four_dimensions_on_a_memtile_three_on_a_core():
    four = [8, 2, 4, 8], [8, 512, 64, 1]
    assert placed(relayed(*four)).warnings == []
    with pytest.raises(CapacityError, match=r"(?s)walks 4 dimensions; a descriptor there has 3.*compute tile \(0,2\)"):
        placed(relayed(*four, where="core"))


def test_what_can_be_merged_counts_once():
    placed(relayed([4, 4, 8, 8], [256, 64, 8, 1], where="core"))


def test_elements_of_two_bytes_move_in_pairs():
    with pytest.raises(DesignError, match=r"innermost stride of 32 elements of 2 bytes"):
        placed(relayed([32, 32], [1, 32], T.bf16()))
    placed(relayed([32, 32], [32, 1], T.bf16()))
    placed(relayed([32, 32], [1, 32]))


def test_transfers_are_whole_words():
    with pytest.raises(DesignError, match=r"moves 6 bytes at a time"):
        placed(relayed([3], [1], T.bf16(), n=3))

"""Buffers that several cores fill, or empty, part by part, are spread over the MemTiles of their columns."""

from __future__ import annotations

import numpy as np
import pytest

from npusim.air.moves import Walk
from npusim.air.spread import pieces
from tests.npusim.air.designs import (
    AllocOp,
    ChannelGet,
    ChannelPut,
    arith,
    counts,
    for_,
    herd,
    memory,
    one_launch,
    placed,
    run,
    segment,
    store,
)


def gathered(columns=2, rows=4, n=16):
    """Each core sends a tile; the segment gathers them and sends all to DDR."""
    cores = columns * rows

    def around(a):
        ChannelGet("out", a)

        @segment(name="s")
        def _():
            whole = AllocOp(memory(cores * n, 1), [], [])
            for x in range(columns):
                for y in range(rows):
                    ChannelGet("part", whole, indices=[x, y], offsets=[(x * rows + y) * n], sizes=[n], strides=[1])
            ChannelPut("out", whole)

            @herd(name="h", sizes=[columns, rows])
            def _(tx, ty, sx, sy):
                from tests.npusim.air.designs import T, yield_

                tile = AllocOp(memory(n, 2), [], [])
                first = arith.muli(arith.addi(arith.muli(tx, sy), ty), arith.ConstantOp(tx.type, n))
                for i in for_(n):
                    store(arith.index_cast(T.i32(), arith.addi(first, i)), tile, [i])
                    yield_([])
                ChannelPut("part", tile, indices=[tx, ty])

    return one_launch([memory(cores * n)], around, {"out": {}, "part": {"size": [columns, rows]}})


@pytest.mark.parametrize(("columns", "rows", "parts"), [(2, 4, 8), (2, 2, 1), (1, 4, 1)])
def test_a_gather_of_more_than_four_cores_is_cut(columns, rows, parts):
    machine = placed(gathered(columns, rows), "npu2")
    assert len([c for c in machine.host_channels.values() if c.direction == "S2MM"]) == parts
    assert len([b for b in machine.buffers if b.tile.row == 1]) == parts


@pytest.mark.parametrize("device", ["npu1", "npu2"])
def test_the_data_come_back_in_order(device):
    taken = np.zeros(128, np.int32)
    report = run(gathered(), [taken], device)
    np.testing.assert_array_equal(taken, counts(128))
    assert report.traffic["ddr"].written == 512


@pytest.mark.parametrize(
    ("walk", "length", "count", "found"),
    [
        (Walk(0, ((8, 1),)), 2, 4, [Walk(0, ((2, 1),)), Walk(2, ((2, 1),)), Walk(4, ((2, 1),)), Walk(6, ((2, 1),))]),
        (Walk(5, ((4, 10), (2, 1))), 4, 2, [Walk(5, ((2, 10), (2, 1))), Walk(25, ((2, 10), (2, 1)))]),
        (Walk(0, ((3, 10), (2, 1))), 4, 2, None),
    ],
)
def test_walks_fall_apart_where_their_outermost_size_allows(walk, length, count, found):
    made = pieces(walk, length, count)
    assert (made is None) == (found is None)
    if made is not None:
        assert [elements(w) for w in made] == [elements(w) for w in found]


def elements(walk):
    at = [walk.offset]
    for size, stride in walk.dims:
        at = [a + i * stride for a in at for i in range(size)]
    return at

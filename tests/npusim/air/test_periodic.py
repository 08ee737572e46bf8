"""Launches that repeat are left out of timing-only runs, exactly."""

from __future__ import annotations

import numpy as np
import pytest

from tests.npusim.air.designs import (
    AllocOp,
    ChannelGet,
    ChannelPut,
    DeallocOp,
    add_one,
    arith,
    for_,
    herd,
    memory,
    one_launch,
    run,
    segment,
    where,
    yield_,
)


def pipeline(launches, tiles=3, work=1, cascade=False):
    """Each launch sends tiles through a MemTile to a core (or two, by cascade) and back."""

    def around(i, si, a, b):
        size = tiles * 64
        at = arith.muli(i, arith.ConstantOp(i.type, size))
        ChannelPut("in", a, offsets=[at], sizes=[size], strides=[1])
        ChannelGet("out", b, offsets=[at], sizes=[size], strides=[1])

        @segment(name="s")
        def _():
            staged = AllocOp(memory(64, 1), [], [])
            for _ in for_(tiles):
                ChannelGet("in", staged)
                ChannelPut("down", staged)
                yield_([])

            @herd(name="h", sizes=[1, 2 if cascade else 1])
            def _(tx, ty, sx, sy):
                for _ in for_(tiles):
                    x = AllocOp(memory(64, 2), [], [])

                    def above(x=x):
                        ChannelGet("down", x)
                        ChannelPut("c" if cascade else "out", x)

                    def below(x=x):
                        ChannelGet("c", x)
                        add_one(x, 64, work)
                        ChannelPut("out", x)

                    if cascade:
                        where(ty, 1, above, below)
                    else:
                        above()
                    DeallocOp(x)
                    yield_([])

    channels = {"in": {}, "down": {}, "out": {}} | ({"c": {"size": [], "cascade": True}} if cascade else {})
    total = launches * tiles * 64
    return one_launch([memory(total)] * 2, around, channels, sizes=[launches]), total


@pytest.mark.parametrize("device", ["npu1", "npu2"])
@pytest.mark.parametrize("cascade", [False, True])
@pytest.mark.parametrize("launches", [2, 7, 40])
def test_what_is_left_out_is_added_exactly(launches, cascade, device):
    module, total = pipeline(launches, cascade=cascade)
    args = [np.zeros(total, np.int32) for _ in range(2)]
    full = run(module, args, device, data=False, trace=False, periodic=False)
    short = run(module, args, device, data=False, trace=False)
    assert short.exact_cycles == full.exact_cycles
    assert short.traffic == full.traffic
    assert short.cascade_bytes == full.cascade_bytes
    assert [(c.bytes, c.transfers, c.busy) for c in short.channels] == [
        (c.bytes, c.transfers, c.busy) for c in full.channels
    ]
    assert [(c.busy, c.stalled) for c in short.cores] == [(c.busy, c.stalled) for c in full.cores]
    if launches == 40:
        assert short.extrapolated_periods > 15  # a period may be two launches: three tiles in two copies
        assert short.resumptions < full.resumptions / 2


def test_launches_whose_cores_ask_for_their_id_are_run_in_full():
    def around(i, si, a, b):
        at = arith.muli(i, arith.ConstantOp(i.type, 16))
        ChannelPut("in", a, offsets=[at], sizes=[16], strides=[1])
        ChannelGet("out", b, offsets=[at], sizes=[16], strides=[1])

        @segment(name="s", operands=[i])
        def _(j):
            @herd(name="h", sizes=[1, 1], operands=[j])
            def _(tx, ty, sx, sy, k):
                x = AllocOp(memory(16, 2), [], [])
                ChannelGet("in", x)
                for _ in for_(k):
                    add_one(x, 16)
                    yield_([])
                ChannelPut("out", x)

    module = one_launch([memory(160)] * 2, around, {"in": {}, "out": {}}, sizes=[10])
    taken = np.zeros(160, np.int32)
    full = run(module, [np.zeros(160, np.int32), taken])
    np.testing.assert_array_equal(taken, np.repeat(np.arange(10), 16))
    bare = run(module, [taken, taken], data=False, trace=False)
    assert bare.exact_cycles == full.exact_cycles
    assert bare.extrapolated_periods == 0

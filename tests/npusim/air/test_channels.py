"""DMA channels of AIR designs: which tile, which number, what happens where there are too few."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from npusim.errors import CapacityError
from tests.npusim.air.designs import (
    AllocOp,
    ChannelGet,
    ChannelPut,
    DeallocOp,
    T,
    arith,
    counts,
    for_,
    herd,
    load,
    memory,
    one_launch,
    placed,
    run,
    segment,
    store,
    yield_,
)


def many(inputs=3, outputs=3, order=None, turns=4):
    """One core with so many channels; output k is the sum of the inputs, weighted."""
    order = order or range(inputs)

    def around(*arrays):
        for i in range(inputs):
            ChannelPut(f"i{i}", arrays[i])
        for k in range(outputs):
            ChannelGet(f"o{k}", arrays[inputs + k])

        @segment(name="s")
        def _():
            @herd(name="h", sizes=[1, 1])
            def _(tx, ty, sx, sy):
                for _ in for_(turns):
                    got = [AllocOp(memory(32, 2), [], []) for _ in range(inputs)]
                    put = [AllocOp(memory(32, 2), [], []) for _ in range(outputs)]
                    for i in order:
                        ChannelGet(f"i{i}", got[i])
                    for k in range(outputs):
                        for j in for_(32):
                            total = load(got[0], [j])
                            for i in range(1, inputs):
                                total = arith.addi(
                                    total, arith.muli(load(got[i], [j]), arith.ConstantOp(T.i32(), 10**i + k))
                                )
                            store(total, put[k], [j])
                            yield_([])
                        ChannelPut(f"o{k}", put[k])
                    for buffer in (*got, *put):
                        DeallocOp(buffer)
                    yield_([])

    names = [*(f"i{i}" for i in range(inputs)), *(f"o{k}" for k in range(outputs))]
    return one_launch([memory(32 * turns)] * (inputs + outputs), around, {name: {} for name in names})


@pytest.mark.parametrize("device", ["npu1", "npu2"])
@pytest.mark.parametrize("order", [[0, 1, 2], [2, 1, 0], [1, 0, 2]])
def test_channels_beyond_two_share_in_the_order_of_the_program(order, device):
    given = [counts(128) * (i + 1) for i in range(3)]
    taken = [np.zeros(128, np.int32) for _ in range(3)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        machine = placed(many(order=order), device)
        full = run(many(order=order), [*given, *taken], device)
        bare = run(many(order=order), [*given, *taken], device, data=False, trace=False)
    for k in range(3):
        np.testing.assert_array_equal(taken[k], given[0] + given[1] * (10 + k) + given[2] * (100 + k))
    assert bare.exact_cycles == full.exact_cycles
    shared = [route for route in machine.routes if route.packet_id is not None]
    assert len({route.packet_id for route in shared}) == len(shared) == 4
    assert all("share one, packet by packet" in w for w in machine.warnings)
    assert len(machine.warnings) == 2


def test_two_of_each_need_no_sharing():
    machine = placed(many(2, 2))
    assert machine.warnings == []
    assert all(route.packet_id is None for route in machine.routes)


def test_a_memtile_has_six_each_way():
    def around(a, b):
        for i in range(7):
            ChannelPut("in", a, indices=[i])
        ChannelGet("out", b)

        @segment(name="s")
        def _():
            staged = AllocOp(memory(7 * 16, 1), [], [])
            for i in range(7):
                ChannelGet("in", staged, indices=[i], offsets=[16 * i], sizes=[16], strides=[1])
            ChannelPut("out", staged)

    module = one_launch([memory(16), memory(7 * 16)], around, {"in": {"size": [7]}, "out": {}})
    with pytest.raises(CapacityError, match=r"MemTile \(0,1\) needs 7 S2MM channels; it has 6"):
        placed(module)


def test_shim_channels_lie_near_the_other_end():
    machine = placed(many(2, 2))
    assert {c.tile.col for c in machine.host_channels.values()} <= {0, 1}
    assert {c.fifo for c in machine.host_channels.values()} == {"i0", "i1", "o0", "o1"}


def test_no_two_ends_have_one_channel():
    machine = placed(many(2, 2))
    assert len({(c.tile, c.direction, c.index) for c in machine.channels}) == len(machine.channels)

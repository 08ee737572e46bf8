"""Which buffers are doubled, and where a core lets go of what it got."""

from __future__ import annotations

import pytest

from npusim.air.graph import Options
from npusim.ir import walk
from tests.npusim.air.designs import (
    AllocOp,
    CallOp,
    ChannelGet,
    ChannelPut,
    DeallocOp,
    add_one,
    for_,
    herd,
    memory,
    one_launch,
    segment,
    yield_,
)


def core(body, options=None, kernels=None, state=False):
    """The core of a one-core design that gets 4 tiles of 16 and puts 4: ``body()`` in the herd, which takes a buffer of the
    segment if there is ``state``."""

    def around(a, b):
        ChannelPut("in", a)
        ChannelGet("out", b)

        @segment(name="s")
        def _():
            passed = [AllocOp(memory(16, 2), [], [])] if state else []

            @herd(name="h", sizes=[1, 1], operands=passed)
            def _(tx, ty, sx, sy, *given):
                body(*given)

    made = one_launch([memory(64), memory(64)], around, {"in": {}, "out": {}}, kernels=kernels)
    design = made.design_for("npu2", options)
    from npusim.place import place

    (found,) = place(design).parties.cores
    return found


def in_loop(change, outside=False):
    def body():
        kept = AllocOp(memory(16, 2), [], []) if outside else None
        for _ in for_(4):
            x = kept if outside else AllocOp(memory(16, 2), [], [])
            ChannelGet("in", x)
            change(x)
            ChannelPut("out", x)
            if not outside:
                DeallocOp(x)
            yield_([])

    return body


def copies(party):
    return [len(buffers) for buffers in party.buffers.values()]


def test_a_buffer_of_a_loop_is_doubled():
    assert copies(core(in_loop(lambda x: add_one(x, 16)))) == [2]


@pytest.mark.parametrize("omit", ["L1", "all"])
def test_unless_that_is_left_out(omit):
    assert copies(core(in_loop(lambda x: add_one(x, 16)), Options(omit))) == [1]


def test_a_buffer_from_outside_of_the_loop_is_not():
    assert copies(core(in_loop(lambda x: add_one(x, 16), outside=True))) == [1]


def test_nor_where_a_kernel_touches_memory_of_the_segment():
    def body(state):
        for _ in for_(4):
            x = AllocOp(memory(16, 2), [], [])
            ChannelGet("in", x)
            CallOp([], "k", [x, state])
            ChannelPut("out", x)
            DeallocOp(x)
            yield_([])

    party = core(body, kernels={"k": [memory(16, 2)] * 2}, state=True)
    assert copies(party) == [1, 1]


def test_nor_where_two_gets_fill_it():
    def body():
        for _ in for_(2):
            x = AllocOp(memory(16, 2), [], [])
            for _ in range(2):
                ChannelGet("in", x)
                ChannelPut("out", x)
            DeallocOp(x)
            yield_([])

    assert copies(core(body)) == [1]


def test_nor_where_it_is_read_before_it_is_filled():
    def body():
        for _ in for_(4):
            x = AllocOp(memory(16, 2), [], [])
            ChannelPut("out", x)
            ChannelGet("in", x)
            DeallocOp(x)
            yield_([])

    assert copies(core(body)) == [1]


def names(party):
    return [op.name for op in walk(party.projection.region) if op.name.startswith("air.")]


def test_a_core_lets_go_after_the_last_use_and_drains_before_writing():
    def body():
        x, y = AllocOp(memory(16, 2), [], []), AllocOp(memory(16, 2), [], [])
        for _ in range(4):
            ChannelGet("in", x)
            CallOp([], "k", [x, y])
            ChannelPut("out", y)

    found = names(core(body, kernels={"k": [memory(16, 2)] * 2}))
    assert found[:7] == ["air.release", "air.get", "air.drain", "air.release", "air.put", "air.release", "air.get"]


def test_a_put_of_what_was_got_needs_no_drain():
    found = names(core(in_loop(lambda x: None)))
    assert "air.drain" not in found
    assert found == ["air.release", "air.get", "air.put", "air.release"]  # the first does something in no turn

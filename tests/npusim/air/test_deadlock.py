"""AIR designs that stand still are explained: who waits for whom, where, and what to do."""

from __future__ import annotations

import numpy as np
import pytest

from npusim.errors import DeadlockError
from tests.npusim.air.designs import (
    AllocOp,
    ChannelGet,
    ChannelPut,
    arith,
    counts,
    herd,
    load,
    memory,
    one_launch,
    run,
    segment,
    where,
)

IN_AND_OUT = {"in": {}, "out": {}}


def explained(module, *sizes):
    with pytest.raises(DeadlockError) as caught:
        run(module, [np.zeros(n, np.int32) for n in sizes])
    text = str(caught.value)
    assert "ERT_CMD_STATE_TIMEOUT" in text
    assert "Hint: " in text
    return text


def test_a_circle_through_a_memtile_buffer():
    def around(a, b, c):
        ChannelPut("inA", a)
        ChannelPut("inB", b)
        ChannelGet("out", c)

        @segment(name="s")
        def _():
            staged = AllocOp(memory(64, 1), [], [])
            for name in ("A", "B"):
                ChannelGet(f"in{name}", staged)
                ChannelPut(name, staged)

            @herd(name="h", sizes=[1, 1])
            def _(tx, ty, sx, sy):
                x = AllocOp(memory(64, 2), [], [])
                ChannelGet("B", x)
                ChannelGet("A", x)
                ChannelPut("out", x)

    module = one_launch([memory(64)] * 3, around, {name: {} for name in ("inA", "inB", "A", "B", "out")})
    text = explained(module, 64, 64, 64)
    lines = text.splitlines()
    chain = [line.strip() for line in lines if line.strip()[:2] in ("1.", "2.", "3.", "4.", "5.", "6.")]
    assert len(chain) == 6
    assert "the host waits for its get on channel 'out'" in chain[0]
    assert "core h[0,0] on compute tile (0,2) waits for its get on channel 'B'" in chain[2]
    assert "the put on channel 'A'" in chain[4]
    assert "done with buffer" in chain[5]
    assert all("test_deadlock.py:" in line for line in chain)
    assert "3 would have to act first: a circle" in text


def test_a_circle_over_the_cascade():
    def around(a, b):
        ChannelPut("in", a)
        ChannelGet("out", b)

        @segment(name="s")
        def _():
            @herd(name="h", sizes=[1, 2])
            def _(tx, ty, sx, sy):
                x, y = (AllocOp(memory(64, 2), [], []) for _ in range(2))

                def above():
                    ChannelGet("in", x)
                    ChannelPut("down", x)
                    ChannelPut("aside", x)

                def below():
                    ChannelGet("aside", y)
                    ChannelGet("down", x)
                    ChannelPut("out", x)

                where(ty, 1, above, below)

    module = one_launch(
        [memory(64)] * 2, around, {"in": {}, "out": {}, "aside": {}, "down": {"size": [], "cascade": True}}
    )
    text = explained(module, 64, 64)
    assert "room on its cascade output" in text
    assert "waits for h[0,1] to come to its put" in text
    assert "a circle" in text


def test_a_get_that_depends_on_data_and_has_no_put():
    """What a core gets depends on what it computes, so nobody could count before."""

    def around(a, b):
        ChannelPut("in", a)
        ChannelGet("out", b)

        @segment(name="s")
        def _():
            @herd(name="h", sizes=[1, 1])
            def _(tx, ty, sx, sy):
                from tests.npusim.air.designs import InsertionPoint, T, scf

                x = AllocOp(memory(16, 2), [], [])
                ChannelGet("in", x)
                zero = arith.CmpIOp(arith.CmpIPredicate.eq, load(x, [0]), arith.ConstantOp(T.i32(), 0))
                branch = scf.IfOp(zero)
                with InsertionPoint(branch.then_block):
                    ChannelGet("in", x)
                    scf.YieldOp([])
                ChannelPut("out", x)

    module = one_launch([memory(16)] * 2, around, IN_AND_OUT)
    text = explained(module, 16, 16)
    assert "core h[0,0] on compute tile (0,2) waits for its get on channel 'in'" in text
    assert "waits for the host to come to the put" in text
    taken = np.zeros(16, np.int32)
    run(module, [counts(16, 1), taken])
    np.testing.assert_array_equal(taken, counts(16, 1))


def test_others_that_wait_are_listed():
    def around(a, b):
        ChannelPut("in", a, indices=[0])
        ChannelPut("in", a, indices=[1])
        ChannelGet("out", b)

        @segment(name="s")
        def _():
            @herd(name="h", sizes=[1, 2])
            def _(tx, ty, sx, sy):
                x, y = (AllocOp(memory(64, 2), [], []) for _ in range(2))
                ChannelGet("in", x, indices=[ty])

                def above():
                    ChannelGet("up", y)
                    ChannelPut("across", x)

                def below():
                    ChannelGet("across", y)
                    ChannelPut("up", x)
                    ChannelPut("out", x)

                where(ty, 1, above, below)

    module = one_launch([memory(64)] * 2, around, {"in": {"size": [2]}, "out": {}, "up": {}, "across": {}})
    text = explained(module, 64, 64)
    assert "get on channel 'across'" in text
    assert "get on channel 'up'" in text

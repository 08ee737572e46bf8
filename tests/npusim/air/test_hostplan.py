"""What the host pushes in each launch, in which order, and when it waits."""

from __future__ import annotations

import numpy as np

from npusim.air.hostplan import HostPlan
from npusim.engine.plan import Await, Start
from npusim.run import loaded
from tests.npusim.air.designs import (
    AllocOp,
    ChannelGet,
    ChannelPut,
    add_one,
    arith,
    counts,
    for_,
    herd,
    memory,
    one_launch,
    placed,
    run,
    segment,
    yield_,
)


def through(host, arrays, turns=1, n=16, sizes=()):
    """A core that adds one to ``turns`` tiles of n; ``host(ids..., arrays...)`` is the launch's own part."""

    def around(*given):
        host(*given)

        @segment(name="s")
        def _():
            @herd(name="h", sizes=[1, 1])
            def _(tx, ty, sx, sy):
                for _ in for_(turns):
                    x = AllocOp(memory(n, 2), [], [])
                    ChannelGet("in", x)
                    add_one(x, n)
                    ChannelPut("out", x)
                    yield_([])

    return one_launch(arrays, around, {"in": {}, "out": {}}, sizes=sizes)


def actions(module, *sizes):
    sim = loaded(placed(module))
    plan = HostPlan(sim, [np.zeros(n, np.int32) for n in sizes])
    found = []
    for action in plan.plan():
        if isinstance(action, Start):
            found.append(("push", action.task.name, len(action.task.chain)))
        elif isinstance(action, Await):
            found.append(("wait", action.task.name, 0))
    return found, plan.boundaries


def test_gets_come_first_and_are_awaited_last():
    def host(a, b):
        ChannelPut("in", a)
        ChannelGet("out", b)

    found, _ = actions(through(host, [memory(16)] * 2), 16, 16)
    assert found == [("push", "channel 'out'", 1), ("push", "channel 'in'", 1), ("wait", "channel 'out'", 0)]


def test_all_of_a_channel_is_one_task():
    def host(a, b):
        for i in range(4):
            ChannelPut("in", a, offsets=[16 * i], sizes=[16], strides=[1])
        for i in for_(2):
            at = arith.muli(i, arith.ConstantOp(i.type, 32))
            ChannelGet("out", b, offsets=[at], sizes=[32], strides=[1])
            yield_([])

    module = through(host, [memory(64)] * 2, turns=4)
    found, _ = actions(module, 64, 64)
    assert found == [("push", "channel 'out'", 2), ("push", "channel 'in'", 4), ("wait", "channel 'out'", 0)]
    taken = np.zeros(64, np.int32)
    run(module, [counts(64), taken])
    np.testing.assert_array_equal(taken, counts(64, 1))


def test_each_launch_begins_behind_the_waits_of_the_one_before():
    def host(i, si, a, b):
        at = arith.muli(i, arith.ConstantOp(i.type, 16))
        ChannelPut("in", a, offsets=[at], sizes=[16], strides=[1])
        ChannelGet("out", b, offsets=[at], sizes=[16], strides=[1])

    found, boundaries = actions(through(host, [memory(48)] * 2, sizes=[3]), 48, 48)
    assert boundaries == [0, 3, 6]
    assert [verb for verb, _, _ in found] == ["push", "push", "wait"] * 3


def test_what_is_read_after_it_was_written_waits():
    """The second tile is made of the first one's result, in one array."""

    def host(a):
        ChannelPut("in", a, offsets=[0], sizes=[16], strides=[1])
        ChannelGet("out", a, offsets=[16], sizes=[16], strides=[1])
        ChannelPut("in", a, offsets=[16], sizes=[16], strides=[1])
        ChannelGet("out", a, offsets=[32], sizes=[16], strides=[1])

    module = through(host, [memory(48)], turns=2)
    found, _ = actions(module, 48)
    assert [f"{verb} {name[9:-1]}" for verb, name, _ in found] == [
        *("push out", "push out"),
        *("push in", "wait out", "push in"),
        "wait out",
    ]
    array = np.zeros(48, np.int32)
    array[:16] = np.arange(16)
    run(module, [array])
    np.testing.assert_array_equal(array, np.concatenate([counts(16), counts(16, 1), counts(16, 2)]))


def test_a_full_queue_makes_the_host_wait():
    """In one array in place, each tile is a task of its own: more than a queue holds."""

    def host(a):
        for i in range(8):
            ChannelPut("in", a, offsets=[16 * i], sizes=[16], strides=[1])
            ChannelGet("out", a, offsets=[16 * i], sizes=[16], strides=[1])

    array = counts(128)
    run(through(host, [memory(128)], turns=8), [array])
    np.testing.assert_array_equal(array, counts(128, 1))

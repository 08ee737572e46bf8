"""AIR designs run: right data, exact bytes, order by data, the same cycles without data, state that survives."""

from __future__ import annotations

import numpy as np
import pytest

from npusim.errors import DesignError
from npusim.run import loaded, simulate
from tests.npusim.air.designs import (
    AllocOp,
    CallOp,
    ChannelGet,
    ChannelPut,
    DeallocOp,
    T,
    add_one,
    arith,
    counts,
    dma_memcpy_nd,
    for_,
    herd,
    load,
    memory,
    one_launch,
    placed,
    run,
    segment,
    store,
    where,
    yield_,
)

DEVICES = ["npu1", "npu2"]


def relayed(columns=2, rows=1, n=64, turns=1):
    """Tiles of n through a MemTile, broadcast to every core of a herd; each adds its number and sends the tile back."""
    cores = columns * rows

    def around(a, b):
        for _ in for_(turns):
            ChannelPut("in", a)
            yield_([])
        for x in range(columns):
            for y in range(rows):
                at = x * rows + y
                ChannelGet("out", b, indices=[x, y], offsets=[at * n], sizes=[n], strides=[1])

        @segment(name="s")
        def _():
            staged = AllocOp(memory(n, 1), [], [])
            for _ in for_(turns):
                ChannelGet("in", staged)
                ChannelPut("all", staged)
                yield_([])

            @herd(name="h", sizes=[columns, rows])
            def _(tx, ty, sx, sy):
                for _ in for_(turns):
                    x = AllocOp(memory(n, 2), [], [])
                    ChannelGet("all", x, indices=[tx, ty])
                    yield_([])
                y = AllocOp(memory(n, 2), [], [])
                for i in for_(n):
                    mine = arith.index_cast(T.i32(), arith.addi(arith.muli(tx, sy), ty))
                    store(arith.addi(mine, arith.index_cast(T.i32(), i)), y, [i])
                    yield_([])
                ChannelPut("out", y, indices=[tx, ty])
                DeallocOp(y)

    channels = {
        "in": {},
        "all": {"size": [1, 1], "broadcast_shape": [columns, rows]},
        "out": {"size": [columns, rows]},
    }
    return one_launch([memory(n), memory(n * cores)], around, channels)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(("columns", "rows", "turns"), [(1, 1, 1), (2, 1, 3), (2, 2, 1), (4, 2, 5)])
def test_bytes_are_counted_once_at_the_source_and_at_each_destination(device, columns, rows, turns):
    n, cores = 64, columns * rows
    taken = np.zeros(n * cores, np.int32)
    report = run(relayed(columns, rows, n, turns), [counts(n), taken], device)
    np.testing.assert_array_equal(taken, (np.arange(cores)[:, None] + np.arange(n)).reshape(-1))
    tile, traffic = 4 * n, report.traffic
    assert (traffic["ddr"].read, traffic["ddr"].written) == (turns * tile, cores * tile)
    assert (traffic["memtile"].written, traffic["memtile"].read) == (turns * tile, turns * tile)
    assert (traffic["l1"].written, traffic["l1"].read) == (turns * tile * cores, tile * cores)


def cascaded(n=64, name="c"):
    """Core (0,1) sends what it got down to core (0,0), which adds 1."""

    def around(a, b):
        ChannelPut("in", a)
        ChannelGet("out", b)

        @segment(name="s")
        def _():
            @herd(name="h", sizes=[1, 2])
            def _(tx, ty, sx, sy):
                def above():
                    x = AllocOp(memory(n, 2), [], [])
                    ChannelGet("in", x)
                    ChannelPut(name, x, indices=[0, 0])

                def below():
                    x = AllocOp(memory(n, 2), [], [])
                    ChannelGet(name, x, indices=[0, 0])
                    add_one(x, n)
                    ChannelPut("out", x)

                where(ty, 1, above, below)

    return one_launch([memory(n), memory(n)], around, {"in": {}, "out": {}, name: {"size": [1, 1], "cascade": True}})


@pytest.mark.parametrize("device", DEVICES)
def test_a_cascade_carries_bytes_of_its_own(device):
    taken = np.zeros(64, np.int32)
    report = run(cascaded(), [counts(64), taken], device)
    np.testing.assert_array_equal(taken, counts(64, 1))
    assert report.cascade_bytes == 256
    assert (report.traffic["l1"].written, report.traffic["l1"].read) == (256, 256)


def one_buffer(memory_copies):
    """Two tiles through one MemTile buffer: the second may come only when the first has gone."""

    def around(a, b):
        ChannelPut("in", a, offsets=[0], sizes=[64], strides=[1])
        ChannelPut("in", a, offsets=[64], sizes=[64], strides=[1])
        ChannelGet("out", b)

        @segment(name="s")
        def _():
            buffers = [AllocOp(memory(64, 1), [], []) for _ in range(memory_copies)]
            for i in range(2):
                ChannelGet("in", buffers[i % memory_copies])
                ChannelPut("down", buffers[i % memory_copies])

            @herd(name="h", sizes=[1, 1])
            def _(tx, ty, sx, sy):
                for _ in for_(2):
                    x = AllocOp(memory(64, 2), [], [])
                    ChannelGet("down", x)
                    ChannelPut("out", x)
                    yield_([])

    return one_launch([memory(128), memory(128)], around, {"in": {}, "down": {}, "out": {}})


def test_a_buffer_is_filled_again_only_when_it_has_been_emptied():
    results = []
    for copies in (1, 2):
        taken = np.zeros(128, np.int32)
        report = run(one_buffer(copies), [counts(128), taken], "npu1")
        np.testing.assert_array_equal(taken, counts(128))
        memtile = [e for e in report.trace if e.kind == "transfer" and "tile (0,1)" in e.track]
        fills = [e for e in memtile if e.track.startswith("S2MM")]
        sends = [e for e in memtile if e.track.startswith("MM2S")]
        results.append((fills[1].start >= sends[0].start + sends[0].duration, report.cycles))
    assert results[0][0]
    assert results[1][1] <= results[0][1]


def test_dma_memcpy_moves_between_levels():
    def around(a, b):
        @segment(name="s", operands=[a, b])
        def _(p, q):
            @herd(name="h", sizes=[2, 1], operands=[p, q])
            def _(tx, ty, sx, sy, u, v):
                x = AllocOp(memory(16, 2), [], [])
                start = arith.muli(tx, arith.ConstantOp(tx.type, 16))
                dma_memcpy_nd(x, u, src_offsets=[start], src_sizes=[16], src_strides=[1])
                add_one(x, 16, by=5)
                dma_memcpy_nd(v, x, dst_offsets=[start], dst_sizes=[16], dst_strides=[1])

    taken = np.zeros(32, np.int32)
    run(one_launch([memory(32), memory(32)], around), [counts(32), taken])
    np.testing.assert_array_equal(taken, counts(32, 5))


def over_launches(n=16, sizes=(2, 3)):
    """Each launch adds one to its tile; the core's buffer of the segment counts the launches."""

    def around(i, j, si, sj, a, b):
        at = arith.muli(arith.addi(arith.muli(i, sj), j), arith.ConstantOp(i.type, n))
        ChannelPut("in", a, offsets=[at], sizes=[n], strides=[1])
        ChannelGet("out", b, offsets=[at], sizes=[n], strides=[1])

        @segment(name="s")
        def _():
            count = AllocOp(memory(1, 2), [], [])

            @herd(name="h", sizes=[1, 1], operands=[count])
            def _(tx, ty, sx, sy, seen):
                x = AllocOp(memory(n, 2), [], [])
                ChannelGet("in", x)
                zero = arith.ConstantOp(tx.type, 0)
                store(arith.addi(load(seen, [zero]), arith.ConstantOp(T.i32(), 1)), seen, [zero])
                for k in for_(n):
                    store(arith.addi(load(x, [k]), load(seen, [zero])), x, [k])
                    yield_([])
                ChannelPut("out", x)

    return one_launch([memory(n * 6), memory(n * 6)], around, {"in": {}, "out": {}}, sizes=sizes)


def test_launches_run_in_order_and_memory_of_the_segment_lives_on():
    taken = np.zeros(96, np.int32)
    run(over_launches(), [np.zeros(96, np.int32), taken])
    np.testing.assert_array_equal(taken, np.repeat(np.arange(1, 7), 16))


def test_state_survives_a_run():
    sim = loaded(placed(over_launches()))
    taken = np.zeros(96, np.int32)
    sim.run([np.zeros(96, np.int32), taken])
    sim.run([np.zeros(96, np.int32), taken])
    np.testing.assert_array_equal(taken, np.repeat(np.arange(7, 13), 16))


MODULES = {
    "relayed": (lambda: relayed(2, 2, turns=3), [64, 256]),
    "cascaded": (cascaded, [64, 64]),
    "one buffer": (lambda: one_buffer(1), [128, 128]),
}


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", MODULES)
def test_the_same_cycles_without_data(name, device):
    build, sizes = MODULES[name]
    args = [np.zeros(n, np.int32) for n in sizes]
    full = run(build(), args, device)
    bare = run(build(), args, device, data=False, trace=False)
    assert bare.exact_cycles == full.exact_cycles
    assert bare.traffic == full.traffic


def test_kernels_run_with_their_models():
    def around(a, b):
        ChannelPut("in", a)
        ChannelGet("out", b)

        @segment(name="s")
        def _():
            @herd(name="h", sizes=[1, 1], link_with="k.o")
            def _(tx, ty, sx, sy):
                x, y = AllocOp(memory(16, 2), [], []), AllocOp(memory(16, 2), [], [])
                ChannelGet("in", x)
                CallOp([], "twice", [x, y])
                ChannelPut("out", y)

    def twice(x, y):
        y[:] = 2 * x

    module = one_launch([memory(16), memory(16)], around, {"in": {}, "out": {}}, kernels={"twice": [memory(16, 2)] * 2})
    taken = np.zeros(16, np.int32)
    report = run(module, [counts(16), taken], models={"twice": (twice, 500)})
    np.testing.assert_array_equal(taken, 2 * counts(16))
    assert report.core((0, 2)).kernels["twice"] == (1, 500 * report.ticks_per_cycle)
    assert report.notes


@pytest.mark.parametrize(
    ("args", "words"),
    [
        ([counts(64)], "takes 2 arguments"),
        ([counts(64), counts(10)], "host argument 1"),
        ([counts(64).astype(np.int64), counts(64)], "host argument 0"),
    ],
)
def test_arguments_that_do_not_fit_are_refused(args, words):
    with pytest.raises(DesignError, match=words):
        simulate(placed(cascaded()), args)


def test_a_read_behind_the_array_is_warned_of_a_write_refused():
    def around(a, b):
        ChannelPut("in", a, offsets=[8], sizes=[16], strides=[1])
        ChannelGet("out", b)

        @segment(name="s")
        def _():
            @herd(name="h", sizes=[1, 1])
            def _(tx, ty, sx, sy):
                x = AllocOp(memory(16, 2), [], [])
                ChannelGet("in", x)
                ChannelPut("out", x)

    module = one_launch([memory(16), memory(16)], around, {"in": {}, "out": {}})
    taken = np.zeros(16, np.int32)
    with pytest.warns(UserWarning, match="reaches elements 8 to 23 of a memref of 16"):
        run(module, [counts(16, 1), taken])
    np.testing.assert_array_equal(taken, [*range(9, 17), *[0] * 8])

    def beyond(a, b):
        ChannelPut("in", a)
        ChannelGet("out", b, offsets=[8], sizes=[16], strides=[1])

    with pytest.raises(DesignError, match="reaches elements 8 to 23"):
        placed(one_launch([memory(16), memory(16)], beyond, {"in": {}, "out": {}}))


def test_a_long_phase_without_ddr_is_no_hang():
    def around(a, b):
        ChannelPut("in", a)
        ChannelGet("out", b)

        @segment(name="s")
        def _():
            staged = AllocOp(memory(64, 1), [], [])
            ChannelGet("in", staged)
            for _ in for_(1000):
                ChannelPut("down", staged)
                yield_([])

            @herd(name="h", sizes=[1, 1])
            def _(tx, ty, sx, sy):
                y = AllocOp(memory(64, 2), [], [])
                for _ in for_(1000):
                    x = AllocOp(memory(64, 2), [], [])
                    ChannelGet("down", x)
                    CallOp([], "work", [x])
                    yield_([])
                ChannelPut("out", y)

    module = one_launch([memory(64)] * 2, around, {"in": {}, "down": {}, "out": {}}, kernels={"work": [memory(64, 2)]})
    args = [np.zeros(64, np.int32) for _ in range(2)]
    assert run(module, args, models={"work": (lambda x: None, 30_000)}).cycles > 30_000_000

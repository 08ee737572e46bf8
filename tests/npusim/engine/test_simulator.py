"""Whole runs of handmade machines: results, bytes, time, and what goes wrong."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from npusim.costs import Costs
from npusim.engine import Simulator
from npusim.errors import DeadlockError, DesignError, UnsupportedError
from npusim.ir import FOREVER, Op, Region, Value
from npusim.kernels import KernelModel
from npusim.machine import CascadeLink, Coord, CoreProgram, LockUse, MachineLock, MemBuffer
from npusim.types import MemRefType
from tests.npusim.engine.handmade import Body, Maker, body, scale_machine, scale_model


def run_scale(**kw):
    flags = {k: kw.pop(k) for k in ("data", "trace") if k in kw}
    machine = scale_machine(**kw)
    n = machine.sequence.entry.args[0].type.size
    x, y = np.arange(n, dtype=np.int32), np.zeros(machine.sequence.entry.args[1].type.size, np.int32)
    return x, y, Simulator(machine, kernels={"scale": scale_model()}, **flags).run([x, y])


def test_computes_and_counts_bytes_at_each_level():
    x, y, report = run_scale(tiles=5, size=64)
    np.testing.assert_array_equal(y, 7 * x)
    assert report.traffic["ddr"].read == report.traffic["ddr"].written == x.nbytes
    assert report.traffic["l1"].written == report.traffic["l1"].read == x.nbytes
    assert report.traffic["memtile"].total == 0
    assert report.core((0, 2)).kernels["scale"][0] == 5


@settings(max_examples=25, deadline=None)
@given(st.integers(1, 6), st.integers(1, 40).map(lambda n: 4 * n), st.integers(1, 4), st.sampled_from(["npu1", "npu2"]))
def test_timing_only_takes_the_same_ticks_and_moves_the_same_bytes(tiles, size, depth, device):
    _, _, full = run_scale(tiles=tiles, size=size, depth=depth, device=device)
    _, _, timing = run_scale(tiles=tiles, size=size, depth=depth, device=device, data=False, trace=False)
    assert (timing.ticks, timing.traffic) == (full.ticks, full.traffic)
    assert [c.bytes for c in timing.channels] == [c.bytes for c in full.channels]


@settings(max_examples=25, deadline=None)
@given(st.integers(1, 8), st.integers(1, 64).map(lambda n: 4 * n), st.integers(1, 3))
def test_a_deeper_fifo_is_never_slower(tiles, size, depth):
    _, _, shallow = run_scale(tiles=tiles, size=size, depth=depth)
    _, _, deep = run_scale(tiles=tiles, size=size, depth=depth + 1)
    assert deep.ticks <= shallow.ticks


def test_double_buffering_hides_the_shorter_of_moving_and_computing():
    _, _, single = run_scale(tiles=50, size=400, depth=1)
    _, _, double = run_scale(tiles=50, size=400, depth=2)
    move, compute = 400, 100
    assert single.cycles > 50 * (move + compute)
    assert 50 * move < double.cycles < 50 * (move + compute)


def test_a_trace_covers_what_the_counters_say():
    _, _, report = run_scale(tiles=6)
    core = report.core((0, 2))
    kernels = sum(e.duration for e in report.trace if e.kind == "kernel")
    assert kernels == core.kernels["scale"][1] == 6 * 100 * report.ticks_per_cycle
    for use in report.channels:
        moving = (e for e in report.trace if e.track == str(use.channel) and e.kind == "transfer")
        assert use.busy == sum(e.duration for e in moving)
    assert all(e.start >= 0 and e.start + e.duration <= report.ticks for e in report.trace if e.kind != "kernel")


def test_a_drain_of_more_than_is_produced_is_a_deadlock_that_names_everyone():
    machine = scale_machine(tiles=4, size=64, drain=5 * 64)
    with pytest.raises(DeadlockError) as caught:
        Simulator(machine, kernels={"scale": scale_model()}).run([np.zeros(256, np.int32), np.zeros(320, np.int32)])
    text = str(caught.value)
    for words in ("drain of fifo 'y'", "1,024 of 1,280 bytes", "fifo 'x' (acquire(1) as consumer", "design.py:", "Hint"):
        assert words in text


def test_state_survives_a_run_and_a_second_one_goes_on_from_it():
    machine = scale_machine(tiles=3)  # three objects in rings of two: the second run starts in the middle
    sim = Simulator(machine, kernels={"scale": scale_model()})
    for seed in range(3):
        x, y = np.full(192, seed, np.int32), np.zeros(192, np.int32)
        report = sim.run([x, y])
        np.testing.assert_array_equal(y, 7 * x)
        assert report.traffic["ddr"].read == x.nbytes
        assert report.core((0, 2)).kernels["scale"][0] == 3


def test_wrong_host_arguments_are_refused():
    sim = Simulator(scale_machine(), kernels={"scale": scale_model()})
    with pytest.raises(DesignError, match="takes 2 arguments, 1"):
        sim.run([np.zeros(256, np.int32)])
    with pytest.raises(DesignError, match="host argument 1"):
        sim.run([np.zeros(256, np.int32), np.zeros(255, np.int32)])
    with pytest.raises(DesignError, match="host argument 0"):
        sim.run([np.zeros(256, np.float32), np.zeros(256, np.int32)])
    with pytest.raises(DesignError, match="contiguous"):
        sim.run([np.zeros(512, np.int32)[::2], np.zeros(256, np.int32)])


def test_a_kernel_without_model_is_refused_with_the_way_out():
    with pytest.raises(UnsupportedError, match=r"@npusim\.kernels\.model"):
        Simulator(scale_machine())


def test_a_failing_model_is_reported_with_the_line_of_the_call():
    def fails(x, y, factor):
        raise ZeroDivisionError("oh")

    sim = Simulator(scale_machine(), kernels={"scale": KernelModel(fails, lambda *a, device: 1)})
    with pytest.raises(DesignError, match=r"worker 'core' on compute tile \(0,2\), at design.py:\d+: ZeroDivisionError"):
        sim.run([np.zeros(256, np.int32), np.zeros(256, np.int32)])


def inline(write):
    """A machine whose core runs ``write(inner, a, b)`` on one object of 16 in each direction."""
    make = Maker()
    obj, tile = MemRefType((16,), "i32"), Coord(0, 2)
    x, y = make.fifo_in("x", tile, obj), make.fifo_out("y", tile, obj)
    at, region = body()
    inner, _ = at.loop(FOREVER)
    (b,), (a,) = inner.acquire("y", True, obj), inner.acquire("x", False, obj)
    write(inner, a, b)
    inner.release("x", False)
    inner.release("y", True)
    inner.end()
    core = make.core(tile, region, x, y)
    seq = make.host(obj, obj)
    make.move(seq, "x", seq.block.args[0], False)
    seq.op("aiex.dma_await_task", (make.move(seq, "y", seq.block.args[1], True),))
    return make, core


def run_inline(write, data=True):
    make, _ = inline(write)
    x, y = np.arange(16, dtype=np.int32), np.zeros(16, np.int32)
    return y, Simulator(make.machine, data=data).run([x, y])


def add_three(inner, a, b):
    loop, _ = inner.loop(16)
    i = loop.block.args[0]
    value = loop.op("memref.load", (a, i), ("i32",)).result
    total = loop.op("arith.addi", (value, loop.const(3, "i32")), ("i32",)).result
    loop.op("memref.store", (total, b, i))
    loop.end()


def test_an_element_loop_costs_the_same_with_and_without_data():
    y, report = run_inline(add_three)
    np.testing.assert_array_equal(y, np.arange(16) + 3)
    _, timing = run_inline(add_three, data=False)
    assert timing.ticks == report.ticks
    costs = Costs().scalar
    once = costs["load"] + costs["int"] + costs["store"] + costs["loop"]
    assert report.core((0, 2)).kernels["scalar code"] == (1, 16 * once * report.ticks_per_cycle)


@pytest.mark.parametrize("shift", [-1, 1])
def test_an_index_outside_is_an_error_with_its_line(shift):
    def write(inner, a, b):
        loop, _ = inner.loop(16)
        i = loop.op("arith.addi", (loop.block.args[0], loop.const(shift)), ("index",)).result
        loop.op("memref.store", (loop.op("memref.load", (a, i), ("i32",)).result, b, loop.block.args[0]))
        loop.end()

    with pytest.raises(DesignError, match=r"at design.py:\d+: index"):
        run_inline(write)


def test_control_that_depends_on_data_runs_with_data_and_is_refused_without():
    def write(inner, a, b):
        zero = inner.const(0)
        first = inner.op("memref.load", (a, inner.const(3)), ("i32",)).result
        bound = inner.op("arith.index_cast", (first,), ("index",)).result
        loop = inner.op("scf.for", (zero, bound, inner.const(1)))
        loop.regions.append(Region.single("index"))
        inside = Body(loop.regions[0].entry, inner.line)
        inside.op("memref.store", (inside.const(9, "i32"), b, inside.block.args[0]))
        inside.end()

    y, _ = run_inline(write)
    np.testing.assert_array_equal(y, [9, 9, 9] + [0] * 13)
    with pytest.raises(UnsupportedError, match=r"timing only: control in core .*read at design.py"):
        run_inline(write, data=False)


def test_run_time_parameters_steer_control_in_both_modes():
    def with_parameter(data):
        made = {}

        def write(inner, a, b):
            made["inner"] = (inner, a, b)

        make, core = inline(write)
        inner, _, b = made["inner"]
        buffer = MemBuffer("rtp", Coord(0, 2), MemRefType((2,), "i32"), host_written=True)
        make.machine.buffers.append(buffer)
        make.machine.sequence_buffers["rtp"] = buffer
        value = Value(buffer.type)
        core.buffers[value] = buffer
        index = Op.make("arith.constant", (), ("index",), value=1)
        load = Op.make("memref.load", (value, index.result), ("i32",))
        cast = Op.make("arith.index_cast", (load.result,), ("index",))
        zero, one = (Op.make("arith.constant", (), ("index",), value=n) for n in (0, 1))
        loop = Op.make("scf.for", (zero.result, cast.result, one.result), regions=[Region.single("index")])
        nine = Op.make("arith.constant", (), ("i32",), value=9)
        inside = loop.regions[0].entry
        inside.ops = [nine, Op.make("memref.store", (nine.result, b, inside.args[0])), Op.make("scf.yield")]
        at = next(i for i, op in enumerate(inner.block.ops) if op.name == "aie.objectfifo.release")
        inner.block.ops[at:at] = [index, load, cast, zero, one, loop]
        entry = make.sequence.entry
        five = Op.make("arith.constant", (), ("i32",), value=5)
        entry.ops[0:0] = [five, Op.make("aiex.npu.rtp_write", (five.result,), buffer="rtp", index=1)]
        y = np.zeros(16, np.int32)
        return y, Simulator(make.machine, data=data).run([np.zeros(16, np.int32), y])

    y, full = with_parameter(True)
    np.testing.assert_array_equal(y, [9] * 5 + [0] * 11)
    assert with_parameter(False)[1].ticks == full.ticks


def cascade_machine(elements=64):
    make = Maker()
    obj = MemRefType((elements,), "i32")
    top, low = Coord(0, 3), Coord(0, 2)
    a, b, y = make.fifo_in("a", top, obj), make.fifo_in("b", low, obj, index=1), make.fifo_out("y", low, obj)
    make.kernel("put", obj)
    make.kernel("get", obj, obj)
    at, region = body()
    inner, _ = at.loop(FOREVER)
    inner.op("func.call", tuple(inner.acquire("a", False, obj)), callee="put")
    inner.release("a", False)
    inner.end()
    make.core(top, region, a, name="top")
    at, region = body()
    inner, _ = at.loop(FOREVER)
    inner.op("func.call", (*inner.acquire("b", False, obj), *inner.acquire("y", True, obj)), callee="get")
    inner.release("b", False)
    inner.release("y", True)
    inner.end()
    make.core(low, region, b, y, name="low")
    make.machine.cascades.append(CascadeLink(top, low))
    host = MemRefType((3 * elements,), "i32")
    seq = make.host(host, host, host)
    make.move(seq, "a", seq.block.args[0], False)
    make.move(seq, "b", seq.block.args[1], False)
    seq.op("aiex.dma_await_task", (make.move(seq, "y", seq.block.args[2], True),))
    return make.machine


def cascade_models(nbytes, puts=1):
    def put(a, *, cascade):
        for _ in range(puts):
            cascade.put(a)

    def get(b, y, *, cascade):
        y[...] += 1  # a try that is given up must leave no trace
        y[...] = b + cascade.get(b.shape, b.dtype)

    return {
        "put": KernelModel(put, lambda *a, device: 10, uses_cascade=True, cascade_bytes=lambda *a: (0, puts * nbytes)),
        "get": KernelModel(get, lambda *a, device: 20, uses_cascade=True, cascade_bytes=lambda *a: (nbytes, 0)),
    }


def test_the_cascade_carries_data_and_takes_the_same_time_without():
    a, b = np.arange(192, dtype=np.int32), np.arange(192, dtype=np.int32) * 100
    y = np.zeros(192, np.int32)
    report = Simulator(cascade_machine(), kernels=cascade_models(256)).run([a, b, y])
    np.testing.assert_array_equal(y, a + b)
    assert report.cascade_bytes == 3 * 256
    timing = Simulator(cascade_machine(), kernels=cascade_models(256), data=False).run([a, b, y])
    assert (timing.ticks, timing.cascade_bytes) == (report.ticks, report.cascade_bytes)


def test_a_put_blocks_after_two_words_until_it_is_taken():
    arrays = [np.zeros(192, np.int32) for _ in range(3)]
    report = Simulator(cascade_machine(), kernels=cascade_models(256, puts=6)).run(arrays)
    assert report.core((0, 3)).stalled["cascade output"] > 0
    assert report.core((0, 3)).kernels["put"][0] == 1  # still in its first call: nobody takes the other three


def test_a_get_of_more_than_is_put_is_a_deadlock_that_says_so():
    def get(b, y, *, cascade):
        cascade.get((4 * b.size,), b.dtype)

    models = cascade_models(256) | {"get": KernelModel(get, lambda *a, device: 20, uses_cascade=True)}
    with pytest.raises(DeadlockError, match=r"worker 'low' on compute tile \(0,2\) waits at design.py:\d+ for bytes on its cascade input"):
        Simulator(cascade_machine(), kernels=models).run([np.zeros(192, np.int32) for _ in range(3)])


def test_a_kernel_that_gets_without_a_link_is_refused():
    machine = cascade_machine()
    machine.cascades.clear()
    with pytest.raises(DesignError, match="nothing is linked to its"):
        Simulator(machine, kernels=cascade_models(256)).run([np.zeros(192, np.int32) for _ in range(3)])


def many_channels(device, count, tiles=32, size=1024):
    """``count`` columns, each copying with its own core."""
    make = Maker(device)
    obj, host = MemRefType((size,), "i32"), MemRefType((size * tiles,), "i32")
    make.kernel("scale", obj, obj, "i32")
    for col in range(count):
        tile = Coord(col, 2)
        x, y = make.fifo_in(f"x{col}", tile, obj), make.fifo_out(f"y{col}", tile, obj)
        at, region = body()
        inner, _ = at.loop(FOREVER)
        (b,), (a,) = inner.acquire(f"y{col}", True, obj), inner.acquire(f"x{col}", False, obj)
        inner.op("func.call", (a, b, inner.const(1, "i32")), callee="scale")
        inner.release(f"x{col}", False)
        inner.release(f"y{col}", True)
        inner.end()
        make.core(tile, region, x, y)
    seq = make.host(*[host] * (2 * count))
    args = seq.block.args
    for col in range(count):
        make.move(seq, f"x{col}", args[col], False)
    tasks = [make.move(seq, f"y{col}", args[count + col], True) for col in range(count)]
    for task in tasks:
        seq.op("aiex.dma_await_task", (task,))
    return make.machine


def test_channels_share_the_ddr_up_to_its_cap():
    machine = many_channels("npu2", 8)
    arrays = [np.zeros(32 * 1024, np.int32) for _ in range(16)]
    at_once = Costs().having(task_push_first=0, task_push=0)
    report = Simulator(machine, kernels={"scale": scale_model(1)}, costs=at_once, data=False).run(arrays)
    rate = report.traffic["ddr"].total / report.seconds
    cap = machine.device.ddr_total.value
    assert 0.9 * cap < rate <= cap
    one = many_channels("npu2", 1)
    alone = Simulator(one, kernels={"scale": scale_model(1)}, costs=at_once, data=False).run(arrays[:2])
    channel = machine.device.stream_bytes_per_cycle * machine.device.clock_hz
    assert 0.9 * channel < alone.traffic["ddr"].read / alone.seconds <= channel


@pytest.mark.parametrize("seed", range(4))
def test_neither_results_nor_time_depend_on_the_order_of_the_processes(seed):
    def outcome(shuffle):
        machine = many_channels("npu1", 4, tiles=7, size=100)
        if shuffle:
            rng = random.Random(seed)
            rng.shuffle(machine.routes)
            rng.shuffle(machine.cores)
            rng.shuffle(machine.channels)
        arrays = [np.arange(700, dtype=np.int32) * (i + 1) for i in range(4)] + [np.zeros(700, np.int32) for _ in range(4)]
        report = Simulator(machine, kernels={"scale": scale_model()}).run(arrays)
        return report.ticks, [a.tolist() for a in arrays], sorted(report.trace)

    assert outcome(True) == outcome(False)


def test_a_push_on_a_full_queue_is_an_error_not_a_silent_loss():
    make = Maker()
    obj = MemRefType((16,), "i32")
    make.fifo_in("x", Coord(0, 2), obj)
    seq = make.host(obj)
    for _ in range(8):  # two objects fit the ring, one waits in the stream, four in the queue
        make.move(seq, "x", seq.block.args[0], False)
    with pytest.raises(DesignError, match="queue holds 4 beside the running one"):
        Simulator(make.machine).run([np.zeros(16, np.int32)])


def test_a_strided_transfer_costs_the_ddr_whole_bursts():
    def cycles(dims):
        make = Maker("npu1")
        tile, obj = Coord(0, 2), MemRefType((4096,), "i32")
        x = make.fifo_in("x", tile, obj)
        at, region = body()
        inner, _ = at.loop(FOREVER)
        inner.acquire("x", False, obj)
        inner.release("x", False)
        inner.end()
        make.core(tile, region, x)
        seq = make.host(MemRefType((4096 * 4,), "i32"))
        task = make.move(seq, "x", seq.block.args[0], True, dims=dims)
        seq.op("aiex.dma_await_task", (task,))
        return Simulator(make.machine, data=False).run([np.zeros(4096 * 4, np.int32)]).cycles

    whole, single = cycles(((1, 0), (1, 0), (1, 0), (4096, 1))), cycles(((1, 0), (1, 0), (4096, 4), (1, 1)))
    assert single > whole
    busy = 4096 * 64 / (28.1e9 / 1.0e9)  # a burst of 64 bytes for each element of 4
    assert single > busy


def test_an_unfinished_drain_is_warned_of():
    machine = scale_machine(tiles=4)
    ops = machine.sequence.entry.ops
    ops[:] = [op for op in ops if op.name != "aiex.dma_await_task"]
    arrays = [np.zeros(256, np.int32), np.zeros(256, np.int32)]
    report = Simulator(machine, kernels={"scale": scale_model()}).run(arrays)
    assert any("'y'" in w and "wait=True" in w for w in report.warnings)


def test_a_token_is_needed_to_await_and_serves_once():
    for wait, times, words in ((False, 1, "wait=True"), (True, 2, "a second time")):
        machine = scale_machine()
        ops = machine.sequence.entry.ops
        task = next(op for op in ops if op.name == "aiex.dma_configure_task_for" and op.attrs["alloc"] == "y")
        task.attrs["issue_token"] = wait
        ops += [ops[-1]] * (times - 1)
        with pytest.raises(DesignError, match=words):
            Simulator(machine, kernels={"scale": scale_model()}).run([np.zeros(256, np.int32), np.zeros(256, np.int32)])


def test_an_exact_wait_leaves_the_lock_as_it_is():
    make, core = inline(add_three)
    lock = MachineLock("barrier", Coord(0, 2), 9, 0)
    make.machine.locks.append(lock)
    value = Value("index")
    core.locks[value] = lock
    one = Op.make("arith.constant", (), ("i32",), value=1)
    loop = core.body.entry.ops[-1].regions[0].entry
    loop.ops[0:0] = [one, Op.make("aie.use_lock", (value, one.result), action=0)]
    make.machine.sequence_locks[value] = lock
    make.sequence.entry.ops.insert(0, Op.make("aiex.set_lock", (value,), value=1))
    sim = Simulator(make.machine)
    sim.run([np.zeros(16, np.int32), np.zeros(16, np.int32)])
    assert sim.locks[lock].value == 1


def test_a_core_that_never_synchronises_does_not_hide_a_deadlock():
    machine = scale_machine(tiles=4, drain=5 * 64)
    at, region = body()
    inner, _ = at.loop(FOREVER)
    inner.end()
    machine.cores.append(CoreProgram(Coord(1, 2), region, "idle"))
    with pytest.raises(DeadlockError):
        Simulator(machine, kernels={"scale": scale_model()}).run([np.zeros(256, np.int32), np.zeros(320, np.int32)])


def test_descriptor_locks_and_two_dimensional_walks_reorder_data():
    machine = scale_machine(tiles=2, size=64)
    into = next(c for c in machine.channels if c.direction == "S2MM" and c.tile.row == 2)
    for bd in into.descriptors:
        bd.dims = ((8, 1), (8, 8))  # write the stream down the columns: a transpose
    x, y = np.arange(128, dtype=np.int32), np.zeros(128, np.int32)
    Simulator(machine, kernels={"scale": scale_model()}).run([x, y])
    np.testing.assert_array_equal(y.reshape(2, 8, 8), 7 * x.reshape(2, 8, 8).transpose(0, 2, 1))
    assert isinstance(into.descriptors[0].acquires[0], LockUse)

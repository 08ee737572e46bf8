"""The host sequence: transfers, task groups, tasks, barriers, scratchpad parameters."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from npusim import ir
from npusim.errors import DesignError, UnsupportedError
from npusim.frontends.control import if_
from npusim.frontends.iron.barrier import WorkerRuntimeBarrier
from npusim.frontends.iron.controlflow import range_, yield_
from npusim.frontends.iron.device import NPU2, Tile
from npusim.frontends.iron.dialects_arith import NAMES, constant, index_cast
from npusim.frontends.iron.hosttasks import shim_dma_single_bd_task
from npusim.frontends.iron.objectfifo import ObjectFifo
from npusim.frontends.iron.program import Program
from npusim.frontends.iron.runtime import Runtime, RuntimeData
from npusim.frontends.iron.scratchpad import ScratchpadParameter, sync_parameters
from npusim.frontends.iron.taplib import TensorAccessPattern
from npusim.frontends.iron.task import TaskGroup
from npusim.frontends.iron.worker import Worker
from npusim.frontends.views import DYNAMIC
from tests.npusim.frontends.tracer import array, body, resolve, sequence


def short(ops: list[ir.Op]) -> list[str]:
    """Configure, start, await and free, each with the number of its task."""
    number: dict[ir.Value, int] = {}
    said = []
    for op in ops:
        verb = op.name.removeprefix("aiex.dma_").partition("_task")[0]
        if verb == "configure":
            number[op.result] = len(number)
            verb = str(op.attrs["alloc"])
        said.append(f"{verb}{number[op.result if op.results else op.operands[0]]}")
    return said


def descriptor(op: ir.Op) -> ir.Op:
    bd, end = op.regions[0].entry.ops
    assert (bd.name, end.name) == ("aie.dma_bd", "aie.end")
    return bd


def test_default_transfer() -> None:
    ops = sequence(lambda a, b, p, c: [p.fill(a), c.drain(b, wait=True)], host=array((4, 8)))
    assert short(ops) == ["x0", "start0", "y1", "start1", "await1", "free0", "free1"]
    assert [o.attrs for o in (ops[0], ops[2])] == [
        {"alloc": "x", "issue_token": False, "repeat_count": 0},
        {"alloc": "y", "issue_token": True, "repeat_count": 0},
    ]
    assert descriptor(ops[0]).attrs == {
        "static_offset": 0,
        "static_len": 32,
        "static_sizes": (1, 1, 4, 8),
        "static_strides": (0, 0, 8, 1),
        "burst_length": 0,
    }


def test_patterns() -> None:
    def seq(a: Any, b: Any, p: Any, c: Any) -> None:
        p.fill(a, tap=TensorAccessPattern((1, 64), 5, [3, 2, 4], [16, 8, 1]))
        p.fill(a, sizes=[3, 1, 2, 8], strides=[16, 0, 8, 1], offset=4)
        p.fill(a, sizes=[8], strides=[2], transfer_len=4)

    first, second, third = (o for o in sequence(seq, host=array(64)) if o.name.endswith("task_for"))
    assert first.attrs["repeat_count"] == 0  # three dimensions are filled up with ones
    assert descriptor(first).attrs["static_sizes"] == (1, 3, 2, 4)
    assert descriptor(first).attrs["static_strides"] == (0, 16, 8, 1)
    assert (descriptor(first).attrs["static_offset"], descriptor(first).attrs["static_len"]) == (5, 24)
    assert second.attrs["repeat_count"] == 2
    assert descriptor(second).attrs["static_len"] == 16  # the outermost size is the iteration
    assert (descriptor(third).attrs["static_sizes"], descriptor(third).attrs["static_len"]) == ((1, 1, 1, 8), 4)


def test_numbers_at_run_time() -> None:
    def seq(a: Any, b: Any, p: Any, c: Any, n: Any) -> None:
        wide = NAMES["extsi"]("i64", n)
        p.fill(a, sizes=[wide, 1, 1, 4], strides=[0, 0, 0, 1], offset=n * 4)

    *_, task, _, _ = sequence(seq, more=[np.int32])
    bd = descriptor(task)
    assert bd.attrs["static_sizes"] == (DYNAMIC, 1, 1, 4)
    assert bd.attrs["operandSegmentSizes"] == (1, 1, 0, 1, 0)
    assert "static_offset" not in bd.attrs
    assert [v.type for v in bd.operands[1:]] == ["i32", "i64"]
    assert [v.type for v in task.operands] == ["i32"]  # the number of passes minus one
    assert task.operands[0].owner.name == "arith.subi"


def test_numbers_at_run_time_have_types() -> None:
    def offset(a: Any, b: Any, p: Any, c: Any) -> None:
        for i in range_(4):
            p.fill(a, sizes=[1, 1, 1, 4], strides=[0, 0, 0, 1], offset=i * 4)

    def fixed(a: Any, b: Any, p: Any, c: Any) -> None:
        for i in range_(4):
            tg = TaskGroup()
            p.fill(a, sizes=[1, 1, 1, 4], strides=[0, 0, 0, 1], offset=index_cast(i * 4, to="i32"), group=tg)
            tg.finish()

    def left_over(a: Any, b: Any, p: Any, c: Any) -> None:
        for _ in range_(4):
            p.fill(a)

    with pytest.raises(DesignError, match="run-time index in a transfer: offset and length must be i32"):
        sequence(offset)
    sequence(fixed)
    with pytest.raises(DesignError, match="make a TaskGroup in that body"):
        sequence(left_over)


@pytest.mark.parametrize(
    ("use", "words"),
    [
        (lambda a, p, c: p.fill(3), "expected a RuntimeData"),
        (lambda a, p, c: p.fill(RuntimeData(array(4))), "does not belong to the Runtime"),
        (lambda a, p, c: c.fill(a), "only valid on a producer"),
        (lambda a, p, c: p.drain(a), "only valid on a consumer"),
        (lambda a, p, c: p.fill(a, tap=a.default_tap(), sizes=[1]), "not both"),
        (lambda a, p, c: p.fill(a, managed=False, group=TaskGroup()), "no TaskGroup"),
        (lambda a, p, c: p.fill(a, group=1), "must be a TaskGroup"),
        (lambda a, p, c: p.fill(a, sizes=[1] * 5, strides=[0] * 5), "at most 4 dimensions"),
        (lambda a, p, c: p.fill(a, sizes=[1, 4], strides=[1]), "as many strides"),
        (lambda a, p, c: p.fill(a, sizes=[1.5], strides=[1]), "must be an int"),
    ],
)
def test_refused_transfers(use: Any, words: str) -> None:
    with pytest.raises(DesignError, match=words):
        sequence(lambda a, b, p, c: use(a, p, c))


def test_unserved_transfer() -> None:
    with pytest.raises(UnsupportedError, match="without sizes"):
        sequence(lambda a, b, p, c: p.fill(a, offset=4))
    with pytest.raises(TypeError, match="taps"):
        sequence(lambda a, b, p, c: p.fill(a, taps=1))


def test_three_dimensional_arrays_need_a_pattern() -> None:
    with pytest.raises(DesignError, match="2, 8, 16"):
        sequence(lambda a, b, p, c: p.fill(a), host=array((2, 8, 16)))
    assert str(RuntimeData(array((8, 16))).default_tap()) == (
        "TensorAccessPattern((8, 16) offset=0, sizes=[1, 1, 8, 16], strides=[0, 0, 16, 1])"
    )


def test_order_of_waits_and_frees() -> None:
    def seq(a: Any, b: Any, p: Any, c: Any) -> None:
        tg = TaskGroup()
        p.fill(a, group=tg)
        c.drain(b, wait=True, group=tg)
        p.fill(a, wait=True, group=tg)
        tg.finish()

    said = ["x0", "start0", "y1", "start1", "x2", "start2", "await1", "await2", "free0", "free1", "free2"]
    assert short(sequence(seq)) == said


def test_groups_can_be_used_again_and_finished_twice() -> None:
    def seq(a: Any, b: Any, p: Any, c: Any) -> None:
        tg = TaskGroup()
        p.fill(a, group=tg)
        tg.finish()
        p.fill(a, group=tg)
        tg.finish()
        tg.finish()

    assert short(sequence(seq)) == ["x0", "start0", "free0", "x1", "start1", "free1"]


def test_group_rules() -> None:
    def left_open(a: Any, b: Any, p: Any, c: Any) -> None:
        p.fill(a, group=TaskGroup())

    def mixed(a: Any, b: Any, p: Any, c: Any) -> None:
        tg = TaskGroup()
        p.fill(a, group=tg)
        c.drain(b)
        tg.finish()

    with pytest.raises(DesignError, match=r"Failed to close task groups: TaskGroup\(1\)"):
        sequence(left_open)
    with pytest.raises(DesignError, match="mixes transfers with group= and without"):
        sequence(mixed)
    with pytest.raises(DesignError, match="made inside the sequence function"):
        TaskGroup()
    with pytest.raises(DesignError, match="outside of the host sequence"):
        TaskGroup(7).finish()


def test_mixing_may_be_allowed() -> None:
    def seq(a: Any, p: Any) -> None:
        tg = TaskGroup()
        p.fill(a, group=tg)
        p.fill(a)
        tg.finish()

    x = ObjectFifo(array(4), name="x")
    rt = Runtime(seq, [array(4), x.prod()], strict_task_groups=False)
    made = Program(NPU2(), rt, [Worker(lambda h: None, [x.cons()])]).resolve_program().design.sequence
    assert made is not None
    assert short(made.body.entry.ops) == ["x0", "start0", "x1", "start1", "free0", "free1"]


def test_unmanaged_tasks() -> None:
    def seq(a: Any, b: Any, p: Any, c: Any) -> None:
        t = p.fill(a, managed=False)
        u = c.drain(b, wait=True, managed=False)
        u.await_()
        t.free()
        u.free()

    assert short(sequence(seq)) == ["x0", "start0", "y1", "start1", "await1", "free0", "free1"]


def test_tasks_are_awaited_once_and_with_a_token() -> None:
    def no_token(a: Any, b: Any, p: Any, c: Any) -> None:
        p.fill(a, managed=False).await_()

    def twice(a: Any, b: Any, p: Any, c: Any) -> None:
        t = p.fill(a, managed=False, wait=True)
        t.await_()
        t.await_()

    with pytest.raises(DesignError, match="wait=True"):
        sequence(no_token)
    with pytest.raises(DesignError, match="awaited twice"):
        sequence(twice)


def test_loops_and_branches_in_the_sequence() -> None:
    def seq(a: Any, b: Any, p: Any, c: Any, n: Any) -> None:
        with if_(n > 1):
            for _ in range_(n):
                tg = TaskGroup()
                p.fill(a, group=tg)
                c.drain(b, wait=True, group=tg)
                tg.finish()

    branch = sequence(seq, more=[np.int32])[-1]
    assert branch.name == "scf.if"
    loop = branch.regions[0].entry.ops[-2]
    assert short(loop.regions[0].entry.ops[:-1])[-3:] == ["await1", "free0", "free1"]


def test_tasks_are_carried_by_loops() -> None:
    def seq(a: Any, b: Any, p: Any, c: Any) -> None:
        first = p.fill(a, wait=True, managed=False)
        for _, before, last in range_(1, 8, iter_args=[first], insert_yield=False):  # noqa: B007
            now = p.fill(a, wait=True, managed=False)
            before.free()
            yield_([now])
        last.await_()
        last.free()

    *_, loop, wait, free = sequence(seq)
    assert loop.results[0].type == "index"
    assert wait.operands == free.operands == (loop.result,)


def test_arguments() -> None:
    seen: list[Any] = []

    def seq(*args: Any) -> None:
        seen.extend(args)

    more = [np.int32, 7, True, "s", [1, 2], np.int64(3)]
    design = resolve(lambda a, b: None, seq=seq, more=more)
    a, b, p, c, number, seven, *rest, three = seen
    assert [type(x).__name__ for x in (a, b, p, c, number, seven)] == [
        "RuntimeData",
        "RuntimeData",
        "ObjectFifoHandle",
        "ObjectFifoHandle",
        "ScalarValue",
        "ScalarValue",
    ]
    assert rest == [True, "s", [1, 2]]
    assert [int(seven), seven.type, int(three)] == [7, "i32", 3]
    assert design.sequence is not None
    assert [str(v.type) for v in design.sequence.body.entry.args] == ["memref<16xi32>", "memref<16xi32>", "i32"]
    assert (a.shape, a.dtype, a.is_scalar, RuntimeData(np.int32).is_scalar) == ((16,), np.int32, False, True)  # type: ignore[arg-type]


def test_arity_of_the_sequence() -> None:
    with pytest.raises(TypeError, match="takes 0 positional arguments but 4 were given"):
        sequence(lambda: None)


def test_the_hosts_end() -> None:
    x = ObjectFifo(array(4), name="x")
    handle = x.cons()
    w = Worker(lambda h: None, [handle])
    with pytest.raises(DesignError, match="already used by a worker"):
        Program(NPU2(), Runtime(lambda b, c, p: c.drain(b), [array(4), handle, x.prod()]), [w]).resolve_program()
    with pytest.raises(DesignError, match="shim tile"):
        Runtime(lambda c: None, [x.cons(tile=Tile(0, 2, tile_type=handle._endpoint.tile.tile_type))])  # type: ignore[union-attr]


def test_pinned_shim_tiles() -> None:
    x = ObjectFifo(array(4), name="x")
    w = Worker(lambda h: None, [x.cons()])
    rt = Runtime(lambda a, p: p.fill(a), [array(4), x.prod(tile=Tile(3, 0))])
    tile = Program(NPU2(), rt, [w]).resolve_program().design.fifo("x").producer
    assert (tile.kind, tile.col, tile.row) == ("shim", 3, 0)


def test_consumers_made_by_the_sequence_are_merged() -> None:
    y = ObjectFifo(array(4), name="y")
    w = Worker(lambda h: None, [y.prod()])

    def seq(b: Any, c: Any) -> None:
        c.drain(b, wait=True)
        y.cons().drain(b, wait=True)

    design = Program(NPU2(), Runtime(seq, [array(4), y.cons()]), [w]).resolve_program().design
    assert len(design.fifo("y").consumers) == 1
    y = ObjectFifo(array(4), name="y")
    w = Worker(lambda h: None, [y.prod()])
    with pytest.raises(DesignError, match="two consumers with different depth"):
        rt = Runtime(lambda b, c: y.cons(depth=3).drain(b), [array(4), y.cons()])
        Program(NPU2(), rt, [w]).resolve_program()


# -- barriers and parameters


def test_barrier() -> None:
    bar = WorkerRuntimeBarrier()

    def core(a: Any, b: Any, gate: Any) -> None:
        gate.wait_for_value(1)
        gate.release_with_value(2)

    design = resolve(core, extra=[bar], seq=lambda a, b, p, c, gate: gate.set(1), more=[bar])
    (lock,) = design.locks
    assert (lock.name, lock.init, lock.tile) == (None, None, design.cores[0].tile)
    uses = [o for o in ir.walk(design.cores[0].body) if o.name == "aie.use_lock"]
    assert [(o.attrs["action"], o.operands[1].owner.attrs["value"]) for o in uses] == [(0, 1), (1, 2)]
    assert all(o.operands[0] is lock.value for o in uses)
    assert design.sequence is not None
    (set_,) = design.sequence.body.entry.ops
    assert (set_.name, set_.attrs, set_.operands) == ("aiex.set_lock", {"value": 1}, (lock.value,))


def test_barrier_rules() -> None:
    bar = WorkerRuntimeBarrier()
    with pytest.raises(DesignError, match="No workers have been registered for this barrier"):
        resolve(lambda a, b: bar.wait_for_value(1))
    with pytest.raises(DesignError, match="does not belong in the host sequence"):
        sequence(lambda a, b, p, c, g: g.wait_for_value(1), extra=[bar], more=[bar])
    with pytest.raises(DesignError, match="sequence"):
        resolve(lambda a, b, g: g.set(1), extra=[bar])


def test_the_initial_value_of_a_barrier_is_lost() -> None:
    bar = WorkerRuntimeBarrier(initial_value=1)
    with pytest.warns(UserWarning, match="starts at 0"):
        design = resolve(lambda a, b, g: None, extra=[bar])
    assert len(design.warnings) == 1


def test_scratchpad_parameters() -> None:
    gain, offset = ScratchpadParameter("gain", np.int16), ScratchpadParameter("start", np.int32)

    def core(a: Any, b: Any, p: Any) -> None:
        assert p.read().type == "i16"

    def seq(a: Any, b: Any, p: Any, c: Any) -> None:
        sync_parameters()
        p.fill(a, sizes=[1, 1, 1, 4], strides=[0, 0, 0, 1], offset_parameter=offset)

    design = resolve(core, extra=[gain], seq=seq)
    assert [(s.name, s.element) for s in design.scratchpads] == [("gain", "i16"), ("start", "i32")]
    assert design.sequence is not None
    sync, task, *_ = design.sequence.body.entry.ops
    assert sync.name == "aiex.sync_scratchpad_parameters_from_host"
    assert descriptor(task).attrs["offset_parameter"] == "start"
    assert any(o.name == "aiex.read_scratchpad_parameter" for o in body(core, extra=[gain]))


def test_scratchpad_rules() -> None:
    with pytest.raises(DesignError, match="30 bits"):
        resolve(lambda a, b, p: None, extra=[ScratchpadParameter("g", np.float32)])
    with pytest.raises(DesignError, match="works only while"):
        ScratchpadParameter("g", np.int32).read()
    with pytest.raises(DesignError, match="outside of the host sequence"):
        sync_parameters()


def test_packets() -> None:
    with pytest.raises(UnsupportedError, match="packet="):
        sequence(lambda a, b, p, c: p.fill(a, packet=(0, 5)))
    task = sequence(lambda a, b, p, c: shim_dma_single_bd_task("x", a.op, sizes=[1, 1, 1, 16], packet=(0, 5)))[0]
    assert descriptor(task).attrs["packet"] == "#aie.packet_info<pkt_type = 0, pkt_id = 5>"


def test_constants_alone() -> None:
    kinds = []

    def seq(a: Any, b: Any, p: Any, c: Any) -> None:
        values = (
            constant(1),
            constant(1.5),
            constant(True),
            constant(2, "i64"),
            constant("f32", 2),
            constant(3, index=True),
        )
        kinds.extend(v.type for v in values)

    sequence(seq)
    assert kinds == ["i32", "f32", "i1", "i64", "f32", "index"]

"""The end time of a pipeline against the same pipeline written for SimPy."""

from __future__ import annotations

import numpy as np
import pytest
import simpy

from npusim.costs import Costs
from npusim.engine import Simulator
from npusim.ir import FOREVER
from npusim.kernels import KernelModel
from npusim.machine import Coord
from npusim.types import MemRefType
from tests.npusim.engine.handmade import Maker, body

FREE = Costs().having(
    lock_acquire=0, lock_release=0, kernel_call=0, bd_switch=0, shim_read_start=0, shim_write_start=0,
    shim_read_next=0, shim_write_next=0, task_push_first=0, task_push=0, task_token=0, register_write=0, stream_hop=0,
)  # fmt: skip


def pipeline(stages: list[int], objects: int, size: int, depth: int):
    """Cores above each other, joined by shared memory; only kernels and streams take time."""
    make = Maker("npu1")
    obj, host = MemRefType((size,), "i32"), MemRefType((size * objects,), "i32")
    tiles = [Coord(0, 2 + i) for i in range(len(stages))]
    previous = make.fifo_in("x", tiles[0], obj, depth)
    for i, tile in enumerate(tiles):
        make.kernel(f"stage{i}", obj, obj)
        if i + 1 < len(tiles):
            out, following = make.neighbour(f"m{i}", tile, obj, depth)
        else:
            out = following = make.fifo_out("y", tile, obj, depth)
        at, region = body()
        inner, _ = at.loop(FOREVER)
        (b,), (a,) = inner.acquire(out.fifo, True, obj), inner.acquire(previous.fifo, False, obj)
        inner.op("func.call", (a, b), callee=f"stage{i}")
        inner.release(previous.fifo, False)
        inner.release(out.fifo, True)
        inner.end()
        make.core(tile, region, previous, out, name=f"stage{i}")
        previous = following
    seq = make.host(host, host)
    make.move(seq, "x", seq.block.args[0], False)
    seq.op("aiex.dma_await_task", (make.move(seq, "y", seq.block.args[1], True),))
    return make.machine


def on_simpy(stages: list[int], objects: int, move: int, depth: int) -> float:
    env = simpy.Environment()
    free = [simpy.Container(env, depth, depth) for _ in range(len(stages) + 1)]
    full = [simpy.Container(env, depth, 0) for _ in range(len(stages) + 1)]

    def dma_in():
        for _ in range(objects):
            yield free[0].get(1)
            yield env.timeout(move)
            yield full[0].put(1)

    def stage(i, cycles):
        for _ in range(objects):
            yield free[i + 1].get(1)
            yield full[i].get(1)
            yield env.timeout(cycles)
            yield free[i].put(1)
            yield full[i + 1].put(1)

    def dma_out():
        for _ in range(objects):
            yield full[-1].get(1)
            yield env.timeout(move)
            yield free[-1].put(1)

    env.process(dma_in())
    for i, cycles in enumerate(stages):
        env.process(stage(i, cycles))
    end = env.process(dma_out())
    env.run(end)
    return env.now


@pytest.mark.parametrize("depth", [1, 2, 3])
@pytest.mark.parametrize("stages", [[100], [300, 50], [20, 700, 20], [128, 127, 129, 128]])
def test_a_pipeline_ends_when_simpy_says(stages, depth, monkeypatch):
    size, objects = 128, 9
    monkeypatch.setitem(FREE.scalar, "loop", 0)
    models = {
        f"stage{i}": KernelModel(lambda a, b: None, lambda *a, device, n=n: n) for i, n in enumerate(stages)
    }
    machine = pipeline(stages, objects, size, depth)
    arrays = [np.zeros(size * objects, np.int32) for _ in range(2)]
    report = Simulator(machine, kernels=models, costs=FREE, data=False).run(arrays)
    assert report.cycles == on_simpy(stages, objects, size, depth)

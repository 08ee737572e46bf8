"""The event loop: who runs when, and when it gives up."""

from __future__ import annotations

import numpy as np
import pytest

from npusim.engine.loop import Loop, Waitable
from npusim.kernels import KernelModel
from npusim.load import load_design
from npusim.run import simulate

LONG = """
import numpy as np
from aie.iron import Kernel, ObjectFifo, Program, Runtime, Worker
from aie.iron.controlflow import range_
from aie.iron.device import NPU2, Tile


def build(dev="npu2", turns=10):
    tile = np.ndarray[(64,), np.dtype[np.int32]]
    a, m, o = (ObjectFifo(tile, name=name) for name in "amo")
    work = Kernel("work", "k.o", [tile, tile])

    def first(a, m, work):
        x = a.acquire(1)
        for _ in range_(turns):
            work(x, m.acquire(1))
            m.release(1)
        a.release(1)

    def second(m, o, work):
        y = o.acquire(1)
        for _ in range_(turns):
            work(m.acquire(1), y)
            m.release(1)
        o.release(1)

    workers = [
        Worker(first, [a.cons(), m.prod(), work], tile=Tile(0, 2)),
        Worker(second, [m.cons(), o.prod(), work], tile=Tile(3, 4)),
    ]

    def sequence(x, y, pa, co):
        pa.fill(x)
        co.drain(y, wait=True)

    return Program(NPU2(), Runtime(sequence, [tile, tile, a.prod(), o.cons()]), workers).resolve_program()
"""


@pytest.mark.parametrize("turns", [10, 1000])
def test_a_long_phase_without_ddr_is_no_hang(tmp_path, turns):
    """Two cores pass on tiles for 50 million cycles, while the host and DDR have nothing to do."""
    path = tmp_path / "long.py"
    path.write_text(LONG)
    args = [np.zeros(64, np.int32) for _ in range(2)]
    model = KernelModel(lambda x, y: None, lambda x, y, device: 50_000)
    report = simulate(load_design(path, "npu2", turns=turns), args, kernels={"work": model})
    assert report.cycles > turns * 50_000


def test_processes_that_never_block_do_not_keep_a_run_alive():
    loop = Loop()

    def spins():
        while True:
            yield (loop.now + 1, (0,), True)

    loop.start(spins())
    assert not loop.run()
    assert loop.resumptions < 1000


def test_nor_do_two_that_only_wake_each_other():
    loop, bells = Loop(), [Waitable(), Waitable()]

    def plays(key, mine, other):
        while True:
            loop.wake(other)
            yield (loop.now + 1, (key,), True)
            loop.wake(other)
            yield mine

    loop.start(plays(0, *bells))
    loop.start(plays(1, *reversed(bells)))
    assert not loop.run()


def test_whoever_stops_the_loop_ends_the_run():
    loop = Loop()

    def stops():
        yield (5, (0,))
        loop.stopped = True

    loop.start(stops())
    assert loop.run()
    assert loop.now == 5


def test_equal_ticks_are_served_in_the_order_of_the_keys():
    loop, seen = Loop(), []

    def acts(key):
        yield (3, (key,))
        seen.append(key)

    for key in (2, 0, 1):
        loop.start(acts(key))
    assert not loop.run()
    assert seen == [0, 1, 2]

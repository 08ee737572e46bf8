"""Rounds that repeat are added up, to the tick and the byte as if they had been run."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from npusim.engine import Simulator
from npusim.errors import DesignError
from npusim.frontends.finder import simulated
from npusim.kernels import KernelModel
from npusim.load import as_design
from npusim.place import place

KERNELS = {"work": KernelModel(lambda a, b: None, lambda a, b, device: 90)}


def rounds_machine(rounds, objects=3, size=64, overlap=False, odd=0, stages=1, inner=1):
    """A pipeline fed ``rounds`` times with ``objects`` objects; with ``overlap`` a round starts before the last one ended.
    Round ``odd`` (if any) has one object more."""

    def build():
        from aie.iron import Kernel, ObjectFifo, Program, Runtime, TaskGroup, Worker
        from aie.iron.controlflow import range_
        from aie.iron.device import NPU2

        obj = np.ndarray[(size,), np.dtype[np.int32]]
        host = np.ndarray[(size * (objects + 1),), np.dtype[np.int32]]
        fifos = [ObjectFifo(obj, name=f"f{i}") for i in range(stages + 1)]
        work = Kernel("work", "work.o", [obj, obj])

        def core(src, dst, fn):
            for _ in range_(inner):
                fn(src.acquire(1), dst.acquire(1))
                src.release(1)
                dst.release(1)

        workers = [Worker(core, [fifos[i].cons(), fifos[i + 1].prod(), work]) for i in range(stages)]

        def sequence(a, b, px, cy):
            old = None
            for i in range(rounds):
                n = size * (objects + (odd and i == odd))
                group = TaskGroup()
                where = {"sizes": [1, 1, 1, n], "strides": [0, 0, 0, 1], "offset": 0}
                px.fill(a, group=group, **where)
                cy.drain(b, wait=True, group=group, **where)
                if not overlap:
                    group.finish()
                else:
                    if old is not None:
                        old.finish()
                    old = group
            if old is not None:
                old.finish()

        runtime = Runtime(sequence, [host, host, fifos[0].prod(), fifos[-1].cons()])
        return Program(NPU2(), runtime, workers).resolve_program()

    with simulated():
        return place(as_design(build()))


def run(machine, periodic):
    arrays = [np.zeros(v.type.shape, v.type.dtype) for v in machine.sequence.entry.args]
    return Simulator(machine, kernels=KERNELS, data=False, trace=False, periodic=periodic).run(arrays)


def facts(report):
    return {
        "ticks": report.ticks,
        "traffic": report.traffic,
        "channels": [(str(u.channel), u.bytes, u.transfers, u.busy) for u in report.channels],
        "cores": report.cores,
        "cascade": report.cascade_bytes,
    }


@settings(max_examples=20, deadline=None)
@given(
    rounds=st.integers(2, 60), objects=st.integers(1, 5), size=st.sampled_from([16, 100, 512]), overlap=st.booleans(),
    stages=st.integers(1, 3), inner=st.integers(1, 3),
)  # fmt: skip
def test_equal_to_the_full_run(rounds, objects, size, overlap, stages, inner):
    machine = rounds_machine(rounds, objects, size, overlap, stages=stages, inner=inner)
    assert facts(run(machine, True)) == facts(run(machine, False))


def test_many_rounds_are_left_out():
    report = run(rounds_machine(200), True)
    assert report.extrapolated_periods > 90  # a period is two rounds: three objects in rings of two
    assert run(rounds_machine(200), False).extrapolated_periods == 0


def test_a_different_round_in_between_is_run():
    machine = rounds_machine(120, odd=60)
    report = run(machine, True)
    assert facts(report) == facts(run(machine, False))
    assert 25 < report.extrapolated_periods < 60


def test_with_data_or_trace_everything_is_run():
    machine = rounds_machine(4)
    with pytest.raises(DesignError, match="without data and without a trace"):
        Simulator(machine, kernels=KERNELS, periodic=True)
    assert run(rounds_machine(50), None).extrapolated_periods > 0


def test_it_pays():
    machine = rounds_machine(300, objects=40, stages=3)
    full, fast = run(machine, False), run(machine, True)
    assert facts(fast) == facts(full)
    assert fast.resumptions < full.resumptions / 50

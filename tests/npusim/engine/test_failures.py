"""What goes wrong inside a core names the worker, its tile and the line of the design."""

from __future__ import annotations

import inspect

import numpy as np
import pytest

from npusim.errors import DesignError
from npusim.frontends.finder import simulated
from npusim.kernels import KernelModel
from npusim.load import as_design
from npusim.run import simulate

N = 8


def run(core, kernels=None, extra=()):
    with simulated():
        from aie.iron import ObjectFifo, Program, Runtime, Worker
        from aie.iron.device import NPU2

        vector = np.ndarray[(N,), np.dtype[np.int32]]
        x, y = ObjectFifo(vector, name="x"), ObjectFifo(vector, name="y")

        def sequence(a, b, px, cy):
            px.fill(a)
            cy.drain(b, wait=True)

        runtime = Runtime(sequence, [vector, vector, x.prod(), y.cons()])
        given = [make(vector) for make in extra]
        worker = Worker(core, [x.cons(), y.prod(), *given], while_true=False)
        design = as_design(Program(NPU2(), runtime, [worker]).resolve_program())
    simulate(design, [np.arange(N, dtype=np.int32), np.zeros(N, np.int32)], kernels=kernels)


def line_of(function, text):
    """The line of this file on which a function has some text."""
    lines, first = inspect.getsourcelines(function)
    return next(first + i for i, line in enumerate(lines) if text in line)


def past_the_end(src, dst):
    from aie.iron.controlflow import range_

    a, b = src.acquire(1), dst.acquire(1)
    for i in range_(N):
        b[i] = a[i + 1]
    src.release(1)
    dst.release(1)


def before_the_start(src, dst):
    from aie.iron.controlflow import range_

    a, b = src.acquire(1), dst.acquire(1)
    for i in range_(N):
        b[i - 1] = a[i]
    src.release(1)
    dst.release(1)


def divides_by_zero(src, dst):
    a, b = src.acquire(1), dst.acquire(1)
    b[0] = a[1] // a[0]
    src.release(1)
    dst.release(1)


@pytest.mark.parametrize(
    ("core", "text", "words"),
    [
        (past_the_end, "b[i] = a[i + 1]", "index 8 is out of bounds for axis 0 with size 8"),
        (before_the_start, "b[i - 1] = a[i]", "index -1 is outside of 0 to 7"),
        (divides_by_zero, "a[1] // a[0]", "division by zero"),
    ],
    ids=lambda v: getattr(v, "__name__", ""),
)
def test_a_mistake_in_a_core_is_told_with_its_line(core, text, words):
    with pytest.raises(DesignError) as caught:
        run(core)
    said = str(caught.value)
    assert f"worker {core.__name__!r} on compute tile (0,2), at test_failures.py:{line_of(core, text)}: {words}" in said
    assert ("the NPU does not check bounds" in said) == ("index" in words)


def calls(src, dst, fn):
    a, b = src.acquire(1), dst.acquire(1)
    fn(a, b)
    src.release(1)
    dst.release(1)


def _cycles(a, b, device):
    return a.no_such_thing


@pytest.mark.parametrize(
    ("cycles", "words"),
    [(lambda a, b, device: -3, "gave -3 cycles"), (_cycles, "AttributeError: ")],
    ids=["negative", "raises"],
)
def test_a_cycle_model_that_fails_is_told_with_the_line_of_the_call(cycles, words):
    def kernel(vector):
        from aie.iron import Kernel

        return Kernel("work", "work.o", [vector, vector])

    with pytest.raises(DesignError) as caught:
        run(calls, kernels={"work": KernelModel(lambda a, b: None, cycles)}, extra=[kernel])
    said = str(caught.value)
    assert (
        f"worker 'calls' on compute tile (0,2), at test_failures.py:{line_of(calls, 'fn(a, b)')}: " in said
        and words in said
    )

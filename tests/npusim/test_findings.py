"""Warnings: each has a design that triggers it and one like it that must not."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from npusim.costs import Costs
from npusim.engine import Simulator
from npusim.errors import DesignWarning
from npusim.frontends.finder import simulated
from npusim.frontends.iron.jit import jit
from npusim.frontends.iron.markers import In, Out
from npusim.kernels import KernelModel
from npusim.load import as_design
from npusim.place import place
from npusim.run import simulate

N = 32


def texts(build, args=2, kernels=None, costs=None, size=N):
    """The warnings of building and running a design, in one text."""
    with warnings.catch_warnings(record=True) as caught, simulated():
        warnings.simplefilter("always")
        machine = place(as_design(build()))
        arrays = [np.arange(size, dtype=np.int32) for _ in range(args)]
        report = Simulator(machine, kernels=kernels, costs=costs).run(arrays)
    placed = [str(w.message) for w in caught if issubclass(w.category, DesignWarning)]
    assert all(text in report.warnings for text in placed)
    return "\n".join(report.warnings)


def place_quietly(built):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return place(as_design(built))


def vector():
    return np.ndarray[(N,), np.dtype[np.int32]]


def copy_with(extra=(), before=None, seq=None, more_args=(), workers=(), body=None, forever=False):
    """A copy through one worker, which first does ``before(*extra)``."""
    from aie.iron import ObjectFifo, Program, Runtime, Worker
    from aie.iron.controlflow import range_
    from aie.iron.device import NPU2

    x, y = ObjectFifo(vector(), name="x"), ObjectFifo(vector(), name="y")

    def core(src, dst, *given):
        if before:
            before(*given)
        a, b = src.acquire(1), dst.acquire(1)
        if body:
            body(a, b, *given)
        else:
            for i in range_(N):
                b[i] = a[i]
        src.release(1)
        dst.release(1)

    def default(a, b, px, cy, *_):
        px.fill(a)
        cy.drain(b, wait=True)

    runtime = Runtime(seq or default, [vector(), vector(), x.prod(), y.cons(), *more_args])
    mine = Worker(core, [x.cons(), y.prod(), *extra], while_true=forever)
    return Program(NPU2(), runtime, [mine, *workers]).resolve_program()


def test_a_plain_copy_is_not_warned_about():
    assert texts(copy_with) == ""


@pytest.mark.parametrize("initial", [None, np.zeros(4, np.int32)])
def test_a_buffer_that_nothing_writes(initial):
    def build():
        from aie.iron import Buffer

        table = Buffer(np.ndarray[(4,), np.dtype[np.int32]], initial_value=initial, name="table")

        def add(a, b, lut):
            b[0] = a[0] + lut[1]

        return copy_with([table], body=add)

    said = texts(build)
    assert ("buffer 'table', which nothing ever writes" in said) == (initial is None)


@pytest.mark.parametrize("barrier", [False, True])
def test_a_parameter_read_before_the_host_writes_it(barrier):
    def build():
        from aie.iron import Buffer, WorkerRuntimeBarrier

        rtp = Buffer(np.ndarray[(2,), np.dtype[np.int32]], name="rtp", use_write_rtp=True)
        ready = WorkerRuntimeBarrier()

        def core_body(a, b, params, gate):
            b[0] = a[0]

        def read_first(params, gate):
            if barrier:
                gate.wait_for_value(1)
            params[1] + 1

        def sequence(a, b, px, cy, params, gate):
            params[1] = 5
            gate.set(1)
            px.fill(a)
            cy.drain(b, wait=True)

        return copy_with([rtp, ready], read_first, sequence, [rtp, ready], body=core_body)

    assert ("run-time parameter 'rtp' before the host" in texts(build)) != barrier


@pytest.mark.parametrize("ordered", [False, True])
def test_two_workers_that_write_one_buffer(ordered):
    def build():
        from aie.iron import Buffer, ObjectFifo, Program, Runtime, Worker
        from aie.iron.device import NPU2, Tile

        first, second = Tile(0, 2), Tile(0, 3)
        shared = Buffer(np.ndarray[(4,), np.dtype[np.int32]], name="shared", tile=first)
        x, y, z = (ObjectFifo(vector(), name=n) for n in "xyz")
        baton = ObjectFifo(vector(), name="baton")

        def one(src, dst, buffer, *hand):
            a, b = src.acquire(1), dst.acquire(1)
            buffer[0] = a[0]
            b[0] = a[0]
            if hand:
                hand[0].acquire(1)
                hand[0].release(1)
            src.release(1)
            dst.release(1)

        def two(dst, buffer, *hand):
            if hand:
                hand[0].acquire(1)
                hand[0].release(1)
            b = dst.acquire(1)
            buffer[0] = buffer[0] + 1
            b[0] = buffer[0]
            dst.release(1)

        passed = ([baton.prod()], [baton.cons()]) if ordered else ([], [])
        workers = [
            Worker(one, [x.cons(), y.prod(), shared, *passed[0]], tile=first, while_true=False),
            Worker(two, [z.prod(), shared, *passed[1]], tile=second, while_true=False),
        ]

        def sequence(a, b, c, px, cy, cz):
            px.fill(a)
            cy.drain(b, wait=True)
            cz.drain(c, wait=True)

        runtime = Runtime(sequence, [vector()] * 3 + [x.prod(), y.cons(), z.cons()])
        return Program(NPU2(), runtime, workers).resolve_program()

    said = texts(build, args=3)
    assert ("a race on buffer 'shared'" in said) != ordered


@pytest.mark.parametrize("fed", [False, True])
def test_a_worker_that_does_nothing(fed):
    def build():
        from aie.iron import ObjectFifo, Worker

        lonely = ObjectFifo(vector(), name="lonely")

        def idle(src):
            src.acquire(1)
            src.release(1)

        def sequence(a, b, px, cy, pl):
            if fed:
                pl.fill(a)
            px.fill(a)
            cy.drain(b, wait=True)

        return copy_with(seq=sequence, more_args=[lonely.prod()], workers=[Worker(idle, [lonely.cons()])])

    said = texts(build)
    assert ("worker 'idle' on compute tile (0,3) did nothing in the whole run: at its end it still waits for its first" in said) != fed
    assert ("nothing is ever put into fifo 'lonely': the host sequence never fills it" in said) != fed


def test_a_worker_that_is_busy_in_the_first_run_and_idle_in_the_second():
    """Idle is who does nothing in a run, also when it has worked before."""

    def build():
        from aie.iron import ObjectFifo, Worker

        side = ObjectFifo(vector(), name="side", depth=1)

        def once(dst):
            dst.acquire(1)
            dst.release(1)

        def taker(src):
            src.acquire(1)
            src.release(1)

        workers = [Worker(once, [side.prod()], while_true=False), Worker(taker, [side.cons()])]
        return copy_with(workers=workers, body=lambda a, b: None, forever=True)

    with simulated():
        simulator = Simulator(place(as_design(build())))
        arrays = [np.zeros(N, np.int32) for _ in range(2)]
        first, second = simulator.run(arrays), simulator.run(arrays)
    assert not first.warnings
    assert [w for w in second.warnings if "worker 'taker'" in w and "did nothing in the whole run" in w]


@pytest.mark.parametrize("used", [False, True])
def test_a_fifo_end_that_its_worker_never_uses(used):
    def build():
        from aie.iron import ObjectFifo, Worker

        spare = ObjectFifo(vector(), name="spare")

        def gives(dst):
            if used:
                dst.acquire(1)
                dst.release(1)

        def takes(src):
            src.acquire(1)
            src.release(1)

        return copy_with(workers=[Worker(gives, [spare.prod()]), Worker(takes, [spare.cons()])])

    assert ("nothing is ever put into fifo 'spare': worker 'gives' on compute tile (0,3) never acquires from it" in texts(build)) != used


@pytest.mark.parametrize("released", [False, True])
def test_an_object_that_is_read_again_without_a_release(released):
    """The release is forgotten in one of two branches, which only the run can tell."""

    def build():
        from aie.helpers.dialects.scf import if_
        from aie.iron import ObjectFifo, Program, Runtime, Worker
        from aie.iron.controlflow import range_
        from aie.iron.device import NPU2

        x, y = ObjectFifo(vector(), name="x"), ObjectFifo(vector(), name="y")

        def core(src, dst):
            for i in range_(4):
                a, b = src.acquire(1), dst.acquire(1)
                b[0] = a[0]
                dst.release(1)
                with if_(i < (4 if released else 3)):
                    src.release(1)
            for i in range_(4):
                a, b = src.acquire(1), dst.acquire(1)
                b[0] = a[0]
                dst.release(1)
                with if_(i < (4 if released else 1)):
                    src.release(1)

        four = np.ndarray[(8 * N,), np.dtype[np.int32]]

        def sequence(a, b, px, cy):
            px.fill(a)
            cy.drain(b, wait=True)

        runtime = Runtime(sequence, [four, four, x.prod(), y.cons()])
        return Program(NPU2(), runtime, [Worker(core, [x.cons(), y.prod()])]).resolve_program()

    said = texts(build, size=8 * N)
    assert ("acquires from fifo 'x' once more without having released anything since it last did: it gets the same object" in said) != released


def test_a_sliding_window_is_not_read_again():
    def build():
        from aie.iron import ObjectFifo, Program, Runtime, Worker
        from aie.iron.controlflow import range_
        from aie.iron.device import NPU2

        x, y = ObjectFifo(vector(), name="x", depth=3), ObjectFifo(vector(), name="y")

        def core(src, dst):
            for _ in range_(3):
                two, b = src.acquire(2), dst.acquire(1)
                b[0] = two[0][0] + two[1][0]
                src.release(1)
                dst.release(1)
            last, b = src.acquire(1), dst.acquire(1)
            b[0] = last[0]
            src.release(1)
            dst.release(1)

        four = np.ndarray[(4 * N,), np.dtype[np.int32]]

        def sequence(a, b, px, cy):
            px.fill(a)
            cy.drain(b, wait=True)

        runtime = Runtime(sequence, [four, four, x.prod(), y.cons()])
        return Program(NPU2(), runtime, [Worker(core, [x.cons(), y.prod()])]).resolve_program()

    assert texts(build, size=4 * N) == ""


@pytest.mark.parametrize("first", ["read", "set", "given", "set in a branch"])
def test_a_buffer_that_is_read_before_it_is_written(first):
    """A sum that nobody sets to zero; a branch may have been taken."""

    def build():
        from aie.helpers.dialects.scf import if_
        from aie.iron import Buffer
        from aie.iron.controlflow import range_

        initial = np.zeros(1, np.int32) if first == "given" else None
        total = Buffer(np.ndarray[(1,), np.dtype[np.int32]], initial_value=initial, name="total")

        def add(a, b, acc):
            if first == "set":
                acc[0] = 0
            for i in range_(N):
                if first == "set in a branch":
                    with if_(i == 0):
                        acc[0] = 0
                acc[0] = acc[0] + a[i]
            b[0] = acc[0]

        return copy_with([total], body=add)

    assert ("reads buffer 'total' before anything has been written to it" in texts(build)) == (first == "read")


@pytest.mark.parametrize("drained", [False, True])
def test_an_output_that_is_never_written(drained):
    with simulated(), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")

        @jit
        def twice(a: In, b: Out, c: Out):
            from aie.iron import ObjectFifo, Program, Runtime, Worker
            from aie.iron.device import NPU2

            x, y = ObjectFifo(vector(), name="x"), ObjectFifo(vector(), name="y")

            def core(src, dst):
                src.acquire(1)
                dst.acquire(1)
                src.release(1)
                dst.release(1)

            def sequence(a, b, c, px, cy):
                px.fill(a)
                cy.drain(b, wait=True)
                if drained:
                    px.fill(a)
                    cy.drain(c, wait=True)

            runtime = Runtime(sequence, [vector()] * 3 + [x.prod(), y.cons()])
            return Program(NPU2(), runtime, [Worker(core, [x.cons(), y.prod()])]).resolve_program()

        tensors = [np.zeros(N, np.int32) for _ in range(3)]
        _, result = twice(*tensors)
    expected = "'twice' never writes its output 'c': no drain in the host sequence moves anything into it"
    for said in (result.report.warnings, [str(w.message) for w in caught]):
        assert any(expected in text for text in said) != drained
        assert not any("output 'b'" in text for text in said)


def test_what_a_run_shows_is_emitted_as_a_warning_too():
    def build():
        def sequence(a, b, px, cy, *_):
            px.fill(a)
            cy.drain(b)

        return copy_with(seq=sequence)

    with simulated():
        machine = place_quietly(build())
    with pytest.warns(DesignWarning, match="the host sequence ended while the drain of fifo 'y' was still running"):
        simulate(machine, [np.zeros(N, np.int32) for _ in range(2)])


def one_kernel(cycles):
    def build():
        from aie.iron import Kernel

        work = Kernel("work", "work.o", [vector(), vector()])

        def call(a, b, fn):
            fn(a, b)

        return copy_with([work], body=call)

    def model(a, b):
        b[...] = a

    return build, {"work": KernelModel(model, lambda a, b, device: cycles)}


@pytest.mark.parametrize(("seconds", "warned"), [(30, False), (90, True)])
def test_a_slow_kernel_that_only_looks_like_a_hang(seconds, warned):
    build, kernels = one_kernel(int(seconds * 1.8e9))
    said = texts(build, kernels=kernels, costs=Costs())
    assert ("ERT_CMD_STATE_TIMEOUT" in said) == warned


@pytest.mark.parametrize("wait", [False, True])
def test_a_drain_that_is_not_awaited(wait):
    def build():
        def sequence(a, b, px, cy, *_):
            px.fill(a)
            cy.drain(b, wait=wait)

        return copy_with(seq=sequence)

    assert ("wait=True" in texts(build)) != wait


def test_a_parameter_written_while_the_data_is_under_way_is_seen():
    """The host writes it after the fill but long before the first object arrives: no barrier, and yet in time."""

    def build():
        from aie.iron import Buffer

        rtp = Buffer(np.ndarray[(2,), np.dtype[np.int32]], name="rtp", use_write_rtp=True)

        def add(a, b, params):
            b[0] = a[3] + params[1]

        def sequence(a, b, px, cy, params):
            px.fill(a)
            params[1] = 50
            cy.drain(b, wait=True)

        return copy_with([rtp], None, sequence, [rtp], body=add)

    with simulated():
        machine = place(as_design(build()))
    out = np.zeros(N, np.int32)
    report = Simulator(machine).run([np.arange(N, dtype=np.int32), out])
    assert out[0] == 53
    assert not any("before the host" in text for text in report.warnings)

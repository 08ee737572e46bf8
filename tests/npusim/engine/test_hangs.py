"""Hangs: each usual cause has a design that hangs with a hint that names it, and ends when the hint is followed."""

from __future__ import annotations

import re

import numpy as np
import pytest

from npusim.errors import DeadlockError
from npusim.frontends.finder import simulated
from npusim.kernels import KernelModel
from npusim.load import as_design
from npusim.run import simulate

N = 16  # elements (i32) of an object: 64 bytes


def vector(n: int = 1):
    return np.ndarray[(n * N,), np.dtype[np.int32]]


def run(build, fixed: bool, kernels=None):
    with simulated():
        design = as_design(build(fixed))
    args = [np.zeros(value.type.shape, value.type.dtype) for value in design.sequence.body.entry.args]
    return simulate(design, args, kernels=kernels)


def message(build, kernels=None) -> str:
    with pytest.raises(DeadlockError) as caught:
        run(build, False, kernels)
    return str(caught.value)


def program(sequence, types, ends, workers):
    from aie.iron import Program, Runtime
    from aie.iron.device import NPU2

    return Program(NPU2(), Runtime(sequence, [*types, *ends]), workers).resolve_program()


def copy(src, dst):
    from aie.iron.controlflow import range_

    a, b = src.acquire(1), dst.acquire(1)
    for i in range_(N):
        b[i] = a[i]
    src.release(1)
    dst.release(1)


def chain(core=copy, sequence=None, objects=(4, 4), **worker):
    """x -> core -> y; the host fills ``objects[0]`` objects and drains ``objects[1]``."""
    from aie.iron import ObjectFifo, Worker

    x, y = ObjectFifo(vector(), name="x"), ObjectFifo(vector(), name="y")

    def whole(a, b, px, cy):
        px.fill(a)
        cy.drain(b, wait=True)

    types = [vector(n) for n in objects]
    return program(sequence or whole, types, [x.prod(), y.cons()], [Worker(core, [x.cons(), y.prod()], **worker)])


def missing_release(fixed):
    def core(src, dst):
        a, b = src.acquire(1), dst.acquire(1)
        b[0] = a[0]
        if fixed:
            src.release(1)
        dst.release(1)

    def sequence(a, b, px, cy):
        from aie.iron import TaskGroup

        inputs, outputs = TaskGroup(), TaskGroup()
        cy.drain(b, wait=True, group=outputs)
        px.fill(a, wait=True, group=inputs)
        inputs.finish()
        outputs.finish()

    return chain(core, sequence)


def missing_drain(fixed):
    def sequence(a, b, px, cy):
        from aie.iron import TaskGroup

        inputs, outputs = TaskGroup(), TaskGroup()
        cy.drain(b, wait=True, group=outputs)
        px.fill(a, wait=True, group=inputs)
        inputs.finish()
        outputs.finish()

    return chain(sequence=sequence, objects=(8, 8 if fixed else 2))


def too_shallow(fixed):
    """x goes to two workers; the second one gives one object for two, the first one needs it beside each of x."""
    from aie.iron import ObjectFifo, Worker

    x = ObjectFifo(vector(), name="x")
    half, y = ObjectFifo(vector(), name="half"), ObjectFifo(vector(), name="y")

    def pairs(src, dst):
        both, out = src.acquire(2), dst.acquire(1)
        out[0] = both[0][0] + both[1][0]
        src.release(2)
        dst.release(1)

    def main(src, other, dst):
        h = other.acquire(1)
        for _ in range(2):
            a, b = src.acquire(1), dst.acquire(1)
            b[0] = a[0] + h[0]
            src.release(1)
            dst.release(1)
        other.release(1)

    def sequence(a, b, px, cy):
        px.fill(a)
        cy.drain(b, wait=True)

    workers = [
        Worker(main, [x.cons(depth=2 if fixed else 1), half.cons(), y.prod()]),
        Worker(pairs, [x.cons(), half.prod()]),
    ]
    return program(sequence, [vector(4), vector(4)], [x.prod(), y.cons()], workers)


def fill_order(fixed):
    from aie.iron import ObjectFifo, TaskGroup, Worker

    x, w, y = (ObjectFifo(vector(), name=n) for n in "xwy")

    def core(src, weights, dst):
        a, k, b = src.acquire(1), weights.acquire(1), dst.acquire(1)
        b[0] = a[0] * k[0]
        for end in (src, weights, dst):
            end.release(1)

    def sequence(a, k, b, px, pw, cy):
        first, second = TaskGroup(), TaskGroup()
        px.fill(a, group=first)
        if fixed:
            pw.fill(k, group=second)
        cy.drain(b, wait=True, group=first)
        first.finish()
        if not fixed:
            pw.fill(k, group=second)
        second.finish()

    return program(
        sequence, [vector()] * 3, [x.prod(), w.prod(), y.cons()], [Worker(core, [x.cons(), w.cons(), y.prod()])]
    )


def uneven_split(fixed):
    from aie.iron import ObjectFifo, Worker

    x = ObjectFifo(vector(2), name="x")
    parts = x.cons().split([0, N], obj_types=[vector(), vector()], names=["left", "right"])
    outs = [ObjectFifo(vector(), name=f"y{i}") for i in range(2)]

    def once(src, dst):
        from aie.iron.controlflow import range_

        for _ in range_(8 if fixed else 1):
            copy(src, dst)

    def sequence(a, b, c, px, c0, c1):
        px.fill(a)
        c0.drain(b, wait=True)
        c1.drain(c, wait=True)

    workers = [
        Worker(copy, [parts[0].cons(), outs[0].prod()]),
        Worker(once, [parts[1].cons(), outs[1].prod()], while_true=False),
    ]
    types = [vector(16), vector(8), vector(8 if fixed else 1)]
    return program(sequence, types, [x.prod(), *(o.cons() for o in outs)], workers)


def uneven_join(fixed):
    from aie.iron import ObjectFifo, Worker

    xs = [ObjectFifo(vector(), name=f"x{i}") for i in range(2)]
    y = ObjectFifo(vector(2), name="y")
    parts = y.prod().join([0, N], obj_types=[vector(), vector()], names=["left", "right"])

    def both(src, dst):
        """Takes two objects for each that it gives."""
        pair, out = src.acquire(2), dst.acquire(1)
        out[0] = pair[0][0] + pair[1][0]
        src.release(2)
        dst.release(1)

    def sequence(a, b, c, p0, p1, cy):
        p0.fill(a)
        p1.fill(b)
        cy.drain(c, wait=True)

    workers = [
        Worker(copy, [xs[0].cons(), parts[0].prod()]),
        Worker(copy if fixed else both, [xs[1].cons(), parts[1].prod()]),
    ]
    return program(sequence, [vector(4), vector(4), vector(8)], [*(x.prod() for x in xs), y.cons()], workers)


def fed_once(fixed):
    from aie.iron import ObjectFifo, Worker
    from aie.iron.controlflow import range_

    x, w, y = (ObjectFifo(vector(), name=n) for n in "xwy")

    def core(src, weights, dst):
        if fixed:
            k = weights.acquire(1)
        for _ in range_(4):
            if not fixed:
                k = weights.acquire(1)
            a, b = src.acquire(1), dst.acquire(1)
            b[0] = a[0] * k[0]
            src.release(1)
            dst.release(1)
            if not fixed:
                weights.release(1)
        if fixed:
            weights.release(1)

    def sequence(a, k, b, px, pw, cy):
        px.fill(a)
        pw.fill(k)
        cy.drain(b, wait=True)

    types = [vector(4), vector(), vector(4)]
    return program(sequence, types, [x.prod(), w.prod(), y.cons()], [Worker(core, [x.cons(), w.cons(), y.prod()])])


def partial_object(fixed):
    def sequence(a, b, px, cy):
        px.fill(a, sizes=[1, 1, 1, 2 * N if fixed else N + N // 2], strides=[0, 0, 0, 1], offset=0)
        cy.drain(b, wait=True)

    return chain(sequence=sequence, objects=(2, 2))


def never_filled(fixed):
    def sequence(a, b, px, cy):
        if fixed:
            px.fill(a)
        cy.drain(b, wait=True)

    return chain(sequence=sequence)


def too_much_drained(fixed):
    return chain(objects=(4, 4 if fixed else 5))


def ends_too_early(fixed):
    return chain(while_true=fixed)


def nothing_to_begin_with(fixed):
    """A worker that adds to what it gave itself before."""
    from aie.iron import ObjectFifo, Worker

    x, y = ObjectFifo(vector(), name="x"), ObjectFifo(vector(), name="y")
    start = [np.zeros(N, np.int32)] if fixed else None
    own = ObjectFifo(vector(), name="own", depth=1, init_values=start)

    def core(src, before, after, dst):
        a, s = src.acquire(1), before.acquire(1)
        b = dst.acquire(1)
        b[0] = a[0] + s[0]
        before.release(1)
        t = after.acquire(1)
        t[0] = b[0]
        after.release(1)
        src.release(1)
        dst.release(1)

    def sequence(a, b, px, cy):
        px.fill(a)
        cy.drain(b, wait=True)

    worker = Worker(core, [x.cons(), own.cons(), own.prod(), y.prod()])
    return program(sequence, [vector(4), vector(4)], [x.prod(), y.cons()], [worker])


def barrier_set_too_late(fixed, never=False):
    from aie.iron import ObjectFifo, Worker, WorkerRuntimeBarrier

    x, y, ready = ObjectFifo(vector(), name="x"), ObjectFifo(vector(), name="y"), WorkerRuntimeBarrier()

    def core(src, dst, gate):
        gate.wait_for_value(1)
        copy(src, dst)

    def sequence(a, b, px, cy, gate):
        from aie.iron import TaskGroup

        if fixed:
            gate.set(1)
        group = TaskGroup()
        px.fill(a, group=group)
        cy.drain(b, wait=True, group=group)
        group.finish()
        if not fixed and not never:
            gate.set(1)

    worker = Worker(core, [x.cons(), y.prod(), ready], while_true=False)
    return program(sequence, [vector(), vector()], [x.prod(), y.cons(), ready], [worker])


def barrier_never_set(fixed):
    return barrier_set_too_late(fixed, never=True)


def cascade_blocked(fixed):
    from aie.iron import CascadeFlow, Kernel, ObjectFifo, Worker
    from aie.iron.device import Tile

    a, b, y = (ObjectFifo(vector(), name=n) for n in "aby")
    put, get = Kernel("put", "c.o", [vector()]), Kernel("get", "c.o", [vector(), vector()])

    def top(src, fn):
        fn(src.acquire(1))
        src.release(1)

    def bottom(src, dst, fn):
        fn(src.acquire(1), dst.acquire(1))
        src.release(1)
        dst.release(1)

    upper = Worker(top, [a.cons(), put], tile=Tile(0, 3))
    lower = Worker(bottom, [b.cons(), y.prod(), get], tile=Tile(0, 2))
    CascadeFlow(upper, lower)

    def sequence(p, q, r, pa, pb, cy):
        pa.fill(p)
        pb.fill(q)
        cy.drain(r, wait=True)

    types = [vector(2 if fixed else 1), vector(2), vector(2)]
    return program(sequence, types, [a.prod(), b.prod(), y.cons()], [upper, lower])


def put(x, *, cascade):
    cascade.put(x)


def get(x, y, *, cascade):
    y[...] = x + cascade.get(x.shape, x.dtype)


def _cycles(*arguments, device):
    return 20


CASCADE = {name: KernelModel(f, _cycles, uses_cascade=True) for name, f in {"put": put, "get": get}.items()}

HANGS = {
    missing_release: "worker 'core' acquires from fifo 'x' at test_hangs.py:%d and never releases",
    missing_drain: "1 drain of 'y' took 128 bytes, and its worker has more: drain every object",
    too_shallow: "fifo 'x' is full on compute tile (0,2) before the circle has begun to turn: give that end a depth of at least 2",
    fill_order: r"the fill of 'w' at test_hangs.py:%d comes after this wait, which cannot end without it: start it before",
    uneven_split: "'x' is split, so its parts must be taken equally often, but 'left' 6 times, 'right' 3 times",
    uneven_join: "'y' is joined, so its parts must be given equally often, but 'left' 4 times, 'right' 2 times",
    fed_once: "fifo 'w' was filled 1 time (64 bytes), but worker 'core' asks at test_hangs.py:%d for one more than the 1 it had",
    never_filled: "the host never puts anything into 'x': fill it in the sequence",
    partial_object: "the fills of 'x' add up to 96 bytes, but an object has 64: 1 whole and 32 bytes of another",
    too_much_drained: "the drain of 'y' (320 bytes) asks for more than can be made of the 1 fill of 'x' (256 bytes)",
    ends_too_early: "worker 'copy' stops too early: let it run as often as the others need it (while_true=True",
    nothing_to_begin_with: "everybody waits for the first object of a loop ('own'): give one of these fifos init_values",
    barrier_set_too_late: "after this wait: set the barrier before the transfers are waited for",
    barrier_never_set: "for a WorkerRuntimeBarrier call set(value) in the host sequence",
    cascade_blocked: "the kernels on compute tile (0,3) have put 64 bytes on the cascade, those on compute tile (0,2) have got 64 and ask",
}


@pytest.mark.filterwarnings("ignore::npusim.errors.DesignWarning")  # some are foreseen
@pytest.mark.parametrize("build", HANGS, ids=lambda b: b.__name__)
def test_a_hang_names_its_cause(build):
    text = message(build, CASCADE)
    hint = text.split("Hint: ")[1]
    assert re.search(re.escape(HANGS[build]).replace("%d", r"\d+"), hint), text


@pytest.mark.parametrize("build", HANGS, ids=lambda b: b.__name__)
def test_following_the_hint_ends_the_hang(build):
    run(build, True, CASCADE)


def test_the_chain_of_waits_names_everybody_and_what_they_did():
    text = message(fill_order)
    order = [
        "1. the host sequence waits at test_hangs.py:",
        "for the drain of fifo 'y'",
        "0 of 64 bytes have moved",
        "2. stream 'y' (MM2S 0 of tile (0,2) to S2MM 0 of tile (0,0)) waits for a full buffer",
        "3. worker 'core' on compute tile (0,2) waits at test_hangs.py:",
        "for an object of fifo 'w' (acquire(1) as consumer: 0 held, 0 ready, depth 2)",
        "so far: took 1 of 'x', took 0 of 'w', gave 0 of 'y'; last it acquired 1 of 'x' at test_hangs.py:",
        "4. stream 'w'",
        "waits for the host to start another fill",
        "and the host goes on only when its own wait, 1, is over",
        'The real toolchain says: "Kernel returned ert_cmd_state.ERT_CMD_STATE_TIMEOUT".',
        "Hint: ",
    ]
    places = [text.find(words) for words in order]
    assert -1 not in places and places == sorted(places), text


def test_a_circle_away_from_the_host_is_said_to_be_one():
    assert "and 3 would have to act first: a circle" in message(too_shallow)


def test_those_not_on_the_way_are_listed_too():
    assert "besides:\n  - stream 'x'" in message(fed_once)

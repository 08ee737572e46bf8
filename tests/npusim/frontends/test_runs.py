"""Traced designs, placed and run: what was written in Python is what is computed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from ml_dtypes import bfloat16

from npusim import graph
from npusim.frontends.control import else_, if_
from npusim.frontends.iron.controlflow import range_, yield_
from npusim.frontends.iron.dialects_arith import NAMES as arith
from npusim.frontends.iron.pyfunc import func
from npusim.run import simulate
from tests.npusim.frontends.tracer import array, resolve

N = 16
X = np.arange(-8, 8, dtype=np.int32)


def run(design: graph.Design, *arrays: np.ndarray[Any, Any]) -> None:
    simulate(design, list(arrays))


def elementwise(f: Callable[[Any], Any], x: np.ndarray[Any, Any] = X) -> np.ndarray[Any, Any]:
    """``f`` of every element, on the simulated core."""

    def core(a: Any, b: Any) -> None:
        u, v = a.acquire(1), b.acquire(1)
        for i in range_(N):
            v[i] = f(u[i])
        a.release(1)
        b.release(1)

    out = np.zeros(N, x.dtype)
    kind = array(N, x.dtype.type)
    run(resolve(core, taken=kind, given=kind), x.copy(), out)
    return out


@pytest.mark.parametrize(
    ("f", "want"),
    [
        (lambda x: x * 3 - 1, X * 3 - 1),
        (lambda x: 7 - x, 7 - X),
        (lambda x: x / 3, (X / 3).astype(int)),
        (lambda x: x // 3, X // 3),
        (lambda x: x % 3, np.fmod(X, 3)),
        (lambda x: x & 5, X & 5),
        (lambda x: (x | 5) + 2, (X | 5) + 2),
        (lambda x: arith["maxsi"](x, 2), np.maximum(X, 2)),
        (lambda x: arith["shli"](x, 2), X << 2),
        (lambda x: arith["select"](x > 0, x, 0), np.maximum(X, 0)),
        (lambda x: arith["trunci"]("i32", arith["extsi"]("i64", x)), X),
        (lambda x: x * 2**31, (X.astype(np.int64) * 2**31).astype(np.int32)),
    ],
)
def test_integers(f: Any, want: Any) -> None:
    assert np.array_equal(elementwise(f), want)


@pytest.mark.parametrize("dtype", [np.float32, bfloat16])
def test_floats(dtype: Any) -> None:
    x = (X / 4).astype(dtype)
    assert np.array_equal(elementwise(lambda v: v * 1.5 + 1, x), x * dtype(1.5) + dtype(1))


def test_branches_and_carried_sums() -> None:
    def core(a: Any, b: Any) -> None:
        u, v = a.acquire(1), b.acquire(1)
        for i in range_(N):
            with if_((u[i] > 2) & (u[i] != 5)) as op:
                v[i] = u[i] * 10
            with else_(op):
                v[i] = 0 - u[i]
        for i, total, result in range_(N, iter_args=[arith["constant"](0)], insert_yield=False):  # noqa: B007
            yield_([total + u[i]])
        v[0] = result
        a.release(1)
        b.release(1)

    out = np.zeros(N, np.int32)
    run(resolve(core), X.copy(), out)
    want = np.where((X > 2) & (X != 5), X * 10, -X)
    want[0] = X.sum()
    assert np.array_equal(out, want)


def test_python_kernels_and_views() -> None:
    @func
    def add_one(x: array(N), y: array(N)) -> None:  # type: ignore[valid-type]
        for i in range_(N):
            y[i] = x[i] + 1  # type: ignore[index]

    def core(a: Any, b: Any, fn: Any) -> None:
        u, v = a.acquire(1), b.acquire(1)
        fn(u, v)
        v[1:3][0] = 99
        a.release(1)
        b.release(1)

    out = np.zeros(N, np.int32)
    run(resolve(core, extra=[add_one]), X.copy(), out)
    want = X + 1
    want[1] = 99
    assert np.array_equal(out, want)


def copy(a: Any, b: Any) -> None:
    """A core that hands its objects on."""
    u, v = a.acquire(1), b.acquire(1)
    for i in range_(4):
        v[i] = u[i]
    a.release(1)
    b.release(1)


@pytest.mark.parametrize(("passes", "stride"), [(2, 0), (2, 16), (3, 4)])
def test_the_outermost_size_repeats_a_transfer(passes: int, stride: int) -> None:
    host = np.arange(64, dtype=np.int32)

    def seq(a: Any, b: Any, p: Any, c: Any) -> None:
        for offset in (0, 8):
            p.fill(a, sizes=[passes, 1, 2, 4], strides=[stride, 0, 4, 1], offset=offset)
        total = 2 * passes * 8
        c.drain(b, sizes=[1, 1, 1, total], strides=[0, 0, 0, 1], wait=True)

    out = np.zeros(64, np.int32)
    run(_moving(seq), host.copy(), out)
    want = [host[offset + k * stride :][:8] for offset in (0, 8) for k in range(passes)]
    assert np.array_equal(out[: 16 * passes], np.concatenate(want))


def _moving(seq: Any) -> graph.Design:
    """``copy`` between two fifos of four elements, host arrays of 64."""
    from npusim.frontends.iron.device import NPU2
    from npusim.frontends.iron.objectfifo import ObjectFifo
    from npusim.frontends.iron.program import Program
    from npusim.frontends.iron.runtime import Runtime
    from npusim.frontends.iron.worker import Worker

    x, y = ObjectFifo(array(4), name="x"), ObjectFifo(array(4), name="y")
    w = Worker(copy, [x.cons(), y.prod()])
    rt = Runtime(seq, [array(64), array(64), x.prod(), y.cons()])
    return Program(NPU2(), rt, [w]).resolve_program().design


def test_loops_of_the_sequence() -> None:
    def seq(a: Any, b: Any, p: Any, c: Any) -> None:
        first = p.fill(a, sizes=[1, 1, 1, 4], strides=[0, 0, 0, 1], wait=True, managed=False)
        for _, before, last in range_(1, 4, iter_args=[first], insert_yield=False):  # noqa: B007
            now = p.fill(a, sizes=[1, 1, 1, 4], strides=[0, 0, 0, 1], wait=True, managed=False)
            before.free()
            yield_([now])
        last.await_()
        last.free()
        c.drain(b, sizes=[1, 1, 1, 16], strides=[0, 0, 0, 1], wait=True)

    out = np.zeros(64, np.int32)
    run(_moving(seq), np.arange(64, dtype=np.int32), out)
    assert np.array_equal(out[:16], np.tile(np.arange(4), 4))

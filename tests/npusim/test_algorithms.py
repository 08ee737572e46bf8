"""iron.algorithms: whole designs from one function, run on the simulated NPU."""

from __future__ import annotations

import numpy as np
import pytest
from ml_dtypes import bfloat16

from npusim.errors import DesignError
from npusim.frontends.iron import algorithms, current, kernel_library
from npusim.frontends.iron import tensor_factory as iron
from npusim.frontends.iron.device import NPU1, NPU2
from npusim.frontends.iron.jit import jit
from npusim.frontends.iron.markers import CompileTime, In, InOut, Out
from npusim.frontends.iron.objectfifo import ObjectFifo
from npusim.frontends.iron.program import Program
from npusim.frontends.iron.runtime import Runtime
from npusim.frontends.iron.worker import Worker


@pytest.fixture(params=[NPU1, NPU2], autouse=True)
def device(request):
    current.set_current_device(request.param())
    yield current.get_current_device()
    current.set_current_device(None)


def vector(n, dtype=np.int32):
    return np.ndarray[(n,), np.dtype[dtype]]


def fifos_of(report):
    return sorted(fifo.name for fifo in report.machine.design.fifos)


def test_transform():
    @jit
    def design(x: In, y: Out, *, N: CompileTime[int]):
        return algorithms.transform(lambda a: a * 2 + 1, vector(N))

    x, y = iron.arange(64, dtype=np.int32), iron.zeros(64, dtype=np.int32)
    _, result = design(x, y, N=64)
    assert np.array_equal(y.numpy(), 2 * x.numpy() + 1)
    assert fifos_of(result.report) == ["in0", "out"]


def test_transform_binary():
    @jit
    def design(a: In, b: In, y: Out, *, N: CompileTime[int]):
        return algorithms.transform_binary(lambda p, q: p - q, vector(N), tile_size=32)

    a, b, y = iron.arange(64, dtype=np.int32), iron.full(64, 3, dtype=np.int32), iron.zeros(64, dtype=np.int32)
    design(a, b, y, N=64)
    assert np.array_equal(y.numpy(), a.numpy() - 3)


def test_for_each_is_in_place():
    @jit
    def design(x: InOut, *, N: CompileTime[int]):
        return algorithms.for_each(lambda a: a + 10, vector(N))

    x = iron.arange(64, dtype=np.int32)
    design(x, N=64)
    assert np.array_equal(x.numpy(), np.arange(64) + 10)


def test_transform_with_a_kernel_and_its_parameters():
    @jit
    def design(x: In, y: Out, factor: In, *, N: CompileTime[int]):
        return algorithms.transform(kernel_library.scale(256), vector(N), vector(1), tile_size=256)

    x, y = iron.arange(1024, dtype=np.int32), iron.zeros(1024, dtype=np.int32)
    _, result = design(x, y, iron.full(1, 5, dtype=np.int32), N=1024)
    assert np.array_equal(y.numpy(), 5 * x.numpy())
    assert fifos_of(result.report) == ["in0", "out", "param0"]


@pytest.mark.parametrize("channels", [1, 2])
def test_transform_parallel_uses_every_column(device, channels):
    @jit
    def design(x: In, y: Out, *, N: CompileTime[int], C: CompileTime[int]):
        return algorithms.transform_parallel(
            kernel_library.relu(), vector(N, bfloat16), tile_size=1024, num_channels=C, pass_size_to_kernel=False
        )

    n = 1 << 15
    x, y = iron.rand(n, dtype=bfloat16), iron.zeros(n, dtype=bfloat16)
    x[:] = x.numpy() - bfloat16(0.5)
    _, result = design(x, y, N=n, C=channels)
    assert np.array_equal(y.numpy(), np.maximum(x.numpy(), 0).astype(bfloat16))
    assert len(result.report.cores) == device.cols * channels
    assert "in0_0" + "_1" * (channels - 1) in fifos_of(result.report)


def test_transform_parallel_binary():
    @jit
    def design(a: In, b: In, y: Out, *, N: CompileTime[int]):
        return algorithms.transform_parallel_binary(
            kernel_library.add(), vector(N, bfloat16), tile_size=1024, pass_size_to_kernel=False
        )

    n = 1 << 13
    a, b, y = iron.rand(n, dtype=bfloat16), iron.rand(n, dtype=bfloat16), iron.zeros(n, dtype=bfloat16)
    design(a, b, y, N=n)
    assert np.array_equal(y.numpy(), a.numpy() + b.numpy())


def test_reduce():
    @jit
    def design(x: In, y: Out, *, N: CompileTime[int]):
        return algorithms.reduce(kernel_library.reduce_max(N), vector(N), vector(1))

    x, y = iron.randint(-99, 99, (512,), dtype=np.int32), iron.zeros(1, dtype=np.int32)
    design(x, y, N=512)
    assert y[0] == x.numpy().max()


def test_sliding_window_with_edges():
    """A vertical sum of three rows, the edge rows doubled, with the loops for workers."""
    rows, width = 6, 16

    @jit
    def design(x: In, y: Out):
        image, row = np.ndarray[(rows, width), np.dtype[np.int32]], vector(width)
        source, target = ObjectFifo(row, depth=4, name="source"), ObjectFifo(row, name="target")

        def kernel(above, middle, below, out, weights, border):
            assert weights is None
            for i in algorithms.range_(width):
                out[i] = above[i] + middle[i] + below[i] + 100 * border

        def core(a, b):
            algorithms.sliding_3row(a, b, n_out_rows=rows, do_kernel=kernel)

        def sequence(a, b, fill, drain):
            fill.fill(a)
            drain.drain(b, wait=True)

        runtime = Runtime(sequence, [image, image, source.prod(), target.cons()])
        worker = Worker(core, [source.cons(), target.prod()])
        return Program(current.get_current_device(), runtime, [worker]).resolve_program()

    x = iron.randint(0, 50, (rows, width), dtype=np.int32)
    y = iron.zeros(rows, width, dtype=np.int32)
    design(x, y)
    padded = np.pad(x.numpy(), ((1, 1), (0, 0)), mode="edge")
    border = 100 * np.array([0, *[1] * (rows - 2), 2])[:, None]
    assert np.array_equal(y.numpy(), padded[:-2] + padded[1:-1] + padded[2:] + border)


@pytest.mark.parametrize("tiles", [None, 4])
def test_rows_with_weights_and_skip(tiles):
    """out = row * weight (+ skip), weights held throughout."""
    rows, width = 4, 32
    piece = vector(width // (tiles or 1))

    @jit
    def design(x: In, w: In, y: Out):
        image, one = np.ndarray[(rows, width), np.dtype[np.int32]], vector(1)
        source, target, weights = (ObjectFifo(t, name=n) for t, n in ((piece, "a"), (piece, "b"), (one, "w")))

        def kernel(row, out, weight):
            for i in algorithms.range_(width // (tiles or 1)):
                out[i] = row[i] * weight[0]

        def core(a, b, c):
            if tiles is None:
                algorithms.row_at_a_time(a, b, n_rows=rows, do_kernel=kernel, of_wts=c)
            else:
                algorithms.row_at_a_time_tiled(a, b, n_rows=rows, n_tiles_per_row=tiles, do_kernel=kernel, of_wts=c)

        def sequence(a, b, c, fill, weigh, drain):
            fill.fill(a)
            weigh.fill(b)
            drain.drain(c, wait=True)

        runtime = Runtime(sequence, [image, one, image, source.prod(), weights.prod(), target.cons()])
        worker = Worker(core, [source.cons(), target.prod(), weights.cons()])
        return Program(current.get_current_device(), runtime, [worker]).resolve_program()

    x, y = iron.randint(0, 50, (rows, width), dtype=np.int32), iron.zeros(rows, width, dtype=np.int32)
    design(x, iron.full(1, 7, dtype=np.int32), y)
    assert np.array_equal(y.numpy(), 7 * x.numpy())


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda a: a.transform(lambda x: x, vector(65)), DesignError, r"Number of elements \(65\) must be a multiple"),
        (lambda a: a.transform(lambda x: x, 64), TypeError, "expects a numpy ndarray type"),
        (
            lambda a: a.transform(kernel_library.relu(), vector(64, bfloat16)),
            DesignError,
            r"tile_size \(16\) does not match",
        ),
        (lambda a: a.transform_parallel(lambda x: x, vector(16)), DesignError, "num_columns x num_channels"),
        (
            lambda a: a.transform_parallel(lambda x: x, vector(256), num_channels=3),
            DesignError,
            "num_channels must be 1 or 2",
        ),
        (lambda a: a.reduce(lambda x: x, vector(64), vector(1)), TypeError, "needs an ExternalFunction"),
    ],
)
def test_refusals(make, error, message):
    with pytest.raises(error, match=message):
        make(algorithms)

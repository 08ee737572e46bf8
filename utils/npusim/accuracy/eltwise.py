"""c = a + b of bf16 vectors, on one core of each of several columns, as mlir-air's element-wise example maps it.

Its core runs compiler-generated code, not a library kernel. The cycle model takes that loop as not pipelined, which is
inferred from the figure of one column (a pipelined loop would be bound by the stream); its numbers are published latencies,
one after the other, and are not fitted.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from npusim.accuracy.running import built, timed
from npusim.costs import SCALAR
from npusim.devices import Device
from npusim.frontends.iron.kernel_library.common import array
from npusim.kernels import KernelModel

TILE = 2048
"""Elements of an object (mlir-air kernel_registry/details/EltwiseAdd_bf16.md)."""
LANES = 16
"""Elements of a vector of fp32 sums."""
TURN = 7 + 1 + 6 + 1 + SCALAR["loop"].value
"""Cycles of a turn: load with conversion to fp32, second load after it, fp32 addition, store with conversion
(scalable-analyses/xdna isa.rst: latencies 7 and 6), and what a loop costs."""


def _add(a: Any, b: Any, c: Any, *rest: Any) -> None:
    c[...] = (a.astype(np.float32) + b.astype(np.float32)).astype(c.dtype)


def _cycles(a: Any, b: Any, c: Any, *, device: Device) -> int:
    return -(-int(a.size) // LANES) * TURN


MODEL = KernelModel(_add, _cycles, source="sum of the latencies of scalable-analyses/xdna isa.rst", confidence="L")


def add_rate(device: Device, columns: int, size: int) -> float:
    """Bytes a second, read and written, with one core in each of ``columns`` columns."""
    report = timed(built(partial(add, columns=columns, size=size), device), kernels={"add": MODEL})
    return 3 * 2 * size / report.seconds


def add(iron_device: Any, columns: int, size: int) -> Any:
    """The resolved program; its host arguments are a, b and c of ``size`` bf16 elements. Its kernel is ``add``."""
    from aie.helpers.taplib import TensorTiler2D
    from aie.iron import Kernel, ObjectFifo, Program, Runtime, Worker
    from aie.iron.controlflow import range_
    from aie.iron.device import Tile
    from ml_dtypes import bfloat16

    share = size // columns
    host, tile = array(size, bfloat16), array(TILE, bfloat16)
    kernel = Kernel("add", "add.o", [tile, tile, tile])
    a, b, c = ([ObjectFifo(tile, name=f"{name}{col}") for col in range(columns)] for name in "abc")

    def core(a_in: Any, b_in: Any, c_out: Any, kernel: Any) -> None:
        for _ in range_(share // TILE):
            kernel(a_in.acquire(1), b_in.acquire(1), c_out.acquire(1))
            for end in (a_in, b_in, c_out):
                end.release(1)

    ends = [(a[col].cons(), b[col].cons(), c[col].prod()) for col in range(columns)]
    workers = [Worker(core, [*each, kernel], tile=Tile(col, 2)) for col, each in enumerate(ends)]
    shares = TensorTiler2D.simple_tiler((columns, share), (1, share))

    def sequence(left: Any, right: Any, total: Any, fills: Any, drains: Any) -> None:
        for (fill_a, fill_b), part in zip(fills, shares, strict=True):
            fill_a.fill(left, tap=part)
            fill_b.fill(right, tap=part)
        for drain, part in zip(drains, shares, strict=True):
            drain.drain(total, tap=part, wait=True)

    handles = [[(a[col].prod(), b[col].prod()) for col in range(columns)], [fifo.cons() for fifo in c]]
    return Program(iron_device, Runtime(sequence, [host, host, host, *handles]), workers).resolve_program()

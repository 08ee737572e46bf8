"""C = A B of bf16 matrices on every compute tile, each of which makes one m x n tile of C at a time.

Tiles of A go to all cores of a row, tiles of B to all cores of a column. A column's four tiles of C leave together through
its MemTile. The DMAs put the matrices into the tile order of the library's matrix kernel and back.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

from npusim.accuracy.running import built, timed
from npusim.devices import Device
from npusim.frontends.iron.kernel_library.common import array

ROWS = 4


@dataclass(frozen=True)
class Shape:
    """Sizes in elements: A is M x K, B is K x N; a core's tiles are m x k, k x n and m x n."""

    M: int
    K: int
    N: int
    m: int
    k: int
    n: int

    @property
    def operations(self) -> int:
        """FLOP: a multiplication and an addition for each product."""
        return 2 * self.M * self.K * self.N


XDNA = Shape(4224, 4256, 4224, 96, 56, 96)
XDNA2 = Shape(4032, 4032, 4608, 112, 48, 96)
"""About 4K in each direction. The tiles are ours: they fill 60 KiB of L1 with A and B twice and C once."""


def gemm_rate(device: Device, shape: Shape) -> float:
    """FLOP/s on the whole array. XDNA 2 multiplies as BFP16."""
    return shape.operations / timed(built(partial(gemm, shape=shape), device)).seconds


def gemm(iron_device: Any, shape: Shape) -> Any:
    """The resolved program; its host arguments are A, B and C, row by row."""
    from aie.iron import ObjectFifo, Program, Worker, kernels
    from aie.iron.controlflow import range_
    from aie.iron.device import Tile
    from ml_dtypes import bfloat16

    M, K, N, m, k, n = shape.M, shape.K, shape.N, shape.m, shape.k, shape.n
    cols = iron_device.cols
    product = kernels.mm(m, k, n, bfloat16, bfloat16, emulate_bf16_mmul_with_bfp16=True)
    r, s, t = product.mac_dims
    a_type, b_type, c_type, c_column = (array(size, bfloat16) for size in (m * k, k * n, m * n, ROWS * m * n))
    # The rows' MemTiles are spread over the columns; a column has its own for B and C.
    a_in = [ObjectFifo(a_type, name=f"a_in{row}") for row in range(ROWS)]
    a = [
        fifo.cons().forward(
            tile=Tile(row * cols // ROWS, 1),
            name=f"a{row}",
            dims_to_stream=[(m // r, r * k), (k // s, s), (r, k), (s, 1)],
        )
        for row, fifo in enumerate(a_in)
    ]
    b_in = [ObjectFifo(b_type, name=f"b_in{col}") for col in range(cols)]
    b = [
        fifo.cons().forward(
            tile=Tile(col, 1), name=f"b{col}", dims_to_stream=[(k // s, s * n), (n // t, t), (s, n), (t, 1)]
        )
        for col, fifo in enumerate(b_in)
    ]
    to_rows = [(m // r, r * n), (r, t), (n // t, r * t), (t, 1)]  # of each part
    c_out = [ObjectFifo(c_column, name=f"c_out{col}", dims_to_stream=to_rows) for col in range(cols)]
    c = [
        fifo.prod().join(
            [row * m * n for row in range(ROWS)],
            tile=Tile(col, 1),
            depths=[1] * ROWS,
            obj_types=[c_type] * ROWS,
            names=[f"c{row}_{col}" for row in range(ROWS)],
        )
        for col, fifo in enumerate(c_out)
    ]

    def core(a_in: Any, b_in: Any, c_out: Any, zero: Any, product: Any) -> None:
        for _ in range_(M // (ROWS * m) * (N // (cols * n))):
            out = c_out.acquire(1)
            zero(out)
            for _ in range_(K // k):
                product(a_in.acquire(1), b_in.acquire(1), out)
                a_in.release(1)
                b_in.release(1)
            c_out.release(1)

    workers = [
        Worker(core, [a[row].cons(), b[col].cons(), c[col][row].prod(), product.zero, product], tile=Tile(col, 2 + row))
        for row in range(ROWS)
        for col in range(cols)
    ]
    handles = [[f.prod() for f in a_in], [f.prod() for f in b_in], [f.cons() for f in c_out]]
    return Program(iron_device, _host(shape, cols, handles), workers).resolve_program()


def _host(shape: Shape, cols: int, handles: Any) -> Any:
    """Block rows of C one after the other, the next one's transfers queued while one is computed."""
    from aie.iron import Runtime, TaskGroup
    from ml_dtypes import bfloat16

    M, K, N, m, k, n = shape.M, shape.K, shape.N, shape.m, shape.k, shape.n
    passes = N // (cols * n)

    def block_row(index: int, arrays: Any, ends: Any, group: Any) -> None:
        (a, b, c), (a_ends, b_ends, c_ends) = arrays, ends
        for row, end in enumerate(a_ends):
            offset = (index * ROWS + row) * m * K
            end.fill(a, offset=offset, sizes=[passes, K // k, m, k], strides=[0, k, K, 1], group=group)
        for col, end in enumerate(b_ends):
            end.fill(b, offset=col * n, sizes=[passes, K // k, k, n], strides=[cols * n, k * N, N, 1], group=group)
        for col, end in enumerate(c_ends):
            offset = index * ROWS * m * N + col * n
            sizes, strides = [passes, 1, ROWS * m, n], [cols * n, 0, N, 1]
            end.drain(c, offset=offset, sizes=sizes, strides=strides, group=group, wait=True)

    def sequence(a: Any, b: Any, c: Any, *ends: Any) -> None:
        running: list[Any] = []
        for index in range(M // (ROWS * m)):
            running.append(TaskGroup())
            block_row(index, (a, b, c), ends, running[-1])
            if len(running) == 2:
                running.pop(0).finish()
        for group in running:
            group.finish()

    arrays = [array(size, bfloat16) for size in (M * K, K * N, M * N)]
    return Runtime(sequence, [*arrays, *handles])

"""C = A B on rows x columns compute tiles, row-major matrices in DDR.

A compute tile makes one m x n tile of C at a time, from K/k tiles of A and of B. Tiles of A go to all compute tiles of a
row, tiles of B to all of a column, so each is read from DDR once and used many times. MemTiles stage them, and their DMAs put
them into the micro tiles that the matrix unit multiplies. The tiles of C of a column meet in its MemTile, which puts them
back into rows. Sums stay in float32 (bf16 matrices) or 32-bit integers (i16).
"""

from pathlib import Path

import aie.iron as iron
import numpy as np
from aie.helpers.taplib import TensorTiler2D
from aie.iron import CompileTime, ExternalFunction, In, Kernel, ObjectFifo, Out, Program, Runtime, TaskGroup, Worker
from aie.iron.controlflow import range_
from aie.iron.device import Tile
from aie.utils.compile import resolve_target_arch
from aie.utils.config import cxx_header_path
from ml_dtypes import bfloat16

DTYPES = {"bf16": (bfloat16, np.float32, "bf16_f32"), "i16": (np.int16, np.int32, "i16_i32")}
MICRO_TILES = {  # (r, s, t): aie::mmul multiplies r x s by s x t
    ("aie2", "bf16"): (4, 8, 4),
    ("aie2", "i16"): (4, 4, 4),
    ("aie2p", "bf16"): (8, 8, 8),
    ("aie2p", "i16"): (4, 4, 8),
}


def matrix_kernels(m, k, n, dtype, arch):
    """The C++ functions zero(c) and multiply(a, b, c): c += a b, on tiles of m x k, k x n and m x n elements."""
    element, total, suffix = DTYPES[dtype]
    a, b = np.ndarray[(m, k), np.dtype[element]], np.ndarray[(k, n), np.dtype[element]]
    c = np.ndarray[(m, n), np.dtype[total]]
    flags = [f"-DDIM_M={m}", f"-DDIM_K={k}", f"-DDIM_N={n}"]
    if arch == "aie2p" and dtype == "bf16":
        flags.append("-DAIE_API_EMULATE_BFLOAT16_MMUL_WITH_BFP16")  # eight values share an exponent
    multiply = ExternalFunction(
        f"matmul_{suffix}",
        source_file=str(Path(__file__).parents[1] / "kernels" / "matmul.cc"),
        arg_types=[a, b, c],
        include_dirs=[cxx_header_path()],
        compile_flags=flags,
    )
    return Kernel(f"zero_{suffix[-3:]}", multiply.object_file_name, [c]), multiply


def core_body(a_in, b_in, c_out, zero, multiply, tiles, steps):
    """``tiles`` tiles of C, each the sum of ``steps`` products."""
    for _ in range_(tiles):
        c = c_out.acquire(1)
        zero(c)
        for _ in range_(steps):
            multiply(a_in.acquire(1), b_in.acquire(1), c)
            a_in.release(1)
            b_in.release(1)
        c_out.release(1)


def blocked(rows, cols, r, c):
    """The walk that gives a row-major tile in micro tiles of r x c.

    (size, stride) of each dimension, outermost first, in elements.
    """
    return [(rows // r, r * cols), (cols // c, c), (r, cols), (c, 1)]


def unblocked(rows, cols, r, c):
    """The walk back: through micro tiles, row by row."""
    return [(rows // r, r * cols), (r, c), (cols // c, r * c), (c, 1)]


def sharing(rows, columns):
    """How many rows of compute tiles get their A through one shim tile."""
    return -(-rows // columns)


def stage_a(tile, rows, columns, micro):
    """From a shim tile to the MemTile above it, in parts for the rows that share it, each part to a whole row.

    Returns the host's fifos and one fifo a row.
    """
    (m, k), dtype = tile.__args__[0], tile.__args__[1]
    shared = sharing(rows, columns)
    host, parts = [], []
    for first in range(0, rows, shared):
        column = first * columns // rows
        host.append(ObjectFifo(np.ndarray[(shared * m, k), dtype], name=f"a_in{column}"))
        staged = host[-1].cons()
        parts += staged.split(
            [i * m * k for i in range(shared)],
            obj_types=[tile] * shared,
            names=[f"a{first + i}" for i in range(shared)],
            dims_to_stream=[blocked(m, k, *micro)] * shared,
            tile=Tile(column, 1),
        )
    return host, parts


def stage_b(tile, columns, micro):
    """From each shim tile through the MemTile to the whole column."""
    dims = blocked(*tile.__args__[0], *micro)
    host, whole = [], []
    for column in range(columns):
        host.append(ObjectFifo(tile, name=f"b_in{column}"))
        staged = host[-1].cons().forward(
            name=f"b{column}",
            dims_to_stream=dims,
            tile=Tile(column, 1),
        )
        whole.append(staged)
    return host, whole


def stage_c(tile, rows, columns, micro):
    """From a column's compute tiles, which have room for one tile of C, side by side into the MemTile, and down."""
    (m, n), dtype = tile.__args__[0], tile.__args__[1]
    dims = unblocked(m, n, *micro)  # of each part
    host = [ObjectFifo(np.ndarray[(rows * m, n), dtype], name=f"c_out{i}", dims_to_stream=dims) for i in range(columns)]
    parts = [
        fifo.prod().join(
            [row * m * n for row in range(rows)],
            obj_types=[tile] * rows,
            names=[f"c{row}_{column}" for row in range(rows)],
            depths=[1] * rows,
            tile=Tile(column, 1),
        )
        for column, fifo in enumerate(host)
    ]
    return host, parts


def sequence(a_ddr, b_ddr, c_ddr, a_prods, b_prods, c_cons, a_taps, b_taps, c_taps):
    """What the host asks of the shim tiles: one block row of C after the other, the next one queued while one is made."""
    running = []
    for block in range(len(a_taps) // len(a_prods)):
        group = TaskGroup()
        for i, end in enumerate(a_prods):
            end.fill(a_ddr, tap=a_taps[block * len(a_prods) + i], group=group)
        for i, end in enumerate(b_prods):
            end.fill(b_ddr, tap=b_taps[i], group=group)
        for i, end in enumerate(c_cons):
            end.drain(c_ddr, tap=c_taps[block * len(c_cons) + i], group=group, wait=True)
        running.append(group)
        if len(running) == 2:
            running.pop(0).finish()
    for group in running:
        group.finish()


def walks(M, K, N, m, k, n, rows, columns):
    """Which tiles pass in which order, for ``sequence``: A for each shim tile's rows of a block row, all of it again for
    each tile of C in that row; B column by column of tiles, every ``columns``-th for a column; C likewise."""
    passes, steps = N // (n * columns), K // k
    part = m * sharing(rows, columns)
    every = {"tile_group_steps": (1, columns)}
    return (
        TensorTiler2D.group_tiler((M, K), (part, k), (1, steps), pattern_repeat=passes),
        TensorTiler2D.step_tiler((K, N), (k, n), (steps, passes), tile_group_col_major=True, **every),
        TensorTiler2D.step_tiler((M, N), (rows * m, n), (1, passes), **every),
    )


@iron.jit
def matmul(
    a: In,
    b: In,
    c: Out,
    *,
    M: CompileTime[int],
    K: CompileTime[int],
    N: CompileTime[int],
    m: CompileTime[int] = 64,
    k: CompileTime[int] = 64,
    n: CompileTime[int] = 64,
    rows: CompileTime[int] = 4,
    columns: CompileTime[int] = 4,
    dtype: CompileTime[str] = "bf16",
):
    """Arguments: a (M x K), b (K x N) of ``dtype`` ("bf16", "i16"), c (M x N) of float32 or int32, row by row."""
    device = iron.get_current_device()
    arch = resolve_target_arch(device)
    if dtype not in DTYPES:
        raise ValueError(f"dtype is one of {', '.join(DTYPES)}, not {dtype!r}")
    r, s, t = MICRO_TILES[arch, dtype]
    steps = [("m", m, 2 * r), ("k", k, s), ("n", n, 2 * t), ("M", M, m * rows), ("K", K, k), ("N", N, n * columns)]
    for name, size, step in steps:
        if size < step or size % step:
            raise ValueError(f"{name} = {size} is not a positive multiple of {step}")
    if rows % sharing(rows, columns):
        raise ValueError(f"{rows} rows cannot share {columns} columns evenly")

    zero, multiply = matrix_kernels(m, k, n, dtype, arch)
    a_tile, b_tile, c_tile = multiply.arg_types()
    a_host, a_rows = stage_a(a_tile, rows, columns, (r, s))
    b_host, b_columns = stage_b(b_tile, columns, (s, t))
    c_host, c_parts = stage_c(c_tile, rows, columns, (r, t))
    tiles = (M // (m * rows)) * (N // (n * columns))
    workers = [
        Worker(
            core_body,
            [a_rows[row].cons(), b_columns[col].cons(), c_parts[col][row].prod(), zero, multiply, tiles, K // k],
            tile=Tile(col, 2 + row),
        )
        for row in range(rows)
        for col in range(columns)
    ]

    element, total, _ = DTYPES[dtype]
    arrays = [np.ndarray[(size,), np.dtype[element]] for size in (M * K, K * N)]
    arrays.append(np.ndarray[(M * N,), np.dtype[total]])
    ends = [[f.prod() for f in a_host], [f.prod() for f in b_host], [f.cons() for f in c_host]]
    runtime = Runtime(sequence, [*arrays, *ends, *walks(M, K, N, m, k, n, rows, columns)])
    return Program(device, runtime, workers=workers).resolve_program()

"""b = alpha * a^T for a matrix a of M x N (BLAS extensions call it omatcopy).

The matrix is cut into tiles of m x n. The shim tiles walk from tile to tile and
put the results where they belong; what happens within a tile depends on the size
of an element. Words of 32 bits are transposed by the MemTile's DMA, and no core
does anything. Of 16-bit elements a DMA moves two at once: it puts the tile into
micro tiles of 8 x 8, a core transposes those, and the MemTile puts them back.
"""

from pathlib import Path

import aie.iron as iron
import numpy as np
from aie.helpers.taplib import TensorTiler2D
from aie.iron import CompileTime, ExternalFunction, In, ObjectFifo, Out, Program, Runtime, Worker
from aie.iron.controlflow import range_
from aie.iron.device import Tile
from aie.utils.config import cxx_header_path
from ml_dtypes import bfloat16

SIDE = 8  # of a micro tile


def matrix_type(rows, cols, dtype):
    return np.ndarray[(rows, cols), np.dtype[dtype]]


def transpose_kernel(m, n):
    """The C++ function of kernels.cc: transpose_bf16(a, b, alpha)."""
    return ExternalFunction(
        "transpose_bf16",
        source_file=str(Path(__file__).parent / "kernels.cc"),
        arg_types=[
            matrix_type(m, n, bfloat16),
            matrix_type(n, m, bfloat16),
            np.float32,
        ],
        include_dirs=[cxx_header_path()],
        compile_flags=[f"-DELEMENTS={m * n}"],
    )


def core_body(a_in, b_out, transpose, alpha, tiles):
    """What each compute tile does."""
    for _ in range_(tiles):
        transpose(a_in.acquire(1), b_out.acquire(1), alpha)
        a_in.release(1)
        b_out.release(1)


def word_fifos(column, m, n):
    """Into the MemTile row by row, out of it column by column."""
    shim, memtile = Tile(column, 0), Tile(column, 1)
    a = ObjectFifo(matrix_type(m, n, np.int32), name=f"a{column}")
    by_column = [(n, 1), (m, n)]
    b = a.cons().forward(
        name=f"b{column}", dims_to_stream=by_column, tile=memtile
    )
    return a.prod(tile=shim), b.cons(tile=shim)


def to_micro(m, n):
    """Through an m x n tile, micro tile by micro tile, column by column."""
    s = SIDE
    return [(n // s, s), (m // s, s * n), (s, n), (s, 1)]


def to_rows(m, n):
    """Through the micro tiles of an n x m tile: one row after the other."""
    s = SIDE
    return [(n // s, s * m), (s, s), (m // s, s * s), (s, 1)]


def half_word_fifos(column, m, n, depth):
    """To the core in micro tiles; from the core into rows.

    Returns the two ends for the host and the two for the core, which has
    ``depth`` objects of each.
    """
    shim, memtile = Tile(column, 0), Tile(column, 1)
    a_tile, b_tile = (matrix_type(*s, bfloat16) for s in ((m, n), (n, m)))
    a = ObjectFifo(a_tile, name=f"a_in{column}")
    a_core = a.cons().forward(
        name=f"a{column}", dims_to_stream=to_micro(m, n), tile=memtile
    )
    b_core = ObjectFifo(b_tile, name=f"b{column}", depth=depth)
    b = b_core.cons(depth=2).forward(
        name=f"b_out{column}", dims_to_stream=to_rows(m, n), tile=memtile
    )
    host = a.prod(tile=shim), b.cons(tile=shim)
    return *host, a_core.cons(depth=depth), b_core.prod()


def walks(M, N, m, n, columns):
    """Each column's rows of a, tile by tile, and where they belong in b."""
    bands = M // (m * columns)
    return (
        TensorTiler2D.group_tiler((M, N), (m, n), (bands, N // n)),
        TensorTiler2D.group_tiler(
            (N, M), (n, m), (N // n, bands), tile_group_col_major=True
        ),
    )


def sequence(a_ddr, b_ddr, doors, a_walks, b_walks):
    """What the host asks for: each column's rows in, each column's columns out."""
    for (a, b), a_walk, b_walk in zip(doors, a_walks, b_walks):
        a.fill(a_ddr, tap=a_walk)
        b.drain(b_ddr, tap=b_walk, wait=True)


def check_sizes(device, M, N, m, n, columns):
    """Refuse what does not come out even."""
    if not 1 <= columns <= device.cols:
        raise ValueError(f"columns = {columns}: the device has {device.cols}")
    for name, size, step in (("M", M, m * columns), ("N", N, n)):
        if size < step or size % step:
            raise ValueError(f"{name} = {size} is no positive multiple of {step}")


def assemble(doors, workers, M, N, m, n, dtype):
    """The program, from the ends for the host and the workers."""
    matrices = [matrix_type(M, N, dtype), matrix_type(N, M, dtype)]
    ways = walks(M, N, m, n, len(doors))
    runtime = Runtime(sequence, [*matrices, doors, *ways])
    device = iron.get_current_device()
    return Program(device, runtime, workers=workers).resolve_program()


@iron.jit
def transpose_words(
    a: In,
    b: Out,
    *,
    M: CompileTime[int],
    N: CompileTime[int],
    m: CompileTime[int] = 64,
    n: CompileTime[int] = 64,
    columns: CompileTime[int] = 1,
):
    """a: M x N int32, M a multiple of m * columns, N of n; b = a^T: N x M."""
    check_sizes(iron.get_current_device(), M, N, m, n, columns)
    doors = [word_fifos(column, m, n) for column in range(columns)]
    return assemble(doors, [], M, N, m, n, np.int32)


@iron.jit
def transpose(
    a: In,
    b: Out,
    *,
    M: CompileTime[int],
    N: CompileTime[int],
    m: CompileTime[int] = 64,
    n: CompileTime[int] = 64,
    columns: CompileTime[int] = 1,
    alpha: CompileTime[float] = 1.0,
    depth: CompileTime[int] = 2,
):
    """a: M x N bf16; b = alpha * a^T: N x M. m and n are multiples of SIDE."""
    check_sizes(iron.get_current_device(), M, N, m, n, columns)
    for name, size in (("m", m), ("n", n)):
        if size % SIDE:
            raise ValueError(f"{name} = {size} is no multiple of {SIDE}")
    kernel, tiles = transpose_kernel(m, n), (M // m) * (N // n) // columns
    doors, workers = [], []
    for column in range(columns):
        a_prod, b_cons, *ends = half_word_fifos(column, m, n, depth)
        doors.append((a_prod, b_cons))
        work = [*ends, kernel, alpha, tiles]
        workers.append(Worker(core_body, work, tile=Tile(column, 2)))
    return assemble(doors, workers, M, N, m, n, bfloat16)

"""Softmax of rows too long for a compute tile: in pieces, with what must be known of a whole row found out on the way.

By the book it takes three passes: the maximum, the sum of the exponentials, their quotient. The first two become one
with a running maximum and a running sum that is rescaled whenever the maximum grows ("online"). Each pass reads all of
the scores from DDR again. Four compute tiles of a column take 32 rows each; a MemTile deals out the pieces.
"""

from math import e, log2
from pathlib import Path

import aie.iron as iron
import numpy as np
from aie.helpers.taplib import TensorAccessPattern as TAP
from aie.iron import Buffer, CompileTime, ExternalFunction, In, Kernel, ObjectFifo, Out, Program, Runtime, Worker
from aie.iron.controlflow import range_
from aie.iron.device import Tile
from aie.utils.config import cxx_header_path
from ml_dtypes import bfloat16

ROWS, COLS = 32, 128  # of a piece: 8 KiB
TILES = 4
SHARED = Path(__file__).parents[1] / "kernels"


def matrix(rows, cols):
    """The type of a bf16 matrix."""
    return np.ndarray[(rows, cols), np.dtype[bfloat16]]


def piece_kernels(names):
    """The C++ functions of kernels.cc that have these names, begin_rows first; all of one object file."""
    piece, each, scale = matrix(ROWS, COLS), np.ndarray[(ROWS,), np.dtype[bfloat16]], np.float32
    first = ExternalFunction(
        "begin_rows",
        source_file=str(Path(__file__).with_name("kernels.cc")),
        arg_types=[each, each],
        include_dirs=[cxx_header_path(), str(SHARED)],
        compile_flags=[f"-DROWS={ROWS}", f"-DCOLS={COLS}"],
    )
    types = {
        "piece_maxima": [piece, each],
        "piece_sums": [piece, each, each, scale],
        "softmax_stats": [piece, each, each, scale],
        "softmax_apply": [piece, each, each, piece, scale],
    }
    return [first, *(Kernel(name, first.object_file_name, types[name]) for name in names)]


def three_passes(s_in, p_out, m, l, scale, groups, pieces, *kernels):
    """By the book: first the maximum, then the sum, then the quotients."""
    begin, maxima, sums, apply = kernels
    for _ in range_(groups):
        begin(m, l)
        for _ in range_(pieces):
            maxima(s_in.acquire(1), m)
            s_in.release(1)
        for _ in range_(pieces):
            sums(s_in.acquire(1), m, l, scale)
            s_in.release(1)
        for _ in range_(pieces):
            apply(s_in.acquire(1), m, l, p_out.acquire(1), scale)
            s_in.release(1)
            p_out.release(1)


def two_passes(s_in, p_out, m, l, scale, groups, pieces, *kernels):
    """Online: maximum and sum together, then the quotients."""
    begin, stats, apply = kernels
    for _ in range_(groups):
        begin(m, l)
        for _ in range_(pieces):
            stats(s_in.acquire(1), m, l, scale)
            s_in.release(1)
        for _ in range_(pieces):
            apply(s_in.acquire(1), m, l, p_out.acquire(1), scale)
            s_in.release(1)
            p_out.release(1)


BODIES = {  # passes: what the compute tiles do, and with which kernels after begin_rows
    3: (three_passes, ["piece_maxima", "piece_sums", "softmax_apply"]),
    2: (two_passes, ["softmax_stats", "softmax_apply"]),
}


def deal():
    """Pieces to and from the compute tiles, by way of the MemTile: the host's two fifos, and two for each tile."""
    s_host, p_host = (ObjectFifo(matrix(TILES * ROWS, COLS), name=f"{name}_host") for name in "sp")
    offsets = [i * ROWS * COLS for i in range(TILES)]
    parts = {"obj_types": [matrix(ROWS, COLS)] * TILES, "tile": Tile(0, 1)}
    ins = s_host.cons().split(offsets, names=[f"s{i}" for i in range(TILES)], **parts)
    outs = p_host.prod().join(offsets, names=[f"p{i}" for i in range(TILES)], **parts)
    return s_host, p_host, list(zip(ins, outs))


def sequence(s_ddr, p_ddr, s_prod, p_cons, s_walks, p_walks):
    """What the host asks of the shim tile: a group of rows after the other, the next one's scores queued meanwhile."""
    for s_walk, p_walk in zip(s_walks, p_walks):
        s_prod.fill(s_ddr, tap=s_walk)
        p_cons.drain(p_ddr, tap=p_walk, wait=True)


def walks(rows, cols, passes):
    """Access patterns for ``sequence``: the pieces of each group of rows, ``passes`` times over, and once."""
    group = TILES * ROWS
    sizes, strides = [cols // COLS, group, COLS], [COLS, cols, 1]
    starts = range(0, rows * cols, group * cols)
    return tuple([TAP([rows * cols], at, [n, *sizes], [0, *strides]) for at in starts] for n in (passes, 1))


@iron.jit
def softmax(
    s: In,
    p: Out,
    *,
    rows: CompileTime[int],
    cols: CompileTime[int],
    d: CompileTime[int] = 1,
    passes: CompileTime[int] = 2,
):
    """Arguments: s and p (rows x cols), bf16, row by row. The scores are divided by the square root of d."""
    if passes not in BODIES:
        raise ValueError(f"passes = {passes}: two (online) or three (by the book)")
    for name, size, step in (("rows", rows, TILES * ROWS), ("cols", cols, COLS)):
        if size < step or size % step:
            raise ValueError(f"{name} = {size} is not a positive multiple of {step}")
    (body, names), scale = BODIES[passes], log2(e) / d**0.5
    kernels = piece_kernels(names)
    s_host, p_host, pairs = deal()
    workers = []
    for i, (piece_in, piece_out) in enumerate(pairs):
        m, l = (Buffer(np.ndarray[(ROWS,), np.dtype[bfloat16]], name=f"{name}{i}") for name in "ml")
        counts = [rows // (TILES * ROWS), cols // COLS]
        arguments = [piece_in.cons(), piece_out.prod(), m, l, scale, *counts, *kernels]
        workers.append(Worker(body, arguments, tile=Tile(0, 2 + i)))

    array = np.ndarray[(rows * cols,), np.dtype[bfloat16]]
    runtime = Runtime(sequence, [array, array, s_host.prod(), p_host.cons(), *walks(rows, cols, passes)])
    return Program(iron.get_current_device(), runtime, workers=workers).resolve_program()

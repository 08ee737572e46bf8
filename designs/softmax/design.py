"""Softmax of each row of a matrix, on compute tiles that each take whole rows.

A column's MemTile deals out blocks of rows to its compute tiles and puts the results together again; the kernel goes
over a row three times (maximum, exponentials and their sum, division) while it lies in the tile's memory.
"""

from math import e, log2
from pathlib import Path

import aie.iron as iron
import numpy as np
from aie.helpers.taplib import TensorAccessPattern as TAP
from aie.iron import CompileTime, ExternalFunction, In, ObjectFifo, Out, Program, Runtime, Worker
from aie.iron.controlflow import range_
from aie.iron.device import Tile
from aie.utils.config import cxx_header_path
from ml_dtypes import bfloat16

BLOCK = 2048  # elements of an object at most: 4 KiB
SHARED = Path(__file__).parents[1] / "kernels"


def matrix(rows, cols):
    """The type of a bf16 matrix."""
    return np.ndarray[(rows, cols), np.dtype[bfloat16]]


def row_kernel(rows, cols):
    """The C++ function softmax_rows(s, p, scale): p = 2**((s - max) * scale) over its sum, row by row."""
    block = matrix(rows, cols)
    return ExternalFunction(
        "softmax_rows",
        source_file=str(SHARED / "softmax.cc"),
        arg_types=[block, block, np.float32],
        include_dirs=[cxx_header_path(), str(SHARED)],
        compile_flags=[f"-DROWS={rows}", f"-DCOLS={cols}"],
    )


def core_body(s_in, p_out, softmax_rows, scale, blocks):
    """What each compute tile does."""
    for _ in range_(blocks):
        softmax_rows(s_in.acquire(1), p_out.acquire(1), scale)
        s_in.release(1)
        p_out.release(1)


def deal(column, tiles, rows, cols):
    """Blocks of rows to and from the compute tiles of a column, by way of its MemTile.

    Returns the host's two fifos, and a fifo to and from each tile.
    """
    whole, block = matrix(tiles * rows, cols), matrix(rows, cols)
    s_host, p_host = (ObjectFifo(whole, name=f"{name}{column}_host") for name in "sp")
    offsets = [i * rows * cols for i in range(tiles)]
    names = [[f"{name}{column}_{i}" for i in range(tiles)] for name in "sp"]
    parts = {"obj_types": [block] * tiles, "tile": Tile(column, 1)}
    ins = s_host.cons().split(offsets, names=names[0], **parts)
    outs = p_host.prod().join(offsets, names=names[1], **parts)
    return s_host, p_host, list(zip(ins, outs))


def sequence(s_ddr, p_ddr, s_prods, p_cons, walks):
    """What the host asks of the shim tiles: each column's share of the rows in and out."""
    for end, walk in zip(s_prods, walks):
        end.fill(s_ddr, tap=walk)
    for end, walk in zip(p_cons, walks):
        end.drain(p_ddr, tap=walk, wait=True)


@iron.jit
def softmax(
    s: In,
    p: Out,
    *,
    rows: CompileTime[int],
    cols: CompileTime[int],
    d: CompileTime[int] = 1,
    tiles: CompileTime[int] = 4,
    columns: CompileTime[int] = 1,
):
    """Arguments: s and p (rows x cols), bf16, row by row. The scores are divided by the square root of d."""
    if cols % 32 or not 32 <= cols <= BLOCK:
        raise ValueError(
            f"cols = {cols} is not a multiple of 32 between 32 and {BLOCK}; for longer rows see streaming.py"
        )
    if tiles not in (2, 3, 4):
        raise ValueError(f"tiles = {tiles}: a column deals its rows to 2, 3 or 4 compute tiles")
    each = BLOCK // cols  # rows of a block
    step = each * tiles * columns
    if rows < step or rows % step:
        raise ValueError(
            f"rows = {rows} is not a positive multiple of {step}, a block of {each} for every compute tile"
        )
    kernel, blocks, scale = row_kernel(each, cols), rows // step, log2(e) / d**0.5
    s_prods, p_cons, workers = [], [], []
    for column in range(columns):
        s_host, p_host, pairs = deal(column, tiles, each, cols)
        s_prods.append(s_host.prod())
        p_cons.append(p_host.cons())
        for i, (block_in, block_out) in enumerate(pairs):
            ends = [block_in.cons(), block_out.prod()]
            workers.append(Worker(core_body, [*ends, kernel, scale, blocks], tile=Tile(column, 2 + i)))

    share = rows // columns * cols
    walks = [TAP([rows * cols], i * share, [1, 1, share // cols, cols], [0, 0, cols, 1]) for i in range(columns)]
    array = np.ndarray[(rows * cols,), np.dtype[bfloat16]]
    runtime = Runtime(sequence, [array, array, s_prods, p_cons, walks])
    return Program(iron.get_current_device(), runtime, workers=workers).resolve_program()

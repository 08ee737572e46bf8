"""y = gelu(x + bias) on columns x rows compute tiles; x and y are [tokens, FEATURES], one bias for all tokens.

An object is one row: the features of a token. Each column of the array takes its share of the rows. A stream brings them to its MemTile, as many at a
time as the column has compute tiles; there they are split, one for each tile, and the results are joined again. The bias goes to all tiles at once.
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

FEATURES = 3072  # of GPT-2 Small's hidden layer: 6 KiB a row
RowType = np.ndarray[(FEATURES,), np.dtype[bfloat16]]


def gelu_kernel():
    """The C++ function of kernels.cc: bias_gelu_bf16(x, bias, y)."""
    return ExternalFunction(
        "bias_gelu_bf16",
        source_file=str(Path(__file__).parent / "kernels.cc"),
        arg_types=[RowType, RowType, RowType],
        include_dirs=[cxx_header_path()],
        compile_flags=[f"-DFEATURES={FEATURES}"],
    )


def core_body(x_in, bias_in, y_out, bias_gelu, objects):
    """What each compute tile does."""
    bias = bias_in.acquire(1)
    for _ in range_(objects):
        bias_gelu(x_in.acquire(1), bias, y_out.acquire(1))
        x_in.release(1)
        y_out.release(1)
    bias_in.release(1)


def column_fifos(column, rows):
    """One column: a fifo from the host and one to it, and in its MemTile their split and join, a part for each tile."""
    many = np.ndarray[(rows * FEATURES,), np.dtype[bfloat16]]
    x, y = (ObjectFifo(many, name=f"{name}{column}") for name in "xy")
    offsets = [row * FEATURES for row in range(rows)]
    names = [[f"{name}{column}_{row}" for row in range(rows)] for name in "xy"]
    how = {"obj_types": [RowType] * rows, "tile": Tile(column, 1)}
    x_parts = x.cons().split(offsets, names=names[0], **how)
    y_parts = y.prod().join(offsets, names=names[1], **how)
    return x.prod(), y.cons(), x_parts, y_parts


def sequence(x_ddr, bias_ddr, y_ddr, bias, x_prods, y_cons, shares):
    """What the host asks for: the bias for all, then each column's share of the rows, in and out."""
    bias.fill(bias_ddr)
    for x, y, share in zip(x_prods, y_cons, shares):
        x.fill(x_ddr, tap=share)
        y.drain(y_ddr, tap=share, wait=True)


@iron.jit
def gelu(
    x: In,
    bias: In,
    y: Out,
    *,
    tokens: CompileTime[int],
    columns: CompileTime[int] = 4,
    rows: CompileTime[int] = 4,
):
    """x and y: tokens x FEATURES bf16 elements; bias: FEATURES. tokens is a multiple of columns * rows."""
    device = iron.get_current_device()
    for name, size, most in (("columns", columns, device.cols), ("rows", rows, device.rows - 2)):
        if not 1 <= size <= most:
            raise ValueError(f"{name} = {size}: this device has 1 to {most}")
    if tokens < 1 or tokens % (columns * rows):
        raise ValueError(f"tokens = {tokens} is no positive multiple of {columns} columns x {rows} rows of tiles")

    of_bias = ObjectFifo(RowType, name="bias", depth=1)
    kernel, objects = gelu_kernel(), tokens // (columns * rows)
    x_prods, y_cons, workers = [], [], []
    for column in range(columns):
        x_prod, y_con, x_parts, y_parts = column_fifos(column, rows)
        x_prods.append(x_prod)
        y_cons.append(y_con)
        for row in range(rows):
            ends = [x_parts[row].cons(), of_bias.cons(), y_parts[row].prod()]
            workers.append(Worker(core_body, [*ends, kernel, objects], tile=Tile(column, 2 + row)))

    matrix = np.ndarray[(tokens * FEATURES,), np.dtype[bfloat16]]
    share = tokens * FEATURES // columns
    shares = TensorTiler2D.simple_tiler((columns, share), (1, share))
    runtime = Runtime(sequence, [matrix, RowType, matrix, of_bias.prod(), x_prods, y_cons, shares])
    return Program(device, runtime, workers=workers).resolve_program()

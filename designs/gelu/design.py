"""y = gelu(x + bias) on columns x rows compute tiles.

x and y are [tokens, FEATURES]; the bias is the same for all tokens. An object is
a row, the features of one token. Each column of the array takes its share of the
rows: a stream brings them to its MemTile, as many at a time as the column has
tiles. There they are split, one for each tile, and the results joined again. The
bias goes to all tiles at once.
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

FEATURES = 3072  # of GPT-2 Small's hidden layer: a row has 6 KiB
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
    """From the host to the tiles of a column and back, through its MemTile.

    Returns the two ends for the host, and place and fifos of each tile.
    """
    many = np.ndarray[(rows * FEATURES,), np.dtype[bfloat16]]
    x = ObjectFifo(many, name=f"x{column}")
    y = ObjectFifo(many, name=f"y{column}")
    offsets = [row * FEATURES for row in range(rows)]
    each = {"obj_types": [RowType] * rows, "tile": Tile(column, 1)}
    x_names = [f"x{column}_{row}" for row in range(rows)]
    y_names = [f"y{column}_{row}" for row in range(rows)]
    x_parts = x.cons().split(offsets, names=x_names, **each)
    y_parts = y.prod().join(offsets, names=y_names, **each)
    places = [Tile(column, 2 + row) for row in range(rows)]
    return (x.prod(), y.cons()), list(zip(places, x_parts, y_parts))


def sequence(x_ddr, bias_ddr, y_ddr, bias, doors, shares):
    """What the host asks for: the bias; each column's rows, in and out."""
    bias.fill(bias_ddr)
    for (x, y), share in zip(doors, shares):
        x.fill(x_ddr, tap=share)
        y.drain(y_ddr, tap=share, wait=True)


def assemble(doors, tiles, tokens):
    """The program, from what column_fifos returns for all columns together."""
    of_bias = ObjectFifo(RowType, name="bias", depth=1)
    kernel, objects = gelu_kernel(), tokens // len(tiles)
    workers = []
    for place, x_part, y_part in tiles:
        ends = [x_part.cons(), of_bias.cons(), y_part.prod()]
        workers.append(Worker(core_body, [*ends, kernel, objects], tile=place))

    matrix = np.ndarray[(tokens * FEATURES,), np.dtype[bfloat16]]
    share = tokens // len(doors) * FEATURES
    shares = TensorTiler2D.simple_tiler((len(doors), share), (1, share))
    host_ends = [of_bias.prod(), doors, shares]
    runtime = Runtime(sequence, [matrix, RowType, matrix, *host_ends])
    device = iron.get_current_device()
    return Program(device, runtime, workers=workers).resolve_program()


def check_sizes(device, tokens, columns, rows):
    """Refuse what the device has not, and rows that do not come out even."""
    limits = (("columns", columns, device.cols), ("rows", rows, device.rows - 2))
    for name, size, most in limits:
        if not 1 <= size <= most:
            raise ValueError(f"{name} = {size}: the device has {most}")
    tiles = columns * rows
    if tokens < tiles or tokens % tiles:
        raise ValueError(f"tokens = {tokens} is no positive multiple of {tiles} tiles")


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
    """x, y: tokens x FEATURES bf16 elements, a multiple of the tiles; bias: FEATURES."""
    check_sizes(iron.get_current_device(), tokens, columns, rows)
    doors, tiles = [], []
    for column in range(columns):
        door, its_tiles = column_fifos(column, rows)
        doors.append(door)
        tiles += its_tiles
    return assemble(doors, tiles, tokens)

"""SAXPY, y = a*x + y, on one compute tile.

Objects of TILE bf16 elements stream from DDR through two ObjectFifos into the tile's memory; the kernel writes a third
one, which streams back over y. Every fifo is two objects deep, so that the next object arrives while this one is computed.
"""

from pathlib import Path

import aie.iron as iron
import numpy as np
from aie.iron import CompileTime, ExternalFunction, In, InOut, ObjectFifo, Program, Runtime, Worker
from aie.iron.controlflow import range_
from aie.utils.config import cxx_header_path
from ml_dtypes import bfloat16

TILE = 1024  # elements an object: 2 KiB of the tile's 64 KiB
TileType = np.ndarray[(TILE,), np.dtype[bfloat16]]


def saxpy_kernel():
    """The C++ function of kernels.cc, in that file's words: saxpy_bf16(x, y, out, a)."""
    return ExternalFunction(
        "saxpy_bf16",
        source_file=str(Path(__file__).parent / "kernels.cc"),
        arg_types=[TileType, TileType, TileType, np.float32],
        include_dirs=[cxx_header_path()],
        compile_flags=[f"-DTILE={TILE}"],
    )


def core_body(x_in, y_in, y_out, saxpy_bf16, a, objects):
    """What the compute tile does."""
    for _ in range_(objects):
        out = y_out.acquire(1)
        saxpy_bf16(x_in.acquire(1), y_in.acquire(1), out, a)
        x_in.release(1)
        y_in.release(1)
        y_out.release(1)


def sequence(x_ddr, y_ddr, x_prod, y_prod, out_cons):
    """What the host asks for: two vectors into the array, one back over y."""
    x_prod.fill(x_ddr)
    y_prod.fill(y_ddr)
    out_cons.drain(y_ddr, wait=True)


@iron.jit
def saxpy(x: In, y: InOut, *, n: CompileTime[int], a: CompileTime[float] = 3.0):
    """x and y: n bf16 elements, a multiple of TILE; a is rounded to bf16."""
    if n < TILE or n % TILE:
        raise ValueError(f"n = {n} is no positive multiple of {TILE}: pad it")
    of_x = ObjectFifo(TileType, name="x", depth=2)
    of_y = ObjectFifo(TileType, name="y", depth=2)
    of_out = ObjectFifo(TileType, name="out", depth=2)

    ends = [of_x.cons(), of_y.cons(), of_out.prod()]
    worker = Worker(core_body, [*ends, saxpy_kernel(), a, n // TILE])

    vector = np.ndarray[(n,), np.dtype[bfloat16]]
    host_ends = [of_x.prod(), of_y.prod(), of_out.cons()]
    runtime = Runtime(sequence, [vector, vector, *host_ends])
    device = iron.get_current_device()
    return Program(device, runtime, workers=[worker]).resolve_program()

"""Covariance of windows of samples, C = X Xᵀ, with a dial for reuse at each memory level.

X has FEATURES rows and SAMPLES columns, C is FEATURES x FEATURES; every window has an X and a C. A compute tile makes a
band of ``rows`` rows of C at a time, for which all of X must pass by. So X arrives FEATURES / rows times, and the dials
say from where:

* ``rows``: rows of C for each arrival at a compute tile;
* ``share``: compute tiles that get each block of X by one broadcast from a MemTile, for a band each;
* ``keep``: how often the MemTile sends a window that DDR sent it once.

What is neither shared nor kept is read from DDR again. A column has two streams of windows, for 1 or 2 compute tiles
each, or one for all 4.
"""

from pathlib import Path

import aie.iron as iron
import numpy as np
from aie.helpers.taplib import TensorAccessPattern as TAP
from aie.iron import Buffer, CompileTime, ExternalFunction, In, ObjectFifo, Out, Program, Runtime, Worker
from aie.iron.controlflow import range_
from aie.iron.device import Tile
from aie.utils.compile import resolve_target_arch
from aie.utils.config import cxx_header_path
from ml_dtypes import bfloat16

FEATURES, SAMPLES = 128, 256
BLOCK = 32  # samples of a block, the object that compute tiles work on: 8 KiB
PANEL = 8  # columns that lie together in a compute tile's memory
SHARED = Path(__file__).parents[1] / "kernels"


def matrix(rows, columns):
    """The type of a bf16 matrix."""
    return np.ndarray[(rows, columns), np.dtype[bfloat16]]


def band_kernels(rows, arch):
    """The C++ functions take_rows(x, band, number), zero_scores(c) and matmul_qk(band, x, c): c += band xᵀ."""
    x, band, c = matrix(FEATURES, BLOCK), matrix(rows, BLOCK), matrix(rows, FEATURES)
    flags = [f"-DBQ={rows}", f"-DBK={FEATURES}", f"-DDK={BLOCK}", "-DDV=16"]
    if arch == "aie2p":
        flags.append("-DAIE_API_EMULATE_BFLOAT16_MMUL_WITH_BFP16")  # eight values share an exponent

    def function(name, source, types):
        folders = [cxx_header_path(), str(SHARED)]
        return ExternalFunction(
            name, source_file=str(source), arg_types=types, include_dirs=folders, compile_flags=flags
        )

    return [
        function("take_rows", Path(__file__).with_name("kernels.cc"), [x, band, np.int32]),
        function("zero_scores", SHARED / "tiles.cc", [c]),
        function("matmul_qk", SHARED / "matmul_block.cc", [band, x, c]),
    ]


def core_body(x_in, c_out, band, take_rows, zero, multiply, mine, *counts):
    """Band after band of C, each from a whole window, by tile ``mine`` of ``share``."""
    share, rounds, windows, keep = counts
    for again in range_(rounds):
        for _ in range_(windows):
            for kept in range_(keep):
                c = c_out.acquire(1)
                zero(c)
                for _ in range_(SAMPLES // BLOCK):
                    x = x_in.acquire(1)
                    take_rows(x, band, (again * keep + kept) * share + mine)
                    multiply(band, x, c)
                    x_in.release(1)
                c_out.release(1)


def stage_in(name, column, keep, samples=SAMPLES):
    """Windows into a MemTile; out of it block by block, each window ``keep`` times."""
    host = ObjectFifo(matrix(FEATURES, samples), name=f"{name}_in")
    panels = [(samples // PANEL, PANEL), (FEATURES, samples), (PANEL, 1)]
    again = {"repeat_count": keep} if keep > 1 else {}
    blocks = host.cons().forward(
        obj_type=matrix(FEATURES, BLOCK),
        name=name,
        tile=Tile(column, 1),
        dims_to_stream=panels,
        **again,
    )
    return host, blocks


def stage_out(name, column, rows, share):
    """Bands, turned from panels into rows, side by side into the MemTile if there are several, and to the host."""
    band = matrix(rows, FEATURES)
    by_rows = [(rows, PANEL), (FEATURES // PANEL, rows * PANEL), (PANEL, 1)]
    if share == 1:
        alone = ObjectFifo(band, name=name, dims_to_stream=by_rows)
        return alone, [alone]
    host = ObjectFifo(matrix(share * rows, FEATURES), name=f"{name}_out")
    bands = host.prod().join(
        [i * rows * FEATURES for i in range(share)],
        obj_types=[band] * share,
        names=[f"{name}_{i}" for i in range(share)],
        dims_to_stream=[by_rows] * share,
        tile=Tile(column, 1),
    )
    return host, bands


def sequence(x_ddr, c_ddr, x_prods, c_cons, x_walks, c_walks):
    """What the host asks of the shim tiles: each stream's windows in, its bands of C out."""
    for end, walk in zip(x_prods, x_walks):
        end.fill(x_ddr, tap=walk)
    for end, walk in zip(c_cons, c_walks):
        end.drain(c_ddr, tap=walk, wait=True)


def walks(streams, windows, rounds):
    """Access patterns for ``sequence``: the ``windows`` windows of a stream, all of them ``rounds`` times, and the rows
    of every C that a round makes."""
    size, square = FEATURES * SAMPLES, FEATURES * FEATURES
    part = square // rounds
    all_x, all_c = [streams * windows * size], [streams * windows * square]
    x_sizes, c_sizes = [rounds, windows, size // 512, 512], [rounds, windows, part // 512, 512]
    return (
        [TAP(all_x, i * windows * size, x_sizes, [0, size, 512, 1]) for i in range(streams)],
        [TAP(all_c, i * windows * square, c_sizes, [part, square, 512, 1]) for i in range(streams)],
    )


def host_types(windows):
    """The types of x and c in DDR, flat."""
    return [np.ndarray[(windows * FEATURES * n,), np.dtype[bfloat16]] for n in (SAMPLES, FEATURES)]


def check_dials(windows, rows, share, keep, columns):
    """(streams, rounds), or a ValueError that says what does not fit."""
    if share not in (1, 2, 4):
        raise ValueError(f"share = {share}: a stream feeds 1, 2 or 4 compute tiles")
    if rows not in (16, 32, 64) or keep < 1 or FEATURES % (rows * share * keep):
        raise ValueError(
            f"rows * share * keep = {rows} * {share} * {keep} does not divide the {FEATURES} rows of C, "
            "with rows of 16, 32 or 64"
        )
    streams = columns * (1 if share == 4 else 2)
    if windows < 1 or windows % streams:
        raise ValueError(f"windows = {windows} is not a positive multiple of the {streams} streams")
    return streams, FEATURES // (rows * share * keep)


@iron.jit
def covariance(
    x: In,
    c: Out,
    *,
    windows: CompileTime[int],
    rows: CompileTime[int] = 64,
    share: CompileTime[int] = 2,
    keep: CompileTime[int] = 1,
    columns: CompileTime[int] = 1,
):
    """Arguments: x (windows x FEATURES x SAMPLES) and c (windows x FEATURES x FEATURES), bf16, row by row."""
    streams, rounds = check_dials(windows, rows, share, keep, columns)
    kernels = band_kernels(rows, resolve_target_arch(iron.get_current_device()))
    x_prods, c_cons, workers = [], [], []
    for i in range(streams):
        column, place = divmod(i, streams // columns)
        x_host, blocks = stage_in(f"x{i}", column, keep)
        c_host, bands = stage_out(f"c{i}", column, rows, share)
        x_prods.append(x_host.prod())
        c_cons.append(c_host.cons())
        for mine, end in enumerate(bands):
            band = Buffer(matrix(rows, BLOCK), name=f"band{i}_{mine}")
            arguments = [blocks.cons(), end.prod(), band, *kernels, mine, share, rounds, windows // streams, keep]
            workers.append(Worker(core_body, arguments, tile=Tile(column, 2 + place * share + mine)))

    patterns = walks(streams, windows // streams, rounds)
    runtime = Runtime(sequence, [*host_types(windows), x_prods, c_cons, *patterns])
    return Program(iron.get_current_device(), runtime, workers=workers).resolve_program()

"""O = softmax(S / sqrt(D)) V on one compute tile, around a body that the caller writes (the chapter's third exercise).

For each group of BLOCK rows, blocks of scores and of values stream by; one block of outputs leaves at the end. All tiles
lie in panels of eight columns, which the shim tile's DMA makes of rows and back.
"""

from math import log2
from pathlib import Path

import aie.iron as iron
import numpy as np
from aie.helpers.taplib import TensorAccessPattern as TAP
from aie.iron import Buffer, ExternalFunction, Kernel, ObjectFifo, Program, Runtime, Worker
from aie.utils.compile import resolve_target_arch
from aie.utils.config import cxx_header_path
from ml_dtypes import bfloat16

BLOCK = D = 64
PANEL = 8
BlockType = np.ndarray[(BLOCK, BLOCK), np.dtype[bfloat16]]
RowType = np.ndarray[(BLOCK,), np.dtype[bfloat16]]  # a value for each row
SHARED = Path(__file__).parents[1] / "kernels"


def kernels(arch):
    """zero(o), lowest(m), no_sums(l), step(s, p, m, l, r, scale), rescale(r, o), multiply(p, v, o), divide(l, o)."""
    flags = [f"-D{name}={BLOCK}" for name in ("BQ", "BK", "DK", "DV")]
    if arch == "aie2p":
        flags.append("-DAIE_API_EMULATE_BFLOAT16_MMUL_WITH_BFP16")  # eight values share an exponent
    first = ExternalFunction(
        "zero_output",
        source_file=str(SHARED / "attention.cc"),
        arg_types=[BlockType],
        include_dirs=[cxx_header_path(), str(SHARED)],
        compile_flags=flags,
    )
    types = {
        "lowest_maxima": [RowType],
        "zero_sums": [RowType],
        "online_softmax": [BlockType, BlockType, RowType, RowType, RowType, np.float32],
        "rescale_output": [RowType, BlockType],
        "matmul_pv": [BlockType, BlockType, BlockType],
        "divide_output": [RowType, BlockType],
    }
    return [first, *(Kernel(name, first.object_file_name, types[name]) for name in types)]


def blocks_of(rows, columns, start, count, step):
    """The walk through ``count`` blocks of a matrix, ``step`` elements apart, each in panels."""
    return TAP([rows * columns], start, [count, BLOCK // PANEL, BLOCK, PANEL], [step, PANEL, columns, 1])


def sequence(s_ddr, v_ddr, o_ddr, s_prod, v_prod, o_cons, walks):
    """What the host asks of the shim tile, a group of rows after the other."""
    for s_walk, v_walk, o_walk in walks:
        s_prod.fill(s_ddr, tap=s_walk)
        v_prod.fill(v_ddr, tap=v_walk)
        o_cons.drain(o_ddr, tap=o_walk, wait=True)


def program(body, rows, keys):
    """The design; the host's arguments are s (rows x keys), v (keys x D) and o (rows x D), bf16, row by row.

    ``body`` gets the ends of s, v and o, the buffers p, m, l and r, scale, the numbers of groups and of blocks in a group,
    and the kernels.
    """
    for name, size in (("rows", rows), ("keys", keys)):
        if size < BLOCK or size % BLOCK:
            raise ValueError(f"{name} = {size} is not a positive multiple of {BLOCK}")
    s, v, o = (ObjectFifo(BlockType, name=name) for name in "svo")
    p, m, l, r = (Buffer(BlockType if name == "p" else RowType, name=name) for name in "pmlr")
    groups, blocks, scale = rows // BLOCK, keys // BLOCK, log2(np.e) / D**0.5
    functions = kernels(resolve_target_arch(iron.get_current_device()))
    worker = Worker(body, [s.cons(), v.cons(), o.prod(), p, m, l, r, scale, groups, blocks, *functions])

    walks = [
        (
            blocks_of(rows, keys, group * BLOCK * keys, blocks, BLOCK),
            blocks_of(keys, D, 0, blocks, BLOCK * D),
            blocks_of(rows, D, group * BLOCK * D, 1, 0),
        )
        for group in range(groups)
    ]
    arrays = [np.ndarray[(size,), np.dtype[bfloat16]] for size in (rows * keys, keys * D, rows * D)]
    runtime = Runtime(sequence, [*arrays, s.prod(), v.prod(), o.cons(), walks])
    return Program(iron.get_current_device(), runtime, workers=[worker]).resolve_program()

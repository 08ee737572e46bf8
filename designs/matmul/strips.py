"""The matrix product of design.py with another way of A through the MemTiles, for the chapter's last exercise.

``stage_a`` takes the place of the one there. It gets strips: all K/k tiles of A that a row of compute tiles multiplies in one
block row of C, one below the other, each from DDR once.
"""

import aie.iron as iron
import numpy as np
from aie.helpers.taplib import TensorTiler2D
from aie.iron import CompileTime, In, Out, Program, Runtime, Worker
from aie.iron.device import Tile
from aie.utils.compile import resolve_target_arch
from ml_dtypes import bfloat16

from designs.matmul.design import MICRO_TILES, core_body, matrix_kernels, sequence, stage_b, stage_c, walks

ROWS = 4


def design_with(stage_a):
    """The design, in bf16 and on four rows of compute tiles, with ``stage_a(tile, steps, passes, micro)``."""

    @iron.jit
    def strips(
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
        columns: CompileTime[int] = 8,
    ):
        device = iron.get_current_device()
        r, s, t = MICRO_TILES[resolve_target_arch(device), "bf16"]
        zero, multiply = matrix_kernels(m, k, n, "bf16", resolve_target_arch(device))
        a_tile, b_tile, c_tile = multiply.arg_types()
        steps, passes = K // k, N // (n * columns)
        a_host, a_rows = stage_a(a_tile, steps, passes, (r, s))
        b_host, b_columns = stage_b(b_tile, columns, (s, t))
        c_host, c_parts = stage_c(c_tile, ROWS, columns, (r, t))
        tiles = M // (m * ROWS) * passes
        workers = [
            Worker(
                core_body,
                [a_rows[row].cons(), b_columns[col].cons(), c_parts[col][row].prod(), zero, multiply, tiles, steps],
                tile=Tile(col, 2 + row),
            )
            for row in range(ROWS)
            for col in range(columns)
        ]
        _, b_taps, c_taps = walks(M, K, N, m, k, n, ROWS, columns)
        a_taps = TensorTiler2D.group_tiler((M, K), (m, k), (1, steps))  # a strip, tile after tile, and only once
        arrays = [np.ndarray[(size,), np.dtype[bfloat16]] for size in (M * K, K * N)]
        arrays.append(np.ndarray[(M * N,), np.dtype[np.float32]])
        ends = [[f.prod() for f in a_host], [f.prod() for f in b_host], [f.cons() for f in c_host]]
        runtime = Runtime(sequence, [*arrays, *ends, a_taps, b_taps, c_taps])
        return Program(device, runtime, workers=workers).resolve_program()

    return strips

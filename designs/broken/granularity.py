"""Send a matrix of bf16 column by column: a transpose by DMA."""

import numpy as np
from aie.iron import ObjectFifo, Worker
from ml_dtypes import bfloat16

from designs.broken.parts import copying, program, vector

ROWS, COLUMNS = 16, 32
N = ROWS * COLUMNS


def build(device):
    matrix = np.ndarray[(ROWS, COLUMNS), np.dtype[bfloat16]]
    x, y = ObjectFifo(vector(N, bfloat16), name="x"), ObjectFifo(vector(N, bfloat16), name="y")
    worker = Worker(copying(N), [x.cons(), y.prod()])

    def sequence(a, b, px, cy):
        px.fill(a, offset=0, sizes=[1, 1, COLUMNS, ROWS], strides=[0, 0, 1, COLUMNS])
        cy.drain(b, wait=True)

    return program(device, sequence, [matrix, vector(N, bfloat16)], [x.prod(), y.cons()], [worker])

"""y = factor * x on one compute tile, written out in the core; ``build(device)``."""

import numpy as np
from aie.iron import ObjectFifo, Program, Runtime, Worker
from aie.iron.controlflow import range_
from aie.iron.device import from_name
from constants import TILE  # lies beside this file


def build(device, n=256, factor=3, depth=2):
    if n % TILE:
        raise ValueError(f"n = {n} is not a multiple of {TILE}")
    vector = np.ndarray[(n,), np.dtype[np.int32]]
    tile = np.ndarray[(TILE,), np.dtype[np.int32]]
    of_x = ObjectFifo(tile, name="x", depth=depth)
    of_y = ObjectFifo(tile, name="y", depth=depth)

    def core(x_in, y_out):
        y, x = y_out.acquire(1), x_in.acquire(1)
        for i in range_(TILE):
            y[i] = x[i] * factor
        x_in.release(1)
        y_out.release(1)

    def sequence(x, y, x_prod, y_cons):
        x_prod.fill(x)
        y_cons.drain(y, wait=True)

    runtime = Runtime(sequence, [vector, vector, of_x.prod(), of_y.cons()])
    worker = Worker(core, [of_x.cons(), of_y.prod()])
    return Program(from_name(device, n_cols=None), runtime, workers=[worker]).resolve_program()

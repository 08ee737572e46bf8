"""A mistake that beginners make: objects are not arrays, so they cannot be added as a whole."""

import numpy as np
from aie.iron import ObjectFifo, Program, Runtime, Worker
from aie.iron.device import from_name


def build(device):
    vector = np.ndarray[(256,), np.dtype[np.int32]]
    of_x, of_y = ObjectFifo(vector, name="x"), ObjectFifo(vector, name="y")

    def core(x_in, y_out):
        a, b = x_in.acquire(1), y_out.acquire(1)
        b[0] = a + b

    def sequence(x, y, x_prod, y_cons):
        x_prod.fill(x)
        y_cons.drain(y, wait=True)

    runtime = Runtime(sequence, [vector, vector, of_x.prod(), of_y.cons()])
    return Program(from_name(device), runtime, workers=[Worker(core, [of_x.cons(), of_y.prod()])]).resolve_program()

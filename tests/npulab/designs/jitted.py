"""y = x + k, as an @iron.jit function."""

import aie.iron as iron
import numpy as np
from aie.iron import CompileTime, In, ObjectFifo, Out, Program, Runtime, Worker
from aie.iron.controlflow import range_


@iron.jit
def add(x: In, y: Out, *, n: CompileTime[int], k: CompileTime[int] = 1):
    vector = np.ndarray[(n,), np.dtype[np.int32]]
    of_x, of_y = ObjectFifo(vector, name="x"), ObjectFifo(vector, name="y")

    def core(x_in, y_out):
        a, b = x_in.acquire(1), y_out.acquire(1)
        for i in range_(n):
            b[i] = a[i] + k
        x_in.release(1)
        y_out.release(1)

    def sequence(x, y, x_prod, y_cons):
        x_prod.fill(x)
        y_cons.drain(y, wait=True)

    runtime = Runtime(sequence, [vector, vector, of_x.prod(), of_y.cons()])
    return Program(
        iron.get_current_device(), runtime, workers=[Worker(core, [of_x.cons(), of_y.prod()])]
    ).resolve_program()

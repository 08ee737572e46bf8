"""SAXPY with things that can be got wrong, each a parameter of ``build``; the defaults make a design that runs."""

import numpy as np
from aie.iron import ObjectFifo, Program, Runtime, Worker
from aie.iron.controlflow import range_
from aie.iron.device import from_name
from ml_dtypes import bfloat16


def build(device, n=4096, tile=1024, drained=True, missing=0):
    """``drained``: whether the host takes the result; ``missing``: elements of x that it does not send."""
    of = np.ndarray[(tile,), np.dtype[bfloat16]]
    vector = np.ndarray[(n,), np.dtype[bfloat16]]
    of_x, of_y, of_out = (ObjectFifo(of, name=name) for name in ("x", "y", "out"))

    def core_body(x_in, y_in, y_out):
        for _ in range_(n // tile):
            x, y, out = x_in.acquire(1), y_in.acquire(1), y_out.acquire(1)
            for i in range_(tile):
                out[i] = x[i] + y[i]
            x_in.release(1)
            y_in.release(1)
            y_out.release(1)

    def sequence(x_ddr, y_ddr, x_prod, y_prod, *out_cons):
        x_prod.fill(x_ddr, sizes=[1, 1, 1, n - missing], strides=[0, 0, 0, 1], offset=0)
        y_prod.fill(y_ddr, wait=not out_cons)
        for end in out_cons:
            end.drain(y_ddr, wait=True)

    ends = [of_x.prod(), of_y.prod(), *([of_out.cons()] if drained else [])]
    runtime = Runtime(sequence, [vector, vector, *ends])
    worker = Worker(core_body, [of_x.cons(), of_y.cons(), of_out.prod()])
    return Program(from_name(device), runtime, workers=[worker]).resolve_program()

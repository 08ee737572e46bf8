"""What the broken designs share and what is right in them: types, a copying worker, the program around."""

import numpy as np
from aie.iron import Program, Runtime
from aie.iron.controlflow import range_
from aie.iron.device import NPU1, NPU2


def vector(n, dtype=np.int32):
    """The type of n elements."""
    return np.ndarray[(n,), np.dtype[dtype]]


def copying(n):
    """A core function: each object of n elements from its first fifo to its second."""

    def copy(source, target):
        a, b = source.acquire(1), target.acquire(1)
        for i in range_(n):
            b[i] = a[i]
        source.release(1)
        target.release(1)

    return copy


def program(device, sequence, arrays, ends, workers):
    """``sequence(*arrays, *ends)`` is what the host does."""
    runtime = Runtime(sequence, [*arrays, *ends])
    return Program({"npu1": NPU1, "npu2": NPU2}[device](), runtime, workers).resolve_program()

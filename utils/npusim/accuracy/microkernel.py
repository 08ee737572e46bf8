"""A matrix kernel in assembly, called over and over on one tile: how much calling it costs.

The kernels' own cycles are their instructions, counted in the published listings (an instruction takes a cycle), not
simulated: a core's machine code does not run here.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from npusim.accuracy.running import built, timed
from npusim.devices import Device
from npusim.frontends.iron.kernel_library.common import array
from npusim.kernels import KernelModel

CALLS = 2000


@dataclass(frozen=True)
class Microkernel:
    """A kernel of m x k x n multiply-accumulates; ``nbytes`` of its operands A, B and C."""

    m: int
    k: int
    n: int
    instructions: int
    nbytes: tuple[int, int, int]
    source: str


XDNA_BF16 = Microkernel(32, 32, 32, 288, (2048, 2048, 4096), "scalable-analyses/xdna xdna1_kernel.rst")
XDNA2_BFP16 = Microkernel(64, 96, 64, 800, (6912, 6912, 16384), "scalable-analyses/xdna xdna2_kernel.rst")
"""The bfp16 blocks take nine bytes for eight values."""


def microkernel_rate(device: Device, kernel: Microkernel) -> float:
    """FLOP/s of the calls, of which each takes its instructions and what a call costs."""
    model = KernelModel(_nothing, lambda *types, device: kernel.instructions, source=kernel.source, confidence="H")
    report = timed(built(partial(_calls, nbytes=kernel.nbytes), device), kernels={"multiply": model})
    return 2 * kernel.m * kernel.k * kernel.n * CALLS / report.seconds


def _calls(iron_device: Any, nbytes: tuple[int, ...]) -> Any:
    """The operands stay in the tile; four bytes say that the calls are over."""
    from aie.iron import Buffer, Kernel, ObjectFifo, Program, Runtime, Worker
    from aie.iron.controlflow import range_

    types, token = [array(size, np.int8) for size in nbytes], array(4, np.int8)
    multiply = Kernel("multiply", "multiply.o", types)
    done = ObjectFifo(token, name="done", depth=1)

    def core(done: Any, multiply: Any, *operands: Any) -> None:
        done.acquire(1)
        for _ in range_(CALLS):
            multiply(*operands)
        done.release(1)

    operands = [Buffer(each, name=name) for each, name in zip(types, "abc", strict=True)]
    worker = Worker(core, [done.prod(), multiply, *operands])

    def sequence(out: Any, end: Any) -> None:
        end.drain(out, wait=True)

    return Program(iron_device, Runtime(sequence, [token, done.cons()]), [worker]).resolve_program()


def _nothing(*operands: Any) -> None:
    """Its data is of no interest here."""

"""Timing on a real NPU: warm up, repeat, report the least.

The first runs pay for loading the design, and an NPU that idles for a while goes to sleep: the same kernel took 119 µs and,
after ten idle seconds, 136 ms (Xilinx/mlir-aie issue 2944). Interference only ever adds time, so the least of many is
nearest to what the hardware takes. Untested on hardware.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from npulab.record import si

WARMUP, ITERATIONS = 10, 20
"""As in the published measurements of AMD's examples (mlir-air test harness: 10 warm-up, 20 timed)."""


@dataclass(frozen=True)
class Timing:
    """Seconds of each timed repetition, in order. ``clock`` says who measured: ``npu`` (the runtime, around the wait for
    the kernel) or ``host`` (around the whole call, with buffer copies)."""

    samples: tuple[float, ...]
    warmup: int
    clock: str = "host"

    @property
    def best(self) -> float:
        return min(self.samples)

    @property
    def median(self) -> float:
        return statistics.median(self.samples)

    @property
    def noisy(self) -> bool:
        """Whether the median is more than a quarter above the least: do not trust it, and pin the clock."""
        return self.median > 1.25 * self.best

    def __str__(self) -> str:
        words = f"{si(self.best, 's')} (least of {len(self.samples)} after {self.warmup} to warm up, {self.clock} clock"
        words += f"; median {si(self.median, 's')}), measured"
        if self.noisy:
            words += ". Noisy: pin the clock with `xrt-smi configure --pmode turbo` and close other programs"
        return words


@dataclass(frozen=True)
class Measured:
    """What a run on the NPU gives: every argument after the first run, and the timing."""

    arrays: tuple[np.ndarray[Any, Any], ...]
    timing: Timing


def repeat(call: Callable[[], float | None], *, warmup: int = WARMUP, iterations: int = ITERATIONS) -> Timing:
    """Call ``warmup`` times for nothing, then ``iterations`` times timed. What ``call`` returns is the time in seconds that
    the NPU's runtime measured, or None to take the host's clock.

    Raises:
        ValueError: if there is nothing to time.
    """
    if warmup < 0 or iterations < 1:
        raise ValueError(f"nothing to time with warmup={warmup}, iterations={iterations}")
    for _ in range(warmup):
        call()
    samples: list[float] = []
    clocks = set()
    for _ in range(iterations):
        start = time.perf_counter()
        said = call()
        clocks.add("host" if said is None else "npu")
        samples.append(time.perf_counter() - start if said is None else said)
    return Timing(tuple(samples), warmup, clocks.pop() if len(clocks) == 1 else "mixed")

"""Comparing and timing, as host programs do: ``aie.utils.verify`` and ``aie.utils.benchmark``."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from npusim.errors import DesignError

_RTOL = 0.128  # the real package's default, meant for bf16 and lookup tables


@dataclass(unsafe_hash=False)
class Stats:
    """Times in microseconds."""

    avg_us: float
    min_us: float
    max_us: float

    @classmethod
    def of(cls, samples: list[float]) -> Stats:
        """Mean, least and most of some times."""
        return cls(sum(samples) / len(samples), min(samples), max(samples))


@dataclass(unsafe_hash=False)
class BenchmarkResult:
    """Times of repeated calls. ``npu`` is simulated; ``e2e`` is how long simulating took, on the clock on the wall."""

    e2e: Stats
    npu: Stats | None


def run_iters(fn: Callable[..., Any], *args: Any, warmup: int = 0, iters: int = 1, **kwargs: Any) -> BenchmarkResult:
    """Call ``fn`` ``warmup + iters`` times and time the last ``iters``."""
    if iters < 1:
        raise DesignError(f"iters must be >= 1 (got {iters})")
    if warmup < 0:
        raise DesignError(f"warmup must be >= 0 (got {warmup})")
    for _ in range(warmup):
        fn(*args, **kwargs)
    wall: list[float] = []
    npu: list[float] = []
    for _ in range(iters):
        start = time.perf_counter()
        answer = fn(*args, **kwargs)
        wall.append((time.perf_counter() - start) * 1e6)
        result = answer[1] if isinstance(answer, tuple) and len(answer) > 1 else answer
        if getattr(result, "npu_time", None) is not None:
            npu.append(result.npu_time / 1e3)
    return BenchmarkResult(Stats.of(wall), Stats.of(npu) if npu else None)


def print_benchmark(result: BenchmarkResult) -> None:
    """Print average, least and most in microseconds, saying what is simulated."""
    if result.npu is not None:
        print(f"NPU time, simulated    (avg/min/max us): {_times(result.npu)}")
    print(f"Wall clock, simulator  (avg/min/max us): {_times(result.e2e)}")


def _times(stats: Stats) -> str:
    return f"{stats.avg_us:.1f} / {stats.min_us:.1f} / {stats.max_us:.1f}"


def nearly_equal(a: Any, b: Any, *, rtol: float = _RTOL, atol: float | None = None) -> np.ndarray[Any, Any]:
    """For each element whether ``|a - b| < max(atol, rtol * (|a| + |b|))`` (or a == b), computed in float32."""
    x, y = np.asarray(a, dtype=np.float32), np.asarray(b, dtype=np.float32)
    floor = float(np.finfo(np.float32).tiny) if atol is None else atol
    with np.errstate(over="ignore", invalid="ignore"):
        norm = np.minimum(np.abs(x) + np.abs(y), np.finfo(np.float32).max)
        close: np.ndarray[Any, Any] = (x == y) | (np.abs(x - y) < np.maximum(floor, rtol * norm))
    return close


def count_mismatches(
    actual: Any, ref: Any, *, rtol: float = _RTOL, atol: float | None = None, stop_at_nonfinite: bool = True
) -> tuple[int, int]:
    """(mismatches, elements compared); comparing ends at the first infinity or NaN unless told otherwise."""
    x, y = np.asarray(actual, dtype=np.float32).ravel(), np.asarray(ref, dtype=np.float32).ravel()
    if x.shape != y.shape:
        raise DesignError(f"actual and ref must have the same shape, got {x.shape} vs {y.shape}")
    bad = ~(np.isfinite(x) & np.isfinite(y))
    stop = int(np.argmax(bad)) if stop_at_nonfinite and bad.any() else x.size
    close = nearly_equal(x[:stop], y[:stop], rtol=rtol, atol=atol)
    return int(close.size - np.count_nonzero(close)), stop


def assert_pass(
    actual: Any,
    expected: Any,
    *,
    rtol: float | None = None,
    atol: float | None = None,
    fail_msg: str | None = None,
    print_pass: bool = True,
) -> None:
    """SystemExit with ``FAIL!`` unless the arrays agree: exactly, or within ``rtol`` and ``atol`` if one is given."""
    if rtol is None and atol is None:
        agree = bool(np.array_equal(actual, expected))
    else:
        agree = count_mismatches(actual, expected, rtol=_RTOL if rtol is None else rtol, atol=atol)[0] == 0
    if not agree:
        sys.exit("FAIL!" if fail_msg is None else f"FAIL! {fail_msg}")
    if print_pass:
        print("PASS!")


def assert_close_with_benchmark(
    actual: Any,
    expected: Any,
    *,
    bench: BenchmarkResult,
    ops: float | None = None,
    gflops_fmt: str = ".2f",
    float_rtol: float = 0.05,
    float_atol: float = 0.5,
    fail_msg: str | None = None,
    mismatch_indices: bool = False,
) -> None:
    """:func:`assert_pass` (exact for integers), then the times and, with ``ops``, the simulated GFLOP/s."""
    if np.issubdtype(np.asarray(expected).dtype, np.integer):
        if mismatch_indices and not np.array_equal(actual, expected):
            first = np.argwhere(np.asarray(actual) != np.asarray(expected))[:5].tolist()
            sys.exit(f"FAIL! {fail_msg or 'output mismatch'} (first mismatches: {first})")
        assert_pass(actual, expected, fail_msg=fail_msg, print_pass=False)
    else:
        assert_pass(actual, expected, rtol=float_rtol, atol=float_atol, fail_msg=fail_msg, print_pass=False)
    print()
    print_benchmark(bench)
    if ops is not None and bench.npu is not None:
        print(f"NPU GFLOPS, simulated                  : {ops / (1000 * bench.npu.avg_us):{gflops_fmt}}")
    print("PASS!")

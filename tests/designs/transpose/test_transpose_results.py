"""Transposes on the simulated NPU: every bit, every byte and the least time, on both generations."""

from __future__ import annotations

from collections.abc import Iterator
from types import ModuleType

import numpy as np
import pytest

import npulab
from designs.transpose import reference
from designs.transpose.__main__ import exact
from designs.transpose.bound import kernel_cycles, prediction
from npusim.errors import CapacityError, DesignError
from npusim.frontends import finder

DEVICES = ("npu1", "npu2")
WORDS = [(64, 64, 64, 64, 1), (128, 96, 32, 16, 2), (256, 40, 64, 1, 4), (24, 30, 3, 5, 2), (256, 512, 64, 8, 4)]
HALVES = [(64, 64, 64, 64, 1), (128, 96, 32, 16, 2), (64, 40, 8, 8, 4), (256, 128, 64, 64, 4)]


@pytest.fixture(scope="module")
def design() -> Iterator[ModuleType]:
    npulab.use("sim", "npu2", quiet=True)
    yield npulab.load("designs.transpose.design")
    finder.deactivate()


def sizes(M: int, N: int, m: int, n: int, columns: int) -> dict[str, int]:
    return {"M": M, "N": N, "m": m, "n": n, "columns": columns}


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("case", WORDS)
def test_words(design: ModuleType, device: str, case: tuple[int, ...]) -> None:
    a, b = reference.inputs(case[0], case[1], "i32", seed=case[1])
    run = npulab.run(design.transpose_words, [a, b], device=device, **sizes(*case))
    assert exact(a, run.output, 1.0)
    assert run.traffic == reference.traffic(case[0], case[1], "i32")
    assert run.report is not None and run.report.warnings == [] and run.cores == []


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("case", HALVES)
@pytest.mark.parametrize(("alpha", "depth"), [(1.0, 2), (-0.3, 1), (1e30, 3)])
def test_half_words(design: ModuleType, device: str, case: tuple[int, ...], alpha: float, depth: int) -> None:
    a, b = reference.inputs(case[0], case[1], "bf16", seed=case[1])
    run = npulab.run(design.transpose, [a, b], device=device, alpha=alpha, depth=depth, **sizes(*case))
    assert exact(a, run.output, alpha)
    assert run.traffic == reference.traffic(case[0], case[1], "bf16")
    assert run.report is not None and run.report.warnings == [] and len(run.cores) == case[-1]


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_depth_is_what_the_core_has(design: ModuleType, depth: int) -> None:
    machine = npulab.machine(design.transpose, M=64, N=64, depth=depth)
    for fifo in ("a0", "b0"):
        assert sum(b.fifo == fifo and b.tile == (0, 2) for b in machine.buffers) == min(depth, 3)


@pytest.mark.parametrize("device", DEVICES)
def test_one_buffer_takes_the_sum_and_two_the_larger(design: ModuleType, device: str) -> None:
    """A tile of 64 x 64: the channel needs 2,048 cycles, the kernel fewer."""
    M, N = 512, 256
    channel, kernel = 2 * 64 * 64 // 4, kernel_cycles(64, 64, device)
    assert channel / 2 < kernel < channel
    tiles = M * N // 64**2
    a, b = reference.inputs(M, N, "bf16")
    for depth, each in ((1, channel + kernel), (2, channel)):
        run = npulab.run(design.transpose, [a, b], device=device, M=M, N=N, depth=depth, data=False)
        start = 3 * channel + kernel  # the first object's way through, before and after
        assert run.cycles is not None and run.report is not None
        assert tiles * each < run.cycles < 1.05 * tiles * each + start + 8e-6 * run.report.clock_hz


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(("dtype", "columns", "limit"), [("i32", 1, "ddr"), ("i32", 4, "ddr"), ("bf16", 1, "ddr")])
def test_the_bound_holds_and_is_close(design: ModuleType, device: str, dtype: str, columns: int, limit: str) -> None:
    M, N = 2048, 512
    a, b = reference.inputs(M, N, dtype)
    made = design.transpose_words if dtype == "i32" else design.transpose
    run = npulab.run(made, [a, b], device=device, data=False, trace=False, **sizes(M, N, 64, 64, columns))
    bound = prediction(M, N, 64, 64, columns, device, dtype)
    assert bound.limit == limit
    assert 1 < run.seconds / bound.seconds < 1.15


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(("m", "n"), [(64, 1), (64, 2), (64, 4), (64, 8), (16, 64), (8, 64)])
def test_short_pieces_cost_ddr_whole_bursts(design: ModuleType, device: str, m: int, n: int) -> None:
    """With all channels at work the time is what DDR is busy for, or what the channels need, whichever is longer."""
    M, N, columns = min(4096, 256 * m), 512, 4  # a descriptor iterates over 64 bands at most
    a, b = reference.inputs(M, N, "i32")
    run = npulab.run(design.transpose_words, [a, b], device=device, data=False, trace=False, **sizes(M, N, m, n, columns))
    of = run.device
    busy = reference.ddr_busy(M, N, m, n, "i32")
    reading = M * N // n * max(-(-4 * n // 64) * 64, 4 * n)
    least = max(busy / of.ddr_total.value, reading / of.ddr_read.value, 4 * M * N / columns / 4 / of.clock_hz)
    assert 1 < run.seconds / least < 1.25
    assert run.traffic == reference.traffic(M, N, "i32")


@pytest.mark.parametrize(
    ("kind", "options", "words"),
    [
        ("transpose", {"M": 100}, "M = 100 is no positive multiple of 64"),
        ("transpose", {"M": 128, "columns": 4}, "M = 128 is no positive multiple of 256"),
        ("transpose", {"n": 12, "N": 96}, "n = 12 is no multiple of 8"),
        ("transpose_words", {"N": 100}, "N = 100 is no positive multiple of 64"),
        ("transpose_words", {"columns": 9}, "columns = 9: the device has 8"),
    ],
)
def test_sizes_that_do_not_fit_are_named(design: ModuleType, kind: str, options: dict[str, int], words: str) -> None:
    with pytest.raises((ValueError, DesignError), match=words):
        npulab.machine(getattr(design, kind), **{"M": 64, "N": 64, **options})


def test_too_many_bands_for_one_descriptor(design: ModuleType) -> None:
    with pytest.raises(CapacityError, match="iterates 64 times at most"):
        npulab.machine(design.transpose_words, M=512, N=512, m=1, n=64, columns=4)


def test_the_core_cannot_be_left_out_for_half_words(design: ModuleType) -> None:
    """Why the bf16 design is another one: its matrix's walk by columns is refused."""
    with pytest.raises(DesignError, match="4-byte words"):
        npulab.machine("designs.walk.design", shape=(64, 64), dims=((64, 1), (64, 64)), dtype="bf16")


def test_inputs_cover_all_of_32_bits() -> None:
    a, b = reference.inputs(64, 64, "i32")
    assert a.min() < -(2**30) < 2**30 < a.max() and not b.any() and b.shape == (64, 64)
    assert np.array_equal(reference.transpose(a), a.T)



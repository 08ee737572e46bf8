"""The designs of the accuracy table compute what they say, and the table's errors stay small."""

from functools import partial
from typing import Any

import numpy as np
import pytest
from ml_dtypes import bfloat16

from npusim import accuracy
from npusim.accuracy import eltwise, gemm, microkernel, streams
from npusim.accuracy.running import built, timed
from npusim.devices import NPU1, NPU2, Device
from npusim.frontends.iron.current import get_current_device
from npusim.kernels import KernelModel
from npusim.run import simulate


@pytest.fixture(scope="module")
def found() -> list[accuracy.Result]:
    return accuracy.results()


def whole(rng: np.random.Generator, *shape: int) -> Any:
    """Small whole numbers in bf16, whose sums are exact."""
    return rng.integers(-4, 5, shape).astype(bfloat16)


@pytest.mark.parametrize("point", accuracy.POINTS, ids=lambda p: p.name)
def test_points_are_sourced(point: accuracy.Point) -> None:
    assert point.published > 0
    assert point.source
    assert point.unit


def test_simulated_is_near_published(found: list[accuracy.Result]) -> None:
    """What the tables say now; a change of the engine or a constant that moves a point further must be seen."""
    for point, simulated, error in found:
        assert error == pytest.approx(simulated / point.published - 1)
        assert abs(error) < (0.08 if "GEMM" in point.name else 0.05), point.name


def test_table(found: list[accuracy.Result]) -> None:
    text = accuracy.table(found)
    for point, simulated, _ in found:
        (line,) = (line for line in text.splitlines() if line.startswith(point.name))
        assert f"{point.published:.4g}" in line
        assert f"{simulated:.4g}" in line
        assert point.source in text
        assert point.note in text


@pytest.mark.parametrize(
    ("device", "shape"),
    [(NPU1, gemm.Shape(128, 64, 192, 16, 32, 24)), (NPU2, gemm.Shape(64, 32, 256, 16, 16, 16))],
    ids=["npu1", "npu2"],
)
def test_gemm_multiplies(device: Device, shape: gemm.Shape) -> None:
    rng = np.random.default_rng(1)
    a, b = whole(rng, shape.M, shape.K), whole(rng, shape.K, shape.N)
    c = np.zeros((shape.M, shape.N), bfloat16)
    simulate(built(partial(gemm.gemm, shape=shape), device), [a, b, c])
    # The sums are rounded to bf16 after each tile along K, as the kernel stores them.
    expected = np.zeros_like(c)
    for k in range(0, shape.K, shape.k):
        product = a[:, k : k + shape.k].astype(np.float32) @ b[k : k + shape.k].astype(np.float32)
        expected = (expected.astype(np.float32) + product).astype(bfloat16)
    assert np.array_equal(c, expected)


@pytest.mark.parametrize("columns", [1, 2, 8])
def test_add_adds(columns: int) -> None:
    rng = np.random.default_rng(2)
    size = 2 * 8 * eltwise.TILE
    a, b, c = whole(rng, size), whole(rng, size), np.zeros(size, bfloat16)
    report = simulate(
        built(partial(eltwise.add, columns=columns, size=size), NPU2), [a, b, c], kernels={"add": eltwise.MODEL}
    )
    assert np.array_equal(c, a + b)
    assert len(report.cores) == columns
    assert report.traffic["ddr"].total == 3 * 2 * size


def test_copy_copies() -> None:
    words = 8 * streams.OBJECT
    source, target = np.arange(words, dtype=np.int32), np.zeros(words, np.int32)
    report = simulate(built(partial(streams.copy, words=words), NPU1), [source, target])
    assert np.array_equal(target, source)
    assert report.traffic["ddr"].read == report.traffic["ddr"].written == 4 * words


@pytest.mark.parametrize("direction", ["MM2S", "S2MM"])
def test_start_up_follows_its_constant(direction: str) -> None:
    """The design measures what it claims to: half the clock, half the cycles of a time that is outside of the array."""
    fast = streams.start_up(NPU1.with_options(clock_hz=1.0e9), direction)
    slow = streams.start_up(NPU1.with_options(clock_hz=0.5e9), direction)
    assert fast == pytest.approx(2 * slow, abs=4)


def test_microkernel_calls_cost_what_the_table_says() -> None:
    costs = 15 + 3  # kernel_call, and the loop's count, compare and jump
    for kernel in (microkernel.XDNA_BF16, microkernel.XDNA2_BFP16):
        cycles = 2 * kernel.m * kernel.k * kernel.n * 1.0e9 / microkernel.microkernel_rate(NPU1, kernel)
        assert cycles == pytest.approx(kernel.instructions + costs, rel=0.01)


def test_a_core_that_runs_ahead_does_not_prolong_the_run() -> None:
    """After the calls that the host waits for, the core begins its body anew; that is not part of the run."""
    model = KernelModel(lambda *operands: None, lambda *types, device: 100)
    report = timed(built(partial(microkernel._calls, nbytes=(4, 4, 4)), NPU1), kernels={"multiply": model})
    assert report.cycles < 1.1 * microkernel.CALLS * (100 + 15 + 3)


def test_building_leaves_the_current_device_alone() -> None:
    before = get_current_device(probe_runtime=False)
    built(partial(streams.copy, words=4 * streams.OBJECT), NPU1)
    assert get_current_device(probe_runtime=False) is before

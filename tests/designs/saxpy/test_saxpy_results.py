"""SAXPY on the simulated NPU: every bit, every byte, every cycle, on both generations and at every size."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from ml_dtypes import bfloat16

import npulab
from designs.saxpy import models, reference
from designs.saxpy.__main__ import arguments, prediction
from npusim.costs import Costs
from npusim.frontends import finder
from npusim.report import Traffic

TILE = 1024
DEVICES = ("npu1", "npu2")
SIZES = (TILE, 2 * TILE, 3 * TILE, 64 * TILE, 2**20)
SPECIAL = np.array([0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 3.38e38, -3.38e38, 1e-38, 9.2e-41, 257.0], bfloat16)


@pytest.fixture(scope="module")
def saxpy() -> Iterator[Any]:
    npulab.use("sim", "npu2", quiet=True)
    yield npulab.load("designs.saxpy.design").saxpy
    finder.deactivate()


def rounded(x: Any, y: Any, a: float) -> Any:
    """The bits of bf16 of a*x + y, a rounded first: the product as float32 holds it (exact, or infinite), the sum in float64
    cut to float32, and then to 16 bits by whole-number arithmetic, which is not how the models do it."""
    with np.errstate(all="ignore"):
        product = np.float32(bfloat16(a)) * x.astype(np.float32)
        total = (product.astype(np.float64) + y.astype(np.float64)).astype(np.float32)
    bits = total.view(np.uint32).astype(np.uint64)
    even = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16
    return np.where(np.isnan(total), 0x7FC0, even).astype(np.uint16)


def bits(values: Any) -> Any:
    """The bits, with one spelling for all that is not a number."""
    return np.where(np.isnan(values.astype(np.float32)), np.uint16(0x7FC0), values.view(np.uint16))


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("device", DEVICES)
def test_every_bit(saxpy: Any, device: str, n: int) -> None:
    x, y = arguments(n, seed=n)
    run = npulab.run(saxpy, [x, y], device=device, n=n)
    want = np.empty_like(y)
    models.saxpy_bf16(x, y, want, 3.0)
    assert run.device.name == device
    assert np.array_equal(run.output.view(np.uint16), want.view(np.uint16))
    assert np.array_equal(run.output.view(np.uint16), rounded(x, y, 3.0))


@pytest.mark.parametrize("a", [3.0, 0.1, -1.0, 0.0, 1e30, 1.00390625])
@pytest.mark.parametrize("device", DEVICES)
def test_factors_and_special_values(saxpy: Any, device: str, a: float) -> None:
    x = np.resize(np.repeat(SPECIAL, len(SPECIAL)), TILE)
    y = np.resize(np.tile(SPECIAL, len(SPECIAL)), TILE)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        run = npulab.run(saxpy, [x, y], device=device, n=TILE, a=a)
    assert np.array_equal(bits(run.output), rounded(x, y, a))


def test_error_against_fp32_is_one_rounding(saxpy: Any) -> None:
    x, y = arguments(8 * TILE, seed=5)
    got = npulab.run(saxpy, [x, y], n=8 * TILE).output.astype(np.float32)
    want = reference.saxpy(x, y, 3.0)
    error = np.abs(got - want)[want != 0] / np.abs(want[want != 0])
    assert reference.RTOL / 4 < error.max() <= reference.RTOL


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("device", DEVICES)
def test_every_byte_is_moved_once_at_each_level(saxpy: Any, device: str, n: int) -> None:
    run = npulab.run(saxpy, arguments(n), device=device, n=n)
    vector = 2 * n
    assert run.traffic == {
        "ddr": Traffic(read=2 * vector, written=vector),
        "memtile": Traffic(),
        "l1": Traffic(read=vector, written=2 * vector),
    }
    assert run.machine is not None
    moved = {(use.channel.tile, use.channel.direction, use.channel.index): use.bytes for use in run.channels}
    for route in run.machine.routes:
        ends = [moved[end.tile, end.direction, end.index] for end in (route.source, *route.dests)]
        assert ends == [vector, vector], route.name
    assert [use.transfers for use in run.channels if use.channel.tile.row == 2] == [n // TILE] * 3


@pytest.mark.parametrize("n", [TILE, 64 * TILE])
@pytest.mark.parametrize("device", DEVICES)
def test_time_is_the_same_without_data(saxpy: Any, device: str, n: int) -> None:
    x, y = arguments(n)
    full = npulab.run(saxpy, [x, y], device=device, n=n)
    timing = npulab.run(saxpy, [x, y], device=device, n=n, data=False, trace=False)
    assert full.report is not None and timing.report is not None
    assert full.report.exact_cycles == timing.report.exact_cycles
    assert full.traffic == timing.traffic
    assert np.array_equal(timing.output.view(np.uint16), y.view(np.uint16)), "a run without data must not write any"


@pytest.mark.parametrize("device", DEVICES)
def test_the_roofline_bounds_every_run_and_large_ones_closely(saxpy: Any, device: str) -> None:
    ratios = []
    for n in SIZES:
        run = npulab.run(saxpy, arguments(n), device=device, n=n, data=False, flops=2 * n)
        bound = prediction(n, device)
        assert bound.limit == "ddr" and bound.cycles == n / 2
        assert bound.intensity("ddr") == pytest.approx(1 / 3) == run.intensity("ddr")
        ratios.append(run.seconds / bound.seconds)
    assert ratios == sorted(ratios, reverse=True)
    assert 1 < ratios[-1] < 1.05


def test_arguments_are_left_as_they_were(saxpy: Any) -> None:
    x, y = arguments(TILE)
    before = y.copy()
    run = npulab.run(saxpy, [x, y], n=TILE)
    assert np.array_equal(y, before) and not np.array_equal(run.output, before)


@pytest.mark.parametrize("device", DEVICES)
def test_the_trace_tells_the_start(saxpy: Any, device: str) -> None:
    """Three pushes, and each channel's start-up, as long as the cost table says."""
    run = npulab.run(saxpy, arguments(4 * TILE), device=device, n=4 * TILE)
    assert run.report is not None
    costs = Costs().in_cycles(run.device.clock_hz)
    host = [(e.name, e.kind, e.duration / run.report.ticks_per_cycle) for e in run.trace if e.track == "host"]
    first, later = costs.task_push_first.value, costs.task_push.value
    assert host[:3] == [("push x", "task", first), ("push y", "task", first), ("push out", "task", later)]
    assert [name for name, *_ in host[3:]] == ["await out"]
    starts = {e.name: e.duration / run.report.ticks_per_cycle for e in run.trace if e.name.startswith("start ")}
    read, write = costs.shim_read_start.value, costs.shim_write_start.value
    assert starts == {"start x": read, "start y": read, "start out": write}

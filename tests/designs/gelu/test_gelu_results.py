"""Bias and GELU on the simulated NPU: every bit, every byte and the least time, on both generations and parts of the array."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from ml_dtypes import bfloat16

import npulab
from designs.gelu import models, reference
from designs.gelu.__main__ import bit_exact
from designs.gelu.bound import kernel_cycles, prediction
from designs.gelu.exercises import owner
from designs.gelu.reference import inputs
from npusim.errors import DesignError
from npusim.frontends import finder

PARTS = {
    "npu1": [(1, 1), (1, 3), (2, 2), (4, 1), (4, 4)],
    "npu2": [(1, 1), (1, 4), (3, 2), (4, 4), (8, 1), (8, 4)],
}
CASES = [(device, *part) for device, parts in PARTS.items() for part in parts]


@pytest.fixture(scope="module")
def gelu() -> Iterator[Any]:
    npulab.use("sim", "npu2", quiet=True)
    yield npulab.load("designs.gelu.design").gelu
    finder.deactivate()


@pytest.mark.parametrize(("device", "columns", "rows"), CASES)
def test_every_bit_and_every_byte(gelu: Any, device: str, columns: int, rows: int) -> None:
    tokens = 3 * columns * rows
    x, bias, y = inputs(tokens, seed=columns + 10 * rows)
    run = npulab.run(gelu, [x, bias, y], device=device, tokens=tokens, columns=columns, rows=rows)
    assert run.device.name == device
    assert bit_exact(x, bias, run.output)
    assert run.traffic == reference.traffic(tokens, columns, rows)
    assert run.report is not None and run.report.warnings == []
    assert len(run.cores) == columns * rows
    assert {use.tile.col for use in run.cores} == set(range(columns))


def test_near_the_truth_and_exact_far_from_zero(gelu: Any) -> None:
    x, bias, y = inputs(4)
    x[0, :8] = [-1e38, -300, -8, -2.75, 0, 2.75, 300, 1e38]
    bias[:8] = 0
    got = npulab.run(gelu, [x, bias, y], tokens=4, columns=1, rows=1).output.astype(np.float64)
    want = reference.bias_gelu(x, bias)
    assert np.all(np.abs(got - want) <= reference.ATOL + reference.RTOL * np.abs(want))
    assert got[0, :3].tolist() == [0, 0, 0] and got[0, 4] == 0
    assert got[0, 6:8].tolist() == x[0, 6:8].astype(float).tolist()


def test_the_tolerance_is_not_generous() -> None:
    """The polynomial's own error, on every bf16 number from -8 to 8."""
    z = np.unique(np.linspace(-8, 8, 200_001).astype(bfloat16))
    got = np.empty_like(z)
    models.bias_gelu_bf16(z, np.zeros_like(z), got)
    error = np.abs(got.astype(np.float64) - reference.gelu(z))
    assert reference.ATOL / 2 < error.max() <= reference.ATOL


def test_each_row_is_computed_where_the_chapter_says(gelu: Any) -> None:
    """Tile (column, row) does every fourth row of its column's share: a bias that only some tiles add would show."""
    columns, rows, tokens = 2, 4, 24
    machine = npulab.machine(gelu, tokens=tokens, columns=columns, rows=rows)
    order = {core.tile: i for i, core in enumerate(machine.cores)}
    assert order == {(c, 2 + r): c * rows + r for c, r in itertools.product(range(columns), range(rows))}
    x, bias, y = inputs(tokens)
    run = npulab.run(machine, [x, bias, y])
    parts = {use.channel.fifo for use in run.channels if use.channel.tile == (1, 3) and use.channel.direction == "S2MM"}
    assert parts == {"x1_1", "bias"}


@pytest.mark.parametrize("device", ["npu1", "npu2"])
@pytest.mark.parametrize(("columns", "rows", "limit"), [(1, 1, "compute"), (1, 2, "ddr"), (4, 1, "compute"), (4, 4, "ddr")])
def test_the_bound_holds_and_is_close(gelu: Any, device: str, columns: int, rows: int, limit: str) -> None:
    tokens = 4096
    x, bias, y = (np.zeros(shape, bfloat16) for shape in ((tokens, 3072), 3072, (tokens, 3072)))
    run = npulab.run(gelu, [x, bias, y], device=device, tokens=tokens, columns=columns, rows=rows, data=False, trace=False)
    bound = prediction(tokens, columns, rows, device)
    assert bound.limit == limit
    assert 1 < run.seconds / bound.seconds < 1.08


def test_what_all_of_the_array_gains(gelu: Any) -> None:
    """Nine times at most on XDNA 2 (DDR), and ten tiles are as fast as 32."""
    tokens = 10_240
    x, bias, y = (np.zeros(shape, bfloat16) for shape in ((tokens, 3072), 3072, (tokens, 3072)))
    cycles = {
        part: npulab.run(gelu, [x, bias, y], tokens=tokens, columns=part[0], rows=part[1], data=False, trace=False).cycles
        for part in ((1, 1), (1, 4), (4, 1), (5, 2), (8, 4))
    }
    gain = {part: cycles[1, 1] / value for part, value in cycles.items()}  # type: ignore[operator]
    assert 1.9 < gain[1, 4] < 2 < 3.8 < gain[4, 1] < 4
    assert 8.5 < gain[8, 4] < 9.1
    assert gain[5, 2] > 0.98 * gain[8, 4]


def test_time_is_the_same_without_data(gelu: Any) -> None:
    arrays = inputs(64)
    full = npulab.run(gelu, arrays, tokens=64, columns=4, rows=4)
    timing = npulab.run(gelu, arrays, tokens=64, columns=4, rows=4, data=False, trace=False)
    assert full.report is not None and timing.report is not None
    assert full.report.exact_cycles == timing.report.exact_cycles
    assert full.traffic == timing.traffic


@pytest.mark.parametrize(
    ("device", "options", "words"),
    [
        ("npu1", {"columns": 5}, "columns = 5: the device has 4"),
        ("npu2", {"columns": 9}, "columns = 9: the device has 8"),
        ("npu2", {"rows": 5}, "rows = 5: the device has 4"),
        ("npu2", {"rows": 0}, "rows = 0: the device has 4"),
        ("npu2", {"tokens": 24}, "tokens = 24 is no positive multiple of 16 tiles"),
        ("npu2", {"tokens": 0}, "tokens = 0 is no positive multiple of 16 tiles"),
    ],
)
def test_sizes_that_do_not_fit_are_named(gelu: Any, device: str, options: dict[str, int], words: str) -> None:
    with pytest.raises((ValueError, DesignError), match=words):
        npulab.machine(gelu, device=device, **{"tokens": 64, **options})


@pytest.mark.parametrize("device", ["npu1", "npu2"])
def test_the_kernel_is_slower_than_the_channel_that_feeds_it(device: str) -> None:
    """Else there would be nothing to gain from a column's other tiles: a row of 6 KiB passes in 1,536 cycles."""
    assert 1536 < kernel_cycles(device) < 2 * 1536


def test_which_tile_computes_which_row() -> None:
    """The chapter's exercise says which; here every tile writes its own number into the rows that it gets."""
    npulab.use("sim", "npu2", quiet=True)
    from aie.iron import Program, Runtime, Worker, get_current_device
    from aie.iron.controlflow import range_

    design = npulab.load("designs.gelu.design")
    columns, rows, tokens = 2, 4, 24

    def stamp(x_in: Any, y_out: Any, number: float, objects: int) -> None:
        for _ in range_(objects):
            x_in.acquire(1)
            y_out.acquire(1)[0] = number
            x_in.release(1)
            y_out.release(1)

    def sequence(x_ddr: Any, y_ddr: Any, doors: Any, shares: Any) -> None:
        for (x, y), share in zip(doors, shares):
            x.fill(x_ddr, tap=share)
            y.drain(y_ddr, tap=share, wait=True)

    def build(device: str) -> Any:
        doors, tiles = zip(*(design.column_fifos(column, rows) for column in range(columns)))
        flat = [tile for of_column in tiles for tile in of_column]
        each = tokens // len(flat)
        workers = [
            Worker(stamp, [x.cons(), y.prod(), float(i), each], tile=place) for i, (place, x, y) in enumerate(flat)
        ]
        matrix = np.ndarray[(tokens * 3072,), np.dtype[bfloat16]]
        share = tokens // columns * 3072
        shares = design.TensorTiler2D.simple_tiler((columns, share), (1, share))
        runtime = Runtime(sequence, [matrix, matrix, list(doors), shares])
        return Program(get_current_device(), runtime, workers=workers).resolve_program()

    x, _, y = inputs(tokens)
    got = npulab.run(build, [x, y]).output[:, 0].astype(int)
    want = [column * rows + row for column, row in (owner(t, tokens, columns, rows) for t in range(tokens))]
    assert got.tolist() == want

"""The covariance design is right, and moves exactly the bytes of the closed formulas, wherever the dials stand."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

import npulab
from designs.covariance import __main__ as command
from designs.covariance import models, reference
from designs.covariance.reference import Dials
from npusim.errors import CapacityError
from npusim.frontends import finder

DIALS = [
    Dials(rows, share, keep)
    for rows in (16, 32, 64)
    for share in (1, 2, 4)
    for keep in (1, 2, 4, 8)
    if rows * share * keep <= reference.FEATURES
]


@pytest.fixture(autouse=True, scope="module")
def _simulated() -> Iterator[None]:
    npulab.use("sim", "npu2", quiet=True)
    yield
    finder.deactivate()


@pytest.mark.parametrize("device", ["npu1", "npu2"])
@pytest.mark.parametrize("dials", DIALS, ids=str)
def test_right_and_exact_to_the_byte(device: str, dials: Dials) -> None:
    x = command.samples(4)
    run = command.execute(x, dials, columns=1, device=device)
    want = reference.covariance(x)
    error = np.abs(run.output.astype(np.float64).reshape(want.shape) - want).max() / np.abs(want).max()
    assert error < command.TOLERANCE
    assert run.traffic is not None and run.report is not None
    assert {level: (t.read, t.written) for level, t in run.traffic.items()} == dials.traffic(4)
    assert run.report.warnings == []


def test_every_row_of_c_is_where_it_belongs() -> None:
    """Whole numbers small enough that nothing rounds: each value of C is then exact, and all rows differ."""
    x = np.zeros((2, reference.FEATURES, reference.SAMPLES))
    for window in range(2):
        x[window, np.arange(reference.FEATURES), np.arange(reference.FEATURES) + window] = (
            1 + np.arange(reference.FEATURES) % 8
        )
        x[window, :, 200 + window] = 1
    x = x.astype(command.bfloat16)
    for device in ("npu1", "npu2"):
        for dials in (Dials(16, 2, 2), Dials(16, 4, 1), Dials(32, 1, 4), Dials(64, 2, 1)):
            run = command.execute(x, dials, columns=1, device=device)
            assert np.array_equal(run.output.astype(np.float64).reshape(2, 128, 128), reference.covariance(x))


@pytest.mark.parametrize(("device", "columns"), [("npu1", 4), ("npu2", 8)])
def test_the_whole_array(device: str, columns: int) -> None:
    x = command.samples(2 * columns)
    run = command.execute(x, Dials(64, 2, 1), columns, device)
    want = reference.covariance(x)
    assert np.abs(run.output.astype(np.float64).reshape(want.shape) - want).max() < 2e-2 * np.abs(want).max()
    assert len(run.cores) == 4 * columns


def test_the_bytes_that_the_intensities_come_from() -> None:
    """Of X alone: rows FLOP/B at a compute tile, times share at the MemTile, times keep at DDR."""
    for dials in DIALS:
        moved = dials.traffic(1)
        flops = reference.flops(1)
        assert flops / moved["l1"][1] == dials.rows
        staged = reference.SQUARE if dials.share > 1 else 0
        assert flops / (moved["memtile"][0] - staged) == dials.rows * dials.share
        assert flops / moved["ddr"][0] == dials.rows * dials.share * dials.keep


@pytest.mark.parametrize("device", ["npu1", "npu2"])
@pytest.mark.parametrize("dials", [Dials(16, 2, 1), Dials(16, 2, 4), Dials(64, 2, 1)], ids=str)
def test_long_runs_come_close_to_the_predicted_bound_and_never_under_it(device: str, dials: Dials) -> None:
    columns = 4 if device == "npu1" else 8
    x = np.zeros((64 * columns, 128, 256), command.bfloat16)
    run = command.execute(x, dials, columns, device, data=False, trace=False)
    bound = command.prediction(len(x), dials, run)
    assert run.cycles is not None
    assert 1 <= run.cycles / bound.cycles < 1.3


def test_what_limits_moves_from_ddr_to_the_tiles_to_the_cores() -> None:
    """On XDNA 2 the slowest choice waits for DDR; with windows kept, for the tiles' channels. XDNA 1 reaches the cores."""

    def limit(device: str, dials: Dials) -> str:
        columns = 4 if device == "npu1" else 8
        run = command.execute(command.samples(2 * columns), dials, columns, device, data=False)
        return command.prediction(2 * columns, dials, run).limit

    assert limit("npu2", Dials(16, 2, 1)) == "ddr"
    assert limit("npu2", Dials(16, 2, 4)) == "l1"
    assert limit("npu1", Dials(64, 2, 1)) == "compute"
    assert limit("npu2", Dials(64, 2, 1)) == "ddr"


def test_data_and_timing_only_take_the_same_cycles() -> None:
    x = command.samples(4)
    for dials in (Dials(16, 2, 2), Dials(64, 1, 1)):
        both = [command.execute(x, dials, 1, data=data).cycles for data in (True, False)]
        assert both[0] == both[1]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"share": 3}, "share = 3: a stream feeds 1, 2 or 4 compute tiles"),
        ({"rows": 48}, r"rows \* share \* keep = 48 \* 2 \* 1 does not divide the 128 rows of C"),
        ({"rows": 64, "keep": 2}, r"64 \* 2 \* 2 does not divide the 128 rows"),
        ({"keep": 0}, "does not divide"),
        ({"windows": 3}, "windows = 3 is not a positive multiple of the 2 streams"),
        ({"windows": 0}, "windows = 0 is not a positive multiple of the 2 streams"),
    ],
)
def test_what_does_not_fit_is_named(options: dict[str, int], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        npulab.machine(command.DESIGN, **{"windows": 4, **options})


def test_more_columns_than_there_are() -> None:
    with pytest.raises((ValueError, CapacityError)):
        npulab.machine(command.DESIGN, device="npu1", windows=10, columns=5)


def test_ceilings_fall_from_peak_to_vector_code() -> None:
    for device in ("npu1", "npu2"):
        values = list(models.ceilings(device).values())
        assert values == sorted(values, reverse=True)
    assert models.ceilings("npu1")["bf16 peak"] == 2 * 128 and "BFP16 peak" not in models.ceilings("npu1")
    assert models.ceilings("npu2")["BFP16 peak"] == 2 * 512 and models.ceilings("npu2")["bf16 peak"] == 2 * 256
    assert models.ceilings("npu2")["instruction count"] == pytest.approx(2 * 4 * 512 / 6), "6 operations a step of 2x2"

"""Both softmax designs are right, safe for every input, and move exactly the bytes of the closed formulas."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from ml_dtypes import bfloat16

import npulab
from designs.softmax import __main__ as command
from designs.softmax import reference
from npusim.frontends import finder

DEVICES = ["npu1", "npu2"]


@pytest.fixture(autouse=True, scope="module")
def _simulated() -> Iterator[None]:
    npulab.use("sim", "npu2", quiet=True)
    yield
    finder.deactivate()


def moved(run: Any) -> dict[str, tuple[int, int]]:
    return {level: (t.read, t.written) for level, t in run.traffic.items()}


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(
    ("rows", "cols", "options"),
    [
        (512, 32, {}),
        (64, 256, {}),
        (24, 1024, {"tiles": 3}),
        (8, 2048, {}),
        (16, 2048, {"columns": 4}),
        (128, 128, {"tiles": 2, "d": 64}),
    ],
)
def test_whole_rows(device: str, rows: int, cols: int, options: dict[str, int]) -> None:
    s = command.scores(rows, cols, seed=rows)
    run = command.execute(s, device=device, **options)
    relative, sums = command.error(s, run, options.get("d", 1))
    assert relative < reference.TOLERANCE[device]
    assert sums < 0.01
    assert moved(run) == reference.traffic(rows, cols)
    assert run.report is not None and run.report.warnings == []


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("passes", [2, 3])
@pytest.mark.parametrize(("rows", "cols"), [(128, 128), (128, 1024), (256, 384)])
def test_streaming(device: str, passes: int, rows: int, cols: int) -> None:
    s = command.scores(rows, cols, seed=cols)
    run = command.execute(s, passes=passes, device=device)
    relative, _ = command.error(s, run)
    assert relative < reference.STREAMING[device]
    assert moved(run) == reference.traffic(rows, cols, passes)
    assert run.report is not None and run.report.warnings == []


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("passes", [None, 2, 3])
def test_rows_that_a_textbook_softmax_fails_on(device: str, passes: int | None) -> None:
    """Huge scores, equal ones, masked ones: no NaN, no infinity, and rows that are masked throughout give 0."""
    s = command.scores(128, 256, seed=4)
    s[0] = 3e38
    s[1] = -3e38
    s[2, :], s[2, 7] = 0, 3e38
    s[3, 100:] = -np.inf
    s[4, :-1] = -np.inf
    s[5] = -np.inf
    s[6, :200] = -np.inf
    run = command.execute(s, passes=passes, device=device)
    p = run.output.astype(np.float64).reshape(s.shape)
    assert np.isfinite(p).all() and (p >= 0).all()
    assert (p[5] == 0).all()
    assert p[4, -1] == pytest.approx(1, abs=0.01) and p[4, :-1].sum() == 0
    assert p[2, 7] == pytest.approx(1, abs=0.01)
    assert (p[3, 100:] == 0).all() and (p[6, :200] == 0).all()
    np.testing.assert_allclose(p[0], 1 / 256, rtol=0.01)
    np.testing.assert_allclose(p[1], 1 / 256, rtol=0.01)


def test_more_passes_read_more_and_take_longer() -> None:
    """Where the shim's stream is the limit, three passes take 1.5 times as long as two."""
    s = np.zeros((128, 8192), bfloat16)
    two, three = (command.execute(s, passes=n, data=False) for n in (2, 3))
    assert two.cycles is not None and three.cycles is not None
    assert three.cycles / two.cycles == pytest.approx(1.5, rel=0.02)


def test_long_runs_come_close_to_the_predicted_bound() -> None:
    for device in DEVICES:
        for passes, shape in ((None, (512, 1024)), (2, (256, 4096)), (3, (256, 4096))):
            s = np.zeros(shape, bfloat16)
            run = command.execute(s, passes=passes, device=device, data=False)
            bound = command.prediction(s, run, passes)
            assert run.cycles is not None
            assert 1 <= run.cycles / bound.cycles < 1.6, (device, passes)


def test_on_xdna_2_a_corrected_sum_is_too_large() -> None:
    """Its exp2 is linear between powers of two, so a product of two powers is more than the power of the sum."""
    s = command.scores(128, 4096, seed=1)
    means = {}
    for device in DEVICES:
        for passes in (2, 3):
            p = command.execute(s, passes=passes, device=device).output.astype(np.float64).reshape(s.shape)
            means[device, passes] = p.sum(axis=1).mean()
    assert means["npu1", 2] == pytest.approx(means["npu1", 3], abs=0.002)
    assert 0.97 < means["npu2", 2] < means["npu2", 3] - 0.012


def test_data_and_timing_only_take_the_same_cycles() -> None:
    s = command.scores(128, 512)
    for passes in (None, 2, 3):
        assert len({command.execute(s, passes=passes, data=data).cycles for data in (True, False)}) == 1


@pytest.mark.parametrize(
    ("file", "options", "words"),
    [
        ("design.py", {"rows": 64, "cols": 100}, "cols = 100 is not a multiple of 32 between 32 and 2048"),
        ("design.py", {"rows": 64, "cols": 4096}, "for longer rows see streaming.py"),
        ("design.py", {"rows": 60, "cols": 256}, "rows = 60 is not a positive multiple of 32, a block of 8 for every"),
        ("design.py", {"rows": 64, "cols": 256, "tiles": 1}, "tiles = 1: a column deals its rows to 2, 3 or 4"),
        ("streaming.py", {"rows": 100, "cols": 256}, "rows = 100 is not a positive multiple of 128"),
        ("streaming.py", {"rows": 128, "cols": 200}, "cols = 200 is not a positive multiple of 128"),
        (
            "streaming.py",
            {"rows": 128, "cols": 256, "passes": 4},
            r"passes = 4: two \(online\) or three \(by the book\)",
        ),
    ],
)
def test_what_does_not_fit_is_named(file: str, options: dict[str, int], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        npulab.machine(command.HERE / file, **options)


@pytest.mark.parametrize(("rows", "keys"), [(100, 128), (64, 0), (128, 96)])
def test_the_weighted_sum_names_what_does_not_fit(rows: int, keys: int) -> None:
    weighted = npulab.load(command.HERE / "weighted.py")
    with pytest.raises(ValueError, match="is not a positive multiple of 64"):
        weighted.program(lambda *arguments: None, rows, keys)

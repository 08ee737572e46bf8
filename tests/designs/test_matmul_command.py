"""The matrix product's command, and its bytes at every level against the formula."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

import npulab
from designs.matmul import __main__ as command
from designs.matmul import reference
from npusim.frontends import finder


@pytest.fixture(autouse=True)
def simulated() -> Iterator[None]:
    npulab.use("sim")
    yield
    finder.deactivate()


@pytest.mark.parametrize(
    ("device", "sizes"),
    [
        ("npu1", {}),
        ("npu1", {"M": 256, "K": 128, "N": 256, "rows": 1, "columns": 1}),
        ("npu2", {"M": 256, "K": 128, "N": 512, "rows": 2, "columns": 2, "m": 32, "n": 128}),
        ("npu2", {"M": 384, "K": 96, "N": 1536, "columns": 8, "m": 96, "k": 32, "n": 96}),
    ],
)
def test_bytes_are_those_of_the_formula(device: str, sizes: dict[str, int]) -> None:
    all_sizes = {**command.SIZES, **sizes}
    a, b = command.factors(*(all_sizes[s] for s in "MKN"))
    run = command.execute(a, b, device, **{k: v for k, v in all_sizes.items() if k not in "MKN"})
    want = reference.traffic(*(all_sizes[s] for s in ("M", "K", "N", "m", "n", "rows", "columns")))
    assert run.traffic is not None
    assert {level: (t.read, t.written) for level, t in run.traffic.items()} == want
    assert run.seconds >= command.prediction(run, all_sizes).seconds
    c = reference.matmul(a, b)
    assert np.abs(run.output.reshape(c.shape) - c).max() <= reference.TOLERANCE[device] * np.abs(c).max()


@pytest.mark.parametrize("device", ["npu1", "npu2"])
def test_command(device: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["--device", device, "--M", "256", "--K", "128", "--N", "256"]) == 0
    out = capsys.readouterr().out
    assert "result: right" in out and "simulated" in out and "times the bound" in out


def test_command_says_what_does_not_fit(capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["--device", "npu2", "--M", "300"]) == 1
    assert "M = 300 is not a positive multiple of 256" in capsys.readouterr().err
    assert command.main(["--device", "npu2", "--m", "128", "--n", "64"]) == 1
    assert "64 KiB" in capsys.readouterr().err


def test_a_wrong_result_is_said_to_be_one(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(reference, "matmul", lambda a, b: a.astype(np.float64) @ b.astype(np.float64) + 1e3)
    assert command.main(["--device", "npu2", "--M", "256", "--K", "64", "--N", "256"]) == 1
    assert "result: WRONG" in capsys.readouterr().out

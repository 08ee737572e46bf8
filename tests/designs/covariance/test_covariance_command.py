"""``python -m designs.covariance``: what it prints, and its exit codes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from designs.covariance import __main__ as command
from npusim.frontends import finder


@pytest.fixture(autouse=True)
def _leave_nothing_active() -> object:
    yield
    finder.deactivate()


@pytest.mark.parametrize("device", ["npu1", "npu2"])
def test_prints_result_time_bytes_and_what_limits(device: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["--device", device, "--windows", "8", "--rows", "16", "--keep", "2"]) == 0
    out = capsys.readouterr().out
    for words in (
        "result: right",
        "simulated",
        "FLOP/B",
        "<- the limit",
        "both ways at DDR, each way on the chip",
        "times the bound",
    ):
        assert words in out, words


def test_a_wrong_result_is_a_failure(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    right = command.reference.covariance
    monkeypatch.setattr(command.reference, "covariance", lambda x: right(x) * 1.1)
    assert command.main(["--windows", "8"]) == 1
    assert "result: WRONG" in capsys.readouterr().out


@pytest.mark.parametrize(("words", "code"), [(["--windows", "8"], 0), (["--rows", "48"], 1), (["--device", "npu3"], 2)])
def test_exit_codes(words: list[str], code: int, tmp_path: Path) -> None:
    run = subprocess.run(
        [sys.executable, "-m", "designs.covariance", *words], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert run.returncode == code, run.stderr
    assert "Traceback" not in run.stderr

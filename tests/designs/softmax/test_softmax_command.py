"""``python -m designs.softmax``: what it prints, and its exit codes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from designs.softmax import __main__ as command
from npusim.frontends import finder


@pytest.fixture(autouse=True)
def _leave_nothing_active() -> object:
    yield
    finder.deactivate()


@pytest.mark.parametrize("device", ["npu1", "npu2"])
@pytest.mark.parametrize(
    "more",
    [
        ["--rows", "64", "--cols", "512"],
        ["--rows", "128", "--cols", "4096"],
        ["--rows", "128", "--cols", "256", "--passes", "3"],
    ],
)
def test_prints_result_time_bytes_and_what_limits(
    device: str, more: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert command.main(["--device", device, *more]) == 0
    out = capsys.readouterr().out
    for words in ("result: right", "rows sum to 1 within", "simulated", "FLOP/B", "<- the limit", "times the bound"):
        assert words in out, words


def test_a_wrong_result_is_a_failure(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    right = command.reference.softmax
    monkeypatch.setattr(command.reference, "softmax", lambda s, d: right(s, d) * 1.3)
    assert command.main(["--rows", "64", "--cols", "512"]) == 1
    assert "result: WRONG" in capsys.readouterr().out


@pytest.mark.parametrize(("words", "code"), [(["--rows", "64"], 0), (["--cols", "1000"], 1), (["--passes", "4"], 2)])
def test_exit_codes(words: list[str], code: int, tmp_path: Path) -> None:
    run = subprocess.run(
        [sys.executable, "-m", "designs.softmax", *words], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert run.returncode == code, run.stderr
    assert "Traceback" not in run.stderr

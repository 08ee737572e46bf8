"""``python -m designs.saxpy``: what it prints, and its exit codes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from designs.saxpy import __main__ as command
from npusim.frontends import finder


@pytest.fixture(autouse=True)
def _leave_nothing_active() -> object:
    yield
    finder.deactivate()


@pytest.mark.parametrize(("device", "clock"), [("npu1", "1 GHz"), ("npu2", "1.8 GHz")])
@pytest.mark.parametrize("n", [1024, 65536])
def test_prints_result_time_bytes_and_place(device: str, clock: str, n: int, capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["--device", device, "--n", str(n)]) == 0
    out = capsys.readouterr().out
    for words in (
        f"npulab: simulated NPU, {device}",
        "every bit as the bf16 model says",
        "cycles = ",
        f"at {clock}, simulated",
        f"{4 * n:,} B read, {2 * n:,} B written; 0.3333 FLOP/B",
        "predicted at least",
        "times the bound",
    ):
        assert words in out, words


@pytest.mark.parametrize("n", [0, 1, 1000, 1025, -1024])
def test_sizes_that_do_not_divide(n: int, capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["--n", str(n)]) == 1
    error = capsys.readouterr().err
    assert f"n = {n} " in error and "multiple of 1024" in error and "Traceback" not in error


def test_a_wrong_result_is_a_failure(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    model = command.models.saxpy_bf16

    def off_by_one_bit(x: object, y: object, out: object, a: object) -> None:
        model(x, y, out, a)
        out.view("uint16")[17] ^= 1  # type: ignore[attr-defined]

    monkeypatch.setattr(command.models, "saxpy_bf16", off_by_one_bit)
    assert command.main(["--n", "1024"]) == 1
    assert "result: NOT as the bf16 model says" in capsys.readouterr().out


def test_without_the_npu_that_is_asked_for(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NPULAB_BACKEND", "npu")
    monkeypatch.setattr("npulab.hardware.find_real", lambda name: None)
    assert command.main(["--n", "1024"]) == 1
    assert "DeviceError: no NPU to use" in capsys.readouterr().err


@pytest.mark.parametrize(("words", "code"), [(["--device", "npu1"], 0), (["--n", "1000"], 1), (["--device", "npu3"], 2)])
def test_exit_codes(words: list[str], code: int, tmp_path: Path) -> None:
    run = subprocess.run(
        [sys.executable, "-m", "designs.saxpy", *words], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert run.returncode == code, run.stderr
    assert "Traceback" not in run.stderr

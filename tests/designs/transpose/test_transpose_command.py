"""``python -m designs.transpose``: what it prints, and its exit codes."""

from __future__ import annotations

import pytest

from designs.transpose import __main__ as command
from npusim.frontends import finder


@pytest.fixture(autouse=True)
def _leave_nothing_active() -> object:
    yield
    finder.deactivate()


@pytest.mark.parametrize("device", ["npu1", "npu2"])
@pytest.mark.parametrize("dtype", ["i32", "bf16"])
def test_prints_result_time_bytes_and_place(device: str, dtype: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["--device", device, "--dtype", dtype, "--M", "128", "--N", "64"]) == 0
    out = capsys.readouterr().out
    matrix = 128 * 64 * (4 if dtype == "i32" else 2)
    for words in (
        f"npulab: simulated NPU, {device}",
        "every bit is right",
        f"{matrix:,} B read, {matrix:,} B written",
        "predicted at least",
        f"busy as if for {2 * matrix:,} B",
    ):
        assert words in out, words


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--M", "100"], "M = 100 is no positive multiple of 64"),
        (["--M", "-64"], "M = -64 is no positive multiple of 64"),
        (["--columns", "9", "--M", "576"], "columns = 9: the device has 8"),
    ],
)
def test_what_does_not_fit_is_refused(words: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(words) == 1
    error = capsys.readouterr().err
    assert message in error and "Traceback" not in error


def test_a_wrong_result_is_a_failure(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    right = command.reference.transpose
    monkeypatch.setattr(command.reference, "transpose", lambda a, alpha: right(a, alpha)[:, ::-1])
    assert command.main(["--M", "64", "--N", "64", "--dtype", "i32"]) == 1
    assert "result: NOT right" in capsys.readouterr().out

"""``python -m designs.gelu``: what it prints, and its exit codes."""

from __future__ import annotations

import pytest

from designs.gelu import __main__ as command
from npusim.frontends import finder


@pytest.fixture(autouse=True)
def _leave_nothing_active() -> object:
    yield
    finder.deactivate()


@pytest.mark.parametrize("device", ["npu1", "npu2"])
def test_prints_result_time_bytes_and_place(device: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["--device", device, "--tokens", "64", "--columns", "2", "--rows", "4"]) == 0
    out = capsys.readouterr().out
    for words in (
        f"npulab: simulated NPU, {device}",
        "every bit as the bf16 model says",
        f"{2 * 65 * 3072:,} B read, {2 * 64 * 3072:,} B written",
        "8 in use",
        "predicted at least",
        "times the bound",
    ):
        assert words in out, words


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--tokens", "100"], "tokens = 100 is no positive multiple of 16 tiles"),
        (["--device", "npu1", "--columns", "8"], "columns = 8: the device has 4"),
        (["--tokens", "-16"], "tokens = -16 is no positive"),
    ],
)
def test_what_does_not_fit_is_refused(words: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(words) == 1
    error = capsys.readouterr().err
    assert message in error and "Traceback" not in error


def test_a_wrong_result_is_a_failure(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    model = command.models.bias_gelu_bf16

    def off_by_one_bit(x: object, bias: object, y: object) -> None:
        model(x, bias, y)
        y.view("uint16")[3, 17] ^= 1  # type: ignore[attr-defined]

    monkeypatch.setattr(command.models, "bias_gelu_bf16", off_by_one_bit)
    assert command.main(["--tokens", "16"]) == 1
    assert "result: NOT as the bf16 model says" in capsys.readouterr().out

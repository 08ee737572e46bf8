"""``python -m designs.walk``: what it prints, and its exit codes."""

from __future__ import annotations

import pytest

from designs.walk import __main__ as command
from npusim.frontends import finder


@pytest.fixture(autouse=True)
def _leave_nothing_active() -> object:
    yield
    finder.deactivate()


@pytest.mark.parametrize("device", ["npu1", "npu2"])
@pytest.mark.parametrize("row", ["0", "1", "2"])
def test_prints_what_leaves_the_tile(device: str, row: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["--device", device, "--row", row, "--shape", "2", "4", "--dims", "4:1", "2:4"]) == 0
    out = capsys.readouterr().out
    assert f"npulab: simulated NPU, {device}" in out and "as numpy says" in out and "[0 4 1 5 2 6 3 7]" in out


def test_zeros_repeats_and_pairs_of_bf16(capsys: pytest.CaptureFixture[str]) -> None:
    pairs = ["--shape", "2", "4", "--dims", "2:2", "2:4", "2:1", "--dtype", "bf16", "--repeat", "2"]
    assert command.main(pairs) == 0
    assert "[0 1 4 5 2 3 6 7 0 1 4 5 2 3 6 7]" in capsys.readouterr().out
    assert command.main(["--shape", "1", "2", "--dims", "1:2", "2:1", "--pad", "1:0", "0:1"]) == 0
    assert "[0 0 0 0 1 0]" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--dims", "8:12", "12:1", "--dtype", "bf16", "--pad", "1:1", "1:1"], "no multiple of 4 bytes"),
        (["--dims", "12:1", "8:12", "--dtype", "bf16"], "4-byte words"),
        (["--dims", "8:12", "12:2"], "out of bounds"),
    ],
)
def test_what_cannot_be_said(words: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(words) == 1
    error = capsys.readouterr().err
    assert message in error and "Traceback" not in error

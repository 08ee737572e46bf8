"""The doctor: says what is missing and what works without."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from npulab import doctor, hardware
from npulab.__main__ import main
from npulab.doctor import Finding
from npulab.hardware import Found

UTILS = Path(doctor.__file__).parents[1]


def test_here_the_book_runs(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor"]) == 0
    said = capsys.readouterr().out
    assert "The book runs on the simulated NPU." in said and "numpy" in said


def test_what_is_missing_comes_with_advice() -> None:
    for finding in doctor.findings():
        assert finding.state == "ok" or finding.advice, finding


def test_with_npu_a_missing_npu_is_a_failure(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(hardware, "find_npu", lambda: Found(None, reason="none here"))
    assert doctor.main(["--npu"]) == 1
    assert "none here" in capsys.readouterr().out


def healthy(what: str) -> Finding:
    return Finding("NPU", what, "ok", "here")


def test_a_healthy_npu_can_be_used(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(doctor, "CHECKS", (doctor._python, lambda: healthy("device")))
    assert doctor.main(["--npu"]) == 0
    assert "npulab.use('npu')" in capsys.readouterr().out


def test_a_doubtful_finding_stops_nothing() -> None:
    found = [
        Finding("simulated NPU", "Python", "ok", "3.11"),
        Finding("NPU", "locked memory", "doubtful", "8 MiB", "raise it"),
    ]
    assert doctor.usable(found, "NPU")
    assert "-> raise it" in doctor.report(found)


def test_a_check_that_breaks_is_doubtful(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> Finding:
        raise RuntimeError("gone wrong")

    monkeypatch.setattr(doctor, "CHECKS", (broken,))
    (found,) = doctor.findings()
    assert found.state == "doubtful" and "gone wrong" in found.detail


def test_without_the_packages_the_book_does_not_run(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(hardware, "version", lambda name: None)
    assert doctor.main([]) == 1
    assert "does not run yet" in capsys.readouterr().out


def test_a_low_limit_of_locked_memory_is_doubtful(monkeypatch: pytest.MonkeyPatch) -> None:
    resource = pytest.importorskip("resource")
    monkeypatch.setattr(resource, "getrlimit", lambda what: (8 << 20, 8 << 20))
    found = doctor._memlock()
    assert found.state == "doubtful" and found.detail == "8192 KiB" and "memlock" in found.advice
    monkeypatch.setattr(resource, "getrlimit", lambda what: (resource.RLIM_INFINITY,) * 2)
    assert doctor._memlock().state == "ok"


def test_the_kernel_module(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(doctor, "MODULES", tmp_path / "modules")
    (tmp_path / "modules").write_text("amdgpu 1 0 - Live\namdxdna 1 0 - Live\n")
    assert doctor._driver().state == "ok"


@pytest.mark.parametrize(
    ("version", "state"), [("1.4.2", "ok"), ("1.4", "ok"), ("1.40.0", "doubtful"), ("1.3.1", "doubtful")]
)
def test_the_version_of_mlir_aie(version: str, state: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hardware, "version", lambda name: version)
    assert doctor._mlir_aie().state == state


def test_the_device_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(hardware, "DEVICE_FILE", tmp_path / "accel0")
    assert doctor._device_file().state == "missing"
    (tmp_path / "accel0").touch()
    assert doctor._device_file().state == "ok"


def test_it_needs_nothing_but_python() -> None:
    """In a Python without site packages, where the book's packages are missing, it still says so."""
    command = [
        sys.executable,
        "-S",
        "-c",
        f"import sys; sys.path.insert(0, {str(UTILS)!r}); from npulab.doctor import main; main([])",
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "MISSING   numpy" in done.stdout

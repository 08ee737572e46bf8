"""Looking for the real packages and the NPU."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from npulab import hardware
from npusim.frontends import finder

FAKES = Path(__file__).parent / "fakes"


@pytest.fixture
def packages(monkeypatch: pytest.MonkeyPatch):
    """Put stand-ins on the path; forget their modules afterwards."""

    def add(*names: str) -> None:
        for name in names:
            monkeypatch.syspath_prepend(str(FAKES / name))

    before = set(sys.modules)
    yield add
    for name in set(sys.modules) - before:
        if name.partition(".")[0] in ("aie", "pyxrt"):
            del sys.modules[name]


@pytest.mark.parametrize(
    ("said", "family"),
    [
        ("NPU Phoenix", "npu1"),
        ("RyzenAI-npu1", "npu1"),
        ("NPU Strix", "npu2"),
        ("NPU Strix Halo", "npu2"),
        ("RyzenAI-npu5", "npu2"),
        ("NPU Krackan 1", "npu2"),
        ("Alveo U50", None),
    ],
)
def test_family_of(said: str, family: str | None) -> None:
    assert hardware.family_of(said) == family


def test_the_embedded_package_is_not_taken_for_the_real_one() -> None:
    with finder.simulated():
        import aie.iron  # noqa: F401

        assert hardware.find_real("aie") is None
        assert hardware.find_npu().reason == "the package aie (mlir_aie) is not installed"


def test_packages_without_a_device(packages, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    packages("", "pyxrt_ok")
    monkeypatch.setattr(hardware, "DEVICE_FILE", tmp_path / "accel0")
    monkeypatch.setattr(sys, "platform", "linux")
    found = hardware.find_npu()
    assert not found and "accel0" in found.reason


def test_an_npu(packages, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    packages("", "pyxrt_ok")
    (tmp_path / "accel0").touch()
    monkeypatch.setattr(hardware, "DEVICE_FILE", tmp_path / "accel0")
    found = hardware.find_npu()
    assert found and (found.family, found.name) == ("npu2", "NPU Strix")


def test_a_broken_binding_falls_back_to_the_tool(packages, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    packages("", "pyxrt_broken")
    (tmp_path / "accel0").touch()
    monkeypatch.setattr(hardware, "DEVICE_FILE", tmp_path / "accel0")
    monkeypatch.setattr(hardware, "xrt_smi", lambda: None)
    nothing = hardware.find_npu()
    assert not nothing and "libxrt_coreutil" in nothing.reason and "no xrt-smi" in nothing.reason
    tool = tmp_path / "xrt-smi"
    tool.write_text("#!/bin/sh\necho '[0000:c6:00.1] : NPU Phoenix'\n")
    tool.chmod(0o755)
    monkeypatch.setattr(hardware, "xrt_smi", lambda: str(tool))
    assert hardware.find_npu().family == "npu1"


def test_a_failing_tool_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hardware, "xrt_smi", lambda: "xrt-smi")
    failed = subprocess.CompletedProcess(["xrt-smi"], 1, "", "no driver")
    monkeypatch.setattr(subprocess, "run", lambda *a, **k: failed)
    with pytest.raises(OSError, match="no driver"):
        hardware.ask_xrt_smi()


def test_an_unknown_device_is_named(packages, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    packages("", "pyxrt_ok")
    (tmp_path / "accel0").touch()
    monkeypatch.setattr(hardware, "DEVICE_FILE", tmp_path / "accel0")
    monkeypatch.setattr(hardware, "ask_pyxrt", lambda: "NPU of the future")
    monkeypatch.setattr(hardware, "xrt_smi", lambda: None)
    assert "NPU of the future" in hardware.find_npu().reason


def test_versions() -> None:
    assert hardware.version("numpy") and hardware.version("no-such-distribution") is None

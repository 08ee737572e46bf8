"""The choice of backend."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from collections.abc import Iterator

import pytest

import npulab
from npulab import backend, hardware
from npulab.hardware import Found
from npusim.errors import DesignError, DeviceError
from npusim.frontends import finder


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No choice made, none in the environment; nothing embedded is left behind."""
    monkeypatch.setattr(backend, "_current", None)
    for name in ("NPULAB_BACKEND", "NPULAB_DEVICE"):
        monkeypatch.delenv(name, raising=False)
    yield
    finder.deactivate()


def test_without_an_npu_auto_is_the_simulated_one_and_says_why(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hardware, "find_npu", lambda: Found(None, reason="there is no /dev/accel/accel0"))
    npulab.use()
    chosen = npulab.current()
    assert (chosen.kind, chosen.device.name) == ("sim", "npu2")
    printed = capsys.readouterr().out
    assert printed.count("\n") == 1
    assert "simulated NPU, npu2 (XDNA 2, 8 columns)" in printed and "no /dev/accel/accel0" in printed


def test_what_was_asked_for_needs_no_reason_and_fits_a_page(capsys: pytest.CaptureFixture[str]) -> None:
    npulab.use("sim")
    assert capsys.readouterr().out == "npulab: simulated NPU, npu2 (XDNA 2, 8 columns). Times are simulated.\n"


def test_the_environment_decides(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NPULAB_BACKEND", "sim")
    monkeypatch.setenv("NPULAB_DEVICE", "npu1")
    chosen = backend.current()
    assert (chosen.kind, chosen.device.name) == ("sim", "npu1")
    assert backend.current() is chosen


def test_the_call_wins_over_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NPULAB_DEVICE", "npu1")
    npulab.use("sim", "npu2_4col", quiet=True)
    assert npulab.current().device.name == "npu2_4col"


def test_quiet_prints_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    npulab.use("sim", quiet=True)
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("words", [("gpu", None), ("sim", "npu9")])
def test_unknown_names_are_refused(words: tuple[str, str | None]) -> None:
    with pytest.raises(DesignError):
        npulab.use(*words)
    assert backend._current is None


def test_npu_where_there_is_none_is_refused() -> None:
    with pytest.raises(DeviceError, match="doctor"):
        npulab.use("npu")


def test_an_npu_of_another_generation(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hardware, "find_npu", lambda: Found("npu2", "NPU Strix"))
    with pytest.raises(DeviceError, match="is npu2, not npu1"):
        npulab.use("npu", "npu1")
    npulab.use("auto", "npu1", quiet=True)
    chosen = npulab.current()
    assert chosen.kind == "sim" and "is npu2, not npu1" in chosen.reason


def test_import_aie_works_only_while_the_simulated_backend_is_active() -> None:
    assert importlib.util.find_spec("aie") is None
    npulab.use("sim", "npu1", quiet=True)
    import aie.iron as iron

    assert iron.get_current_device().cols == 4
    npulab.use("sim", "npu2", quiet=True)
    assert iron.get_current_device().cols == 8
    finder.deactivate()
    with pytest.raises(ImportError):
        importlib.import_module("aie.iron")


def test_importing_npulab_activates_nothing_and_loads_little() -> None:
    code = "import sys, npulab; assert 'numpy' not in sys.modules; import importlib.util as u; assert u.find_spec('aie') is None"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_every_name_that_npulab_offers_is_there() -> None:
    for name in npulab.__all__:
        assert getattr(npulab, name) is not None
    assert set(dir(npulab)) == set(npulab.__all__)
    with pytest.raises(AttributeError):
        npulab.nothing_of_the_kind  # noqa: B018

"""Loading, building and running designs on the simulated backend."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from ml_dtypes import bfloat16

import npulab
from npulab import backend, execute
from npusim.errors import CapacityError, DesignError
from npusim.frontends import finder
from npusim.graph import Design
from npusim.machine import Machine

DESIGNS = Path(__file__).parent / "designs"


@pytest.fixture(autouse=True)
def simulated(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(backend, "_current", None)
    npulab.use("sim", "npu1", quiet=True)
    yield
    finder.deactivate()


def x(n: int = 256) -> np.ndarray:
    return np.arange(n, dtype=np.int32)


@pytest.mark.parametrize("device", [None, "npu1", "npu2"])
def test_a_build_function_runs_on_each_device(device: str | None) -> None:
    given = x()
    y = np.zeros_like(given)
    run = npulab.run(npulab.load(DESIGNS / "scale.py").build, [given, y], device=device, factor=5, flops=256)
    assert run.output.tolist() == (5 * given).tolist()
    assert not y.any(), "the caller's array was written"
    assert (run.kind, run.device.name) == ("simulated", device or "npu1")
    assert run.name == "scale"
    assert run.bytes("ddr") == 2 * given.nbytes == run.bytes("l1") and run.bytes("memtile") == 0
    assert run.intensity("ddr") == 256 / (2 * given.nbytes)


def test_a_jit_function_runs_and_its_device_can_be_chosen_for_one_run() -> None:
    add = npulab.load(DESIGNS / "jitted.py").add
    run = npulab.run(add, [x(64), np.zeros(64, np.int32)], n=64, k=7, device="npu2")
    assert run.output.tolist() == (x(64) + 7).tolist() and run.device.name == "npu2" and run.name == "add"
    assert npulab.run(add, [x(64), np.zeros(64, np.int32)], n=64).device.name == "npu1"


def test_a_jit_function_called_directly_leaves_a_run() -> None:
    add = npulab.load(DESIGNS / "jitted.py").add
    import aie.iron as iron

    result = iron.zeros(64, dtype=np.int32)
    add(iron.tensor(x(64), dtype=np.int32), result, n=64, k=2)
    assert result.numpy().tolist() == (x(64) + 2).tolist()
    assert npulab.last().cycles == npulab.run(add, [x(64), np.zeros(64, np.int32)], n=64, k=2).cycles


def test_tensors_may_be_given_as_arguments() -> None:
    import aie.iron as iron

    run = npulab.run(DESIGNS / "jitted.py", [iron.tensor(x(64), dtype=np.int32), np.zeros(64, np.int32)], n=64)
    assert run.output.tolist() == (x(64) + 1).tolist()


def test_paths_folders_and_modules(tmp_path: Path) -> None:
    by_path = npulab.run(DESIGNS / "scale.py", [x(), x()])
    folder = tmp_path / "tripled"
    folder.mkdir()
    (folder / "design.py").write_text((DESIGNS / "scale.py").read_text())
    (folder / "constants.py").write_text("TILE = 32\n")
    by_folder = npulab.run(folder, [x(), x()])
    assert by_path.output.tolist() == by_folder.output.tolist() and by_folder.name == "tripled"
    assert by_path.cycles != by_folder.cycles  # another TILE: the folder's own neighbour was imported
    assert "constants" not in sys.modules
    module = npulab.load(DESIGNS / "scale.py")
    assert npulab.run(module, [x(), x()]).output.tolist() == by_path.output.tolist()
    assert npulab.load(module) is not module


def test_a_module_is_found_by_its_name_and_run_afresh(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "named_design.py").write_text("value = 1\n")
    assert npulab.load("named_design").value == 1
    (tmp_path / "named_design.py").write_text("value = 12\n")
    assert npulab.load("named_design").value == 12
    del sys.modules["named_design"]


@pytest.mark.parametrize("source", ["no/such/design.py", "no_such_module", "no such words"])
def test_what_is_not_there_is_refused(source: str) -> None:
    with pytest.raises(DesignError):
        npulab.load(source)


def test_a_module_with_several_designs_wants_one_named(tmp_path: Path) -> None:
    (tmp_path / "design.py").write_text("x = 1\n")
    with pytest.raises(DesignError, match="no build"):
        npulab.run(tmp_path)


def test_graph_and_machine_before_anything_runs() -> None:
    build = npulab.load(DESIGNS / "scale.py").build
    made, placed = npulab.design(build, depth=3), npulab.machine(build)
    assert isinstance(made, Design) and made.fifo("x").depth == 3
    assert isinstance(placed, Machine) and npulab.machine(placed) is placed and npulab.design(made) is made
    assert npulab.machine(made).device.name == "npu1"
    assert npulab.run(placed, [x(), x()]).output.tolist() == (3 * x()).tolist()


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(CapacityError):
        npulab.machine(npulab.load(DESIGNS / "jitted.py").add, n=16384)


def test_the_designs_own_refusal_comes_through() -> None:
    with pytest.raises(ValueError, match="n = 100 is not a multiple of 64"):
        npulab.run(DESIGNS / "scale.py", [x(100), x(100)], n=100)


@pytest.mark.parametrize(
    ("args", "words"),
    [
        ([x()], "takes 2 arguments, got 1"),
        ([x().astype(np.float32), x()], r"argument 0 is float32, but the design moves i32"),
        ([x(), x().astype(bfloat16)], r"argument 1 is bfloat16"),
        ([x(128), x()], "argument 0 has 128 elements, but the design moves 256"),
    ],
)
def test_arguments_that_do_not_fit_are_refused(args: list[np.ndarray], words: str) -> None:
    with pytest.raises(DesignError, match=words):
        npulab.run(DESIGNS / "scale.py", args)


def test_outputs_keep_the_callers_shape() -> None:
    assert npulab.run(DESIGNS / "scale.py", [x().reshape(16, 16), x().reshape(4, 64)]).output.shape == (4, 64)


def test_named_outputs() -> None:
    run = npulab.run(DESIGNS / "scale.py", [x(), x()], outputs=[0, 1])
    assert run.outputs[0].tolist() == x().tolist() and len(run.outputs) == 2


def test_the_clock_and_the_stream_width_are_parameters() -> None:
    usual = npulab.run(DESIGNS / "scale.py", [x(), x()], device="npu2")
    slower = npulab.run(DESIGNS / "scale.py", [x(), x()], device="npu2", clock_hz=0.9e9)
    wider = npulab.run(DESIGNS / "scale.py", [x(), x()], device="npu2", stream_bytes_per_cycle=8)
    assert slower.device.clock_hz == 0.9e9 and slower.seconds > usual.seconds
    assert wider.cycles is not None and usual.cycles is not None and wider.cycles < usual.cycles


def test_timing_alone_takes_the_same_cycles() -> None:
    with_data = npulab.run(DESIGNS / "scale.py", [x(), x()])
    without = npulab.run(DESIGNS / "scale.py", [x(), x()], data=False, trace=False)
    assert with_data.cycles == without.cycles and not without.trace


def test_timing_alone_needs_no_memory_for_arguments() -> None:
    given = np.broadcast_to(x()[:1], 256)  # one element in memory
    run = npulab.run(DESIGNS / "scale.py", [given, given], data=False, trace=False)
    assert run.cycles == npulab.run(DESIGNS / "scale.py", [x(), x()]).cycles
    assert npulab.run(DESIGNS / "scale.py", [given, x()]).output.tolist() == (3 * given).tolist()
    with pytest.raises(DesignError, match="argument 0 has 128 elements"):
        npulab.run(DESIGNS / "scale.py", [given[:128], given], data=False)


def test_nothing_has_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(execute, "_last", [])
    with pytest.raises(RuntimeError, match="nothing has run"):
        npulab.last()


def test_real_runs_can_be_drawn() -> None:
    run = npulab.run(DESIGNS / "scale.py", [x(), x()])
    for picture in (npulab.draw.array(run), npulab.draw.timeline(run), npulab.draw.memory(run, run.cores[0].tile)):
        assert picture.alt

"""The real path with stand-ins for the real packages: what is called, cached, timed and explained."""

from __future__ import annotations

import inspect
import json
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import npulab
from npulab import backend, cache, hardware, npu
from npulab.hardware import Found
from npusim.devices import device
from npusim.errors import DeviceError, ToolchainError

HERE = Path(__file__).parent
RECORDED = json.loads((HERE.parent / "data" / "api" / "aie_iron.json").read_text())


@pytest.fixture
def real(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[SimpleNamespace]:
    """A machine with an npu2 and the real packages: the backend is the NPU."""
    before = set(sys.modules)
    monkeypatch.syspath_prepend(str(HERE / "fakes"))
    monkeypatch.setenv("NPULAB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(hardware, "find_npu", lambda: Found("npu2", "NPU Strix"))
    monkeypatch.setattr(backend, "_current", None)
    npulab.use("npu", quiet=True)
    import aie.iron as iron
    import aie.utils as utils
    import aie.utils.compile.jit as jit

    yield SimpleNamespace(iron=iron, kernel=utils.behaviour, compiler=jit.behaviour, jit=jit, chosen=npulab.current())
    for name in set(sys.modules) - before:
        if name.partition(".")[0] == "aie":
            del sys.modules[name]


def build(on: str, n: int = 4) -> str:
    return f"module of {on} with {n}"


def doubling(x: Any, y: Any) -> None:
    y.data[...] = 2 * x.data


def test_the_line_says_measured(real: SimpleNamespace) -> None:
    assert "npulab: NPU, npu2" in str(real.chosen) and "measured" in str(real.chosen)
    assert real.iron.current == ["npu2/None"]


def test_a_build_function_is_compiled_run_and_timed(real: SimpleNamespace) -> None:
    real.kernel.run, real.kernel.times = doubling, [10_000] * 3 + [4000, 3000, 5000]
    x = np.arange(4, dtype=np.int32)
    run = npulab.run(build, [x, np.zeros_like(x)], n=8, outputs=[1], warmup=2, iterations=3, flops=4)
    assert run.kind == "measured" and run.cycles is None and run.report is None
    assert run.output.tolist() == [0, 2, 4, 6]
    assert run.samples == pytest.approx((4e-6, 3e-6, 5e-6)) and run.seconds == pytest.approx(3e-6)
    assert run.flops_per_second == pytest.approx(4 / 3e-6)
    assert len(real.kernel.calls) == 1 + 2 + 3
    assert "measured (least of 3)" in str(run) and "simulated" not in str(run)
    assert x.tolist() == [0, 1, 2, 3]


def test_outputs_come_from_the_first_run(real: SimpleNamespace) -> None:
    """A design that adds onto its output gives another result each time it is timed."""

    def accumulate(x: Any, y: Any) -> None:
        y.data += x.data

    real.kernel.run = accumulate
    x = np.ones(4, np.int32)
    run = npulab.run(build, [x, np.zeros_like(x)], outputs=[1], warmup=3, iterations=3)
    assert run.output.tolist() == [1, 1, 1, 1]


def test_without_marks_every_argument_is_an_output(real: SimpleNamespace) -> None:
    x = np.ones(4, np.int32)
    assert len(npulab.run(build, [x, x], warmup=0, iterations=1).outputs) == 2


class In: ...


class Out: ...


def marked(x: In, y: Out) -> None: ...


def test_a_jit_function_is_specialised_and_its_marked_outputs_returned(real: SimpleNamespace) -> None:
    seen: list[dict[str, Any]] = []

    def generator(x: In, y: Out, **values: Any) -> str:
        raise AssertionError("replaced below")

    design = real.jit.CompilableDesign(generator)

    class Compilable:
        mlir_generator, tensor_params = staticmethod(marked), ["x", "y"]

        def specialize(self, **values: Any) -> Any:
            seen.append(values)
            return SimpleNamespace(generate_mlir=lambda: f"module {values}", compile=design.compile)

    callable_design = type("CallableDesign", (), {"compilable": Compilable(), "__call__": lambda self: None})()
    real.kernel.run = doubling
    x = np.ones(4, np.int32)
    run = npulab.run(callable_design, [x, np.zeros_like(x)], warmup=0, iterations=1, n=16)
    assert seen == [{"n": 16}] and run.output.tolist() == [2, 2, 2, 2] and run.name == "marked"


def test_the_same_design_is_compiled_once_another_one_anew(real: SimpleNamespace) -> None:
    x = np.ones(4, np.int32)
    for n in (4, 4, 5):
        npulab.run(build, [x], n=n, warmup=0, iterations=1)
    assert len(real.compiler.compiled) == 2
    assert npulab.clear_cache() == 2
    npulab.run(build, [x], n=4, warmup=0, iterations=1)
    assert len(real.compiler.compiled) == 3


def with_kernel(real: SimpleNamespace, **source: Any) -> Callable[..., str]:
    def generate(on: str) -> str:
        real.iron.ExternalFunction("k", **source)
        return "always the same module"

    return generate


def test_a_kernels_source_is_part_of_what_is_compiled(real: SimpleNamespace, tmp_path: Path) -> None:
    x, source = np.ones(4, np.int32), tmp_path / "k.cc"

    def compiled() -> int:
        npulab.run(with_kernel(real, source_file=str(source)), [x], warmup=0, iterations=1)
        return len(real.compiler.compiled)

    source.write_text("void k() {}")
    assert [compiled(), compiled()] == [1, 1]
    source.write_text("void k() { /* edited */ }")
    assert compiled() == 2
    (tmp_path / "k.h").write_text("// a header beside it")
    assert compiled() == 3
    (tmp_path / "part.cc").write_text("// a source that it may include")
    assert compiled() == 4
    npulab.run(with_kernel(real, source_string="void k() { /* in a string */ }"), [x], warmup=0, iterations=1)
    assert len(real.compiler.compiled) == 5


def test_what_cannot_be_known_is_never_reused(real: SimpleNamespace) -> None:
    x = np.ones(4, np.int32)
    for _ in range(2):
        npulab.run(with_kernel(real), [x], warmup=0, iterations=1)
    assert len(real.compiler.compiled) == 2


def test_a_failed_compilation_leaves_nothing_and_is_explained(real: SimpleNamespace) -> None:
    real.compiler.error = RuntimeError("[aiecc] Compilation failed: allocated buffers exceeded available memory")
    with pytest.raises(ToolchainError, match="64 KiB"):
        npulab.run(build, [np.ones(4, np.int32)], warmup=0, iterations=1)
    assert list(cache.cache_home().iterdir()) == []


def test_a_compilation_is_taken_for_complete_only_when_it_is(real: SimpleNamespace) -> None:
    """The compiler writes into a place of another name, which a killed process leaves behind and nobody looks into."""
    npulab.run(build, [np.ones(4, np.int32)], warmup=0, iterations=1)
    (kernel,), (compiled,) = real.kernel.made, real.compiler.compiled
    xclbin, insts, _ = kernel
    assert xclbin.exists() and insts.exists() and compiled.name == xclbin.name
    assert compiled.parent != xclbin.parent == insts.parent
    assert not compiled.parent.exists()


def test_a_hang_is_a_device_error_with_advice(real: SimpleNamespace) -> None:
    def hang(*tensors: Any) -> None:
        raise RuntimeError("Kernel returned ert_cmd_state.ERT_CMD_STATE_TIMEOUT")

    real.kernel.run = hang
    with pytest.raises(DeviceError, match="waits for ever"):
        npulab.run(build, [np.ones(4, np.int32)], warmup=0, iterations=1)


def test_the_designs_own_errors_come_through(real: SimpleNamespace) -> None:
    def refuses(on: str) -> str:
        raise ValueError("n = 3 is not a multiple of 4")

    with pytest.raises(ValueError, match="n = 3") as caught:
        npulab.run(refuses, [], warmup=0, iterations=1)
    assert type(caught.value) is ValueError


def test_another_generation_than_the_npus_is_refused(real: SimpleNamespace) -> None:
    with pytest.raises(ValueError, match="this NPU is npu2"):
        npulab.run(build, [], device="npu1")
    assert npulab.run(build, [], device="npu2_4col", warmup=0, iterations=1).device.name == "npu2_4col"


def test_designs_are_made_for_the_part_of_the_array_that_is_asked_for(real: SimpleNamespace) -> None:
    """An @iron.jit function learns of its device from IRON only."""
    seen = []

    def made(on: str) -> str:
        seen.append((on, *real.iron.current))
        return f"module of {on}"

    for asked in ("npu2_4col", None):
        npulab.run(made, [], device=asked, warmup=0, iterations=1)
    assert seen == [("npu2_4col", "npu2/4"), ("npu2", "npu2/None")]
    assert real.iron.current == ["npu2/None"]


def test_graphs_are_made_by_the_simulated_backend(real: SimpleNamespace) -> None:
    with pytest.raises(ValueError, match=r"npulab\.use\('sim'\)"):
        npulab.design(build)


def test_the_embedded_package_is_not_taken_for_the_toolchain() -> None:
    from npusim.frontends import finder

    with finder.simulated(), pytest.raises(ToolchainError, match="embedded"):
        npu.run(build, [], device("npu2"), {})


def test_without_the_toolchain_it_says_so() -> None:
    with pytest.raises(ToolchainError, match="aie"):
        npu.run(build, [], device("npu2"), {})


def test_kernel_file_names_are_absolute_and_the_kernel_is_named(real: SimpleNamespace) -> None:
    npulab.run(build, [np.ones(4, np.int32)], warmup=0, iterations=1)
    ((xclbin, insts, name),) = real.kernel.made
    assert xclbin.is_absolute() and insts.name == "insts.bin" and name == "MLIR_AIE"


# ---- what we call is what the real packages were recorded to have


def recorded(module: str, name: str) -> dict[str, Any]:
    entry: dict[str, Any] = RECORDED[module]["entries"][name]
    return entry


def parameters(signature: str) -> set[str]:
    return set(re.findall(r"[(,]\s*\*{0,2}(\w+)", signature))


@pytest.mark.parametrize(
    ("module", "name", "method", "used"),
    [
        ("aie.utils.compile.jit", "CompilableDesign", "", {"mlir_generator"}),
        ("aie.utils.compile.jit", "CompilableDesign", "specialize", {"overrides"}),
        ("aie.utils.compile.jit", "CompilableDesign", "generate_mlir", {"self"}),
        ("aie.utils.compile.jit", "CompilableDesign", "compile", {"xclbin_path", "inst_path"}),
        ("aie.utils", "NPUKernel", "", {"xclbin_path", "insts_path", "kernel_name"}),
        ("aie.iron.device", "from_name", "", {"name", "n_cols"}),
        ("aie.iron", "set_current_device", "", {"device"}),
        ("aie.iron", "tensor", "", {"args", "kwargs"}),
    ],
)
def test_what_is_used_is_recorded(module: str, name: str, method: str, used: set[str]) -> None:
    entry = recorded(module, name)
    signature = entry["methods"][method]["signature"] if method else entry["signature"]
    assert used <= parameters(signature), signature


def test_the_stand_ins_take_no_more_than_the_real_ones(real: SimpleNamespace) -> None:
    for method in ("specialize", "compile"):
        mine = inspect.signature(getattr(real.jit.CompilableDesign, method))
        theirs = parameters(recorded("aie.utils.compile.jit", "CompilableDesign")["methods"][method]["signature"])
        assert set(mine.parameters) <= theirs

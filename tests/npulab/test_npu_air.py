"""The real path of MLIR-AIR designs with stand-ins for mlir-air and Peano: what is compiled, kept, run, timed and explained."""

from __future__ import annotations

import importlib
import inspect
import json
import os
import re
import stat
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
from ml_dtypes import bfloat16

import npulab
from npulab import backend, cache, hardware, npu_air
from npulab.hardware import Found
from npusim.devices import device
from npusim.errors import DesignError, DeviceError, ToolchainError
from npusim.frontends import finder
from npusim.load import python_file

HERE = Path(__file__).parent
REPOSITORY = HERE.parents[1]
RECORDED = json.loads((HERE.parent / "data" / "api" / "air.json").read_text())["air.backend.xrt"]["entries"]

DESIGN = """
from air.ir import Module

def build(device, n=4):
    if n % 4:
        raise ValueError(f"n = {n} is not a multiple of 4")
    return Module(f'func.func private @k() attributes {{link_with = "k.o"}} // {n}')

def objects(device, n=4):
    return {"k.o": ("kernels/k.cc", [f"-DN={n}", "-Iinclude"])}

def options(device, **_):
    return {"omit_pingpong": "all", "output_format": "elf" if device == "npu2" else "xclbin", "instance_name": "f"}
"""


def fake_peano(home: Path) -> Path:
    """A folder with a compiler that only writes down how it was called."""
    compiler = home / "bin" / "clang++"
    compiler.parent.mkdir(parents=True)
    compiler.write_text(f"#!{sys.executable}\n{(HERE / 'fakes' / 'clang.py').read_text()}")
    compiler.chmod(compiler.stat().st_mode | stat.S_IXUSR)
    return home


def enter(monkeypatch: pytest.MonkeyPatch, family: str, tmp_path: Path) -> SimpleNamespace:
    """A machine with an NPU, the real packages, and a design in a folder."""
    monkeypatch.syspath_prepend(str(HERE / "fakes"))
    monkeypatch.setenv("NPULAB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("PEANO_INSTALL_DIR", str(fake_peano(tmp_path / "peano")))
    monkeypatch.setattr(hardware, "find_npu", lambda: Found(family, f"NPU {family}"))
    monkeypatch.setattr(backend, "_current", None)
    npulab.use("npu", quiet=True)
    import aie.utils.compile.jit as jit
    import air.backend.xrt as xrt

    file = tmp_path / "twice" / "design.py"
    (file.parent / "kernels").mkdir(parents=True)
    file.write_text(DESIGN)
    (file.parent / "kernels" / "k.cc").write_text('#include "k.h"\nvoid k() {}\n')
    (file.parent / "kernels" / "k.h").write_text("// a header\n")
    return SimpleNamespace(xrt=xrt, air=xrt.behaviour, iron=jit.behaviour, file=file, peano=tmp_path / "peano")


@pytest.fixture
def real(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[SimpleNamespace]:
    """As :func:`enter`, an npu2 unless the test asks for another one."""
    before = set(sys.modules)
    yield enter(monkeypatch, getattr(request, "param", "npu2"), tmp_path)
    for name in set(sys.modules) - before:
        if name.partition(".")[0] in ("aie", "air"):
            del sys.modules[name]


def on(family: str) -> Any:
    return pytest.mark.parametrize("real", [family], indirect=True)


def x() -> np.ndarray[Any, Any]:
    return np.arange(4, dtype=np.int32)


def run(real: SimpleNamespace, *args: Any, **more: Any) -> npulab.Run:
    """The design once, with one timed repetition."""
    return npulab.run(real.file, args or [x()], **{"warmup": 0, "iterations": 1, **more})


def calls(real: SimpleNamespace, flag: str = "-c") -> list[dict[str, Any]]:
    """How the C++ compiler was called: to compile, or with ``-E`` to preprocess."""
    lines = (real.peano / "log").read_text().splitlines() if (real.peano / "log").exists() else []
    return [call for call in map(json.loads, lines) if flag in call["arguments"]]


# ---- compiled, run, timed


def doubling(x: Any, y: Any) -> None:
    y[...] = 2 * x


def test_a_module_of_air_is_compiled_run_and_timed(real: SimpleNamespace) -> None:
    real.air.run, real.air.times = doubling, [70.0, 60.0, 50.0, 40.0, 30.0, 35.0]
    given = x().reshape(2, 2)
    out = np.zeros_like(given)
    got = npulab.run(real.file, [given, out], outputs=[1], warmup=2, iterations=3, flops=4)
    assert got.kind == "measured" and got.device.name == "npu2" and got.name == "twice"
    assert got.output.tolist() == [[0, 2], [4, 6]] and not out.any()
    assert got.samples == pytest.approx((40e-6, 30e-6, 35e-6)) and got.seconds == pytest.approx(30e-6)
    assert len(real.air.calls) == 1 + 2 + 3 and not real.iron.compiled
    (made,) = real.air.backends
    assert (made.n_perf_iters, made.n_warmup_iters) == (1, 0), "one run of the kernel in each call"


def test_every_run_gets_fresh_copies(real: SimpleNamespace) -> None:
    def accumulate(x: Any, y: Any) -> None:
        y += x

    real.air.run = accumulate
    got = npulab.run(real.file, [x(), x()], outputs=[1], warmup=3, iterations=3)
    assert got.output.tolist() == [0, 2, 4, 6]
    assert all(y.tolist() == [0, 2, 4, 6] for _, y in real.air.calls)


def test_bfloat16_goes_in_and_comes_out(real: SimpleNamespace) -> None:
    real.air.run = doubling
    got = run(real, np.ones(4, bfloat16), np.zeros((2, 2), bfloat16), outputs=[1])
    assert got.output.dtype == bfloat16 and got.output.tolist() == [[2, 2], [2, 2]]


def test_arrays_are_given_as_they_lie_in_memory(real: SimpleNamespace) -> None:
    every_second = np.arange(8, dtype=np.int32)[::2]
    got = run(real, every_second, np.asfortranarray(np.arange(6).reshape(2, 3)), [1, 2])
    assert [a.tolist() for a in got.outputs] == [[0, 2, 4, 6], [[0, 1, 2], [3, 4, 5]], [1, 2]]


def test_without_outputs_named_every_argument_is_one(real: SimpleNamespace) -> None:
    assert len(run(real, x(), x()).outputs) == 2


@pytest.mark.parametrize(
    ("real", "target", "binary", "kernel"),
    [("npu1", "aie2", "air.xclbin", "MLIR_AIE"), ("npu2", "aie2p", "air.elf", "main:f")],
    indirect=["real"],
)
def test_each_device_has_its_target(real: SimpleNamespace, target: str, binary: str, kernel: str) -> None:
    run(real)
    (call,) = calls(real)
    given = call["arguments"]
    assert f"--target={target}-none-unknown-elf" in given
    assert {"-O2", "-std=c++20", "-DNDEBUG", "-D__AIE_API_AIE_ADF_HPP__", "-I/opt/mlir_aie/include", "-DN=4"} <= set(
        given
    )
    assert ("-aie-disable-fold-imm" in given) == (target == "aie2")
    assert call["folder"] == str(real.file.parent), "flags are relative to the design"
    assert (real.air.backends[0].target_device, real.air.backends[0].num_device_cols) == (f"npu{len(target) - 3}", 0)
    (artifact,) = real.air.loaded
    assert Path(artifact.output_binary).is_absolute() and Path(artifact.output_binary).name == binary
    assert artifact.kernel == kernel


def test_preprocessing_sees_the_same_flags(real: SimpleNamespace) -> None:
    run(real)
    (once,), (also,) = calls(real, "-E"), calls(real)
    assert once["arguments"][: -len(["-E", "-P", "k.cc"])] == also["arguments"][: -len(["-c", "k.cc", "-o", "k.o"])]


def test_a_part_of_the_array_can_be_asked_for(real: SimpleNamespace) -> None:
    assert run(real, device="npu2_4col").device.name == "npu2_4col"
    assert real.air.backends[0].num_device_cols == 4 and real.air.backends[0].target_device == "npu2"


def test_the_compiler_works_in_a_place_of_its_own(real: SimpleNamespace, monkeypatch: pytest.MonkeyPatch) -> None:
    before = os.getcwd(), dict(os.environ)
    run(real)
    assert (os.getcwd(), dict(os.environ)) == before
    (compiled,) = real.air.compiled
    assert compiled.folder != before[0] and compiled.peano == str(real.peano)
    folders = compiled.path.split(os.pathsep)
    assert str(Path(sys.executable).parent) in folders and "/opt/mlir_aie/bin" in folders, "where aiecc lies"


# ---- kept


def test_the_same_design_is_compiled_once_another_one_anew(real: SimpleNamespace) -> None:
    real.air.run = doubling
    for n in (4, 4, 8):
        assert run(real, x(), x(), n=n).outputs[1].tolist() == [0, 2, 4, 6]
    assert len(real.air.compiled) == len(calls(real)) == 2
    assert len(real.air.loaded) == 3 and real.air.loaded[0].output_binary == real.air.loaded[1].output_binary
    assert npulab.clear_cache() == 2
    run(real, x(), x())
    assert len(real.air.compiled) == 3


def test_kernel_header_flag_option_and_compiler_are_part_of_what_is_compiled(real: SimpleNamespace) -> None:
    def compiled(file: Path, old: str, new: str) -> int:
        file.write_text(file.read_text().replace(old, new))
        run(real)
        run(real)
        return len(real.air.compiled)

    kernels = real.file.parent / "kernels"
    assert compiled(real.file, "", "") == 1
    assert compiled(kernels / "k.cc", "{}", "{ /* edited */ }") == 2
    assert compiled(kernels / "k.h", "header", "changed header") == 3
    assert compiled(real.file, "-DN={n}", "-DN={2 * n}") == 4
    assert compiled(real.file, '"all"', '"L1"') == 5
    assert compiled(real.peano / "bin" / "clang++", "import json", "import  json") == 6


@pytest.mark.parametrize("tool", ["mlir_aie", "mlir_air", "llvm-aie"])
def test_the_tools_versions_are_part_of_it(real: SimpleNamespace, monkeypatch: pytest.MonkeyPatch, tool: str) -> None:
    run(real)
    monkeypatch.setattr(hardware, "version", lambda name: "another" if name == tool else None)
    run(real)
    assert len(real.air.compiled) == 2


@pytest.mark.parametrize("error", [KeyboardInterrupt(), RuntimeError("aircc compilation failed:\nno room")])
def test_an_interrupted_compilation_leaves_nothing(real: SimpleNamespace, error: BaseException) -> None:
    before = os.getcwd()
    real.air.errors["compile"] = error
    with pytest.raises((KeyboardInterrupt, ToolchainError)):
        run(real)
    assert list(cache.cache_home().iterdir()) == [] and os.getcwd() == before
    real.air.errors.clear()
    run(real)
    assert len(real.air.loaded) == 1


def test_what_a_killed_process_leaves_is_never_used(real: SimpleNamespace) -> None:
    with pytest.raises(SystemExit), cache.building(cache.cache_home() / "key") as place:
        (place / npu_air.ARTIFACT).write_text("half of")
        raise SystemExit
    assert not (cache.cache_home() / "key").exists()
    run(real)
    (folder,) = cache.cache_home().iterdir()
    (folder / npu_air.ARTIFACT).unlink()
    left = folder.with_name(".partial-abc")
    left.mkdir()
    run(real)
    assert len(real.air.compiled) == 2
    assert npulab.clear_cache() == 1 and not left.exists()


def test_two_processes_may_compile_the_same(tmp_path: Path) -> None:
    with cache.building(tmp_path / "key") as mine:
        (mine / "file").write_text("mine")
        with cache.building(tmp_path / "key") as theirs:
            (theirs / "file").write_text("theirs")
    assert (tmp_path / "key" / "file").read_text() == "theirs" and len(list(tmp_path.iterdir())) == 1


# ---- refused and explained


def test_what_peano_says_is_passed_on(real: SimpleNamespace) -> None:
    (real.peano / "refuse").write_text("k.cc:2:6: error: unknown type name 'viod'")
    with pytest.raises(
        ToolchainError, match=r"(?s)k\.cc, which k\.o is made of.*unknown type name 'viod'.*clang\+\+.*-DN=4"
    ):
        run(real)
    assert not real.air.compiled and list(cache.cache_home().iterdir()) == []


def test_an_object_file_that_was_not_made_is_missed(real: SimpleNamespace) -> None:
    (real.peano / "silent").touch()
    with pytest.raises(ToolchainError, match=r"made no k\.o"):
        run(real)


def test_a_binary_that_was_not_made_is_missed(real: SimpleNamespace) -> None:
    real.air.leave_out = ("air.elf",)
    with pytest.raises(ToolchainError, match=r"made no air\.elf"):
        run(real)
    assert list(cache.cache_home().iterdir()) == []


def test_what_aircc_says_is_passed_on(real: SimpleNamespace) -> None:
    real.air.errors["compile"] = real.xrt.AirBackendError(
        "aircc compilation failed:\nallocated buffers exceeded available memory"
    )
    with pytest.raises(ToolchainError, match=r"(?s)aircc compilation failed.*64 KiB"):
        run(real)


def test_a_compiler_that_cannot_be_started_is_named(real: SimpleNamespace) -> None:
    (real.peano / "bin" / "clang++").chmod(0o600)
    with pytest.raises(ToolchainError, match=r"cannot be started.*clang\+\+"):
        run(real)


def test_a_wrong_or_missing_peano_is_named(
    real: SimpleNamespace, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PEANO_INSTALL_DIR", str(tmp_path / "nowhere"))
    with pytest.raises(ToolchainError, match=r"nowhere has no bin/clang\+\+"):
        run(real)
    monkeypatch.delenv("PEANO_INSTALL_DIR")
    with pytest.raises(ToolchainError, match=r"llvm-aie is not installed \(see environment.yml\)"):
        run(real)


def test_the_wheel_is_found(real: SimpleNamespace, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("PEANO_INSTALL_DIR")
    fake_peano(tmp_path / "site" / "llvm-aie")
    (tmp_path / "site" / "llvm_aie-21.dist-info").mkdir()
    (tmp_path / "site" / "llvm_aie-21.dist-info" / "METADATA").write_text("Name: llvm-aie\nVersion: 21\n")
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    run(real)
    assert real.air.compiled[0].peano == str(tmp_path / "site" / "llvm-aie")
    assert "PEANO_INSTALL_DIR" not in os.environ, "it is said to the compiler only"


def test_without_mlir_air_it_says_so(real: SimpleNamespace) -> None:
    with pytest.MonkeyPatch.context() as without, pytest.raises(ToolchainError, match=r"air\.backend\.xrt"):
        without.setitem(sys.modules, "air.backend.xrt", None)
        run(real)
    with pytest.MonkeyPatch.context() as without:
        for name in [n for n in sys.modules if n.partition(".")[0] == "air"]:
            without.delitem(sys.modules, name)
        without.setattr(sys, "path", [p for p in sys.path if p != str(HERE / "fakes")])
        with pytest.raises(ToolchainError, match=r"(?s)No module named 'air'.*need the wheel mlir_air"):
            npulab.load(real.file)


def test_without_mlir_aie_there_are_no_headers(real: SimpleNamespace) -> None:
    with pytest.MonkeyPatch.context() as without, pytest.raises(ToolchainError, match=r"aie\.utils\.config"):
        without.setitem(sys.modules, "aie.utils.config", None)
        run(real)


@pytest.mark.parametrize(
    ("where", "message", "kind", "words"),
    [
        ("load", "XRT runtime (pyxrt) is not available.", DeviceError, "pyxrt"),
        ("run", "NPU kernel run did not complete: ert_cmd_state.ERT_CMD_STATE_TIMEOUT", DeviceError, "waits for ever"),
    ],
)
def test_errors_of_the_device_are_explained_and_it_is_let_go(
    real: SimpleNamespace, where: str, message: str, kind: type[Exception], words: str
) -> None:
    real.air.errors[where] = real.xrt.AirBackendError(message)
    with pytest.raises(kind, match=words):
        run(real)
    assert real.air.unloads == 1
    real.air.errors.clear()
    run(real)
    assert real.air.unloads == 2 and not real.air.backends[-1].currently_loaded


@on("npu1")
def test_six_arguments_are_too_many_for_an_xclbin(real: SimpleNamespace) -> None:
    with pytest.raises(ValueError, match="Too many arguments"):
        run(real, *[x()] * 6)
    assert real.air.unloads == 1


def test_the_designs_own_errors_come_through(real: SimpleNamespace) -> None:
    with pytest.raises(ValueError, match="n = 3 is not a multiple of 4") as caught:
        run(real, n=3)
    assert type(caught.value) is ValueError and not calls(real, "-E")


def test_another_generation_than_the_npus_is_refused(real: SimpleNamespace) -> None:
    with pytest.raises(DesignError, match="this NPU is npu2"):
        run(real, device="npu1")


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("def objects", "def others", r"links k\.o but does not say what of.*objects\(device, \*\*params\)"),
        ('"k.o"', '"other.o"', r"links k\.o|links other\.o"),
        ("kernels/k.cc", "kernels/none.cc", r"k\.o is made of .*none\.cc, which does not exist"),
        ('{"k.o":', '{"k.o": ("kernels/k.cc", []), "in/k.o":', "must not name a folder"),
        ('[f"-DN={n}", "-Iinclude"]', '"-DN=4"', "flags are a list"),
        ('("kernels/k.cc", [f"-DN={n}", "-Iinclude"])', '"kernels/k.cc"', r"gives \(C\+\+ source, flags\) for each.*got 'kernels"),
        ('("kernels/k.cc", [f"-DN={n}", "-Iinclude"])', '("kernels/k.cc",)', r"got \('kernels/k.cc',\) for k\.o"),
        ('{"omit_pingpong"', '{"n_perf_iters": 5, "omit_pingpong"', "must not decide n_perf_iters"),
    ],
)
def test_what_a_design_does_not_say_is_asked_for(real: SimpleNamespace, old: str, new: str, words: str) -> None:
    text = real.file.read_text()
    at = text.index(old, text.index("def objects") if old == '"k.o"' else 0)
    real.file.write_text(text[:at] + text[at:].replace(old, new, 1))
    with pytest.raises(DesignError, match=words):
        run(real)


def test_an_option_that_xrtbackend_does_not_know_is_named(real: SimpleNamespace) -> None:
    real.file.write_text(real.file.read_text().replace('"omit_pingpong"', '"omit_pong"'))
    with pytest.raises(TypeError, match="omit_pong"):
        run(real)


def test_options_may_be_left_out(real: SimpleNamespace) -> None:
    real.file.write_text(real.file.read_text().replace("def options", "def others"))
    run(real)
    assert real.air.backends[0].output_format == "xclbin"


def test_a_design_that_links_nothing_needs_no_objects(real: SimpleNamespace) -> None:
    text = real.file.read_text().replace("def objects", "def others")
    real.file.write_text(re.sub(r" attributes \{\{.*?\}\}", "", text))
    run(real)
    assert not calls(real)


def test_a_design_of_a_notebook_has_its_sources_in_the_current_folder(
    real: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    cell: dict[str, Any] = {}
    exec(DESIGN, cell)
    monkeypatch.chdir(real.file.parent)
    npulab.run(cell["build"], [x()], warmup=0, iterations=1)
    assert calls(real)[0]["folder"] == str(real.file.parent)


def test_iron_designs_are_unaffected(real: SimpleNamespace) -> None:
    def build(on: str) -> str:
        return "a module of the aie dialect"

    npulab.run(build, [x()], warmup=0, iterations=1)
    assert len(real.iron.compiled) == 1 and not real.air.compiled and not calls(real, "-E")


def test_a_design_of_the_simulated_backend_must_be_loaded_again(real: SimpleNamespace) -> None:
    from npusim.frontends.air.context import Module

    with pytest.raises(ToolchainError, match="load it again"):
        npulab.run(lambda on: Module(), [x()], warmup=0, iterations=1)


# ---- what is called is what the real package was recorded to have


def test_the_stand_in_takes_what_the_real_one_takes(real: SimpleNamespace) -> None:
    for name in ("XRTBackend", "XRTCompileArtifact"):
        mine = inspect.signature(getattr(real.xrt, name))
        theirs = re.sub(r": [\w\[\]]+( = )", r"\1", RECORDED[name]["signature"]).replace(" = ", "=")
        assert str(mine) == theirs
    for method in ("compile", "load", "unload"):
        theirs = RECORDED["XRTBackend"]["methods"][method]["signature"]
        mine = inspect.signature(getattr(real.xrt.XRTBackend, method))
        assert str(mine) == re.sub(r": [\w.]+", "", theirs).replace(" = ", "=")


# ---- the fused attention


@pytest.fixture(scope="module")
def fused() -> Iterator[ModuleType]:
    """The design as the simulated backend loads it."""
    with (
        finder.simulated("aie", "air"),
        python_file(REPOSITORY / "designs" / "attention_fused" / "design.py") as module,
    ):
        yield module


def with_includes(file: Path, seen: set[Path] | None = None) -> str:
    """A source with its quoted includes in place, each once."""
    seen = set() if seen is None else seen
    if file in seen:
        return ""
    seen.add(file)
    return re.sub(r'#include "(.+)"', lambda found: with_includes(file.parent / found[1], seen), file.read_text())


@pytest.mark.parametrize("name", ["npu1", "npu2"])
@pytest.mark.parametrize("params", [{}, {"causal": True, "lq": 512}, {"lkp": 32, "lqp": 128, "lk": 512}])
def test_the_fused_attentions_kernels_are_what_its_module_calls(
    fused: ModuleType, name: str, params: dict[str, Any]
) -> None:
    module = fused.build(name, **params)
    (made,) = npu_air.objects_of(fused.build, str(module), device(name), params)
    assert made.name == fused.OBJECT and made.source == REPOSITORY / "designs" / "kernels" / "attention.cc"
    source = with_includes(made.source)
    given = dict(re.fullmatch(r"-D(\w+)=?(\d*)", flag).groups() for flag in made.flags)  # type: ignore[union-attr]
    assert given.pop("AIE_API_EMULATE_BFLOAT16_MMUL_WITH_BFP16", None) == ("" if name == "npu2" else None)
    assert all(re.search(rf"\b{macro}\b", source) for macro in given)
    rows, side = str(params.get("lkp", 64)), str(fused.SLICE)
    assert given == {"BQ": rows, "BK": rows, "DK": side, "DV": side}
    for kernel in module.kernels:
        assert re.search(rf"\bvoid {kernel}\(", source), kernel


@pytest.mark.parametrize("name", ["npu1", "npu2"])
def test_the_fused_attentions_options_are_xrtbackends(fused: ModuleType, name: str) -> None:
    options = npu_air.options_of(fused.build, device(name), {})
    known = set(re.findall(r"(\w+): ", RECORDED["XRTBackend"]["signature"]))
    assert set(options) <= known and options["target_device"] == name
    from npusim.frontends.air.backend import XRTBackend

    module = fused.build(name, num_heads=2)
    assert f'"{options["instance_name"]}"' in str(module), "an ELF's kernel is named after the module's function"
    assert XRTBackend(**options).compile(module).machine is not None


def test_the_fused_attention_goes_the_whole_way(real: SimpleNamespace) -> None:
    """Its genuine source, with the embedded dialects in place of the real ones, and stand-ins for all that comes after."""
    for name in [n for n in sys.modules if n.partition(".")[0] == "air"]:
        del sys.modules[name]
    with pytest.MonkeyPatch.context() as patched, finder.simulated("air"):
        patched.setitem(sys.modules, "air.backend.xrt", real.xrt)
        patched.setattr(real.xrt, "Module", importlib.import_module("air.ir").Module)
        heads = np.ones((2, 512, 64), bfloat16)
        got = npulab.run(REPOSITORY / "designs" / "attention_fused", [heads] * 4, outputs=[3], warmup=1, iterations=2)
    assert got.name == "attention_fused" and got.output.shape == heads.shape and len(got.samples) == 2
    (call,) = calls(real)
    assert {"--target=aie2p-none-unknown-elf", "-DBQ=64", "-DDV=64"} <= set(call["arguments"])
    (made,), (artifact,) = real.air.backends, real.air.loaded
    assert (made.omit_pingpong, made.runtime_loop_tiling_sizes) == ("all", [1, 1, 1])
    assert artifact.kernel == "main:attention_bf16" and artifact.output_binary.endswith("air.elf")

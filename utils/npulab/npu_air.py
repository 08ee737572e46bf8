"""The real path of MLIR-AIR designs: kernels compiled with Peano, the module with aircc, run through XRT.

:mod:`npulab.npu` hands over what turns out to be a module of MLIR-AIR. Such a module names the object files that its herds
link, but not what they are made of, nor how it wants to be compiled. Two functions beside ``build`` in the design's file say
so, called with the same arguments:

* ``objects(device, **params)`` gives ``{object file: (C++ source, flags)}``, paths relative to the design's file;
* ``options(device, **params)`` gives arguments for XRTBackend, such as ``omit_pingpong``; it may be missing.

Written against the sources of mlir-air, commit e972f29 of 22 August 2026 (python/air/backend/xrt.py, tools/aircc,
programming_examples/flash_attention/kernel_fusion_based), and mlir-aie, main of 14 August 2026 (tools/aiecc). Untested on
hardware and with the real compilers.
"""

from __future__ import annotations

import contextlib
import inspect
import json
import os
import re
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from npulab import cache, measure, peano
from npulab.help import explained, guarded
from npusim.devices import Device
from npusim.errors import DesignError, ToolchainError

ARTIFACT = "artifact.json"
"""In a folder of the cache: the names of the files that XRT loads."""


class Found(BaseException):
    """What a design built is a module of MLIR-AIR. Not an error: the way out of mlir-aie's code generator, in which IRON
    designs must be built, and whose parser does not know the dialect."""

    def __init__(self, module: Any) -> None:
        super().__init__("a module of MLIR-AIR")
        self.module = module


def is_module(built: Any) -> bool:
    """Whether it is a module of MLIR-AIR. Imports nothing: who has made one has imported ``air.ir``."""
    ir = sys.modules.get("air.ir")
    return ir is not None and isinstance(built, ir.Module)


# ---- what a design says beside its module


def _beside(build: Callable[..., Any]) -> dict[str, Any]:
    """The names in the file (or notebook) that defines ``build``."""
    return getattr(inspect.unwrap(build), "__globals__", {})


def _said(build: Callable[..., Any], name: str, on: Device, params: Mapping[str, Any]) -> dict[str, Any]:
    """What the function ``name`` beside ``build`` gives; nothing if there is none."""
    function = _beside(build).get(name)
    return dict(function(on.name, **params)) if callable(function) else {}


def objects_of(build: Callable[..., Any], mlir: str, on: Device, params: Mapping[str, Any]) -> list[peano.Object]:
    """The object files that a design is linked with.

    Raises:
        DesignError: if the module links a file that the design does not say the source of, or a source does not exist.
    """
    file = _beside(build).get("__file__")
    folder = Path(file).resolve().parent if file else Path.cwd()  # a notebook has no file
    said = _said(build, "objects", on, params)
    linked = set(re.findall(r'\blink_with\s*=\s*"([^"]+)"', mlir))
    if unknown := sorted(linked - set(said)):
        raise DesignError(
            f"the design links {', '.join(unknown)} but does not say what of: beside build, it needs a function "
            "objects(device, **params) that gives {object file: (C++ source, flags)}"
        )
    return [_object(name, folder, made_of, on) for name, made_of in sorted(said.items())]


def _object(name: str, folder: Path, made_of: Any, on: Device) -> peano.Object:
    if not (isinstance(made_of, (tuple, list)) and len(made_of) == 2):
        raise DesignError(f"objects() gives (C++ source, flags) for each object file, got {made_of!r} for {name}")
    source, flags = made_of
    path = (folder / source).resolve()
    if Path(name).name != name:
        raise DesignError(f"{name!r} is not the name of an object file: it must not name a folder")
    if isinstance(flags, str):
        raise DesignError(f"flags are a list of strings, got {flags!r}")
    if not path.is_file():
        raise DesignError(f"{name} is made of {path}, which does not exist")
    return peano.Object(name, path, tuple(flags), folder, on.family)


def options_of(build: Callable[..., Any], on: Device, params: Mapping[str, Any]) -> dict[str, Any]:
    """XRTBackend's arguments: the design's, the device, and one timed run a call.

    Raises:
        DesignError: if the design decides what is decided here.
    """
    said = _said(build, "options", on, params)
    columns = 0 if on.partition_of is None else on.columns  # 0: the whole array
    ours = {"target_device": on.family, "num_device_cols": columns, "n_perf_iters": 1, "n_warmup_iters": 0}
    if both := sorted(set(said) & set(ours)):
        raise DesignError(f"options() must not decide {', '.join(both)}: npulab.use, npulab.run and its arguments do")
    return {**said, **ours}


# ---- compiling


def compile_module(backend: Any, module: Any, made_of: Sequence[peano.Object], options: Mapping[str, Any]) -> Any:
    """Compile (or find compiled) and return XRTBackend's artifact, with absolute paths.

    Raises:
        ToolchainError: if a compiler is missing or refuses.
    """
    mlir = str(module)
    sources = [f"{o.name} {o.flags}".encode() + peano.preprocessed(o) for o in made_of]
    sources += [repr(sorted(options.items())).encode(), peano.identity()]
    key = cache.content_key(mlir, sources, (*cache.TOOLS, "mlir_air"))
    assert key is not None
    folder = cache.cache_home().resolve() / key
    if not (folder / ARTIFACT).exists():
        shutil.rmtree(folder, ignore_errors=True)  # someone has deleted parts of it
        with cache.building(folder) as place:
            _compile_in(place, backend, module, made_of)
    return _artifact(folder)


def _compile_in(place: Path, backend: Any, module: Any, made_of: Sequence[peano.Object]) -> None:
    """Object files and what XRT loads into an empty folder; the names of the latter last."""
    for made in made_of:
        peano.compile_object(made, place / made.name)
    with _workplace(place):
        artifact = guarded(lambda: backend.compile(module), "toolchain")
    if not (place / artifact.output_binary).exists():
        raise ToolchainError(f"aircc ended without an error, but made no {artifact.output_binary}")
    names = {"output_binary": artifact.output_binary, "kernel": artifact.kernel, "insts": artifact.insts}
    (place / ARTIFACT).write_text(json.dumps(names))


@contextlib.contextmanager
def _workplace(place: Path) -> Iterator[None]:
    """The current directory and the environment for aircc, as long as the context lasts.

    XRTBackend writes into the current directory, and aiecc looks there for the object files. aircc looks for aiecc on PATH,
    where it is not if Python's environment is not activated. And it must take the same Peano as the kernels.
    """
    folders = [
        str(Path(sys.executable).parent),
        str(peano.headers().parent / "bin"),
        os.environ.get("PATH", os.defpath),
    ]
    mine = {"PATH": os.pathsep.join(folders), "PEANO_INSTALL_DIR": str(peano.home())}
    before = {name: os.environ.get(name) for name in mine}
    os.environ.update(mine)
    try:
        with contextlib.chdir(place):
            yield
    finally:
        for name, value in before.items():
            os.environ.pop(name, None)
            os.environ.update({} if value is None else {name: value})


def _artifact(folder: Path) -> Any:
    from air.backend.xrt import XRTCompileArtifact

    names = json.loads((folder / ARTIFACT).read_text())
    insts = names["insts"] and str(folder / names["insts"])
    return XRTCompileArtifact(str(folder / names["output_binary"]), names["kernel"], insts)


# ---- running


def _backend(options: Mapping[str, Any]) -> Any:
    """An XRTBackend. Raises ToolchainError if there is none; TypeError for an option that it does not know."""
    try:
        from air.backend.xrt import XRTBackend
    except ImportError as error:
        raise explained(error, "toolchain") from error
    return guarded(lambda: XRTBackend(**options), "toolchain")


def run(
    module: Any,
    build: Callable[..., Any],
    args: Sequence[Any],
    on: Device,
    params: Mapping[str, Any],
    *,
    warmup: int = measure.WARMUP,
    iterations: int = measure.ITERATIONS,
) -> measure.Measured:
    """Compile a module that ``build`` has made, run it once for the outputs, then time.

    Each run gets fresh copies of ``args``; what a design keeps in its cores' memory is left as the run before left it. What is
    timed is what XRTBackend times: from the kernel's start to its end, without the copies.

    Raises:
        DesignError: if the design does not say what its kernels are made of.
        ToolchainError, DeviceError: with what the message means.
    """
    made_of, options = objects_of(build, str(module), on, params), options_of(build, on, params)
    backend = _backend(options)
    artifact = compile_module(backend, module, made_of, options)
    arrays = [np.ascontiguousarray(a) for a in args]
    try:
        call = guarded(lambda: backend.load(artifact), "device")
        given = guarded(lambda: call(*arrays), "device")
        outputs = tuple(np.array(got).reshape(np.shape(a)) for got, a in zip(given, args, strict=True))
        return measure.Measured(outputs, _timed(backend, call, arrays, warmup, iterations))
    finally:
        backend.unload()


def _timed(backend: Any, call: Any, arrays: Sequence[Any], warmup: int, iterations: int) -> measure.Timing:
    def once() -> float | None:
        guarded(lambda: call(*arrays), "device")
        microseconds = backend.last_latency_us
        return None if microseconds is None else microseconds * 1e-6

    return measure.repeat(once, warmup=warmup, iterations=iterations)

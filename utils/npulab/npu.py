"""The real path: compile a design with mlir-aie 1.4 and run it through XRT. Modules of MLIR-AIR go on to :mod:`npulab.npu_air`.

Both kinds of design, an ``@iron.jit`` function and a ``build(device)`` function, become a ``CompilableDesign``. It is compiled
into a folder named by what went in (the generated MLIR, the kernels' sources, the versions of the tools), not through the
toolchain's own cache: that one keys on bytecode, and gives a stale kernel when only a global of the notebook has changed.

Written against the sources of mlir-aie, main of 14 August 2026 (python/utils: compile/jit, npukernel, hostruntime).
Untested on hardware.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from npulab import measure, npu_air
from npulab.cache import building, cache_home, clear_cache, content_key
from npulab.help import explained, guarded
from npulab.measure import Measured
from npusim.devices import Device
from npusim.errors import ToolchainError

__all__ = ["clear_cache", "compilable", "compile_design", "is_callable_design", "run", "seconds_of"]

KERNEL_NAME = "MLIR_AIE"


def is_callable_design(what: Any) -> bool:
    """Whether it is what ``@iron.jit`` makes, real or embedded."""
    return hasattr(what, "compilable") and callable(what)


def compilable(what: Any, on: Device, params: Mapping[str, Any]) -> Any:
    """The toolchain's CompilableDesign of an @iron.jit function or of a ``build(device)`` function.

    If the latter makes a module of MLIR-AIR, npu_air.Found leaves the code generator with it.
    """
    if is_callable_design(what):
        return what.compilable.specialize(**params)
    from aie.utils.compile.jit import CompilableDesign

    def generate() -> Any:
        built = what(on.name, **params)
        if npu_air.is_module(built):
            raise npu_air.Found(built)
        if type(built).__module__.startswith("npusim."):
            raise ToolchainError("this design was loaded for the simulated NPU: load it again, after npulab.use('npu')")
        return built

    return CompilableDesign(generate)


def _sources() -> list[bytes] | None:
    """The C++ of the kernels that the design just generated declares; None if the toolchain no longer tells."""
    from aie.iron import ExternalFunction

    kernels = getattr(ExternalFunction, "_instances", None)
    if kernels is None:
        return None
    found = []
    for kernel in kernels:
        text, file = getattr(kernel, "_source_string", None), getattr(kernel, "_source_file", None)
        if text is not None:
            body = str(text).encode()
        elif file is not None:
            body = b"".join(p.read_bytes() for p in _beside(Path(file)))
        else:
            return None
        flags = getattr(kernel, "_compile_flags", None)
        found.append(body + repr(flags).encode())
    return sorted(found)


def _beside(file: Path) -> list[Path]:
    """A C++ source and all C++ in its folder: what it may include, sources as well as headers."""
    return [file, *sorted(p for p in file.parent.glob("*") if p.suffix in (".h", ".hpp", ".cc", ".cpp"))]


def compile_design(design: Any) -> Any:
    """Compile (or find compiled) and return the toolchain's NPUKernel.

    Raises:
        ToolchainError: if the compiler is missing or refuses the design. What the design itself raises (ValueError,
            TypeError) comes through unchanged.
    """
    mlir = str(guarded(design.generate_mlir, "toolchain"))
    key = content_key(mlir, _sources())
    folder = cache_home() / (key or "uncached")
    xclbin, insts = folder / "final.xclbin", folder / "insts.bin"
    if key is None or not (xclbin.exists() and insts.exists()):
        shutil.rmtree(folder, ignore_errors=True)
        with building(folder) as place:
            made = {"xclbin_path": place / xclbin.name, "inst_path": place / insts.name}
            guarded(lambda: design.compile(**made), "toolchain")
    from aie.utils import NPUKernel

    return NPUKernel(xclbin, insts, kernel_name=KERNEL_NAME)


def run(
    what: Any,
    args: Sequence[Any],
    on: Device,
    params: Mapping[str, Any],
    *,
    warmup: int = measure.WARMUP,
    iterations: int = measure.ITERATIONS,
) -> Measured:
    """Compile, run once on fresh tensors for the outputs, then time.

    An IRON design's timed repetitions work on the same tensors and do not refresh them, so their results are not looked at: a
    design that reads what it writes gives its outputs in the first run only.

    Raises:
        ToolchainError, DeviceError: with what the message means.
        DesignError: if a design of MLIR-AIR does not say what its kernels are made of.
    """
    try:
        import aie.iron as iron
    except ImportError as error:
        raise explained(error, "toolchain") from error
    if hasattr(iron, "__npusim__"):
        raise ToolchainError("import aie gives the embedded package: choose the backend with npulab.use('npu') first")
    try:
        kernel = compile_design(compilable(what, on, params))
    except npu_air.Found as found:
        module = found.module
    else:
        return _run_kernel(kernel, args, warmup, iterations)
    return npu_air.run(module, what, args, on, params, warmup=warmup, iterations=iterations)


def _run_kernel(kernel: Any, args: Sequence[Any], warmup: int, iterations: int) -> Measured:
    import aie.iron as iron

    arrays = [np.ascontiguousarray(a) for a in args]
    tensors = guarded(lambda: [iron.tensor(a, dtype=a.dtype) for a in arrays], "device")

    def once() -> float | None:
        result = guarded(lambda: kernel(*tensors), "device")
        return seconds_of(result)

    once()
    outputs = tuple(np.array(guarded(tensor.numpy, "device")) for tensor in tensors)
    return Measured(outputs, measure.repeat(once, warmup=warmup, iterations=iterations))


def seconds_of(result: Any) -> float | None:
    """The time that the runtime measured: ``npu_time`` in nanoseconds, of the result or the second of a pair."""
    outcome = result[1] if isinstance(result, tuple) and len(result) > 1 else result
    nanoseconds = getattr(outcome, "npu_time", None)
    return None if nanoseconds is None else nanoseconds * 1e-9

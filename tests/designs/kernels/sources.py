"""What the tests of the shared kernels have in common: their sources, shapes, compiled forms and inputs."""

from __future__ import annotations

import re
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from ml_dtypes import bfloat16

from designs.kernels.arithmetic import EMULATION, LOWEST, MASKED
from designs.kernels.models import KERNELS
from designs.kernels.spec import Kernel
from npusim.devices import NPU1, NPU2
from npusim.graph import KernelDecl
from npusim.kernels import lookup
from npusim.types import MemRefType
from tests.designs.hostcheck import Kernels, compiled

HERE = Path(__file__).parents[3] / "designs" / "kernels"
DEVICES = {"AIE2": NPU1, "AIE2P": NPU2}
ATTENTION = ("tiles.cc", "matmul_block.cc", "online_softmax.cc", "masks.cc", "merge.cc", "cascade.cc")
BLOCKS = (*ATTENTION, "online_softmax_rows.cc")
"""Sources of kernels on blocks of queries and keys; the last one is an object of its own."""
SHAPES: dict[str, dict[str, int]] = {
    "square": {"BQ": 64, "BK": 64, "DK": 64, "DV": 64},
    "small": {"BQ": 32, "BK": 32, "DK": 64, "DV": 64},
    "uneven": {"BQ": 32, "BK": 64, "DK": 16, "DV": 48},
}
ROWS = {"ROWS": 12, "COLS": 96}
LOOP = {"COUNT": 1024}
PRODUCT = {"DIM_M": 32, "DIM_K": 64, "DIM_N": 48}
ELEMENTS = {"bf16": bfloat16, "f32": np.float32, "i32": np.int32, "i16": np.int16}


def macros_of(kernel: Kernel) -> set[str]:
    """The macros that give a kernel's shapes."""
    return {dim for p in kernel.parameters for dim in p.dims}


def exists(kernel: Kernel, dims: Mapping[str, int]) -> bool:
    """Whether a kernel exists at a shape: causal and window masks need square blocks."""
    return dims.get("BQ") == dims.get("BK") or kernel.name not in ("mask_causal", "mask_window")


def dims_of(kernel: Kernel, shape: str = "square") -> dict[str, int]:
    """Values of a kernel's macros at a named shape."""
    every = SHAPES[shape] | ROWS | LOOP | PRODUCT
    return {name: every[name] for name in macros_of(kernel)}


def defines(arch: str, dims: Mapping[str, int], emulate: bool = True) -> dict[str, Any]:
    """Macros as the designs pass them."""
    return dict(dims) | ({EMULATION[2:]: 1} if arch == "AIE2P" and emulate else {})


def program(kernel: Kernel, arch: Any, shape: str = "square", emulate: bool = True, folder: Path = HERE) -> Kernels:
    """A kernel's source compiled for the host; those of attention come out of one object."""
    attention = kernel.source in ATTENTION
    source = "attention.cc" if attention else kernel.source
    dims = SHAPES[shape] if kernel.source in BLOCKS else ROWS if kernel.source in ("layout.cc", "softmax.cc") else LOOP | PRODUCT
    names = [k.name for k in KERNELS.values() if (k.source in ATTENTION if attention else k.source == source)]
    names = [n for n in names if exists(KERNELS[n], dims)]
    return compiled(folder / source, names, arch, defines(arch, dims, emulate))


def model(kernel: Kernel, arch: str, shape: str = "square", emulate: bool = True) -> Any:
    """The numpy model as a run on a device uses it."""
    dims = dims_of(kernel, shape)
    types = tuple(
        MemRefType(tuple(dims[d] for d in p.dims), p.element) if p.dims else p.element for p in kernel.parameters
    )
    flags = tuple(f"-D{k}={v}" for k, v in defines(arch, dims, emulate).items())
    return lookup(KernelDecl(kernel.name, types, source_file=str(HERE / kernel.source), compile_flags=flags), None, DEVICES[arch])


# ---- inputs


def numbers(rng: np.random.Generator, shape: tuple[int, ...], sort: str) -> np.ndarray[Any, Any]:
    """bf16 values of a sort: what attention sees, or what may trip it."""
    if sort == "normal":
        return rng.standard_normal(shape).astype(bfloat16)
    if sort == "spread":  # magnitudes over the whole middle of the range
        return (rng.standard_normal(shape) * np.exp2(rng.integers(-40, 40, shape))).astype(bfloat16)
    if sort == "denormal":
        return rng.integers(0, 0x0100, shape, dtype=np.uint16).view(bfloat16)
    if sort == "huge":
        return (rng.uniform(-1, 1, shape) * 3.3e38).astype(bfloat16)
    if sort == "equal":
        return np.full(shape, rng.standard_normal(), bfloat16)
    if sort == "zero":
        return np.zeros(shape, bfloat16)
    if sort == "masked":
        return np.full(shape, MASKED, bfloat16)
    if sort == "lowest":
        return np.full(shape, LOWEST, bfloat16)
    if sort == "half masked":
        x = (8 * rng.standard_normal(shape)).astype(bfloat16)
        x[rng.random(shape) < 0.5] = MASKED
        return x
    if sort == "one hot":
        x = np.full(shape, -30000, bfloat16)
        x.reshape(-1)[rng.integers(x.size)] = 30000
        return x
    raise ValueError(sort)


def whole(rng: np.random.Generator, shape: tuple[int, ...], largest: int) -> np.ndarray[Any, Any]:
    """Small whole numbers as bf16: sums of their products are exact in any order."""
    return rng.integers(-largest, largest + 1, shape).astype(bfloat16)


def arguments(kernel: Kernel, dims: Mapping[str, int], rng: np.random.Generator, sort: str) -> list[Any]:
    """Arguments of a kernel: arrays of the given sort (factors and sums as they occur), scalars as designs pass them."""
    made: list[Any] = []
    for p in kernel.parameters:
        shape = tuple(dims[d] for d in p.dims)
        if not p.dims:
            made.append(np.float32(0.18033688) if p.element == "f32" else np.int32(rng.integers(0, 4)))
        elif p.element == "i16":
            made.append(rng.integers(-(2**15), 2**15, shape, dtype=np.int16))
        elif p.element == "i32":
            made.append(rng.integers(-(2**31), 2**31, shape, dtype=np.int32))
        elif p.element == "f32":
            made.append(rng.standard_normal(shape).astype(np.float32))
        elif p.name in ("l", "l_in", "r", "t") and len(shape) == 1:  # sums and corrections: finite, not negative
            made.append(np.abs(numbers(rng, shape, "normal" if sort in ("masked", "half masked", "huge") else sort)))
        elif p.name in ("u", "m", "m_in"):  # maxima begin at the lowest finite number
            made.append(np.maximum(numbers(rng, shape, sort), LOWEST))
        else:
            made.append(numbers(rng, shape, sort))
    return made


# ---- sources


def copied(folder: Path, file: str, old: str, new: str) -> Path:
    """A copy of all sources in ``folder`` with one change, which must be possible in exactly one place."""
    for path in [*HERE.glob("*.cc"), *HERE.glob("*.h")]:
        shutil.copy(path, folder)
    text = (folder / file).read_text()
    assert text.count(old) == 1, f"{old!r} occurs {text.count(old)} times in {file}"
    (folder / file).write_text(text.replace(old, new))
    return folder


_FUNCTION = re.compile(r"^(?:extern \"C\" )?void (\w+)\(([^)]*)\)", re.MULTILINE)
_C_TYPES = {"bfloat16": "bf16", "float": "f32", "int32": "i32", "int32_t": "i32", "int16": "i16"}


def exported(file: Path) -> dict[str, list[tuple[str, str, bool]]]:
    """The extern "C" functions of a source: name -> (parameter name, element, whether it is an array), in order."""
    text = file.read_text()
    _, _, after = text.partition('extern "C"')
    found = {}
    for name, parameters in _FUNCTION.findall("extern \"C\"" + after if after.lstrip().startswith("void") else after):
        found[name] = [_parameter(p) for p in parameters.split(",")]
    return found


def _parameter(text: str) -> tuple[str, str, bool]:
    words = text.replace("*", " * ").replace("__restrict", "").replace("const", "").split()
    return words[-1], _C_TYPES[words[0]], "*" in words

"""Compiles a kernels.cc against the host's aie_api header and calls its functions on numpy arrays, for tests.

The functions run in a process of their own (npusim.hostcc.worker), so a kernel that a test has broken on purpose cannot take
pytest with it; every access outside an argument, and every misaligned vector access, is an error. Where Peano is installed,
:func:`peano_sizes` also compiles the source for the core and says how large the code is and how much stack it needs.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ml_dtypes import bfloat16

from npusim.hostcc import available
from npusim.hostcc.build import build
from npusim.hostcc.compiler import Arch
from npusim.hostcc.model import worker_of
from npusim.hostcc.rates import Counts
from npusim.hostcc.source import Source
from npusim.hostcc.worker import Place

ARCHES: tuple[Arch, ...] = ("AIE2", "AIE2P")
PROGRAM_MEMORY = 16 * 1024  # bytes: AM020 chapter 2

needs_compiler = pytest.mark.skipif(not available(), reason="no g++ or clang++ here to compile kernels for the host")


def macros(defines: Mapping[str, Any]) -> tuple[str, ...]:
    """``{"TILE": 1024, "EXACT": None}`` as ``-DTILE=1024 -DEXACT``."""
    return tuple(f"-D{name}" if value is None else f"-D{name}={value}" for name, value in defines.items())


class Kernels:
    """The functions of a compiled source: ``kernels.saxpy_bf16(x, y, out, np.float32(a))`` works in place on arrays.

    Arrays of bf16 are ml_dtypes' ``bfloat16``; scalars are numpy scalars of the C++ type. Views keep their misalignment.
    A call is made twice, with each array at the start and at the end of its guarded memory, and must give the same bytes.
    """

    def __init__(self, source: Source) -> None:
        self.program = build(source)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name not in [f.name for f in self.program.functions]:
            raise AttributeError(name)
        return lambda *arguments, **options: self.call(name, *arguments, **options)

    def call(self, name: str, *arguments: Any, received: bytes = b"", seconds: float = 10.0) -> Result:
        """Run a function; gives what it counted and the bytes it sent down the cascade. DesignError if it misbehaves."""
        kept = [a.copy() if isinstance(a, np.ndarray) else a for a in arguments]
        first = self._once(name, _twins(arguments, kept), "start", received, seconds)
        second = self._once(name, arguments, "end", received, seconds)
        for i, (one, other) in enumerate(zip(_twins(arguments, kept), arguments, strict=True)):
            if isinstance(other, np.ndarray):
                assert one.tobytes() == other.tobytes(), f"{name}: argument {i} differs from run to run"
        assert first.sent == second.sent, f"{name}: what it sends differs from run to run"
        return second

    def _once(self, name: str, arguments: Sequence[Any], place: Place, received: bytes, seconds: float) -> Result:
        outcome = worker_of(self.program).call(name, arguments, place=place, received=received, seconds=seconds)
        return Result(outcome.counts, outcome.sent)


def _twins(arguments: Sequence[Any], copies: Sequence[Any]) -> list[Any]:
    """The copies, with one copy where one array was passed twice."""
    first = {id(a): c for a, c in reversed(list(zip(arguments, copies, strict=True)))}
    return [first[id(a)] for a in arguments]


@dataclass(frozen=True)
class Result:
    """What a call counted, and what it sent down the cascade."""

    counts: Counts
    sent: bytes


_COMPILED: dict[Source, Kernels] = {}


def compiled(
    source: Path | str,
    functions: Sequence[str],
    arch: Arch,
    defines: Mapping[str, Any] | None = None,
    *,
    include_dirs: Sequence[Path] = (),
    title: str = "kernels.cc",
) -> Kernels:
    """Compile a file (Path) or a text (str) for a device; the same request gives the same process.

    A text that includes files beside its original needs their directory in ``include_dirs``. Raises what npusim.hostcc does.
    """
    options = (*macros(defines or {}), *(f"-I{d}" for d in include_dirs))
    if isinstance(source, Path):
        wanted = Source(tuple(functions), source.name, arch, path=source.resolve(), options=options)
    else:
        wanted = Source(tuple(functions), title, arch, text=source, options=options)
    if wanted not in _COMPILED:
        _COMPILED[wanted] = Kernels(wanted)
    return _COMPILED[wanted]


def mutated(source: Path | str, old: str, new: str, *, count: int = 1) -> str:
    """The text of a source with ``old`` replaced by ``new``; it must occur exactly ``count`` times."""
    text = source.read_text() if isinstance(source, Path) else source
    assert old != new
    assert text.count(old) == count, f"{old!r} occurs {text.count(old)} times, expected {count}"
    return text.replace(old, new)


def same_bits(a: Any, b: Any) -> bool:
    """Whether two arrays hold the same bits, NaNs of any payload counting as one."""
    a, b = np.asarray(a), np.asarray(b)
    if a.dtype != b.dtype or a.shape != b.shape:
        return False
    if a.dtype.kind == "f" or a.dtype == bfloat16:
        nan = np.isnan(a)
        return bool((nan == np.isnan(b)).all()) and a[~nan].tobytes() == b[~nan].tobytes()
    return a.tobytes() == b.tobytes()


def adversarial(n: int, seed: int = 0) -> np.ndarray[Any, Any]:
    """``n`` bf16 values: every sort of number (zeros, denormals, ties, huge, infinite, NaN), then random bit patterns."""
    special = np.array([0x0000, 0x8000, 0x0001, 0x8001, 0x007F, 0x0080, 0x3F80, 0xBF80, 0x3F81, 0x7F7F, 0xFF7F, 0x7F80, 0xFF80,
                        0x7FC0, 0x4049, 0x3EAA], np.uint16)  # fmt: skip
    rest = np.random.default_rng(seed).integers(0, 2**16, max(0, n - special.size), dtype=np.uint16)
    return np.concatenate([special, rest])[:n].view(bfloat16)


# ---- Peano


@dataclass(frozen=True)
class Peano:
    """Where Peano is: its clang++ and the real aie_api headers."""

    compiler: Path
    api: Path


def peano() -> Peano | None:
    """Peano from ``PEANO_INSTALL_DIR`` or the llvm-aie wheel, with the headers of the mlir-aie wheel or ``AIE_API_DIR``."""
    import sysconfig

    site = Path(sysconfig.get_paths()["purelib"])
    homes = [os.environ.get("PEANO_INSTALL_DIR"), site / "llvm-aie"]
    compilers = [Path(h) / "bin" / "clang++" for h in homes if h]
    apis = [Path(d) for d in (os.environ.get("AIE_API_DIR"), site / "mlir_aie" / "include") if d]
    compiler = next((c for c in compilers if c.is_file()), None)
    api = next((a for a in apis if (a / "aie_api" / "aie.hpp").is_file()), None)
    return Peano(compiler, api) if compiler and api else None


needs_peano = pytest.mark.skipif(
    peano() is None,
    reason="no Peano here (PEANO_INSTALL_DIR or the llvm-aie wheel) with the AIE API's headers (AIE_API_DIR or the mlir-aie wheel)",
)


def peano_sizes(source: Path, arch: Arch, defines: Mapping[str, Any], room: Path) -> tuple[int, dict[str, int]]:
    """Compile for the core: bytes of code, and bytes of stack by function. ``room`` is a directory for the object."""
    found = peano()
    assert found is not None
    target = {"AIE2": "aie2", "AIE2P": "aie2p"}[arch]
    made = room / f"{source.stem}.{target}.o"
    command = [
        *(str(found.compiler), "-O2", "-std=c++20", f"--target={target}-none-unknown-elf", "-DNDEBUG", "-fstack-usage"),
        *macros(defines),
        *(f"-I{found.api}", "-c", str(source), "-o", str(made)),
    ]
    subprocess.run(command, check=True, cwd=room)
    size = shutil.which("llvm-size", path=str(found.compiler.parent)) or "size"
    listed = subprocess.run([size, "-A", str(made)], check=True, capture_output=True, text=True).stdout
    code = sum(int(m[1]) for m in re.finditer(r"^\.text\S*\s+(\d+)", listed, re.MULTILINE))
    usage = made.with_suffix(".su")
    rows = usage.read_text().splitlines() if usage.exists() else []
    return code, {row.split("\t")[0].rsplit(":", 1)[-1]: int(row.split("\t")[1]) for row in rows}

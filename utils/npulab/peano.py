"""Peano, the compiler for the cores: where it is, and a C++ kernel compiled with it to an object file.

The flags are those that AMD's examples pass: mlir-air, commit e972f29 of 22 August 2026, programming_examples (Makefiles of
flash_attention/kernel_fusion_based and others); mlir-aie, main of 14 August 2026, python/utils/compile/utils.py. Untested
with the real compiler.
"""

from __future__ import annotations

import importlib.metadata
import os
import shlex
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from npulab.help import explained
from npusim.errors import ToolchainError

ARCH = {"npu1": "aie2", "npu2": "aie2p"}
"""Cores of each family of devices, as in Peano's target triples."""

COMMON = (
    *("-O2", "-std=c++20", "-DNDEBUG"),
    *("-Wno-parentheses", "-Wno-attributes", "-Wno-macro-redefined", "-Wno-empty-body"),  # the AIE API's own
    "-D__AIE_API_AIE_ADF_HPP__",  # the guard of a header that needs Vitis: the AIE API then leaves it out
)
ONLY = {"npu1": ("-mllvm", "-aie-disable-fold-imm"), "npu2": ()}
"""Peano of 2026 reads a register too early on XDNA 1 after folding constants: wrong numbers (mlir-air pull request 1684)."""


@dataclass(frozen=True)
class Object:
    """An object file that a design links: its name, its C++ source, and flags. ``folder`` is what paths in the flags are
    relative to; ``family`` is ``npu1`` or ``npu2``."""

    name: str
    source: Path
    flags: tuple[str, ...]
    folder: Path
    family: str


def home() -> Path:
    """Where Peano is installed: ``PEANO_INSTALL_DIR``, else the wheel llvm-aie.

    Raises:
        ToolchainError: if there is no compiler.
    """
    said = os.environ.get("PEANO_INSTALL_DIR")
    place = Path(said) if said else _wheel()
    if place is not None and (place / "bin" / "clang++").is_file():
        return place.resolve()
    reason = f"PEANO_INSTALL_DIR={said} has no bin/clang++: unset it or point it at Peano"
    if not said:
        reason = "the wheel llvm-aie is not installed (see environment.yml), and PEANO_INSTALL_DIR is not set"
    raise ToolchainError(f"Peano, the compiler for the cores, is missing: {reason}")


def _wheel() -> Path | None:
    try:
        return Path(str(importlib.metadata.distribution("llvm-aie").locate_file("llvm-aie")))
    except importlib.metadata.PackageNotFoundError:
        return None


def compiler() -> Path:
    """The C++ compiler. Raises ToolchainError if there is none."""
    return home() / "bin" / "clang++"


def identity() -> bytes:
    """What tells this compiler from another one, also where no package's version does."""
    return f"{compiler()} {compiler().stat().st_mtime_ns}".encode()


def headers() -> Path:
    """The folder of C++ headers in mlir_aie, the AIE API among them. Raises ToolchainError if it cannot be told."""
    try:
        from aie.utils.config import cxx_header_path

        return Path(cxx_header_path())
    except (ImportError, RuntimeError) as error:
        raise explained(error, "toolchain") from error


def preprocessed(made: Object) -> bytes:
    """All that the compiler reads of an object's source: with every header, and the flags' macros in place.

    Raises:
        ToolchainError: with the compiler's words, if it refuses.
    """
    return _run(made, ["-E", "-P", str(made.source)])


def compile_object(made: Object, file: Path) -> None:
    """Compile an object file.

    Raises:
        ToolchainError: with the compiler's words, if it refuses or leaves no file.
    """
    _run(made, ["-c", str(made.source), "-o", str(file)])
    if not file.exists():
        raise ToolchainError(f"Peano ended without an error, but made no {made.name} of {made.source}")


def _run(made: Object, what: Sequence[str]) -> bytes:
    target = f"--target={ARCH[made.family]}-none-unknown-elf"
    flags = [target, *COMMON, *ONLY[made.family], f"-I{headers()}", *made.flags]
    command = [str(compiler()), *flags, *what]
    try:
        done = subprocess.run(command, cwd=made.folder, capture_output=True, check=False)
    except OSError as error:
        raise ToolchainError(f"Peano cannot be started: {error}") from error
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip() or f"(nothing said; exit code {done.returncode})"
        what_for = f"{made.source.name}, which {made.name} is made of"
        raise ToolchainError(f"Peano refused {what_for}:\n{said}\n{shlex.join(command)}")
    return done.stdout

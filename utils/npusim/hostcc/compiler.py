"""The host's C++ compiler: found, asked for its version, called.

g++ 11 or clang++ 14 at least (C++20 with ``<source_location>`` and ``<bit>``). ``NPUSIM_CXX`` names another one.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Literal

from npusim.errors import UnsupportedError

INCLUDE = Path(__file__).parent / "include"
WORKER = Path(__file__).parent / "worker.cc"
Arch = Literal["AIE2", "AIE2P"]
ARCH_NUMBER = {"AIE2": 20, "AIE2P": 21}
"""``__AIE_ARCH__`` of Peano and of the AIE API (Xilinx/aie_api include/aie_api/detail/config.hpp)."""

# Floats as IEEE says, without fused multiply-add: results must not depend on the host. Type punning is common in kernels.
_CODE = ("-std=c++20", "-O2", "-g1", "-fPIE", "-ffp-contract=off", "-fno-math-errno", "-fno-strict-aliasing", "-fwrapv")
_MESSAGES = ("-w", "-fdiagnostics-color=never")
_MESSAGES_OF = {
    "g++": ("-ftrack-macro-expansion=0", "-fmax-errors=5"),
    "clang++": ("-fmacro-backtrace-limit=1", "-ferror-limit=5"),
}
_DEFINES = ("-D__AIENGINE__", "-D__aie__", "-D__AIE_HOST__")


@dataclass(frozen=True)
class Compiler:
    """A C++ compiler: its path, its kind (how it wants its options) and its version text, which keys the cache."""

    path: str
    kind: Literal["g++", "clang++"]
    version: str

    def options(self, arch: Arch) -> tuple[str, ...]:
        """Every option but the source's own."""
        number = ARCH_NUMBER[arch]
        defines = (*_DEFINES, f"-D__AIE_ARCH__={number}", f"-D__AIEARCH__={number}")
        return (*_CODE, *_MESSAGES, *_MESSAGES_OF[self.kind], *defines, f"-I{INCLUDE}")

    def run(self, arguments: Sequence[str]) -> subprocess.CompletedProcess[str]:
        """Call it; messages in English, so that they can be read by :mod:`npusim.hostcc.messages`."""
        environment = {**os.environ, "LC_ALL": "C", "LANGUAGE": "C"}
        return subprocess.run([self.path, *arguments], capture_output=True, text=True, env=environment, check=False)


@lru_cache(maxsize=8)
def _ask(path: str) -> Compiler | None:
    try:
        asked = subprocess.run([path, "--version"], capture_output=True, text=True, check=False, timeout=20)
    except (OSError, subprocess.TimeoutExpired):
        return None
    if asked.returncode:
        return None
    return Compiler(path, "clang++" if "clang" in asked.stdout.lower() else "g++", asked.stdout.strip())


def find() -> Compiler | None:
    """The compiler to use: ``NPUSIM_CXX``, else g++, else clang++, else c++; None if there is none."""
    for name in (os.environ.get("NPUSIM_CXX"), "g++", "clang++", "c++"):
        path = shutil.which(name) if name else None
        found = _ask(path) if path else None
        if found:
            return found
    return None


def available() -> bool:
    """Whether kernels can be compiled here: a compiler, and a POSIX system to run them on."""
    return os.name == "posix" and find() is not None


def need(what: str) -> Compiler:
    """The compiler; UnsupportedError that says what to install for ``what`` if there is none."""
    found = find()
    if found is None or os.name != "posix":
        raise UnsupportedError(
            f"{what} must be compiled for the host, and there is no C++ compiler (g++ or clang++) here: install one "
            "(Debian and Ubuntu: apt install g++; Fedora: dnf install gcc-c++; macOS: xcode-select --install), name it in "
            "NPUSIM_CXX, or give the kernel a numpy model with @npusim.kernels.model"
        )
    return found

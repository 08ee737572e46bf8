"""What is needed to run designs on a real NPU, what of it is here, and what works without.

Nothing is changed. Everything in the book runs on the simulated NPU, for which Python and the pinned packages suffice. Exit
code 0: the NPU can be used, or was not asked for (without ``--npu``); 1: something that is needed is missing.
"""

from __future__ import annotations

import argparse
import os
import platform
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Literal, NamedTuple

from npulab import hardware

State = Literal["ok", "missing", "doubtful"]
Area = Literal["simulated NPU", "NPU"]

PYTHONS = ((3, 11), (3, 14))
"""The versions of Python that the book supports: from the first, below the second (pyproject.toml)."""
MLIR_AIE = "1.4"
MODULES = Path("/proc/modules")


class Finding(NamedTuple):
    """One thing looked at. ``advice`` says what to do if it is not ok."""

    area: Area
    what: str
    state: State
    detail: str
    advice: str = ""


def _python() -> Finding:
    here = sys.version_info[:2]
    fits = PYTHONS[0] <= here < PYTHONS[1]
    advice = "" if fits else "Use Python 3.11, 3.12 or 3.13."
    return Finding("simulated NPU", "Python", "ok" if fits else "missing", platform.python_version(), advice)


def _package(name: str, why: str) -> Finding:
    found = hardware.version(name)
    advice = "" if found else "Run `make .venv` in the repository (or `pip install -e .`)."
    return Finding("simulated NPU", name, "ok" if found else "missing", found or why, advice)


def _system() -> Finding:
    fits = platform.system() == "Linux"
    advice = "" if fits else "The NPU's open toolchain runs on Linux (kernel 6.14 or newer has the driver)."
    return Finding(
        "NPU", "operating system", "ok" if fits else "missing", f"{platform.system()} {platform.release()}", advice
    )


def _driver() -> Finding:
    loaded = MODULES.exists() and re.search(r"^amdxdna\b", MODULES.read_text(), re.M)
    builtin = Path("/sys/module/amdxdna").exists()
    advice = "Load it: `sudo modprobe amdxdna`; if there is none, install xdna-driver (or a kernel of 6.14 or newer) and look for amdxdna in `sudo dmesg`."
    state: State = "ok" if loaded or builtin else "missing"
    return Finding(
        "NPU",
        "kernel module amdxdna",
        state,
        "loaded" if state == "ok" else "not loaded",
        "" if state == "ok" else advice,
    )


def _device_file() -> Finding:
    file = hardware.DEVICE_FILE
    if not file.exists():
        return Finding(
            "NPU",
            str(file),
            "missing",
            "does not exist",
            "Without the driver there is no device file; is the NPU enabled in the BIOS?",
        )
    if not os.access(file, os.R_OK | os.W_OK):
        advice = "Join the group that owns it: `sudo usermod -aG render $USER`, then log in again."
        return Finding("NPU", str(file), "missing", "no permission", advice)
    return Finding("NPU", str(file), "ok", "may be read and written")


def _memlock() -> Finding:
    try:
        import resource
    except ImportError:
        return Finding("NPU", "locked memory", "doubtful", "unknown on this system")
    soft, _ = resource.getrlimit(resource.RLIMIT_MEMLOCK)
    if soft == resource.RLIM_INFINITY:
        return Finding("NPU", "locked memory", "ok", "unlimited")
    advice = (
        "Buffers of the NPU are locked memory; a low limit gives `mmap ... err=-11`. Set `* hard memlock unlimited` and "
        "`* soft memlock unlimited` in /etc/security/limits.conf and log in again."
    )
    return Finding("NPU", "locked memory", "doubtful", f"{soft // 1024} KiB", advice)


def _xrt() -> Finding:
    tool = hardware.xrt_smi()
    advice = "Install XRT (from xdna-driver) and `source /opt/xilinx/xrt/setup.sh`."
    return Finding("NPU", "XRT (xrt-smi)", "ok" if tool else "missing", tool or "not found", "" if tool else advice)


def _pyxrt() -> Finding:
    found = hardware.find_real("pyxrt")
    advice = (
        "It comes with XRT, built for the system's Python (3.12 on Ubuntu 24.04), and is found through PYTHONPATH, which "
        "/opt/xilinx/xrt/setup.sh sets."
    )
    return Finding(
        "NPU",
        "pyxrt",
        "ok" if found else "missing",
        str(found.origin) if found else "not importable",
        "" if found else advice,
    )


def _mlir_aie() -> Finding:
    found = hardware.version("mlir_aie")
    install = (
        f"Install mlir_aie {MLIR_AIE}.x from its tagged release page (see environment.yml), never from latest-wheels."
    )
    if found is None:
        state: State = "ok" if hardware.find_real("aie") else "missing"
        return Finding(
            "NPU",
            "mlir_aie",
            "doubtful" if state == "ok" else state,
            "no version known" if state == "ok" else "not installed",
            install,
        )
    fits = found == MLIR_AIE or found.startswith(f"{MLIR_AIE}.")
    return Finding(
        "NPU",
        "mlir_aie",
        "ok" if fits else "doubtful",
        found,
        "" if fits else f"This book is written for {MLIR_AIE}. {install}",
    )


def _air() -> Finding:
    found = hardware.version("mlir_air")
    advice = "Only the MLIR-AIR designs need it; take the wheel that pins the same mlir_aie (see environment.yml)."
    return Finding("NPU", "mlir_air", "ok" if found else "doubtful", found or "not installed", "" if found else advice)


def _peano() -> Finding:
    place = os.environ.get("PEANO_INSTALL_DIR")
    if place and not Path(place, "bin", "clang++").exists():
        return Finding(
            "NPU", "Peano", "missing", f"PEANO_INSTALL_DIR={place} has no bin/clang++", "Unset it or point it at Peano."
        )
    found = hardware.version("llvm-aie") or place
    advice = "The compiler for the cores: the wheel llvm-aie, which mlir_aie installs with."
    return Finding(
        "NPU", "Peano (llvm-aie)", "ok" if found else "missing", found or "not installed", "" if found else advice
    )


def _npu() -> Finding:
    found = hardware.find_npu()
    advice = "" if found else "Start with the first missing line above."
    return Finding("NPU", "device", "ok" if found else "missing", found.name or found.family or found.reason, advice)


PACKAGES = (("numpy", "not installed"), ("ml_dtypes", "not installed"), ("matplotlib", "not installed"))
CHECKS: tuple[Callable[[], Finding], ...] = (
    _python,
    *((lambda name=name, why=why: _package(name, why)) for name, why in PACKAGES),
    _system,
    _driver,
    _device_file,
    _memlock,
    _xrt,
    _pyxrt,
    _mlir_aie,
    _peano,
    _air,
    _npu,
)


def findings() -> Iterator[Finding]:
    """Each check's finding; one that breaks is doubtful."""
    for check in CHECKS:
        try:
            yield check()
        except Exception as error:  # a doctor must not fall ill
            yield Finding(
                "NPU", check.__name__.strip("_"), "doubtful", f"could not be looked at: {type(error).__name__}: {error}"
            )


def report(found: Sequence[Finding]) -> str:
    """The findings as text, what to do under each that is not ok, and what works."""
    mark = {"ok": "ok      ", "missing": "MISSING ", "doubtful": "doubtful"}
    wide = max(len(f.what) for f in found)
    lines: list[str] = []
    for area in ("simulated NPU", "NPU"):
        lines.append(f"{area}:")
        for f in (f for f in found if f.area == area):
            lines.append(f"  {mark[f.state]}  {f.what:<{wide}}  {f.detail}")
            if f.advice:
                lines.append(f"            -> {f.advice}")
    return "\n".join([*lines, "", *verdict(found)])


def usable(found: Sequence[Finding], area: Area) -> bool:
    """Whether nothing that the area needs is missing."""
    return not any(f.state == "missing" for f in found if f.area == area)


def verdict(found: Sequence[Finding]) -> list[str]:
    """What works and what does not, in a few lines."""
    if not usable(found, "simulated NPU"):
        return ["The book does not run yet: see the missing lines under the simulated NPU."]
    lines = ["The book runs on the simulated NPU."]
    if usable(found, "NPU"):
        return [*lines, "Designs can run on the NPU: npulab.use('npu'), or NPULAB_BACKEND=npu."]
    return [*lines, "Designs cannot run on the NPU here; everything works without it, with simulated times."]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of ``npulab doctor``."""
    parser.add_argument("--npu", action="store_true", help="fail (exit code 1) if designs cannot run on the NPU")


def run(options: argparse.Namespace) -> int:
    """Print the report; returns the exit code."""
    found = list(findings())
    print(report(found))
    ready = usable(found, "simulated NPU") and (not options.npu or usable(found, "NPU"))
    return 0 if ready else 1


def main(argv: Sequence[str] | None = None) -> int:
    """``python -m npulab.doctor``; needs nothing but Python."""
    parser = argparse.ArgumentParser(
        prog="npulab doctor", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add_arguments(parser)
    return run(parser.parse_args(argv))


if __name__ == "__main__":
    sys.exit(main())

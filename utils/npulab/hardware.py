"""What is here of the real thing: packages, device file, driver, and which NPU it is. Looks, and changes nothing.

Facts: device names as XRT reports them (mlir-aie python/utils/hostruntime/xrtruntime/hostruntime.py, August 2026); the
device file of the amdxdna driver. Untested on hardware.
"""

from __future__ import annotations

import importlib.machinery
import importlib.metadata
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

DEVICE_FILE = Path("/dev/accel/accel0")
MODELS: dict[str, tuple[str, ...]] = {
    "npu1": ("npu1", "phoenix", "hawk point"),
    "npu2": ("npu4", "npu5", "npu6", "strix", "krackan"),
}
"""Words in XRT's name of the device, lower case."""

PACKAGES = {"aie": "mlir_aie", "pyxrt": "XRT (a system package)"}


def find_real(name: str) -> importlib.machinery.ModuleSpec | None:
    """Where the real top-level package ``name`` would be imported from; never the embedded one.

    Asks the path alone, so neither the simulated NPU's finder nor what it has put into ``sys.modules`` counts.
    """
    return importlib.machinery.PathFinder.find_spec(name)


def version(distribution: str) -> str | None:
    """The installed version of a distribution, None if it is not installed."""
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return None


def family_of(text: str) -> str | None:
    """``npu1`` or ``npu2`` from XRT's words for a device, None if they name neither."""
    lowered = text.lower()
    for family, words in MODELS.items():
        if any(word in lowered for word in words):
            return family
    return None


@dataclass(frozen=True)
class Found:
    """Whether an NPU can be used, and if not, the first reason."""

    family: str | None
    name: str = ""
    reason: str = ""

    def __bool__(self) -> bool:
        return self.family is not None


def ask_pyxrt() -> str:
    """The name of device 0 from XRT; raises whatever pyxrt raises."""
    import pyxrt

    return str(pyxrt.device(0).get_info(pyxrt.xrt_info_device.name))


def xrt_smi() -> str | None:
    """Path of the xrt-smi tool, None if there is none."""
    base = os.environ.get("XILINX_XRT", "/opt/xilinx/xrt")
    return shutil.which("xrt-smi") or next((str(p) for p in [Path(base, "bin", "xrt-smi")] if p.exists()), None)


def ask_xrt_smi(timeout: float = 10.0) -> str:
    """What ``xrt-smi examine`` prints; OSError if there is no such tool or it fails."""
    tool = xrt_smi()
    if tool is None:
        raise OSError("no xrt-smi")
    done = subprocess.run([tool, "examine"], capture_output=True, text=True, timeout=timeout, check=False)
    if done.returncode:
        raise OSError(done.stderr.strip() or f"xrt-smi examine ended with {done.returncode}")
    return done.stdout


def _family() -> Found:
    """Ask XRT's Python binding, then its tool."""
    problems = []
    for ask in (ask_pyxrt, ask_xrt_smi):
        try:
            said = ask()
        except Exception as error:  # a binding of another build raises all sorts of things
            problems.append(f"{type(error).__name__}: {error}")
            continue
        if family := family_of(said):
            return Found(family, said.strip().splitlines()[0] if ask is ask_pyxrt else family)
        problems.append(f"an unknown device: {said.strip()[:80]!r}")
    return Found(None, reason=f"XRT shows no NPU ({'; '.join(problems)})")


def find_npu() -> Found:
    """Whether the real packages and an NPU are here. Cheap checks first; XRT is asked only if they pass."""
    for package, where in PACKAGES.items():
        if find_real(package) is None:
            return Found(None, reason=f"the package {package} ({where}) is not installed")
    if sys.platform.startswith("linux") and not DEVICE_FILE.exists():
        return Found(None, reason=f"there is no {DEVICE_FILE}")
    return _family()

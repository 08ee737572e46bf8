"""What the real tools' error messages mean, in words a learner can act on.

Each entry: a pattern in the message, whose fault it usually is, and what to do. Sources: the issue threads of mlir-aie,
xdna-driver and FastFlowLM named beside each entry. Used for errors of the real path only; untested on hardware.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Literal, NamedTuple

from npusim.errors import DeviceError, NpuError, ToolchainError


class Entry(NamedTuple):
    """A message and its meaning."""

    pattern: str
    kind: Literal["device", "toolchain"]
    help: str
    source: str


ENTRIES: tuple[Entry, ...] = (
    Entry(
        r"ERT_CMD_STATE_TIMEOUT|Timer expired|err=-?62\b",
        "device",
        "The NPU did not finish in time: either the design waits for ever (run it on the simulated NPU, which says who waits "
        "for whom), or it is only slow. If the NPU hangs now: `sudo modprobe -r amdxdna && sudo modprobe amdxdna`, else reboot.",
        "Xilinx/mlir-aie issues 1751, 2501, 1539",
    ),
    Entry(
        r"ERT_CMD_STATE_(ERROR|ABORT)",
        "device",
        "The NPU's firmware refused the command. Driver, firmware and XRT must be of one release, and the design must be made "
        "for this generation of NPU.",
        "Xilinx/mlir-aie issue 1757",
    ),
    Entry(
        r"err=-?11\b|Resource temporarily unavailable",
        "device",
        "Locked memory is limited: `ulimit -l` must be unlimited (/etc/security/limits.conf: `* hard memlock unlimited` and "
        "`* soft memlock unlimited`, then log in again).",
        "amd/xdna-driver issue 903",
    ),
    Entry(
        r"err=-?28\b|No space left on device",
        "device",
        "The columns that the design asks for are taken or do not exist: end other programs that use the NPU, or ask for fewer.",
        "Xilinx/mlir-aie issue 2333",
    ),
    Entry(
        r"No such device( with index)?|No devices? found|0 devices found",
        "device",
        "XRT sees no NPU: the driver is not loaded, or driver and XRT are of different releases. It is not your design.",
        "amd/xdna-driver issues 50, 168; Xilinx/mlir-aie issues 2615, 1618",
    ),
    Entry(
        r"Permission denied|err=-?13\b",
        "device",
        "No access to /dev/accel/accel0: your user must be in the group that owns it (`sudo usermod -aG render $USER`).",
        "amdxdna driver documentation",
    ),
    Entry(
        r"Cannot import pyxrt|No module named 'pyxrt'",
        "device",
        "pyxrt belongs to the system's XRT and to the Python it was built for: source /opt/xilinx/xrt/setup.sh in that Python.",
        "Xilinx/mlir-aie python/utils/hostruntime/xrtruntime/__init__.py",
    ),
    Entry(
        r"not loadable on runtime device",
        "device",
        "The design was made for another generation of NPU than the one here.",
        "Xilinx/mlir-aie issue 1946",
    ),
    Entry(
        r"allocated buffers exceeded available memory",
        "toolchain",
        "Depth x object size + stack is more than the tile has (64 KiB on a compute tile, 512 KiB on a MemTile). The simulated "
        "NPU says which fifo.",
        "Xilinx/mlir-aie pull request 1427",
    ),
    Entry(
        r"Overflow of program memory|section '?\.text'? will not fit",
        "toolchain",
        "The core's code is larger than 16 KiB: loops were unrolled (use range_), or several kernels do not fit together.",
        "Xilinx/mlir-aie issues 2426, 1773",
    ),
    Entry(
        r"xclbinutil|bootgen|expected output file",
        "toolchain",
        "aiecc made no xclbin: xclbinutil and bootgen come with XRT; source /opt/xilinx/xrt/setup.sh.",
        "Xilinx/mlir-aie python/utils/compile/jit/compilabledesign.py",
    ),
    Entry(
        r"No module named 'air\b|tool 'aircc' was not found|could not find aiecc",
        "toolchain",
        "MLIR-AIR is missing, or does not find the rest of the toolchain. The designs of MLIR-AIR need the wheel mlir_air beside "
        "mlir_aie (see environment.yml); those of IRON do not.",
        "Xilinx/mlir-air python/air/tools.py, tools/aircc/aircc.cpp",
    ),
    Entry(
        r"Peano|clang\+\+|llvm-aie",
        "toolchain",
        "The compiler for the cores (Peano, the wheel llvm-aie) is missing or refused the C++ source.",
        "Xilinx/mlir-aie python/utils/config.py",
    ),
    Entry(
        r"No module named 'aie\.|cannot import name .* from 'aie",
        "toolchain",
        "Package and design are of different versions: this book needs mlir_aie 1.4 (see environment.yml).",
        "Xilinx/mlir-aie issues 2804, 1954",
    ),
)


def find(message: str) -> Entry | None:
    """The first entry that fits a message."""
    return next((entry for entry in ENTRIES if re.search(entry.pattern, message, re.I)), None)


def explained(error: BaseException, default: Literal["device", "toolchain"]) -> NpuError:
    """The error as DeviceError or ToolchainError, with what it means where that is known."""
    message = f"{type(error).__name__}: {error}"
    entry = find(message)
    kind = {"device": DeviceError, "toolchain": ToolchainError}[entry.kind if entry else default]
    advice = f"\n{entry.help}" if entry else "\n`python -m npulab doctor` checks the installation."
    return kind(message + advice)


def guarded(call: Callable[[], Any], default: Literal["device", "toolchain"]) -> Any:
    """What ``call`` gives, with errors of the toolchain or the device explained; what a design raises stays as it is."""
    try:
        return call()
    except (NpuError, ValueError, TypeError, KeyboardInterrupt):
        raise
    except Exception as error:
        raise explained(error, default) from error

"""``aie.utils.config`` and ``aie.utils.compile``: where the real toolchain lies, which designs only pass on.

Nothing is compiled here. The headers' path is a name under which no file exists; kernels whose source is below it are
known by their name only.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

from npusim.errors import UnsupportedError
from npusim.frontends.iron.device import Device
from npusim.frontends.iron.enums import AIEArch

HEADERS = "mlir_aie_include"


def cxx_header_path() -> str:
    """Stands for the folder of mlir-aie's C++ headers and kernel sources."""
    return HEADERS


def root_path() -> str:
    """Stands for the folder of the mlir-aie installation."""
    return "mlir_aie"


def resolve_target_arch(device: Any = None) -> str:
    """``aie2`` or ``aie2p``, the architecture of a device (None: ``aie2``)."""
    if device is None:
        return "aie2"
    made = device if isinstance(device, Device) else Device(device)
    return "aie2p" if made.arch == AIEArch.AIE2p else "aie2"


def _refusing(name: str, why: str) -> Callable[..., NoReturn]:
    def refuse(*args: Any, **kwargs: Any) -> NoReturn:
        raise UnsupportedError(f"{name}() is not served: {why}")

    refuse.__name__ = refuse.__qualname__ = name
    refuse.__doc__ = "Not served: raises UnsupportedError."
    return refuse


_COMPILERS = "peano_install_dir peano_cxx_path peano_linker_path aiecc_path objcopy_path"
_COMPILING = "compile_cxx_core_function compile_mlir_module compile_external_kernel"
_TRACES = "get_cycles get_cycles_summary print_cycles_summary"
CONFIG: dict[str, Any] = {
    "cxx_header_path": cxx_header_path,
    "root_path": root_path,
    **{name: _refusing(name, "the simulated NPU needs no compiler") for name in _COMPILERS.split()},
}
COMPILE: dict[str, Any] = {
    "resolve_target_arch": resolve_target_arch,
    **{name: _refusing(name, "the simulated NPU compiles nothing") for name in _COMPILING.split()},
}
TRACE_UTILS: dict[str, Any] = {
    name: _refusing(name, "there is no hardware trace; a simulated run records its own, see the report of the run")
    for name in _TRACES.split()
}

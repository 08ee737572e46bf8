"""``air.backend.xrt`` with the simulated NPU behind it: compile is placement, a loaded module is a simulator.

Options that only steer the real compiler's files and names are taken and change nothing; those that would change what is
made, and that the simulator has no notion of, are refused.
"""

from __future__ import annotations

import abc
import os
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from npusim.air.graph import Options
from npusim.air.machine import AirMachine
from npusim.errors import DesignError, UnsupportedError
from npusim.frontends import tracing
from npusim.frontends.air.context import Module
from npusim.frontends.iron.current import runtime_name
from npusim.place import place
from npusim.report import Report

NPU_MODELS = {
    "npu1": ["npu1", "Phoenix"],
    "npu2": ["npu4", "Strix", "npu5", "Strix Halo", "npu6", "Krackan"],
}
"""Names of NPUs as xrt-smi reports them, by generation."""


class AirBackendError(Exception):
    """What a backend refuses."""

    def __init__(self, message: Any) -> None:
        super().__init__(message)


class AirBackend(abc.ABC):
    """The interface of AIR's backends."""

    @abc.abstractmethod
    def compile(self, module: Any) -> Any:
        """Compile a module."""

    @abc.abstractmethod
    def load(self, artifact: Any) -> Any:
        """Load what compile gave, as something that can be called with arrays."""


def detect_target_device(verbose: bool = False, default: str = "npu1") -> str:
    """The NPU to make designs for: AIR_TARGET_DEVICE, else the device that the simulated backend is set to."""
    override = os.environ.get("AIR_TARGET_DEVICE", "").strip()
    if override and override not in NPU_MODELS:
        raise ValueError(
            f"AIR_TARGET_DEVICE={override!r} is not a known NPU generation; expected one of {sorted(NPU_MODELS)}"
        )
    return override or runtime_name().partition("_")[0]


class XRTCompileArtifact:
    """What ``compile`` gives: names as the real compiler would use for its files, and the placed machine."""

    def __init__(self, output_binary: Any, kernel: Any, insts: Any, txn_header: Any = None) -> None:
        self.output_binary, self.kernel, self.insts, self.txn_header = output_binary, kernel, insts, txn_header
        self.machine: AirMachine | None = None


class XRTBackend(AirBackend):
    """AIR's backend for NPUs: ``compile`` a module, ``load`` it, call it with arrays."""

    def __init__(
        self,
        verbose: bool = False,
        target_device: str = None,  # type: ignore[assignment]  # noqa: RUF013
        omit_while_true_loop: bool = False,
        omit_pingpong: str = "",
        lower_linalg_to_func: str = None,  # type: ignore[assignment]  # noqa: RUF013
        derive_library_call: bool = False,
        air_loop_fusion: bool = False,
        runtime_loop_tiling_sizes: list[int] = [],  # noqa: B006 - as recorded
        omit_auto_broadcast: bool = False,
        channel_multiplexing: list[str] = [],  # noqa: B006
        use_lock_race_condition_fix: bool = False,
        use_lock_race_condition_fix_v2: bool = False,
        coalesce_shim_dma: bool = False,
        trace_offset: int = 0,
        trace_size: int = 0,
        output_format: str = "xclbin",
        kernel_name: str = "",
        instance_name: str = "",
        kernel_id: str = "",
        xclbin_input: str = "",
        num_device_cols: int = 0,
        debug_ir: bool = False,
        emit_txn_cpp: bool = False,
        bf16_emulation: bool = False,
        stack_size: int = 1024,
        n_perf_iters: int = 0,
        n_warmup_iters: int = 10,
    ) -> None:
        if use_lock_race_condition_fix and use_lock_race_condition_fix_v2:
            raise AirBackendError(
                "use_lock_race_condition_fix and use_lock_race_condition_fix_v2 are mutually exclusive"
            )
        for name, n in (("n_perf_iters", n_perf_iters), ("n_warmup_iters", n_warmup_iters)):
            if not isinstance(n, int) or n < 0:
                raise ValueError(f"`{name}` must be a non-negative integer")
        if not isinstance(stack_size, int) or stack_size <= 0:
            raise ValueError("`stack_size` must be a positive integer")
        refused = {
            "lower_linalg_to_func": lower_linalg_to_func,
            "derive_library_call": derive_library_call,
            "air_loop_fusion": air_loop_fusion,
            "channel_multiplexing": channel_multiplexing,
            "coalesce_shim_dma": coalesce_shim_dma,
            "trace_size": trace_size,
            "trace_offset": trace_offset,
            "emit_txn_cpp": emit_txn_cpp,
            "bf16_emulation": bf16_emulation,
        }
        for name, value in refused.items():
            if value:
                raise UnsupportedError(f"the option {name}={value!r} is not served by the simulated NPU")
        self.verbose, self.target_device = verbose, target_device
        self.output_format, self.instance_name = output_format, instance_name
        self.num_device_cols = num_device_cols
        pingpong = ("all" if omit_pingpong else "") if isinstance(omit_pingpong, bool) else omit_pingpong
        if pingpong not in ("", "L1", "L2", "all"):
            raise DesignError(f"omit_pingpong={omit_pingpong!r}: '', 'L1', 'L2' or 'all'")
        self.options = Options(pingpong, stack_size)
        self.n_perf_iters, self.n_warmup_iters = n_perf_iters, n_warmup_iters
        self.last_latency_us: float | None = None
        self.last_report: Report | None = None
        self.currently_loaded = False

    def compile(
        self, air_module: Any, output_binary_name: Any = "air", kernel: Any = "MLIR_AIE", insts: Any = "air.insts.bin"
    ) -> XRTCompileArtifact:
        """Place a module on its device. Raises DesignError, CapacityError or UnsupportedError for what cannot be."""
        if self.currently_loaded:
            raise AirBackendError(
                "Cannot use XRTBackend to compile while the artifact is currently loaded. Call unload() first."
            )
        if not isinstance(air_module, Module):
            raise AirBackendError(f"compile needs a module, got {air_module!r}")
        artifact = XRTCompileArtifact(f"{output_binary_name}.{self.output_format}", kernel, insts)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            machine = place(air_module.design_for(self._device(), self.options))
        at = tracing.here()
        for warning in caught:
            warnings.warn_explicit(warning.message, warning.category, at.file, at.line)
        assert isinstance(machine, AirMachine)
        artifact.machine = machine
        return artifact

    def _device(self) -> str:
        name = self.target_device or runtime_name()
        family = name.partition("_")[0]
        if self.output_format == "elf" and family == "npu1":
            raise AirBackendError(f"output_format='elf' is not supported for {name} target. Use 'xclbin' or 'pdi'.")
        if not self.num_device_cols:
            return name
        return f"{family}_{self.num_device_cols}col"

    def load(self, artifact: XRTCompileArtifact) -> Callable[..., tuple[np.ndarray[Any, Any], ...]]:
        """A compiled module as something to call: arrays in and out in the order of the function, copies back."""
        if self.currently_loaded:
            raise AirBackendError("Cannot use XRTBackend to load while an artifact is loaded. Call unload() first.")
        machine = artifact.machine
        if machine is None:
            raise AirBackendError("load needs what compile() gave")
        from npusim import run

        def invoke(*args: Any) -> tuple[np.ndarray[Any, Any], ...]:
            arrays = [np.array(a) for a in args]
            report = run.simulate(machine, arrays)
            self.last_report = report
            self.last_latency_us = report.seconds * 1e6 if self.n_perf_iters else None
            return tuple(a.reshape(-1) for a in arrays)

        self.currently_loaded = True
        return invoke

    def compile_and_load(self, module: Any) -> Any:
        """Both in one."""
        return self.load(self.compile(module))

    def compile_from_torch_mlir(self, imported_module: Any, pipeline: Any = None, verbose: bool = False) -> Any:
        """Not served: there is no torch-mlir here."""
        raise UnsupportedError("compile_from_torch_mlir is not served by the simulated NPU")

    def unload(self) -> None:
        """Forget what is loaded."""
        self.currently_loaded = False

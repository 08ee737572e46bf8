"""The rest of ``aie.utils`` that host programs name: runtime, compiled kernels, trace configuration.

There is no driver and there are no compiled files here, so what needs them raises UnsupportedError and says what to use:
designs are run by calling an ``@iron.jit`` function, traced with ``python -m npusim run DESIGN.py --trace FILE``.
"""

from __future__ import annotations

from typing import Any, NoReturn

from npusim.errors import DesignError, UnsupportedError
from npusim.frontends.iron import current

_NO_FILES = "the simulated NPU loads no compiled files (xclbin, ELF); call the @iron.jit design instead"


class TraceConfig:
    """How a design would be traced on hardware. Accepted, so that programs run; the hardware's trace is not made."""

    DEFAULT_TRACE_FILE = "trace.txt"

    def __init__(
        self,
        trace_size: int,
        trace_file: str = DEFAULT_TRACE_FILE,
        reuse_output_buffer: bool = False,
        enable_ctrl_pkts: bool = False,
        last_tensor_shape: Any = None,
        last_tensor_dtype: Any = None,
    ) -> None:
        if trace_size <= 0:
            raise DesignError(f"Invalid trace size: {trace_size}")
        self.trace_size = trace_size
        self.trace_file = trace_file
        self.reuse_output_buffer = reuse_output_buffer
        self.enable_ctrl_pkts = enable_ctrl_pkts
        self.last_tensor_shape = last_tensor_shape
        self.last_tensor_dtype = last_tensor_dtype
        self.physical_mlir_path: str | None = None  # set by a run

    def write_trace(self, trace: Any) -> NoReturn:
        """Not served: raises UnsupportedError."""
        _no_trace("TraceConfig.write_trace")

    def read_trace(self) -> NoReturn:
        """Not served: raises UnsupportedError."""
        _no_trace("TraceConfig.read_trace")

    def trace_to_json(self, mlir_file: str, output_name: str = "trace.json") -> NoReturn:
        """Not served: raises UnsupportedError."""
        _no_trace("TraceConfig.trace_to_json")

    def __str__(self) -> str:
        return f"TraceConfig(trace_size={self.trace_size}, trace_file={self.trace_file!r})"


def _no_trace(what: str) -> NoReturn:
    raise UnsupportedError(
        f"{what}: the simulated NPU makes no hardware trace; its own is in the report of every run and written by "
        "`python -m npusim run DESIGN.py --trace FILE`"
    )


class NPUKernel:
    """A compiled kernel by its files. Can be named, not run."""

    def __init__(
        self,
        xclbin_path: Any = None,
        insts_path: Any = None,
        device_index: int = 0,
        kernel_name: str = "MLIR_AIE",
        trace_config: TraceConfig | None = None,
        num_host_bos: int | None = None,
        elf_path: Any = None,
    ) -> None:
        self.xclbin_path = xclbin_path
        self.insts_path = insts_path
        self.elf_path = elf_path
        self.kernel_name = kernel_name
        self.trace_config = trace_config
        self.num_host_bos = num_host_bos

    def __call__(self, *args: Any, **kwargs: Any) -> NoReturn:
        """Not served: raises UnsupportedError."""
        raise UnsupportedError(f"NPUKernel: {_NO_FILES}")


class HostRuntime:
    """The runtime of the simulated NPU: knows its device; cannot load compiled kernels."""

    def device(self) -> Any:
        """The IRON device that is simulated."""
        return current.runtime_device()

    def check_device_consistency(self) -> None:
        """Nothing to check: the NPU simulated is the one that the design names."""

    def cleanup(self) -> None:
        """Nothing is kept."""

    def evict_context(self, xclbin_path: Any) -> None:
        """Nothing is kept."""

    def load(self, npu_kernel: Any, **kwargs: Any) -> NoReturn:
        """Not served: raises UnsupportedError."""
        raise UnsupportedError(f"HostRuntime.load: {_NO_FILES}")

    def run(
        self,
        kernel_handle: Any,
        args: Any,
        trace_config: TraceConfig | None = None,
        fail_on_error: bool = True,
        only_if_loaded: bool = False,
        **kwargs: Any,
    ) -> NoReturn:
        """Not served: raises UnsupportedError."""
        raise UnsupportedError(f"HostRuntime.run: {_NO_FILES}")

    def load_and_run(self, npu_kernel: Any, run_args: Any, **kwargs: Any) -> NoReturn:
        """Not served: raises UnsupportedError."""
        raise UnsupportedError(f"HostRuntime.load_and_run: {_NO_FILES}")

    def run_test(self, npu_kernel: Any, io_args: Any, ref: Any, verify: bool = True, verbosity: int = 0) -> NoReturn:
        """Not served: raises UnsupportedError."""
        raise UnsupportedError(f"HostRuntime.run_test: {_NO_FILES}")


DefaultNPURuntime = HostRuntime()


def cleanup_npu_runtime() -> None:
    """Nothing is kept, so nothing is released."""

"""Which names the embedded ``aie`` serves, module by module, and where each is implemented."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from functools import cache
from typing import Any

from npusim.frontends.finder import ModuleTree, register

Source = tuple[str, str]
"""An implementing module (after ``npusim.frontends``) and the names it gives, ``real=ours`` where they differ."""

_ENUMS = "AIEArch AIEDevice AIETileType DMAChannelDir LockAction ObjectFifoPort TraceMode WireBundle"
_FIFOS = (
    (".iron.objectfifo", "ObjectFifo"),
    (".iron.handle", "ObjectFifoHandle"),
    (".iron.link", "ObjectFifoLink"),
    (".iron.layouts", "PadDims StreamDims"),
)
_EXPLICIT = (
    (".iron.cascade", "CascadeFlow"),
    (".iron.flow", "Flow PacketDest PacketFlow"),
    (".iron.tile_dma", "Acquire Bd BdIteration DmaChannel Release TileDma"),
)
_ENDPOINT = ((".iron.endpoint", "ObjectFifoEndpoint"),)
_RUNTIME = (
    (".iron.runtime", "Runtime RuntimeData"),
    (".iron.task", "Task TaskGroup"),
    (".iron.scratchpad", "sync_parameters"),
)
_COMPILE = (
    (".iron.compilable", "CompilableDesign compileconfig"),
    (".iron.markers", "CompileTime In InOut Out compile_context get_compile_arg"),
)
_CURRENT = ((".iron.current", "set_current_device get_current_device ensure_current_device"),)
_TENSORS = ((".iron.tensor_factory", "tensor ones zeros full randint rand arange zeros_like ceildiv set_tensor_class"),)
_TASKS = (".iron.hosttasks", "dma_await_task dma_free_task dma_start_task shim_dma_bd shim_dma_single_bd_task")

TABLE: dict[str, tuple[Source, ...]] = {
    "aie": (),
    "aie.iron": (
        (".iron.buffer", "Buffer"),
        (".iron.kernel", "ExternalFunction Kernel"),
        (".iron.program", "Program"),
        (".iron.worker", "Worker"),
        (".iron.barrier", "WorkerRuntimeBarrier"),
        *_RUNTIME,
        (".iron.objectfifo", "ObjectFifo"),
        (".iron.layouts", "PadDims StreamDims"),
        *_EXPLICIT,
        (".iron.lock", "Lock"),
        (".iron.scratchpad", "ScratchpadParameter"),
        *_COMPILE,
        (".iron.jit", "CallableDesign jit"),
        *_TENSORS,
        *_CURRENT,
        (".iron.dtype", "str_to_dtype dtype_to_str"),
    ),
    "aie.iron.algorithms": ((".iron.algorithms", "*"),),
    "aie.iron.buffer": ((".iron.buffer", "Buffer"),),
    "aie.iron.compile": _COMPILE,
    "aie.iron.controlflow": ((".iron.controlflow", "range_ yield_"),),
    "aie.iron.dataflow": (*_FIFOS, *_ENDPOINT, *_EXPLICIT),
    "aie.iron.dataflow.cascadeflow": _EXPLICIT[:1],
    "aie.iron.dataflow.endpoint": _ENDPOINT,
    "aie.iron.dataflow.flow": _EXPLICIT[1:2],
    "aie.iron.dataflow.objectfifo": _FIFOS,
    "aie.iron.dataflow.tile_dma": _EXPLICIT[2:],
    "aie.iron.device": (
        (".iron.device", "Device AnyShimTile AnyMemTile AnyComputeTile Tile from_name"),
        (
            ".iron.device",
            "NPU1 NPU1Col1 NPU1Col2 NPU1Col3 NPU2 NPU2Col1 NPU2Col2 NPU2Col3 NPU2Col4 NPU2Col5 NPU2Col6 NPU2Col7",
        ),
    ),
    "aie.iron.device.device": ((".iron.device", "Device"),),
    "aie.iron.device.tile": ((".iron.device", "AnyShimTile AnyMemTile AnyComputeTile Tile"),),
    "aie.iron.dtype": ((".iron.dtype", "dtype_map dtype_to_str str_to_dtype"),),
    "aie.iron.hostruntime": ((".iron.jit", "CallableDesign jit"),),
    "aie.iron.kernel": ((".iron.kernel", "BaseKernel ExternalFunction Kernel"),),
    "aie.iron.kernels": ((".iron.kernel_library", "*"),),
    "aie.iron.lock": ((".iron.lock", "Lock"),),
    "aie.iron.program": ((".iron.program", "Program"),),
    "aie.iron.resolvable": ((".iron.resolvable", "NotResolvedError Resolvable"),),
    "aie.iron.runtime": _RUNTIME,
    "aie.iron.runtime.data": ((".iron.runtime", "RuntimeData"),),
    "aie.iron.runtime.dmataskhandle": ((".iron.task", "Task"),),
    "aie.iron.runtime.endpoint": ((".iron.endpoint", "RuntimeEndpoint"),),
    "aie.iron.runtime.runtime": ((".iron.runtime", "Runtime"), (".iron.scratchpad", "sync_parameters")),
    "aie.iron.runtime.taskgroup": ((".iron.task", "TaskGroup"),),
    "aie.iron.scratchpad_parameter": ((".iron.scratchpad", "ScratchpadParameter"),),
    "aie.iron.worker": ((".iron.worker", "Worker"), (".iron.barrier", "WorkerRuntimeBarrier")),
    "aie.dialects": (),
    "aie.dialects._aie_enum_gen": ((".iron.enums", _ENUMS),),
    "aie.dialects.aie": (
        (".iron.enums", _ENUMS),
        (".iron.lock", "use_lock"),
        (
            ".iron.dialects_aie",
            "EndOp bds buffer cascade_flow dma_bd dma_bd_packet dma_start end flow lock mem memtile_dma",
        ),
        (".iron.dialects_aie", "next_bd shim_mem"),
    ),
    "aie.dialects.aiex": (
        (".iron.enums", _ENUMS),
        (".iron.lock", "use_lock"),
        _TASKS,
        (".iron.dialects_aie", "bds"),
        (".iron.dialects_aiex", "dma_configure_task dma_configure_task_for"),
        (".iron.barrier", "set_lock_value"),
        (".iron.scratchpad", "read_scratchpad_parameter"),
        (".iron.util", "v8bfp16ebs8 v16bfp16ebs16"),
    ),
    "aie.dialects.arith": ((".iron.dialects_arith", "*"),),
    "aie.dialects.memref": ((".iron.dialects_memref", "*"),),
    "aie.dialects.scf": ((".control", "yield_"),),
    "aie.extras": (),
    "aie.extras.dialects": (),
    "aie.extras.dialects.arith": ((".iron.dialects_arith", "*"), (".values", "ScalarValue")),
    "aie.extras.dialects.memref": ((".iron.dialects_memref", "*"),),
    "aie.extras.types": ((".iron.mlir_types", "*"),),
    "aie.helpers": (),
    "aie.helpers.dialects": (),
    "aie.helpers.dialects.func": ((".iron.pyfunc", "func"),),
    "aie.helpers.dialects.scf": ((".control", "_for=for_ range_=for_ if_ else_ yield_"),),
    "aie.helpers.taplib": (
        (".iron.taplib", "TensorAccessPattern TensorAccessSequence"),
        (".iron.tiler", "TensorTiler2D"),
    ),
    "aie.helpers.taplib.tap": ((".iron.taplib", "TensorAccessPattern"),),
    "aie.helpers.taplib.tas": ((".iron.taplib", "TensorAccessSequence"),),
    "aie.helpers.taplib.tensortiler2d": ((".iron.tiler", "TensorTiler2D"),),
    "aie.helpers.util": ((".iron.util", "*"),),
    "aie.utils": (
        *_CURRENT,
        *_TENSORS,
        (".iron.host_utils", "DefaultNPURuntime HostRuntime NPUKernel TraceConfig cleanup_npu_runtime"),
    ),
    "aie.utils.benchmark": ((".iron.host_verify", "BenchmarkResult Stats print_benchmark run_iters"),),
    "aie.utils.callabledesign": ((".iron.jit", "CallableDesign"),),
    "aie.utils.compile": ((".iron.toolchain", "*COMPILE"),),
    "aie.utils.compile.jit": _COMPILE,
    "aie.utils.config": ((".iron.toolchain", "*CONFIG"),),
    "aie.utils.hostruntime": ((".iron.current", "set_current_device"),),
    "aie.utils.hostruntime.argparse": (
        (".iron.host_cli", "DEFAULT_DEV_CHOICES add_benchmark_args add_compile_args add_runtime_args add_trace_arg"),
        (".iron.host_cli", "device_from_args"),
    ),
    "aie.utils.hostruntime.cli": ((".iron.host_cli", "run_design_cli"),),
    "aie.utils.hostruntime.tensor_class": ((".iron.tensor", "CPUOnlyTensor NpuTensor"),),
    "aie.utils.jit": ((".iron.jit", "jit"),),
    "aie.utils.trace": ((".iron.host_utils", "TraceConfig"),),
    "aie.utils.trace.events": (
        (".iron.trace_events", "CoreEvent GenericEvent MemEvent MemTileEvent MemTilePortEvent PortEvent ShimTileEvent"),
        (".iron.trace_events", "ShimTilePortEvent"),
    ),
    "aie.utils.trace.utils": ((".iron.toolchain", "*TRACE_UTILS"),),
    "aie.utils.verify": (
        (".iron.host_verify", "assert_close_with_benchmark assert_pass count_mismatches nearly_equal"),
    ),
}


_TASKS_ONLY = (
    "the host sequence runs in tasks (fill, drain, shim_dma_bd, dma_start_task, dma_await_task), not in single writes to "
    "registers"
)
_ROUTED = "streams are routed from ObjectFifo, Flow and PacketFlow; the switchboxes' connections are not set one by one"
_HOPS = "amsel connect masterset packet_dest packet_rule packet_source shim_mux switchbox"
_OPERATIONS = "core device object_fifo shim_dma_allocation tile"
_NO_BUILDER = (
    "modules are not built operation by operation here: write the design with aie.iron, or print the real package's module in "
    "generic form and run that (python -m npusim run FILE.mlir)"
)
_NO_FILES = "there are no compiled files here; call the @iron.jit function"
_NO_TRACE = "there is no hardware trace here; a run's own is in its report and in python -m npusim run DESIGN.py --trace FILE"

REASONS: dict[str, str] = {
    "aie.dialects.aiex.npu": _TASKS_ONLY,
    "aie.dialects.aiex.control_packet": _TASKS_ONLY,
    **dict.fromkeys((f"aie.dialects.aie.{name}" for name in _HOPS.split()), _ROUTED),
    **dict.fromkeys((f"aie.dialects.aie.{name}" for name in _OPERATIONS.split()), _NO_BUILDER),
    "aie.dialects.aiex.runtime_sequence": _NO_BUILDER,
    "aie.extras.context": _NO_BUILDER,
    "aie.ir": _NO_BUILDER,
    "aie.passmanager": _NO_BUILDER,
    "aie.compiler": _NO_FILES,
    "aie.utils.ml": _NO_FILES,
    "aie.utils.npukernel": _NO_FILES,
    "aie.utils.test": _NO_FILES,
    "aie.utils.trace": _NO_TRACE,
}
"""Why a name is not served, or those that go on after it with a dot or an underscore."""


def reason(name: str) -> str | None:
    """Why a name is not served, if more can be said than that."""
    return next((text for start, text in REASONS.items() if name == start or name.startswith((f"{start}.", f"{start}_"))), None)


@cache
def names(module: str) -> Mapping[str, Any] | None:
    """The names of a served module, or None."""
    if module not in TABLE:
        return None
    found: dict[str, Any] = {}
    for source, wanted in TABLE[module]:
        implementing = importlib.import_module("npusim.frontends" + source)
        if wanted.startswith("*"):
            found |= _all_of(implementing, wanted[1:])
        else:
            for pair in wanted.split():
                real, _, ours = pair.partition("=")
                found[real] = getattr(implementing, ours or real)
    return found


def _all_of(module: Any, table: str) -> dict[str, Any]:
    """What a module offers as a whole: one of its tables (by default ``NAMES``), or what its ``__all__`` lists."""
    names = getattr(module, table or "NAMES", None)
    return {name: getattr(module, name) for name in module.__all__} if names is None else dict(names)


register("aie", lambda: ModuleTree("aie", "mlir-aie, https://github.com/Xilinx/mlir-aie", names, reason))

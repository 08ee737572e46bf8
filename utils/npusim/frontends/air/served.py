"""Which names the embedded ``air`` serves, module by module, and where each is implemented."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from functools import cache
from typing import Any

from npusim.frontends.finder import ModuleTree, register

Source = tuple[str, str]
"""An implementing module (after ``npusim.frontends.air``) and the names it gives, ``real=ours`` where they differ."""

_IR: tuple[Source, ...] = (
    (".types", "BF16Type F16Type F32Type F64Type FloatType FunctionType IndexType IntegerType MemRefType ShapedType"),
    (".types", "StridedLayoutAttr Type VectorType"),
    (
        ".attributes",
        "ArrayAttr Attribute BoolAttr DenseI32ArrayAttr DenseI64ArrayAttr DictAttr FlatSymbolRefAttr FloatAttr",
    ),
    (".attributes", "AffineMapAttr IntegerAttr IntegerSetAttr StringAttr TypeAttr UnitAttr"),
    (".affine", "AffineConstantExpr AffineDimExpr AffineExpr AffineMap AffineSymbolExpr IntegerSet"),
    (".context", "Context InsertionPoint Location Module"),
    (".values", "OpView Value=Typed"),
    (".runner", "np"),  # a star import brings numpy along, and designs rely on it
)
_AIR: tuple[Source, ...] = (
    *_IR,
    (".types", "T"),
    (".dialect_air", "Channel ChannelGet ChannelOp ChannelPut DmaMemcpyNd MemorySpace call channel dma_memcpy_nd"),
    (".dialect_air", "external_func get_region_operand_types pyint_to_index split_static_dynamic"),
    (".regions", "Herd Launch Rank Segment herd launch rank region_op segment"),
    (".context", "module_builder"),
    (".dialect_func", "CallOp FuncOp"),
)
_BACKEND: tuple[Source, ...] = ((".backend", "AirBackend AirBackendError"),)

_TYPES: Source = (".api.types", "DType bf16 f16 f32 i16 i32 i8 ui16 ui32 ui8")

TABLE: dict[str, tuple[Source, ...]] = {
    "air": (),
    "air.api": (
        _TYPES,
        (".api.values", "Buffer BufferSlice Scope Tensor TensorSlice Token"),
        (".api.launches", "CompiledKernel LaunchContext Symbol compile launch symbol tensor"),
        (".api.herds", "HerdContext alloc dealloc herd sequential"),
    ),
    "air.api.ops": ((".api.ops", "*"),),
    "air.api.types": (_TYPES, (".api.types", "dtype_of")),
    "air.ir": _IR,
    "air.extras": (),
    "air.extras.types": ((".types", "*TYPE_FUNCTIONS"),),
    "air.dialects": (),
    "air.dialects.air": _AIR,
    "air.dialects.affine": ((".dialect_scf", "AffineApplyOp AffineIfOp AffineYieldOp apply"),),
    "air.dialects.arith": ((".dialect_arith", "*"),),
    "air.dialects.func": ((".dialect_func", "CallOp FuncOp call"),),
    "air.dialects.memref": (
        (
            ".dialect_memref",
            "AllocOp CastOp CollapseShapeOp DeallocOp ExpandShapeOp StoreOp SubViewOp collapse_shape expand_shape load store",
        ),
        (".dialect_memref", "subview"),
    ),
    "air.dialects.scf": ((".dialect_scf", "ForOp ForallOp IfOp InParallelOp YieldOp for_ yield_"),),
    "air.backend": (),
    "air.backend.abc": _BACKEND,
    "air.backend.xrt": (*_BACKEND, (".backend", "NPU_MODELS XRTBackend XRTCompileArtifact detect_target_device")),
    "air.backend.xrt_runner": ((".runner", "XRTRunner type_mapper"), (".backend", "XRTBackend")),
}


@cache
def names(module: str) -> Mapping[str, Any] | None:
    """The names of a served module, or None."""
    if module not in TABLE:
        return None
    found: dict[str, Any] = {}
    for source, wanted in TABLE[module]:
        implementing = importlib.import_module(
            "npusim.air.affine" if source == ".affine" else "npusim.frontends.air" + source
        )
        if wanted.startswith("*"):
            found |= getattr(implementing, wanted[1:] or "NAMES")
            continue
        for pair in wanted.split():
            real, _, ours = pair.partition("=")
            found[real] = getattr(implementing, ours or real)
    return found


register("air", lambda: ModuleTree("air", "mlir-air, https://github.com/Xilinx/mlir-air", names))

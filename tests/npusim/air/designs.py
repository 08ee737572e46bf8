"""Small AIR designs for tests: the names that designs import, and a launch in one call."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from npusim.frontends.finder import simulated
from npusim.kernels import KernelModel
from npusim.place import place
from npusim.report import Report
from npusim.run import simulate

with simulated("air"):
    from air.dialects import affine, arith, scf
    from air.dialects.air import (
        Channel,
        ChannelGet,
        ChannelPut,
        MemorySpace,
        T,
        channel,
        dma_memcpy_nd,
        herd,
        launch,
        module_builder,
        segment,
    )
    from air.dialects.func import CallOp, FuncOp
    from air.dialects.memref import AllocOp, DeallocOp, load, store
    from air.dialects.scf import for_, yield_
    from air.ir import (
        AffineConstantExpr,
        AffineExpr,
        AffineMap,
        AffineSymbolExpr,
        FunctionType,
        IndexType,
        InsertionPoint,
        IntegerAttr,
        IntegerSet,
        MemRefType,
    )

__all__ = [
    "AffineConstantExpr",
    "AffineExpr",
    "AffineMap",
    "AffineSymbolExpr",
    "AllocOp",
    "CallOp",
    "Channel",
    "ChannelGet",
    "ChannelPut",
    "DeallocOp",
    "FuncOp",
    "FunctionType",
    "IndexType",
    "InsertionPoint",
    "IntegerAttr",
    "IntegerSet",
    "MemRefType",
    "MemorySpace",
    "T",
    "add_one",
    "affine",
    "arith",
    "channel",
    "counts",
    "dma_memcpy_nd",
    "for_",
    "function",
    "herd",
    "launch",
    "load",
    "memory",
    "module_builder",
    "one_launch",
    "placed",
    "run",
    "scf",
    "segment",
    "store",
    "where",
    "yield_",
]


def memory(shape: int | Sequence[int], space: int = 0, element: Any = None) -> Any:
    """A memref type of i32 (by default) in DDR (0), on the MemTiles (1) or in the cores' memory (2)."""
    sizes = [shape] if isinstance(shape, int) else list(shape)
    of = {} if not space else {"memory_space": IntegerAttr.get(T.i32(), space)}
    return MemRefType.get(sizes, element or T.i32(), **of)


def one_launch(
    arrays: Sequence[Any],
    body: Callable[..., Any],
    channels: dict[str, dict[str, Any]] | None = None,
    sizes: Sequence[int] = (),
    kernels: dict[str, list[Any]] | None = None,
) -> Any:
    """A module of one function with one launch; ``body`` takes the ids and sizes of the launch, then the arrays.

    A channel with ``cascade=True`` is one; ``kernels`` declares external functions by their argument types.
    """

    @module_builder
    def made() -> None:
        for name, how in (channels or {}).items():
            if how.get("cascade"):
                channel(name, size=how.get("size", []), channel_type="npu_cascade")
            else:
                Channel(name, **how)
        for name, types in (kernels or {}).items():
            function(name, types)

        @FuncOp.from_py_func(*arrays)
        def main(*given: Any) -> None:
            @launch(operands=list(given), sizes=list(sizes))
            def around(*args: Any) -> None:
                body(*args)

    return made()


def function(name: str, types: list[Any]) -> None:
    """Declare an external kernel."""
    FuncOp(name=name, type=FunctionType.get(types, []), visibility="private")


def add_one(buffer: Any, n: int, by: int = 1) -> None:
    """Add a number to each element of a buffer, in a loop of the core."""
    for i in for_(n):
        store(arith.addi(load(buffer, [i]), arith.ConstantOp(T.i32(), by)), buffer, [i])
        yield_([])


def where(value: Any, equals: int, then: Callable[[], Any], otherwise: Callable[[], Any] | None = None) -> None:
    """``then()`` where an id has a value, by an affine set; else ``otherwise()``."""
    here = IntegerSet.get(0, 1, [AffineSymbolExpr.get(0) - equals], [True])
    branch = affine.AffineIfOp(here, cond_operands=[value], has_else=otherwise is not None)
    with InsertionPoint(branch.then_block):
        then()
        affine.AffineYieldOp([])
    if otherwise is not None:
        with InsertionPoint(branch.else_block):
            otherwise()
            affine.AffineYieldOp([])


def counts(n: int, start: int = 0) -> np.ndarray:
    """start, start + 1, ..."""
    return np.arange(start, start + n, dtype=np.int32)


def placed(module: Any, device: str = "npu2") -> Any:
    """The machine of a module."""
    return place(module.design_for(device))


def run(module: Any, args: list[Any], device: str = "npu2", models: dict[str, Any] | None = None, **how: Any) -> Report:
    """Run a module over arrays; ``models`` maps kernel names to (function, cycles)."""
    kernels = {name: KernelModel(f, lambda *a, device, c=c: c) for name, (f, c) in (models or {}).items()}
    return simulate(module.design_for(device), args, kernels=kernels, **how)

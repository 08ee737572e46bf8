"""``iron.algorithms``: whole designs from one function (transform, for_each, reduce).

Each design-making function is called inside an ``@iron.jit`` generator and gives what ``Program.resolve_program`` gives.
A function is applied to each element of a tile, or is an ExternalFunction that handles a tile: (inputs, output, params,
number of elements).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from npusim.errors import DesignError
from npusim.frontends.iron.controlflow import range_
from npusim.frontends.iron.current import get_current_device
from npusim.frontends.iron.kernel import ExternalFunction
from npusim.frontends.iron.objectfifo import ObjectFifo
from npusim.frontends.iron.program import Program
from npusim.frontends.iron.row_pipelines import (
    row_at_a_time,
    row_at_a_time_tiled,
    row_at_a_time_with_skip,
    sliding_3row,
)
from npusim.frontends.iron.runtime import Runtime
from npusim.frontends.iron.taplib import TensorAccessPattern
from npusim.frontends.iron.task import TaskGroup
from npusim.frontends.iron.worker import Worker

__all__ = [
    "for_each",
    "reduce",
    "row_at_a_time",
    "row_at_a_time_tiled",
    "row_at_a_time_with_skip",
    "sliding_3row",
    "transform",
    "transform_binary",
    "transform_parallel",
    "transform_parallel_binary",
]


def transform(func: Any, tensor_ty: Any, *params: Any, tile_size: int = 16, trace_size: int = 0) -> Any:
    """out = func(in) on one core. Further ``params`` go to an ExternalFunction: scalars, tensors or array types."""
    tiling = _Tiling.of("transform", tensor_ty, tile_size)
    return _Plan("transform", func, tiling, 1, params, trace_size=trace_size).on_one_core()


def transform_binary(func: Any, tensor_ty: Any, tile_size: int = 16, trace_size: int = 0) -> Any:
    """out = func(first, second) on one core."""
    tiling = _Tiling.of("transform_binary", tensor_ty, tile_size)
    return _Plan("transform_binary", func, tiling, 2, trace_size=trace_size).on_one_core()


def transform_parallel(
    func: Any,
    tensor_ty: Any,
    *params: Any,
    tile_size: int = 16,
    trace_size: int = 0,
    num_channels: int = 1,
    pass_size_to_kernel: bool = True,
) -> Any:
    """Like :func:`transform`, on one core a column, or two that each have a shim channel (``num_channels=2``)."""
    tiling = _Tiling.of("transform_parallel", tensor_ty, tile_size)
    plan = _Plan("transform_parallel", func, tiling, 1, params, pass_size_to_kernel, trace_size)
    return plan.on_all_columns(num_channels)


def transform_parallel_binary(
    func: Any,
    tensor_ty: Any,
    tile_size: int = 16,
    trace_size: int = 0,
    num_channels: int = 1,
    pass_size_to_kernel: bool = True,
) -> Any:
    """Like :func:`transform_binary`, on all columns."""
    tiling = _Tiling.of("transform_parallel_binary", tensor_ty, tile_size)
    plan = _Plan("transform_parallel_binary", func, tiling, 2, (), pass_size_to_kernel, trace_size)
    return plan.on_all_columns(num_channels)


def for_each(func: Any, tensor_ty: Any, tile_size: int = 16) -> Any:
    """x = func(x) in place on one core."""
    return _Plan("for_each", func, _Tiling.of("for_each", tensor_ty, tile_size), 1, in_place=True).on_one_core()


def reduce(func: Any, input_ty: Any, output_ty: Any, *, trace_size: int = 0) -> Any:
    """out = func(the whole input at once): (input, output, number of elements), an ExternalFunction."""
    if not isinstance(func, ExternalFunction):
        raise TypeError(
            "reduce needs an ExternalFunction: a reduction keeps state that a function of an element cannot"
        )
    shape, _ = _array_type("reduce", input_ty)
    of_in, of_out = ObjectFifo(input_ty, name="in"), ObjectFifo(output_ty, name="out")

    def core(source: Any, target: Any, kernel: Any) -> None:
        out, data = target.acquire(1), source.acquire(1)
        kernel(data, out, math.prod(shape))
        source.release(1)
        target.release(1)

    def sequence(data: Any, result: Any, fill: Any, drain: Any) -> None:
        fill.fill(data)
        drain.drain(result, wait=True)

    worker = Worker(core, [of_in.cons(), of_out.prod(), func], trace=1 if trace_size else 0)
    return _resolved("reduce", sequence, [input_ty, output_ty, of_in.prod(), of_out.cons()], [worker])


class _Tiling(NamedTuple):
    """A 1-D tensor of ``elements`` handled in tiles of ``tile_size``."""

    elements: int
    tile_size: int
    dtype: Any

    @classmethod
    def of(cls, who: str, tensor_ty: Any, tile_size: int) -> _Tiling:
        shape, dtype = _array_type(who, tensor_ty)
        elements = math.prod(shape)
        if elements % tile_size:
            raise DesignError(f"Number of elements ({elements}) must be a multiple of tile size ({tile_size})")
        return cls(elements, tile_size, dtype)

    def array(self, elements: int) -> Any:
        return np.ndarray[(elements,), np.dtype[self.dtype]]  # type: ignore[misc, name-defined]


class _Plan:
    """One elementwise design: the function, its inputs and parameters, and where its workers go."""

    def __init__(
        self,
        who: str,
        func: Any,
        tiling: _Tiling,
        inputs: int,
        params: Sequence[Any] = (),
        pass_size: bool = True,
        trace_size: int = 0,
        in_place: bool = False,
    ) -> None:
        self.who, self.func, self.tiling, self.inputs, self.in_place = who, func, tiling, inputs, in_place
        self.pass_size, self.trace = pass_size, 1 if trace_size else 0
        self.external = isinstance(func, ExternalFunction)
        if self.external and func.tile_size() != tiling.tile_size:
            raise DesignError(
                f"tile_size ({tiling.tile_size}) does not match ExternalFunction's input/output shape in arg_type"
            )
        self.params = [_parameter(p) for p in params] if self.external else []
        self.param_fifos = {i: ObjectFifo(p, name=f"param{i}") for i, p in enumerate(self.params) if _is_array(p)}
        self.tile = tiling.array(tiling.tile_size)

    def on_one_core(self) -> Any:
        """One worker handles the whole tensor."""
        names = ["in"] if self.in_place else [f"in{i}" for i in range(self.inputs)]
        sources = [ObjectFifo(self.tile, name=name) for name in names]
        target = ObjectFifo(self.tile, name="out")
        worker = self._worker(sources, target, self.tiling.elements // self.tiling.tile_size)
        params = list(self.param_fifos.values())
        tensors = self.inputs if self.in_place else self.inputs + 1

        def sequence(*args: Any) -> None:
            host, ends = args[: tensors + len(params)], args[tensors + len(params) :]
            for data, source in zip(host, ends[: self.inputs]):
                source.fill(data)
            for data, param in zip(host[tensors:], ends[self.inputs + 1 :]):
                param.fill(data)
            ends[self.inputs].drain(host[tensors - 1], wait=True)

        whole = self.tiling.array(self.tiling.elements)
        ends = [*(s.prod() for s in sources), target.cons(), *(p.prod() for p in params)]
        return _resolved(self.who, sequence, [*[whole] * tensors, *self._param_types(), *ends], [worker])

    def on_all_columns(self, channels: int) -> Any:
        """One worker for each column and channel, each with its own part of the tensor."""
        if channels not in (1, 2):
            raise DesignError(
                f"num_channels must be 1 or 2 (shim DMA has 2 channels per direction per column); got {channels}"
            )
        if channels > 1 and self.params:
            raise DesignError(
                "num_channels=2 is not supported together with shared *params; use num_channels=1 instead."
            )
        columns = _device(self.who).cols
        lanes = [(col, chan) for col in range(columns) for chan in range(channels)]
        share, rest = divmod(self.tiling.elements, self.tiling.tile_size * len(lanes))
        if rest:
            raise DesignError(
                f"Number of elements ({self.tiling.elements}) must be a multiple of tile_size x num_columns x num_channels "
                f"({self.tiling.tile_size} x {columns} x {channels})."
            )
        labels = [f"{col}" if channels == 1 else f"{col}_{chan}" for col, chan in lanes]
        sources = [[ObjectFifo(self.tile, name=f"in{i}_{at}") for i in range(self.inputs)] for at in labels]
        targets = [ObjectFifo(self.tile, name=f"out_{at}") for at in labels]
        workers = [self._worker(s, t, share) for s, t in zip(sources, targets)]
        fills = [[s.prod() for s in lane] for lane in sources]
        drains = [t.cons() for t in targets]
        params = [p.prod() for p in self.param_fifos.values()]

        def sequence(*args: Any) -> None:
            taps = self._parts(len(lanes))
            incoming = TaskGroup()
            for lane, tap in zip(fills, taps):
                for data, fill in zip(args, lane):
                    fill.fill(data, tap, group=incoming)
            incoming.finish()
            for data, param in zip(args[self.inputs + 1 :], params):
                param.fill(data)
            outgoing = TaskGroup()
            for drain, tap in zip(drains, taps):
                drain.drain(args[self.inputs], tap, wait=True, group=outgoing)
            outgoing.finish()

        whole = self.tiling.array(self.tiling.elements)
        types = [*[whole] * (self.inputs + 1), *self._param_types()]
        return _resolved(self.who, sequence, [*types, fills, drains, params], workers)

    def _parts(self, lanes: int) -> list[TensorAccessPattern]:
        n = self.tiling.elements // lanes
        whole = (1, self.tiling.elements)
        return [TensorAccessPattern(whole, n * i, [1, 1, 1, n], [0, 0, 0, 1]) for i in range(lanes)]

    def _param_types(self) -> list[Any]:
        return [self.params[i] for i in self.param_fifos]

    def _worker(self, sources: list[ObjectFifo], target: ObjectFifo, tiles: int) -> Worker:
        params = [p.cons() for p in self.param_fifos.values()]
        ends = [*(s.cons() for s in sources), *params, target.prod()]
        return Worker(self._core(tiles), [*ends, self.func], trace=self.trace)

    def _core(self, tiles: int) -> Callable[..., None]:
        def core(*args: Any) -> None:
            *ends, target, func = args
            sources, params = ends[: self.inputs], ends[self.inputs :]
            given = dict(enumerate(self.params)) | dict(zip(self.param_fifos, [p.acquire(1) for p in params]))
            for _ in range_(tiles):
                data = [s.acquire(1) for s in sources]
                out = target.acquire(1)
                if self.external:
                    func(*data, out, *given.values(), *[self.tiling.tile_size] * self.pass_size)
                else:
                    for j in range_(self.tiling.tile_size):
                        out[j] = func(*(tile[j] for tile in data))
                for end in (*sources, target):
                    end.release(1)
            for p in params:
                p.release(1)

        return core


def _array_type(who: str, tensor_ty: Any) -> tuple[tuple[int, ...], Any]:
    """Shape and dtype of ``np.ndarray[(n,), np.dtype[t]]``; TypeError for anything else."""
    try:
        shape, dtype = tensor_ty.__args__
        return tuple(shape), dtype.__args__[0]
    except (AttributeError, TypeError, ValueError, IndexError):
        raise TypeError(
            f"{who} expects a numpy ndarray type such as np.ndarray[(N,), np.dtype[np.int32]], got {tensor_ty!r}"
        ) from None


def _is_array(param: Any) -> bool:
    return bool(getattr(param, "__args__", None))


def _parameter(param: Any) -> Any:
    """A parameter as the array type that a fifo carries, or the scalar that the kernel gets."""
    if _is_array(param) or not hasattr(param, "shape"):
        return param
    return np.ndarray[tuple(param.shape), np.dtype[np.dtype(param.dtype).type]]  # type: ignore[misc]


def _device(who: str) -> Any:
    device = get_current_device()
    if device is None:
        raise DesignError(f"iron.algorithms.{who} requires a device: call iron.set_current_device() first")
    return device


def _resolved(who: str, sequence: Callable[..., None], args: list[Any], workers: list[Worker]) -> Any:
    return Program(_device(who), Runtime(sequence, args), workers=workers).resolve_program()

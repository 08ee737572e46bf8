"""``Runtime``: the host sequence and what it needs."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any, get_origin

import numpy as np

from npusim import graph
from npusim.errors import DesignError
from npusim.frontends import operators as ops
from npusim.frontends.iron.context import design
from npusim.frontends.iron.endpoint import RuntimeEndpoint
from npusim.frontends.iron.handle import ObjectFifoHandle
from npusim.frontends.iron.layouts import array_type, flatten_fn_args
from npusim.frontends.iron.resolvable import Resolvable
from npusim.frontends.iron.scratchpad import ScratchpadParameter
from npusim.frontends.iron.sequence import ActiveSequence
from npusim.frontends.iron.taplib import TensorAccessPattern
from npusim.frontends.iron.tiler import TensorTiler2D
from npusim.frontends.tracing import DesignTypeError, here, tracing
from npusim.frontends.values import wrap
from npusim.types import MemRefType, element_name


class RuntimeData:
    """A host array or scalar: an argument of the sequence, declared by its type."""

    def __init__(self, arr_type: type[np.ndarray]) -> None:
        self._arr_type = arr_type
        self._op: Any = None

    @property
    def arr_type(self) -> type[np.ndarray]:
        return self._arr_type

    @property
    def shape(self) -> Any:
        """Sizes in elements."""
        return self._arr_type.__args__[0]  # type: ignore[attr-defined]

    @property
    def dtype(self) -> Any:
        return self._arr_type.__args__[1].__args__[0]  # type: ignore[attr-defined]

    @property
    def is_scalar(self) -> bool:
        """Whether it is a number, not an array."""
        return get_origin(self._arr_type) is not np.ndarray or len(self.shape) == 0

    def default_tap(self) -> TensorAccessPattern:
        """The pattern of the whole array in order; only 1-D and 2-D arrays have one."""
        tap: TensorAccessPattern = TensorTiler2D.simple_tiler(self.shape)[0]
        return tap

    @property
    def op(self) -> Any:
        """The array as traced code sees it."""
        if self._op is None:
            raise DesignError("a RuntimeData has a value only while its sequence is traced")
        return self._op

    @op.setter
    def op(self, op: Any) -> None:
        if self._op is not None:
            raise DesignError("this RuntimeData belongs to a sequence that was traced already")
        self._op = op

    def _kind(self) -> MemRefType | str:
        if self.is_scalar:
            return element_name(self._arr_type)
        return array_type(self._arr_type, "an argument of the host sequence")


class Runtime(Resolvable):
    """``seq_fn(*fn_args)`` on the host.

    In ``fn_args`` a type declares an argument of the run (an array becomes RuntimeData, a scalar a run-time value), an
    int becomes an i32 constant, and anything else (fifo handles, buffers, barriers; lists may nest) is passed as it is.
    The sequence is traced last, after all cores.
    """

    def __init__(
        self, seq_fn: Callable[..., Any], fn_args: Sequence[Any] | None = None, *, strict_task_groups: bool = True
    ) -> None:
        self._loc = here()
        if not callable(seq_fn):
            raise DesignTypeError(f"Runtime needs the sequence function first, got {seq_fn!r}")
        self._seq_fn = seq_fn
        self._fn_args = list(fn_args) if fn_args is not None else []
        self._rt_data = [RuntimeData(arg) if _declares(arg) else None for arg in self._fn_args]
        self._fifos: dict[ObjectFifoHandle, None] = {}
        self._flows: list[Any] = []
        self._locks: list[Any] = []
        self._tile_dmas: list[Any] = []
        self._scratchpad_parameters: dict[str, ScratchpadParameter] = {}
        self._strict_task_groups = strict_task_groups
        self._task_group_index = itertools.count()
        for arg in flatten_fn_args(self._fn_args):
            if isinstance(arg, ObjectFifoHandle):
                if arg.endpoint is None:
                    arg.endpoint = RuntimeEndpoint(arg._shim_tile)
                self._fifos.setdefault(arg)

    def add_flow(self, flow: Any) -> None:
        """Make an explicit Flow or PacketFlow part of the design."""
        self._flows.append(flow)

    def add_lock(self, lock: Any) -> None:
        """Make an explicit Lock part of the design."""
        self._locks.append(lock)

    def add_tile_dma(self, tile_dma: Any) -> None:
        """Make an explicit TileDma part of the design."""
        self._tile_dmas.append(tile_dma)

    @property
    def flows(self) -> list[Any]:
        return list(self._flows)

    @property
    def locks(self) -> list[Any]:
        return list(self._locks)

    @property
    def tile_dmas(self) -> list[Any]:
        return list(self._tile_dmas)

    @property
    def fifos(self) -> list[ObjectFifoHandle]:
        """The handles that the sequence drives."""
        return list(self._fifos)

    def tiles(self) -> list[Any]:
        return []

    def resolve(
        self,
        loc: Any = None,
        ip: Any = None,
        *,
        trace_size: int | None = None,
        reuse_output_buffer: bool = False,
        egress_shim_col: int = 0,
        load_pdi_device_ref: str | None = None,
    ) -> None:
        """Trace the sequence once. The trace's arguments change nothing: the simulated NPU records its own trace."""
        declared = [data for data in self._rt_data if data is not None]
        active = ActiveSequence(self)
        with tracing("sequence", "host sequence", *(data._kind() for data in declared), owner=self) as scope:
            for data, value in zip(declared, scope.region.entry.args):
                data.op = wrap(value)
            args = [self._argument(arg, data) for arg, data in zip(self._fn_args, self._rt_data)]
            with active.activated():
                self._seq_fn(*args)
                active.finalize()
        design("the host sequence").sequence = graph.Sequence(scope.region, loc=self._loc)
        self._merge_consumers()

    def _argument(self, arg: Any, data: RuntimeData | None) -> Any:
        if data is not None:
            return data.op if data.is_scalar else data
        if isinstance(arg, (int, np.integer)) and not isinstance(arg, bool):
            return ops.constant(int(arg), "i32")
        return arg

    def _merge_consumers(self) -> None:
        """Identical consumers that the sequence made by calling cons() again are one; different ones are refused."""
        for handle in self._fifos:
            if handle._is_prod:
                continue
            fifo = handle._object_fifo
            ours = [c for c in fifo._cons if isinstance(c.endpoint, RuntimeEndpoint)]
            for other in ours[1:]:
                if (other.depth, other.dims_from_stream) != (ours[0].depth, ours[0].dims_from_stream):
                    raise DesignError(
                        f"the host drains ObjectFifo {fifo.name!r} through two consumers with different depth or "
                        "dims_from_stream: call cons() once and keep the handle"
                    )
                fifo._cons.remove(other)


def _declares(arg: Any) -> bool:
    """Whether an argument is a type, which declares an argument of the run."""
    return isinstance(arg, type) or get_origin(arg) is np.ndarray

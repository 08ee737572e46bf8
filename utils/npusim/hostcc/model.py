"""A declared kernel compiled for the host, and the model of it that the simulated NPU runs.

Cycles do not depend on data: a call's operations are counted once for each set of scalar arguments, on arrays of ones
placed at the start of their memory (data runs place them at the end), and that number stands for all calls, in data
runs and in timing-only ones alike. Static variables of a kernel are shared by all cores that run it; on the NPU each
core has its own.
"""

from __future__ import annotations

import atexit
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import numpy as np
from ml_dtypes import bfloat16

from npusim.devices import Device
from npusim.errors import DesignError
from npusim.graph import KernelDecl
from npusim.hostcc import rates
from npusim.hostcc.build import Program, build
from npusim.hostcc.rates import Counts
from npusim.hostcc.signature import check
from npusim.hostcc.source import Source
from npusim.hostcc.worker import CASCADE, Worker
from npusim.kernels import KernelModel
from npusim.types import MemRefType, numpy_dtype

_WORKERS: OrderedDict[str, Worker] = OrderedDict()
_WORKERS_MAX = 16
_COUNTS: dict[tuple[Any, ...], Counts] = {}


def worker_of(program: Program) -> Worker:
    """The running process of a program; the least recently used one ends when there are too many."""
    key = str(program.path)
    worker = _WORKERS.pop(key, None) or Worker(program)
    _WORKERS[key] = worker
    while len(_WORKERS) > _WORKERS_MAX:
        _WORKERS.popitem(last=False)[1].close()
    return worker


@atexit.register
def close_all() -> None:
    """End every kernel process."""
    while _WORKERS:
        _WORKERS.popitem()[1].close()


class HostKernel:
    """A kernel's C++, compiled for one device: callable on numpy arrays, in place."""

    def __init__(self, decl: KernelDecl, device: Device) -> None:
        self.decl, self.device = decl, device
        self.symbol = decl.source_name or decl.name
        self.program = build(Source.of(decl, device.arch))
        check(decl, self.program.functions[self.program.index(self.symbol)])
        self.uses_cascade = self.program.uses_cascade

    def __call__(self, *arguments: Any, cascade: Any = None) -> None:
        """Run once. Shapes and dtypes as declared; ``cascade`` as a kernel model gets it."""
        values = [self._value(i, a) for i, a in enumerate(arguments)]
        if not self.uses_cascade:
            worker_of(self.program).call(self.symbol, values)
            return
        counts = self.counts([v for v in values if not isinstance(v, np.ndarray)])
        received = b""
        if counts.cascade_in:
            received = cascade.get(counts.cascade_in, np.uint8).tobytes()
        outcome = worker_of(self.program).call(self.symbol, values, received=received)
        if outcome.counts.cascade_in != counts.cascade_in:
            raise DesignError(
                f"kernel {self.decl.name!r} took {outcome.counts.cascade_in} bytes from the cascade, and {counts.cascade_in} "
                "when its operations were counted: how much it takes must not depend on data"
            )
        if outcome.sent:
            cascade.put(np.frombuffer(outcome.sent, np.uint8))

    def _value(self, index: int, argument: Any) -> Any:
        kind = self.decl.arg_types[index]
        if isinstance(kind, MemRefType):
            return argument
        return _scalar(kind, argument)

    def counts(self, scalars: list[Any]) -> Counts:
        """Operations of one call with these scalar arguments, counted once."""
        key = (
            str(self.program.path),
            self.symbol,
            self.decl.arg_types,
            tuple(np.asarray(s).tobytes() for s in scalars),
        )
        if key not in _COUNTS:
            _COUNTS[key] = self._count(scalars)
        return _COUNTS[key]

    def _count(self, scalars: list[Any]) -> Counts:
        rest = iter(scalars)
        values = [np.ones(k.shape, k.dtype) if isinstance(k, MemRefType) else next(rest) for k in self.decl.arg_types]
        received = bytes(CASCADE) if self.uses_cascade else b""
        try:
            return worker_of(self.program).call(self.symbol, values, place="start", received=received).counts
        except DesignError as error:
            raise DesignError(f"{error}; this was while its operations were counted, on arrays of ones") from None

    def cycles(self, *arguments: Any, device: Device) -> int:
        """Estimated core cycles of a call (see :mod:`npusim.hostcc.rates`)."""
        return rates.cycles(self.counts(self._scalars(arguments)), device)

    def bound(self, *arguments: Any, device: Device) -> int:
        """Core cycles if only the load, store and vector slots count."""
        return rates.bound(self.counts(self._scalars(arguments)), device)

    def _scalars(self, arguments: tuple[Any, ...]) -> list[Any]:
        return [_scalar(k, a) for k, a in zip(self.decl.arg_types, arguments) if not isinstance(k, MemRefType)]

    def cascade_bytes(self, *types: Any) -> tuple[int, int]:
        """Bytes that a call gets from the cascade and puts to it."""
        counts = self.counts([])
        return counts.cascade_in, counts.cascade_out


def _scalar(kind: str | MemRefType, value: Any) -> Any:
    """A scalar argument as a numpy number of its declared type."""
    assert isinstance(kind, str)
    if kind == "bf16":
        return np.asarray(value, np.float32).astype(bfloat16)[()]
    return np.asarray(value).astype(numpy_dtype(kind))[()]


def compile_kernel(decl: KernelDecl, device: Device) -> HostKernel:
    """Compile a declared kernel's C++ for the host.

    Raises DesignError where the source is wrong (the compiler's message, a missing function, arguments that do not
    fit the declared ones), UnsupportedError where there is no compiler or the source needs what the header does not
    have.
    """
    return HostKernel(decl, device)


def host_model(decl: KernelDecl, device: Device) -> KernelModel:
    """The model of a kernel from its C++: data by running it, cycles by counting its operations."""
    kernel = compile_kernel(decl, device)
    fixed = all(isinstance(k, MemRefType) for k in decl.arg_types)
    cascade_bytes: Callable[..., tuple[int, int]] | None = None
    if (
        kernel.uses_cascade and fixed
    ):  # else the bytes may depend on scalars, which a model's cascade_bytes does not see
        cascade_bytes = kernel.cascade_bytes
    return KernelModel(
        kernel,
        kernel.cycles,
        kernel.bound,
        uses_cascade=kernel.uses_cascade,
        source=rates.SOURCE,
        confidence="L",
        cascade_bytes=cascade_bytes,
    )

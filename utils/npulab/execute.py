"""Build a design, run it on the backend in use, and get the same record from both."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from npulab import backend, measure, npu
from npulab.loading import design_in, load
from npulab.record import Run
from npusim.air.machine import AirMachine
from npusim.devices import Device
from npusim.devices import device as device_named
from npusim.errors import DesignError
from npusim.graph import Design
from npusim.ir import Value, walk
from npusim.machine import Machine
from npusim.report import Report
from npusim.types import MemRefType

_last: list[Report] = []


def _resolve(what: Any) -> Any:
    """A design, machine or function that makes one, from what the caller has."""
    if isinstance(what, (str, Path)):
        what = load(what)
    return design_in(what) if isinstance(what, ModuleType) else what


@contextmanager
def _on(name: str | None) -> Iterator[Device]:
    """Designs are made for this device while the context lasts (None: the backend's)."""
    chosen = backend.current()
    wanted = chosen.device if name is None else device_named(name)
    if chosen.kind == "npu" and wanted.family != chosen.device.family:
        raise DesignError(f"this NPU is {chosen.device.family}; use npulab.use('sim') to run on {name}")
    backend.point_at(wanted, chosen.kind)  # also where the backend's is wanted: a design may have chosen another one
    try:
        yield wanted
    finally:
        backend.point_at(chosen.device, chosen.kind)


def design(what: Any, *, device: str | None = None, **params: Any) -> Design:
    """The design graph (simulated backend), for :func:`npulab.draw.graph`. ``what`` as in :func:`run`.

    Raises:
        DesignError: if it makes no design, or on the NPU's backend.
    """
    from npusim.load import as_design

    what = _resolve(what)
    if isinstance(what, Design):
        return what
    if isinstance(what, Machine):
        if what.design is None:
            raise DesignError("this machine was not made from a design graph")
        return what.design
    with _on(device) as on:
        if backend.current().kind != "sim":
            raise DesignError("design graphs are made by the simulated backend: npulab.use('sim')")
        if npu.is_callable_design(what):
            return what.compilable.specialize(**params).design()
        return as_design(what(on.name, **params))


def machine(what: Any, *, device: str | None = None, **params: Any) -> Machine:
    """The placed design (simulated backend), for :func:`npulab.draw.array` before anything runs. ``what`` as in :func:`run`.

    Raises:
        DesignError, CapacityError: if the design breaks a rule or does not fit.
    """
    from npusim.place import place

    what = _resolve(what)
    return what if isinstance(what, Machine) else place(design(what, device=device, **params))


def run(
    what: Any,
    args: Sequence[Any] = (),
    *,
    device: str | None = None,
    flops: float | None = None,
    name: str | None = None,
    outputs: Sequence[int] | None = None,
    warmup: int = measure.WARMUP,
    iterations: int = measure.ITERATIONS,
    clock_hz: float | None = None,
    stream_bytes_per_cycle: int | None = None,
    data: bool = True,
    trace: bool = True,
    kernels: Any = None,
    costs: Any = None,
    **params: Any,
) -> Run:
    """Build a design and run it once over ``args``, on the NPU or simulated.

    ``what`` is a function ``build(device, **params)``, an ``@iron.jit`` function (``params`` are its CompileTime values), a
    module or path with either, or a Design or Machine. ``args`` are arrays (and scalars) for the host sequence; they are
    copied, so the caller's stay as they are; without ``data`` they are not even looked at but for type and size, and may be
    as large as ``np.broadcast_to`` makes them. ``flops`` is what the work counts as, for FLOP/s and operational intensity.

    The outputs are the arguments that the design writes; ``outputs`` names them by position, which is needed for a
    ``build`` function on the NPU (else all arguments are returned). ``warmup`` and ``iterations`` are for the NPU; ``clock_hz``,
    ``stream_bytes_per_cycle``, ``data``, ``trace``, ``kernels`` and ``costs`` for the simulated one.

    Raises:
        NpuError: DesignError, CapacityError, DeadlockError (the design), UnsupportedError (the simulator),
            ToolchainError, DeviceError (the real path).
    """
    what = _resolve(what)
    label = name or _name_of(what)
    with _on(device) as on:
        if backend.current().kind == "npu":
            got = npu.run(what, args, on, params, warmup=warmup, iterations=iterations)
            chosen = outputs if outputs is not None else _marked_outputs(what, len(got.arrays))
            arrays = tuple(got.arrays[i] for i in chosen)
            return Run("measured", on, got.timing.best, arrays, label, flops=flops, samples=got.timing.samples)
        placed = machine(what, device=device, **params)
    if clock_hz is not None or stream_bytes_per_cycle is not None:
        placed = copy.copy(placed)
        placed.device = placed.device.with_options(clock_hz=clock_hz, stream_bytes_per_cycle=stream_bytes_per_cycle)
    return _simulate(
        placed, args, outputs, label, flops, {"data": data, "trace": trace, "kernels": kernels, "costs": costs}
    )


def _simulate(
    placed: Machine,
    args: Sequence[Any],
    outputs: Sequence[int] | None,
    name: str,
    flops: float | None,
    how: dict[str, Any],
) -> Run:
    from npusim.run import simulate

    mine = _arguments(placed, args, copied=how["data"])
    report = simulate(placed, mine, **how)
    chosen = written(placed) if outputs is None else outputs
    shapes = [np.shape(a) for a in args]
    return Run.of_report(report, [mine[i].reshape(shapes[i]) for i in chosen], name=name, flops=flops)


def _arguments(placed: Machine, args: Sequence[Any], *, copied: bool = True) -> list[Any]:
    """The arguments as the host sequence declares them, copied if something may be written to them; DesignError if they do
    not fit."""
    wanted: list[Value] = placed.sequence.entry.args if placed.sequence else []
    if len(wanted) != len(args):
        raise DesignError(f"the host sequence takes {len(wanted)} arguments, got {len(args)}")
    return [
        _argument(i, a, v.type, copied) if isinstance(v.type, MemRefType) else a
        for i, (a, v) in enumerate(zip(args, wanted))
    ]


def _argument(index: int, given: Any, kind: MemRefType, copied: bool) -> np.ndarray[Any, Any]:
    array = np.asarray(given)
    if array.dtype != kind.dtype:
        raise DesignError(
            f"argument {index} is {array.dtype}, but the design moves {kind.element} ({kind.dtype}): convert it with .astype()"
        )
    if array.size != kind.size:
        raise DesignError(f"argument {index} has {array.size} elements, but the design moves {kind.size} ({kind})")
    return np.array(array, order="C").reshape(kind.shape) if copied else array


def written(placed: Machine) -> list[int]:
    """The positions of the host arguments that shim DMA writes."""
    if placed.sequence is None:
        return []
    if isinstance(placed, AirMachine):
        return placed.outputs
    position = {id(value): i for i, value in enumerate(placed.sequence.entry.args)}
    found: set[int] = set()
    for op in walk(placed.sequence):
        if op.name != "aiex.dma_configure_task_for":
            continue
        channel = placed.host_channels.get(str(op.attrs.get("alloc")))
        if channel is None or channel.direction != "S2MM":
            continue
        for inner in (o for region in op.regions for o in walk(region)):
            found |= {position[id(v)] for v in inner.operands if inner.name == "aie.dma_bd" and id(v) in position}
    return sorted(found)


def _marked_outputs(what: Any, count: int) -> list[int]:
    """The tensors that an @iron.jit function marks Out or InOut; all arguments where nothing is marked."""
    if not npu.is_callable_design(what):
        return list(range(count))
    generator = what.compilable.mlir_generator
    try:
        hints = inspect.get_annotations(generator, eval_str=True)
    except NameError:
        hints = inspect.get_annotations(generator)
    names = list(what.compilable.tensor_params)
    marks = [getattr(hints.get(n), "__name__", str(hints.get(n))).rsplit(".", 1)[-1] for n in names]
    return [i for i, mark in enumerate(marks) if mark in ("Out", "InOut")] or list(range(count))


def _name_of(what: Any) -> str:
    if isinstance(what, (Design, Machine)):
        return what.name
    function: Callable[..., Any] = what.compilable.mlir_generator if npu.is_callable_design(what) else what
    own = getattr(function, "__name__", "design")
    file = inspect.getsourcefile(function) if own == "build" else None
    if file is None:
        return own
    path = Path(file)
    return path.parent.name if path.stem == "design" else path.stem


def last() -> Run:
    """The latest simulated run, also of an ``@iron.jit`` function that was called directly.

    Raises:
        RuntimeError: if nothing has run yet.
    """
    if not _last:
        raise RuntimeError("nothing has run on the simulated NPU yet")
    return Run.of_report(_last[-1], name="last run")


def _note(report: Report) -> None:
    _last[:] = [report]


def listen() -> None:
    """Take note of every simulated run from now on, for :func:`last`."""
    from npusim.run import listeners

    if _note not in listeners:
        listeners.append(_note)

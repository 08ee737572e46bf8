"""One way to run every mapping: parameters and a device in, result, time and bytes out.

A mapping's package offers ``MAPPING`` and ``run(parameters, device, ...)``, which is :func:`run` here with its own MAPPING.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, NamedTuple

import numpy as np
from ml_dtypes import bfloat16

from designs.attention import formulas, reference
from designs.attention.parameters import Name, Parameters
from designs.kernels.models import KERNELS
from npulab.description import Description, Phase, Stage
from npulab.record import Run
from npusim.devices import Device
from npusim.devices import device as device_named
from npusim.report import CoreUse, Report

Array = np.ndarray[Any, np.dtype[Any]]


class Launched(NamedTuple):
    """The record of a run, and O (num_heads, lq, dv) if it had data."""

    run: Run
    output: Array | None


Waits = tuple[Mapping[str, float], int]
"""What nothing overlaps with: core cycles by name, and tasks that the host starts meanwhile."""


def never_waits(p: Parameters, on: Device) -> Waits:
    """For mappings whose host keeps ahead of the array."""
    return {}, 0


@dataclass(frozen=True)
class MappingOfAttention:
    """A mapping: its stages, and how it is launched.

    ``stages(p, device)`` says what the compute tiles do, in calibrated cycles of blocks of ``bq`` queries and ``lkp`` keys;
    ``launch(p, device, q, k, v, how)`` runs it: q, k, v as :func:`reference.inputs` gives them, ``how`` are options of
    :func:`npulab.run`, with ``data``. ``kernels`` are what each stage of a pipeline calls for a block; ``in_turn`` says that its
    stages are programs one after the other; ``waits`` what stands between the rounds of the host; ``options`` are options of
    the design that a run may give.
    """

    name: Name
    title: str
    stages: Callable[[Parameters, str], Sequence[Stage]]
    launch: Callable[[Parameters, str, Array, Array, Array, dict[str, Any]], Launched]
    kernels: Mapping[str, Sequence[str]] = field(default_factory=dict)
    in_turn: bool = False
    waits: Callable[[Parameters, Device], Waits] = never_waits
    options: tuple[str, ...] = ()

    def describe(self, p: Parameters, device: str | Device) -> Description:
        """The mapping on paper, for :func:`npulab.predict`; ``p`` from :meth:`Parameters.of_mapping` for the device."""
        on = device_named(device) if isinstance(device, str) else device
        programs, stages = formulas.streams(self.name, p, on.name), tuple(self.stages(p, on.name))
        alone, tasks = self.waits(p, on)
        if not self.in_turn:
            ((name, streams),) = programs.items()
            return Description(f"attention_{self.name}", p.flops, (Phase(name, streams, stages, alone, tasks),))
        turns = zip(programs.items(), stages, strict=True)
        return Description(f"attention_{self.name}", p.flops, tuple(Phase(name, own, (stage,)) for (name, own), stage in turns))


def blocks(p: Parameters) -> int:
    """Blocks of ``bq`` queries and ``lkp`` keys, all heads."""
    return p.num_heads * (p.lq // p.bq) * (p.keys // p.tile("lkp"))


def kernel_cycles(p: Parameters, device: str, *names: str, **dims: int) -> int:
    """Calibrated cycles of kernels called once each on a mapping's blocks (``dims`` adds or replaces macros)."""
    shape = {"BQ": p.bq, "BK": p.tile("lkp"), "DK": p.dk, "DV": p.width, **dims}
    return sum(KERNELS[name].cost(shape, device_named(device)).calibrated for name in names)


def mapping(name: Name) -> MappingOfAttention:
    """The mapping of a name; ModuleNotFoundError if its package is not there."""
    found: MappingOfAttention = importlib.import_module(f"designs.attention_{name}").MAPPING
    return found


@dataclass(frozen=True)
class Outcome:
    """A run of a mapping: its complete parameters, the record, and with data O (num_heads, lq, dv) and its error; which
    options it was given."""

    mapping: MappingOfAttention
    parameters: Parameters
    run: Run
    output: Array | None = None
    error: reference.Error | None = None
    given: frozenset[str] = frozenset()

    @property
    def device(self) -> str:
        return self.run.device.name

    def _repr_html_(self) -> str:
        from designs.attention.report import html

        return html(self)


def run(
    of: MappingOfAttention,
    parameters: Parameters,
    device: str = "npu2",
    *,
    inputs: tuple[Array, Array, Array] | None = None,
    data: bool = True,
    trace: bool = False,
    seed: int = 0,
    **options: Any,
) -> Outcome:
    """Run a mapping on normally distributed inputs, or those given, and compare it with the fp32 reference.

    Without ``data`` only the timing is simulated, for any length. ``inputs`` are q, k, v of bf16, shaped as
    :func:`reference.inputs` shapes them. ``options`` go to :func:`npulab.run` (:data:`OPTIONS`), or to the
    design (the mapping's ``options``).

    Raises:
        ValueError: for parameters that the mapping cannot serve, inputs of another shape or type, and options that there are not.
        NpuError: what the design breaks, does not fit into, or what is not served.
    """
    p = parameters.of_mapping(of.name, device)
    _check_options(of, options)
    q, k, v = (reference.inputs(p, seed) if data else _nothing(p)) if inputs is None else _given(p, inputs)
    launched = of.launch(p, device, q, k, v, {"data": data, "trace": trace, **options})
    done = launched.run.having(flops=p.flops, name=f"attention_{of.name}")
    given = frozenset(name for name, value in options.items() if value is not None)
    if launched.output is None:
        return Outcome(of, p, done, given=given)
    truth = reference.attention(q, k, v, causal=p.causal, window=p.window)
    return Outcome(of, p, done, launched.output, reference.error(launched.output, truth, done.device.family), given)


OPTIONS = ("clock_hz", "stream_bytes_per_cycle", "costs", "kernels", "warmup", "iterations")
"""Those of :func:`npulab.run` that are not the mapping's to decide."""


def _check_options(of: MappingOfAttention, options: Mapping[str, Any]) -> None:
    for name in options:
        if name in (f.name for f in fields(Parameters)):
            raise ValueError(f"{name} is a field of Parameters, not an option of a run: Parameters({name}={options[name]!r}, ...)")
        if name not in (*OPTIONS, *of.options):
            raise ValueError(f"attention_{of.name} has no option {name}; there are {', '.join((*OPTIONS, *of.options))}")


def _given(p: Parameters, inputs: Sequence[Array]) -> tuple[Array, Array, Array]:
    """q, k, v, if they are what the parameters say."""
    wanted = reference.shapes(p)
    if len(inputs) != len(wanted):
        raise ValueError(f"inputs are q, k and v, got {len(inputs)} arrays")
    for x, (name, shape) in zip(inputs, wanted.items()):
        if np.shape(x) != shape:
            raise ValueError(f"{name} is of shape {np.shape(x)}, but the parameters say (heads, length, width) = {shape}")
        if getattr(x, "dtype", None) != bfloat16:
            raise ValueError(f"{name} is {getattr(x, 'dtype', type(x).__name__)}, but the mappings take bf16: .astype(ml_dtypes.bfloat16)")
    q, k, v = inputs
    return q, k, v


def _nothing(p: Parameters) -> tuple[Array, Array, Array]:
    """Inputs for timing only: of the right size, and no memory."""
    q, k, v = (np.broadcast_to(bfloat16(0), shape) for shape in reference.shapes(p).values())
    return q, k, v


def empty(size: int, data: bool) -> Array:
    """An array for a design to write: zeros, or without data no memory at all."""
    return np.zeros(size, bfloat16) if data else np.broadcast_to(bfloat16(0), (size,))


def padded(x: Array, rows: int, data: bool) -> Array:
    """x (heads, length, d) with zeros up to ``rows`` rows a head, flat."""
    heads, length, d = x.shape
    if not data:
        return empty(heads * rows * d, data)
    if rows == length:
        return x.reshape(-1)
    full = np.zeros((heads, rows, d), bfloat16)
    full[:, :length] = x
    return full.reshape(-1)


# ---- what the stages did


class Use(NamedTuple):
    """What the compute tiles of a stage did: shares of the time of the stage's run."""

    name: str
    tiles: int
    busy: float
    waits: Mapping[str, float]
    share: float  # of the whole time that the stage's run takes: 1 where all stages run at the same time


def stages(of: Run) -> list[Use]:
    """The stages of a simulated run, or of the runs of a chain: cores with the same program, or in the same row of a herd,
    together."""
    if of.parts:
        return [
            use._replace(share=part.times * part.run.seconds / of.seconds)
            for part in of.parts
            for use in stages(part.run)
        ]
    groups: dict[str, list[CoreUse]] = {}
    for core in of.cores:
        groups.setdefault(stage_of(core.name), []).append(core)
    return [_use(name, cores, of.report) for name, cores in groups.items() if of.report is not None]


def stage_of(core: str) -> str:
    """The name of a worker; of a core of a herd, ``attention[2,1] of segment[1,0]``, the herd's and the row's."""
    herd = re.match(r"(\w+)\[\d+,(\d+)\]", core)
    return f"{herd[1]}, row {herd[2]}" if herd else core


def _use(name: str, cores: list[CoreUse], report: Report) -> Use:
    ticks = len(cores) * report.ticks
    waits: dict[str, int] = {}
    for core in cores:
        for what, waited in core.stalled.items():
            stream = re.sub(r"\d+", "", what).strip("_") or what  # q0_3 and q1_0 are parts of q
            waits[stream] = waits.get(stream, 0) + waited
    ordered = sorted(waits.items(), key=lambda item: -item[1])
    return Use(name, len(cores), sum(core.busy for core in cores) / ticks, {k: n / ticks for k, n in ordered if n}, 1.0)


def limiting(of: Run) -> Use:
    """The stage that takes longest: of the longest run of a chain, the busiest one."""
    return max(stages(of), key=lambda use: (use.share, use.busy))


def exact(outcome: Outcome) -> bool:
    """Whether every byte is where the closed formulas say."""
    return outcome.run.traffic == formulas.traffic(outcome.mapping.name, outcome.parameters)

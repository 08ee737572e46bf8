"""Place and run a design in one call."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from npusim.costs import Costs
from npusim.engine import Simulator
from npusim.errors import DesignWarning
from npusim.graph import Design
from npusim.kernels import KernelModel
from npusim.machine import Machine
from npusim.place import place
from npusim.report import Report

listeners: list[Callable[[Report], None]] = []
"""Called after each run, with its report: how a notebook gets at the runs of an @iron.jit design."""


def loaded(machine: Machine, **how: Any) -> Simulator:
    """The machine loaded on the simulator of its kind; ``how`` as for :class:`npusim.engine.Simulator`."""
    from npusim.air.machine import AirMachine

    if isinstance(machine, AirMachine):
        from npusim.air.simulator import AirSimulator

        return AirSimulator(machine, **how)
    return Simulator(machine, **how)


def simulate(
    design: Design | Machine,
    args: Sequence[Any],
    *,
    kernels: Mapping[str, KernelModel] | None = None,
    costs: Costs | None = None,
    data: bool = True,
    trace: bool = True,
    periodic: bool | None = None,
) -> Report:
    """Run a design (placed first) or a machine once over ``args``: arrays of the host sequence, written in place.

    With ``data=False`` only the timing is run, in the same number of cycles; the arrays are not touched. Without trace, too,
    rounds of the host that repeat exactly are added up instead of run (``periodic=False`` runs them). Raises
    DesignError, CapacityError, DeadlockError (the design's fault) or UnsupportedError (ours).
    """
    machine = place(design) if isinstance(design, Design) else design
    report = loaded(machine, kernels=kernels, costs=costs, data=data, trace=trace, periodic=periodic).run(args)
    for text in report.warnings[len(machine.warnings) :]:
        warnings.warn(text, DesignWarning, stacklevel=2)
    for listener in list(listeners):
        listener(report)
    return report

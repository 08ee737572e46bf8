"""Several runs one after the other as one record: operators that a host chains, the same one many times."""

from __future__ import annotations

from collections.abc import Sequence

from npulab.record import Part, Run
from npusim.report import LEVELS, Level, Traffic


def chain(parts: Sequence[Run | tuple[Run, int]], *, name: str = "chain", flops: float | None = None) -> Run:
    """One record of runs one after the other; a pair (run, n) stands for n equal ones.

    Times, cycles and bytes are summed; what the host does from one run to the next (a new program is loaded in some 280 us on
    real devices: mlir-air commit e0b9a2963) is not in it. The outputs are those of the last run. ``flops`` defaults to
    the sum of the parts' where every part knows its own.

    Raises:
        ValueError: for no runs, or for runs of different kinds or devices.
    """
    whole = [Part(part, 1) if isinstance(part, Run) else Part(*part) for part in parts]
    if not whole:
        raise ValueError("a chain needs at least one run")
    first = whole[0].run
    for run, _ in whole:
        if (run.kind, run.device) != (first.kind, first.device):
            raise ValueError(
                f"a chain has runs of one kind on one device, got {first.kind} on {first.device.name} and {run.kind} on "
                f"{run.device.name}"
            )
    if flops is None and all(part.run.flops is not None for part in whole):
        flops = sum((part.run.flops or 0) * part.times for part in whole)
    return Run(
        kind=first.kind,
        device=first.device,
        seconds=sum(part.run.seconds * part.times for part in whole),
        outputs=whole[-1].run.outputs,
        name=name,
        cycles=_cycles(whole),
        traffic=_traffic(whole),
        flops=flops,
        parts=tuple(whole),
    )


def _cycles(parts: Sequence[Part]) -> float | None:
    if any(part.run.cycles is None for part in parts):
        return None
    return sum((part.run.cycles or 0) * part.times for part in parts)


def _traffic(parts: Sequence[Part]) -> dict[Level, Traffic] | None:
    sums = {level: Traffic() for level in LEVELS}
    for part in parts:
        if part.run.traffic is None:
            return None
        for level, moved in part.run.traffic.items():
            sums[level].read += moved.read * part.times
            sums[level].written += moved.written * part.times
    return sums

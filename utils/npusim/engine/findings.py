"""What a run that ended shows to be probably wrong."""

from __future__ import annotations

from typing import TYPE_CHECKING

from npusim.engine.core.running import CoreRun
from npusim.machine import MemBuffer

if TYPE_CHECKING:
    from npusim.engine.simulator import Simulator

DRIVER_TIMEOUT = 60.0
"""Seconds after which the driver aborts a run (torvalds/linux drivers/accel/amdxdna HWCTX_MAX_TIMEOUT, 60,000 ms). Conf. M."""


def findings(sim: Simulator, seconds: float) -> list[str]:
    """Warnings about a run of that many simulated seconds."""
    return [*_unfinished(sim), *_idle(sim), *_early(sim), *_slow(sim, seconds)]


def _unfinished(sim: Simulator) -> list[str]:
    assert sim.host is not None
    return [
        f"the host sequence ended while a transfer of {task.name!r} on {task.channel} was still running: its data may be "
        "incomplete; drain it with wait=True"
        for task in sim.host.unfinished()
        if task.channel.direction == "S2MM"
    ]


def _idle(sim: Simulator) -> list[str]:
    return [_idle_text(run) for run in sim.cores if _did_nothing(run)]


def _did_nothing(run: CoreRun) -> bool:
    """Whether a core still stands at its first wait."""
    site = run.blocked
    return site is not None and site is run.sites[0] and run.clock == 0 and not any(c[0] for c in run.counts.values())


def _idle_text(run: CoreRun) -> str:
    site = run.blocked
    assert site is not None
    what = f"fifo {site.port.fifo!r} as {site.port.role}" if site.port else f"lock {site.lock.name!r}"
    return (
        f"worker {run.program.name!r} of tile {run.program.tile} did nothing in the whole run: it still waits for {what} at "
        f"{site.loc}; feed it, or leave the worker out"
    )


def _early(sim: Simulator) -> list[str]:
    assert sim.host is not None
    return [
        f"worker {run.program.name!r} of tile {run.program.tile} read the run-time parameter {buffer.name!r} before the host "
        "first wrote it, so it saw the old value; let it wait for a WorkerRuntimeBarrier that the host sets after writing"
        for run, buffer in sim.host.too_late
    ]


def readers(sim: Simulator, buffer: MemBuffer) -> list[CoreRun]:
    """The cores that have read a buffer so far, of those the host writes."""
    return [run for run in sim.cores if buffer in run.read]


def _slow(sim: Simulator, seconds: float) -> list[str]:
    if seconds <= DRIVER_TIMEOUT:
        return []
    busiest = max(sim.cores, key=lambda run: sum(c[1] for c in run.counts.values()), default=None)
    who = f"; most of it in worker {busiest.program.name!r} of tile {busiest.program.tile}" if busiest else ""
    return [
        f"the run takes {seconds:,.0f} s (simulated){who}: the driver gives up after {DRIVER_TIMEOUT:.0f} s and reports "
        "ERT_CMD_STATE_TIMEOUT, as for a hang; give each run less work"
    ]

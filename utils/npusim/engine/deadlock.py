"""Explains a run in which nothing can go on any more: who waits for what, who would have to act, what usually causes it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from npusim.engine.channel import End
from npusim.engine.core.writer import CoreRun, Site
from npusim.engine.state import LockState
from npusim.engine.stream import Stream
from npusim.errors import DeadlockError
from npusim.machine import MachineLock

if TYPE_CHECKING:
    from npusim.engine.simulator import Simulator


def explain(sim: Simulator) -> DeadlockError:
    """The error for a simulator whose loop ran dry."""
    cycle = sim.clock.ticks_per_cycle
    lines = [f"deadlock after {sim.loop.now // cycle} cycles: nothing can run any more, and the host sequence has not ended"]
    lines += [f"  {line}" for line in (_host(sim), *_cores(sim), *_streams(sim)) if line]
    lines += [f"  hint: {hint}" for hint in _hints(sim)]
    return DeadlockError("\n".join(lines))


def _host(sim: Simulator) -> str:
    if sim.host is None or sim.host.waiting is None:
        return ""
    _, task = sim.host.waiting
    verb = "fill" if task.channel.direction == "MM2S" else "drain"
    start = task.op.loc
    moved, total = _progress(sim, task.channel), task.nbytes
    return (
        f"the host sequence waits for the {verb} of fifo {task.name!r} (started at {start}): "
        f"{moved} of {total} bytes have moved on {task.channel}"
    )


def _progress(sim: Simulator, channel: object) -> int:
    end = next(e for c, e in sim.ends.items() if c is channel)
    return end.moved if end.task is not None else 0


def _cores(sim: Simulator) -> list[str]:
    return [_core(sim, run) for run in sim.cores if run.blocked is not None or run.waits_for]


def _core(sim: Simulator, run: CoreRun) -> str:
    who = f"worker {run.program.name!r} of tile {run.program.tile}"
    site = run.blocked
    if site is None:
        return f"{who} waits for its {run.waits_for}"
    value = sim.locks[site.lock].available
    if site.port is None:
        return f"{who} waits at {site.loc} for lock {site.lock.name!r} (value {value}){_releasers(sim, site.lock)}"
    port = site.port
    what = "a free object" if port.produce else "an object"
    return (
        f"{who} waits at {site.loc} to acquire {site.count} of fifo {port.fifo!r} as {port.role}: {what} is missing "
        f"({value} available, depth {port.depth}){_releasers(sim, site.lock)}"
    )


def _releasers(sim: Simulator, lock: MachineLock) -> str:
    """Who would have to release a lock."""
    names = [
        f"worker {run.program.name!r} of tile {run.program.tile}"
        for run in sim.cores
        if any(port.release_lock is lock for port in run.program.ports.values()) or _explicit(run, lock)
    ]
    names += [
        str(channel)
        for channel in sim.ends
        if any(use.lock is lock for bd in channel.descriptors for use in bd.releases)
    ]
    return f"; {' or '.join(names)} would have to give it" if names else "; nobody ever gives it"


def _explicit(run: CoreRun, lock: MachineLock) -> bool:
    return any(bound is lock for bound in run.program.locks.values())


def _streams(sim: Simulator) -> list[str]:
    lines = []
    for stream in sim.streams:
        if stream.blocked is not None:
            end, lock = stream.blocked
            if lock is not None or any(e.task is not None or e.moved for e in stream.ends):
                lines.append(_stream(sim, stream, end, lock))
    return lines


def _stream(sim: Simulator, stream: Stream, end: End, lock: LockState | None) -> str:
    name = f"stream {stream.route.name!r}: {end.channel}"
    if lock is None:
        verb = "fill" if end.channel.direction == "MM2S" else "drain"
        return f"{name} has run every {verb} that the host started and waits for another"
    kind = {"free": "a free buffer", "full": "a full buffer"}.get(lock.lock.counts, f"lock {lock.lock.name!r}")
    return f"{name} waits for {kind} (lock {lock.lock.name!r}, value {lock.available}){_releasers(sim, lock.lock)}"


def _hints(sim: Simulator) -> list[str]:
    hints = []
    sites: list[Site] = [run.blocked for run in sim.cores if run.blocked is not None]
    starving = {site.port.fifo for site in sites if site.port is not None and not site.port.produce}
    for stream in sim.streams:
        end, lock = stream.blocked or (None, None)
        if end is not None and lock is None and end.channel.direction == "MM2S" and stream.route.name in starving:
            hints.append(f"fill {stream.route.name!r} with as many objects as its consumer acquires")
        if end is not None and lock is None and end.channel.direction == "S2MM":
            hints.append(f"drain {stream.route.name!r} for every object that is produced")
    if sim.host is not None and sim.host.waiting is not None and sim.host.waiting[1].channel.direction == "S2MM":
        name = sim.host.waiting[1].name
        hints.append(f"the drain of {name!r} asks for more bytes than were produced: count the objects on both sides")
    return list(dict.fromkeys(hints))

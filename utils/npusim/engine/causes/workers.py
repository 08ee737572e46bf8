"""Hangs that come of a worker: what it never releases, its end, its locks, its cascade."""

from __future__ import annotations

from npusim.engine.causes.looks import first_access, giving_end, steps
from npusim.engine.core.running import CoreRun
from npusim.engine.plan import SetLock
from npusim.engine.stream import Stream
from npusim.engine.waits import Waits
from npusim.messages import count
from npusim.place.draft import label


def never_released(waits: Waits) -> str | None:
    """A worker on whom others wait keeps what it acquired."""
    for waiting, party in steps(waits):
        state = waits.lock(waiting)
        port = None if state is None or not isinstance(party, CoreRun) else giving_end(party, state)
        if port is None or not isinstance(party, CoreRun):
            continue
        taken = first_access(party, "aie.objectfifo.acquire", port)
        if taken and first_access(party, "aie.objectfifo.release", port) is None:
            return (
                f"worker {party.program.name!r} acquires from fifo {port.fifo!r} at {taken} and never releases: call "
                "release(...) when "
                "the object is done with."
            )
        held, released = party.objects(port.fifo, port.produce)
        if party.ended and held:
            return (
                f"worker {party.program.name!r} has ended while it still holds {count(held, 'object')} of fifo "
                f"{port.fifo!r} "
                f"(released so far: {released}): release as many as are acquired."
            )
    return None


def ended(waits: Waits) -> str | None:
    """A program that others still need is over."""
    last = waits.path[-1]
    if isinstance(last, CoreRun) and last.ended:
        return (
            f"worker {last.program.name!r} stops too early: let it run as often as the others need it "
            "(while_true=True, the "
            "default, or a range_ with more turns)."
        )
    if isinstance(last, Stream) and any(end.finished for end in last.ends):
        return (
            f"the chain of {last.route.name!r} runs a fixed number of times (iter_count, repeat): leave that out, or raise it."
        )
    return None


def cascade(waits: Waits) -> str | None:
    """Two kernels disagree about what goes over their cascade."""
    run = next((party for party in waits.path if isinstance(party, CoreRun) and party.waits_for), None)
    if run is None:
        return None
    for state in waits.sim.cascades.links:
        if run.program.tile in (state.link.source, state.link.dest):
            got = waits.sim.cascades.ports(state.link.dest).moved
            return (
                f"the kernels on {label(state.link.source)} have put {got + state.bytes:,} bytes on the cascade, "
                "those on "
                f"{label(state.link.dest)} have got {got:,} and "
                f"{'ask for more' if 'input' in run.waits_for else 'leave the rest'}: "
                "both must move as much, call by call; the cascade itself holds two words of 64 bytes."
            )
    return None


def own_lock(waits: Waits) -> str | None:
    """A lock or barrier of the design, which nobody gives."""
    for party in waits.path:
        state = waits.lock(party)
        if state is None or state.lock.counts != "other" or (isinstance(party, CoreRun) and _in_fifo(party)):
            continue
        name = state.lock.name
        later = [a for a in waits.host.actions[waits.host.at :] if isinstance(a, SetLock) and a.lock is state]
        if later:
            return (
                f"the host sets {name!r} at {later[0].op.loc}, after this wait: set the barrier before the transfers "
                "are waited for."
            )
        givers = waits.givers(state.lock)
        if not givers:
            return (
                f"nobody ever sets or releases {name!r}: for a WorkerRuntimeBarrier call set(value) in the host "
                "sequence, for a Lock "
                "release it somewhere or let it start with a value (init)."
            )
        if waits.host in givers:
            return (
                f"the host never sets {name!r} to what is waited for: set the barrier in the sequence, before the transfers."
            )
        return f"lock {name!r} is {state.available}: release it once for every time that it is acquired."
    return None


def _in_fifo(run: CoreRun) -> bool:
    site = run.blocked
    return site is not None and site.port is not None

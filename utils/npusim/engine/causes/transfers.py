"""Hangs that come of what the host moves: too little, too much, too late, in the wrong pieces."""

from __future__ import annotations

from collections.abc import Iterator

from npusim.engine.causes.looks import host_waits, started, verb
from npusim.engine.core.running import CoreRun, Site
from npusim.engine.plan import Start
from npusim.engine.stream import Stream
from npusim.engine.waits import Waits
from npusim.graph import Link
from npusim.messages import count


def partial_object(waits: Waits) -> str | None:
    """The host moves no whole number of objects."""
    for stream, end in host_waits(waits):
        half = next((e for e in stream.ends if e is not end and e.left and e.moved), None)
        if half is not None:
            size, (_, total) = half.moved + half.left, started(waits, end)
            return (
                f"the {verb(end)}s of {stream.route.name!r} add up to {total:,} bytes, but an object has {size:,}: "
                f"{total // size} "
                f"whole and {total % size:,} bytes of another. Pad the host's array to whole objects, or choose an "
                "object size that "
                "divides it."
            )
    return None


def too_late(waits: Waits) -> str | None:
    """A transfer that the host would start only after what it waits for."""
    assert waits.host.waiting is not None
    for _, end in host_waits(waits):
        for action in waits.host.actions[waits.host.at :]:
            if isinstance(action, Start) and action.task.channel is end.channel:
                return (
                    f"the {verb(end)} of {action.task.name!r} at {action.op.loc} comes after this wait, which cannot "
                    "end without "
                    f"it: start it before {waits.host.waiting[0].loc} waits (finish that task group later)."
                )
    return None


def never_filled(waits: Waits) -> str | None:
    """The host fills a fifo that is waited for not once."""
    for stream, end in host_waits(waits):
        if verb(end) == "fill" and not started(waits, end)[0]:
            return f"the host never puts anything into {stream.route.name!r}: fill it in the sequence."
    return None


def fed_too_little(waits: Waits) -> str | None:
    """A worker lacks objects of one input while another has some: it asks for the first in every turn."""
    for stream, end in host_waits(waits):
        if verb(end) == "drain":
            continue
        for run, site in _takers(waits, stream):
            if not _has_others(waits, run, site):
                continue
            times, nbytes = started(waits, end)
            objects = sum(run.objects(stream.route.name, False))
            return (
                f"fifo {stream.route.name!r} was filled {count(times, 'time')} ({nbytes:,} bytes), but worker "
                f"{run.program.name!r} asks at {site.loc} for one more than the {objects} it had: acquire it once, "
                "outside the loop, "
                "or fill it once for every turn."
            )
    return None


def _takers(waits: Waits, stream: Stream) -> Iterator[tuple[CoreRun, Site]]:
    """Workers on the path that wait for an object of a stream's fifo."""
    for party in waits.path:
        site = party.blocked if isinstance(party, CoreRun) else None
        if (
            isinstance(party, CoreRun)
            and site
            and site.port
            and not site.port.produce
            and site.port.fifo == stream.route.name
        ):
            yield party, site


def _has_others(waits: Waits, run: CoreRun, site: Site) -> bool:
    """Whether another input of the worker still has something to give."""
    for port in run.program.ports.values():
        if port.produce or port is site.port or port.acquire_lock is None:
            continue
        held, _ = run.objects(port.fifo, False)
        if held or waits.sim.locks[port.acquire_lock].available:
            return True
    return False


def too_few_drains(waits: Waits) -> str | None:
    """More is produced than the host drains."""
    for stream, end in host_waits(waits):
        if verb(end) == "drain":
            times, nbytes = started(waits, end)
            return (
                f"{count(times, 'drain')} of {stream.route.name!r} took {nbytes:,} bytes, and its worker has more: "
                "drain every object "
                "that is produced."
            )
    return None


def too_much_drained(waits: Waits) -> str | None:
    """The host drains more than can be made of what it fills."""
    assert waits.host.waiting is not None
    task = waits.host.waiting[1]
    for stream, end in host_waits(waits):
        times, nbytes = started(waits, end)
        if verb(end) == "fill" and task.channel.direction == "S2MM":
            return (
                f"the drain of {task.name!r} ({task.nbytes:,} bytes) asks for more than can be made of the "
                f"{count(times, 'fill')} of "
                f"{stream.route.name!r} ({nbytes:,} bytes), which is used up: drain less, or fill more."
            )
    return None


def uneven_parts(waits: Waits) -> str | None:
    """The parts of a split or join are not used equally often."""
    for party in waits.path:
        state = waits.lock(party) if isinstance(party, Stream) else None
        if state is None or state.lock.tile.row != 1:
            continue
        for link in waits.sim.machine.design.links if waits.sim.machine.design else []:
            if state.lock.fifo in {f.name for f in (*link.inputs, *link.outputs)}:
                found = _compare_parts(waits, link)
                if found:
                    return found
    return None


def _compare_parts(waits: Waits, link: Link) -> str | None:
    splits = len(link.outputs) > 1
    parts = link.outputs if splits else link.inputs
    moved = {fifo.name: _objects(waits, fifo.name, "MM2S" if splits else "S2MM") for fifo in parts}
    if len(set(moved.values())) < 2:
        return None
    whole = (link.inputs if splits else link.outputs)[0].name
    least, done = min(moved, key=lambda name: moved[name]), "taken" if splits else "given"
    seen = ", ".join(f"{name!r} {count(n, 'time')}" for name, n in moved.items())
    return (
        f"{whole!r} is {'split' if splits else 'joined'}, so its parts must be {done} equally often, but {seen}: let "
        "the worker of "
        f"{least!r} {'take' if splits else 'give'} one for every one of the others."
    )


def _objects(waits: Waits, fifo: str, direction: str) -> int:
    """Objects that a MemTile's channel of a fifo has moved."""
    return next(
        (
            end.use.transfers
            for channel, end in waits.sim.ends.items()
            if channel.fifo == fifo and channel.direction == direction and channel.tile.row == 1
        ),
        0,
    )

"""What usually causes a hang, told from who waits for whom. The first rule that fits gives the hint."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from npusim.engine.channel import End
from npusim.engine.core.running import CoreRun, Site
from npusim.engine.host import Host
from npusim.engine.plan import SetLock, Start
from npusim.engine.state import LockState
from npusim.engine.stream import Stream
from npusim.engine.waits import Party, Waits
from npusim.graph import Link
from npusim.ir import Loc, Op, walk
from npusim.machine import FifoPort
from npusim.messages import count
from npusim.place.draft import label

Rule = Callable[[Waits], str | None]


def hint(waits: Waits) -> str:
    """One hint."""
    for rule in _RULES:
        found = rule(waits)
        if found is not None:
            return found
    return "count on paper how many objects of each fifo its producer gives and its consumer takes in one run."


# -- what the rules look at


def _host_waits(waits: Waits) -> Iterator[tuple[Stream, End]]:
    """Streams on the path that wait for the host to start a transfer, and their shim ends."""
    for party in waits.path:
        blocked = waits.blocked(party)
        if isinstance(party, Stream) and blocked is not None and blocked[1] is None:
            yield party, blocked[0]


def _steps(waits: Waits) -> Iterator[tuple[Party, Party]]:
    """Each party of the path and the one that it waits for."""
    ends = [*waits.path[1:], *([] if waits.back is None else [waits.path[waits.back]])]
    yield from zip(waits.path, ends, strict=False)


def _port(run: CoreRun, state: LockState) -> FifoPort | None:
    """The fifo end with which a core gives a lock."""
    return next((p for p in run.program.ports.values() if p.release_lock is state.lock), None)


def _where(run: CoreRun, name: str, port: FifoPort) -> Loc | None:
    """Where a core's body first acquires from or releases a fifo end."""
    return next((op.loc for op in walk(run.program.body) if op.name == name and _is(op, port)), None)


def _is(op: Op, port: FifoPort) -> bool:
    return bool(op.attrs["objFifo_name"] == port.fifo and (op.attrs["port"] == 0) == port.produce)


def _moved(waits: Waits, channel_end: End) -> tuple[int, int]:
    """(number, bytes) of the transfers that the host has started on a shim channel."""
    tasks = [task for task in waits.host.tasks.values() if task.channel is channel_end.channel]
    return len(tasks), sum(task.nbytes for task in tasks)


def _verb(end: End) -> str:
    return "fill" if end.channel.direction == "MM2S" else "drain"


# -- the rules


def _partial_object(waits: Waits) -> str | None:
    for stream, end in _host_waits(waits):
        half = next((e for e in stream.ends if e is not end and e.left and e.moved), None)
        if half is not None:
            size, (_, total) = half.moved + half.left, _moved(waits, end)
            return (
                f"the {_verb(end)}s of {stream.route.name!r} add up to {total:,} bytes, but an object has {size:,}: {total // size} "
                f"whole and {total % size:,} bytes of another. Pad the host's array to whole objects, or choose an object size that "
                "divides it."
            )
    return None


def _too_late(waits: Waits) -> str | None:
    """A transfer that the host would start only after what it waits for."""
    assert waits.host.waiting is not None
    for _, end in _host_waits(waits):
        for action in waits.host.actions[waits.host.at :]:
            if isinstance(action, Start) and action.task.channel is end.channel:
                return (
                    f"the {_verb(end)} of {action.task.name!r} at {action.op.loc} comes after this wait, which cannot end without "
                    f"it: start it before {waits.host.waiting[0].loc} waits (finish that task group later)."
                )
    return None


def _never_released(waits: Waits) -> str | None:
    for waiting, party in _steps(waits):
        state = waits.lock(waiting)
        port = None if state is None or not isinstance(party, CoreRun) else _port(party, state)
        if port is None or not isinstance(party, CoreRun):
            continue
        taken = _where(party, "aie.objectfifo.acquire", port)
        if taken and _where(party, "aie.objectfifo.release", port) is None:
            return (
                f"worker {party.program.name!r} acquires from fifo {port.fifo!r} at {taken} and never releases: call release(...) when "
                "the object is done with."
            )
        held, released = party.objects(port.fifo, port.produce)
        if party.ended and held:
            return (
                f"worker {party.program.name!r} has ended while it still holds {count(held, 'object')} of fifo {port.fifo!r} "
                f"(released so far: {released}): release as many as are acquired."
            )
    return None


def _ended(waits: Waits) -> str | None:
    last = waits.path[-1]
    if isinstance(last, CoreRun) and last.ended:
        return (
            f"worker {last.program.name!r} stops too early: let it run as often as the others need it (while_true=True, the "
            "default, or a range_ with more turns)."
        )
    if isinstance(last, Stream) and any(end.finished for end in last.ends):
        return f"the chain of {last.route.name!r} runs a fixed number of times (iter_count, repeat): leave it out, or raise it."
    return None


def _cascade(waits: Waits) -> str | None:
    run = next((party for party in waits.path if isinstance(party, CoreRun) and party.waits_for), None)
    if run is None:
        return None
    for state in waits.sim.cascades.links:
        if run.program.tile in (state.link.source, state.link.dest):
            got = waits.sim.cascades.ports(state.link.dest).moved
            return (
                f"the kernels on {label(state.link.source)} have put {got + state.bytes:,} bytes on the cascade, those on "
                f"{label(state.link.dest)} have got {got:,} and {'ask for more' if 'input' in run.waits_for else 'leave the rest'}: "
                "both must move as much, call by call; the cascade itself holds two words of 64 bytes."
            )
    return None


def _own_lock(waits: Waits) -> str | None:
    for party in waits.path:
        state = waits.lock(party)
        if state is None or state.lock.counts != "other" or (isinstance(party, CoreRun) and _in_fifo(party)):
            continue
        name = state.lock.name
        later = [a for a in waits.host.actions[waits.host.at :] if isinstance(a, SetLock) and a.lock is state]
        if later:
            return (
                f"the host sets {name!r} at {later[0].op.loc}, after this wait: set the barrier before the transfers are waited for."
            )
        givers = waits.givers(state.lock)
        if not givers:
            return (
                f"nobody ever sets or releases {name!r}: for a WorkerRuntimeBarrier call set(value) in the host sequence, for a Lock "
                "release it somewhere or let it start with a value (init)."
            )
        if waits.host in givers:
            return f"the host never sets {name!r} to what is waited for: set the barrier in the sequence, before the transfers."
        return f"lock {name!r} is {state.available}: release it once for every time that it is acquired."
    return None


def _in_fifo(run: CoreRun) -> bool:
    site = run.blocked
    return site is not None and site.port is not None


def _uneven_parts(waits: Waits) -> str | None:
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
    least, verb = min(moved, key=lambda name: moved[name]), "taken" if splits else "given"
    seen = ", ".join(f"{name!r} {count(n, 'time')}" for name, n in moved.items())
    return (
        f"{whole!r} is {'split' if splits else 'joined'}, so its parts must be {verb} equally often, but {seen}: let the worker of "
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


def _fed_too_little(waits: Waits) -> str | None:
    """A worker lacks objects of one input while another has some: it asks for the first in every turn."""
    for stream, end in _host_waits(waits):
        if _verb(end) == "drain":
            continue
        for run, site in _takers(waits, stream):
            if not _has_others(waits, run, site):
                continue
            times, nbytes = _moved(waits, end)
            objects = sum(run.objects(stream.route.name, False))
            return (
                f"fifo {stream.route.name!r} was filled {count(times, 'time')} ({nbytes:,} bytes), but worker "
                f"{run.program.name!r} asks at {site.loc} for one more than the {objects} it had: acquire it once, outside the loop, "
                "or fill it once for every turn."
            )
    return None


def _takers(waits: Waits, stream: Stream) -> Iterator[tuple[CoreRun, Site]]:
    """Workers on the path that wait for an object of a stream's fifo."""
    for party in waits.path:
        site = party.blocked if isinstance(party, CoreRun) else None
        if isinstance(party, CoreRun) and site and site.port and not site.port.produce and site.port.fifo == stream.route.name:
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


def _too_few_drains(waits: Waits) -> str | None:
    for stream, end in _host_waits(waits):
        if _verb(end) == "drain":
            times, nbytes = _moved(waits, end)
            return (
                f"{count(times, 'drain')} of {stream.route.name!r} took {nbytes:,} bytes, and its worker has more: drain every object "
                "that is produced."
            )
    return None


def _never_filled(waits: Waits) -> str | None:
    for stream, end in _host_waits(waits):
        if _verb(end) == "fill" and not _moved(waits, end)[0]:
            return f"the host never puts anything into {stream.route.name!r}: fill it in the sequence."
    return None


def _too_much_drained(waits: Waits) -> str | None:
    assert waits.host.waiting is not None
    task = waits.host.waiting[1]
    for stream, end in _host_waits(waits):
        times, nbytes = _moved(waits, end)
        if _verb(end) == "fill" and task.channel.direction == "S2MM":
            return (
                f"the drain of {task.name!r} ({task.nbytes:,} bytes) asks for more than can be made of the {count(times, 'fill')} of "
                f"{stream.route.name!r} ({nbytes:,} bytes), which is used up: drain less, or fill more."
            )
    return None


def _too_shallow(waits: Waits) -> str | None:
    """A circle without the host, one of whom waits for a free buffer."""
    if any(isinstance(party, Host) for party in waits.circle) or waits.back is None:
        return None
    for party in waits.circle:
        state = waits.lock(party)
        if state is not None and state.lock.counts == "free":
            fifo = state.lock.fifo
            wanted = [s.count or 0 for p in waits.circle if isinstance(p, CoreRun) and (s := p.blocked) and _takes(s, fifo)]
            depth = _depth(waits, party)
            least = f"of at least {max(wanted)}" if max(wanted, default=0) > depth else f"larger than {depth}"
            return (
                f"fifo {fifo!r} is full on {label(state.lock.tile)} before the circle has begun to turn: give that end a depth {least} "
                "(prod(depth=...), cons(depth=...)), or take its objects before waiting for others that depend on them."
            )
    return None


def _depth(waits: Waits, party: Party) -> int:
    """Buffers of the end of a fifo at which somebody waits."""
    if isinstance(party, CoreRun):
        site = party.blocked
        return site.port.depth if site and site.port else 0
    blocked = waits.blocked(party)
    return 0 if blocked is None else len({id(transfer.bd.buffer) for transfer in blocked[0].program})


def _takes(site: Site, fifo: str | None) -> bool:
    return site.port is not None and not site.port.produce and site.port.fifo == fifo


def _no_first_object(waits: Waits) -> str | None:
    """A circle of parties that all wait for objects."""
    if any(isinstance(party, Host) for party in waits.circle) or waits.back is None:
        return None
    fifos = list(dict.fromkeys(str(s.lock.fifo) for party in waits.circle if (s := waits.lock(party)) is not None and s.lock.fifo))
    if not fifos:
        return None
    return (
        f"everybody waits for the first object of a loop ({', '.join(map(repr, fifos))}): give one of these fifos init_values, or let "
        "one worker produce before it takes."
    )


_RULES: tuple[Rule, ...] = (
    _partial_object,
    _too_late,
    _never_filled,
    _never_released,
    _cascade,
    _own_lock,
    _fed_too_little,
    _too_few_drains,
    _uneven_parts,
    _ended,
    _too_much_drained,
    _too_shallow,
    _no_first_object,
)

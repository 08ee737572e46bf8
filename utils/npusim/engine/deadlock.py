"""Explains a run in which nothing can go on any more: who waits for whom, what each last did, what usually causes it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING

from npusim.engine.causes import hint
from npusim.engine.channel import End, Task
from npusim.engine.core.running import CoreRun, Site
from npusim.engine.host import Host
from npusim.engine.state import LockState
from npusim.engine.stream import Stream
from npusim.engine.waits import Party, Waits
from npusim.errors import DeadlockError
from npusim.ir import UNKNOWN
from npusim.messages import count
from npusim.messages import explain as worded
from npusim.place.draft import label

if TYPE_CHECKING:
    from npusim.engine.simulator import Simulator

SHOWN = 6
"""Parties beside the chain of waits that are listed."""


def explain(sim: Simulator) -> DeadlockError:
    """The error for a simulator whose loop ran dry."""
    waits = Waits(sim)
    cycles = sim.loop.now // sim.clock.ticks_per_cycle
    text = worded(
        f"deadlock after {cycles:,} cycles: nothing can run any more, and the host sequence has not ended. Each "
        "waits for the next:",
        details=[*_chain(waits), *_others(waits)],
        phrase="Kernel returned ert_cmd_state.ERT_CMD_STATE_TIMEOUT",
        hint=hint(waits),
    )
    return DeadlockError(text)


def _chain(waits: Waits) -> Iterator[str]:
    for number, party in enumerate(waits.path, 1):
        yield f"{number}. {_state(waits, party)}"
        done = _done(waits, party)
        if done:
            yield f"   so far: {done}"
    if waits.back == 0 and len(waits.path) > 1:
        yield "   and the host goes on only when its own wait, 1, is over"
    elif waits.back is not None:
        yield f"   and {waits.back + 1} would have to act first: a circle in which nobody can begin"


def _others(waits: Waits) -> Iterator[str]:
    if waits.others:
        yield "besides:"
    for party in waits.others[:SHOWN]:
        yield f"- {_state(waits, party)}"
    if len(waits.others) > SHOWN:
        yield f"- and {len(waits.others) - SHOWN} more"


def _state(waits: Waits, party: Party) -> str:
    if isinstance(party, Host):
        return _host(waits)
    if isinstance(party, CoreRun):
        return _core(waits, party)
    return _stream(waits, party)


def _host(waits: Waits) -> str:
    if waits.host.waiting is None:
        return "the host sequence does not wait"
    op, task = waits.host.waiting
    end = waits.sim.ends[task.channel]
    started = "" if op.loc == task.op.loc else f", started at {task.op.loc}"
    return (
        f"the host sequence waits at {op.loc} for the {verb(end)} of fifo {task.name!r}{started}: "
        f"{_progress(end, task):,} of "
        f"{task.nbytes:,} bytes have moved"
    )


def verb(end: End) -> str:
    """What the host calls a transfer on this shim channel."""
    return "fill" if end.channel.direction == "MM2S" else "drain"


def _progress(end: End, task: Task) -> int:
    """Bytes of a host task that have moved."""
    if end.task is not task:
        return 0
    if end.transfer is None:
        return 0
    before = task.chain.index(end.transfer)
    return end.passes * sum(t.nbytes for t in task.chain) + sum(t.nbytes for t in task.chain[:before]) + end.moved


def _core(waits: Waits, run: CoreRun) -> str:
    who = f"worker {run.program.name!r} on {label(run.program.tile)}"
    if run.ended:
        return f"{who} has ended: its function has returned"
    if run.waits_for:
        what = "bytes on its cascade input" if run.waits_for == "cascade input" else "room on its cascade output"
        return f"{who} waits at {run.line} for {what}"
    site = run.blocked
    if site is None:
        return f"{who} runs for ever at {run.line} and never takes or gives anything again"
    return f"{who} waits at {site.loc} for {_wanted(waits, run, site)}"


def _wanted(waits: Waits, run: CoreRun, site: Site) -> str:
    value = waits.sim.locks[site.lock].available
    port = site.port
    if port is None:
        return f"{_lock(site.lock.counts, site.lock.fifo)}lock {site.lock.name!r}, which is {value}"
    held, _ = run.objects(port.fifo, port.produce)
    ready = value // port.factor
    missing = (site.count or 1) - held
    word = "free object" if port.produce else "object"
    return (
        f"{'an' if word[0] == 'o' and missing == 1 else 'a' if missing == 1 else missing} "
        f"{word}{'s' if missing > 1 else ''} of "
        f"fifo {port.fifo!r} (acquire({site.count}) as {port.role}: {held} held, {ready} "
        f"{'free' if port.produce else 'ready'}, "
        f"depth {port.depth})"
    )


def _lock(counts: str, fifo: str | None) -> str:
    kind = {"free": "a free object", "full": "an object"}.get(counts)
    return f"{kind} of fifo {fifo!r}: " if kind and fifo else ""


def _stream(waits: Waits, stream: Stream) -> str:
    source, *dests = (end.channel for end in stream.ends)
    to = ", ".join(map(str, dests[:3])) + (", ..." if len(dests) > 3 else "")
    name = f"stream {stream.route.name!r} ({source} to {to})"
    blocked = waits.blocked(stream)
    if blocked is None:
        return f"{name} has ended: its chain of buffer descriptors is over"
    end, lock = blocked
    if (holder := waits.holder(stream)) is not None:
        return f"{name} waits until a packet of stream {holder.route.name!r} has passed"
    if not isinstance(lock, LockState):
        half = [e for e in stream.ends if e.left and e.moved]
        part = f", with {half[0].moved} of {half[0].moved + half[0].left} bytes of an object moved" if half else ""
        return f"{name} waits for the host to start another {verb(end)}{part}"
    return f"{name} waits for {_buffer(lock, end)}"


def _buffer(lock: LockState, end: End) -> str:
    kind = {"free": "a free buffer", "full": "a full buffer"}.get(lock.lock.counts)
    where = label(lock.lock.tile)
    if kind is None or lock.lock.fifo is None:
        return f"lock {lock.lock.name!r} of {where}, which is {lock.available}"
    depth = len({id(transfer.bd.buffer) for transfer in end.program})
    state = f"it has {depth}, and {lock.available} of them are {lock.lock.counts}"
    return f"{kind} of fifo {lock.lock.fifo!r} on {where}: {state}"


def _done(waits: Waits, party: Party) -> str:
    """What a party has done, the last thing last."""
    counted = waits.host.periodicity is None or not waits.host.periodicity.rounds  # rounds left out are not counted
    if isinstance(party, Host):
        return _host_done(party) if counted else ""
    if isinstance(party, Stream):
        return _moved(waits, party) if counted else ""
    parts = [_objects(party)] if counted else []
    step = party.last
    if step is not None:
        what = step.what if step.amount is None else f"{step.amount} of {step.what!r}"
        parts.append(f"last it {step.verb} {what}" + ("" if step.loc == UNKNOWN else f" at {step.loc}"))
    return "; ".join(p for p in parts if p)


def _host_done(host: Host) -> str:
    started: Counter[tuple[str, str]] = Counter()
    ended: Counter[tuple[str, str]] = Counter()
    for task in host.tasks.values():
        key = ("fill" if task.channel.direction == "MM2S" else "drain", task.name)
        started[key] += 1
        ended[key] += task.done_at is not None
    return ", ".join(
        f"{count(n, kind)} of {name!r} started, {ended[kind, name]} done" for (kind, name), n in started.items()
    )


def _objects(run: CoreRun) -> str:
    words = []
    for fifo, produce in run.ends:
        held, released = run.objects(fifo, produce)
        words.append(f"gave {released} of {fifo!r}" if produce else f"took {held + released} of {fifo!r}")
    return ", ".join(words)


def _moved(waits: Waits, stream: Stream) -> str:
    nbytes, design = stream.ends[0].use.bytes, waits.sim.machine.design
    sizes = {f.type.nbytes for f in design.fifos if f.name == stream.route.name} if design else set()
    if not sizes:
        return f"moved {nbytes:,} bytes"
    size = sizes.pop()
    whole, rest = divmod(nbytes, size)
    return f"moved {count(whole, 'object')} of {size:,} bytes" + (f" and {rest} bytes more" if rest else "")

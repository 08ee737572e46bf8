"""What the rules look at."""

from __future__ import annotations

from collections.abc import Iterator

from npusim.engine.channel import End
from npusim.engine.core.running import CoreRun
from npusim.engine.state import LockState
from npusim.engine.stream import Stream
from npusim.engine.waits import Party, Waits
from npusim.ir import Loc, Op, walk
from npusim.machine import FifoPort


def host_waits(waits: Waits) -> Iterator[tuple[Stream, End]]:
    """Streams on the path that wait for the host to start a transfer, and their shim ends."""
    for party in waits.path:
        blocked = waits.blocked(party)
        if isinstance(party, Stream) and blocked is not None and blocked[1] is None:
            yield party, blocked[0]


def steps(waits: Waits) -> Iterator[tuple[Party, Party]]:
    """Each party of the path and the one that it waits for."""
    ends = [*waits.path[1:], *([] if waits.back is None else [waits.path[waits.back]])]
    yield from zip(waits.path, ends, strict=False)


def giving_end(run: CoreRun, state: LockState) -> FifoPort | None:
    """The fifo end with which a core gives a lock."""
    return next((p for p in run.program.ports.values() if p.release_lock is state.lock), None)


def first_access(run: CoreRun, name: str, port: FifoPort) -> Loc | None:
    """Where a core's body first acquires from or releases a fifo end."""
    return next((op.loc for op in walk(run.program.body) if op.name == name and _is(op, port)), None)


def _is(op: Op, port: FifoPort) -> bool:
    return bool(op.attrs["objFifo_name"] == port.fifo and (op.attrs["port"] == 0) == port.produce)


def started(waits: Waits, channel_end: End) -> tuple[int, int]:
    """(number, bytes) of the transfers that the host has started on a shim channel."""
    tasks = [task for task in waits.host.tasks.values() if task.channel is channel_end.channel]
    return len(tasks), sum(task.nbytes for task in tasks)


def verb(end: End) -> str:
    """What the host calls a transfer on a shim channel."""
    return "fill" if end.channel.direction == "MM2S" else "drain"

"""Launches that repeat, left out of timing-only runs of AIR designs; see :mod:`npusim.engine.periodic` for why that is exact.

The state of an AIR run has more parts than that of a compiled design: transfers that wait for others by number, buffers that
cores let go of by number, scripts that are ahead by so many events. All numbers here are taken relative to what has happened,
all times relative to the host's present, and the place in a core's script modulo the events of one launch (every launch has
the same, or it is not foreseen). A design whose cores or MemTiles ask for the ids of their launch is run in full.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from typing import TYPE_CHECKING, Any

from npusim.air.feeds import CoreFeed, MemFeed
from npusim.air.transfers import AskedTransfer, BufferState, FedEnd, GetTransfer, PutTransfer, RelayTransfer
from npusim.engine.periodic import Periodicity, State
from npusim.engine.plan import Action
from npusim.ir import walk
from npusim.machine import CoreProgram

if TYPE_CHECKING:
    from npusim.air.simulator import AirSimulator


class LaunchPeriodicity(Periodicity):
    """Leaves out launches. Only the begin of a launch is looked at."""

    def __init__(self, sim: AirSimulator, actions: list[Action], boundaries: list[int]) -> None:
        super().__init__(sim, actions)
        self._air, self._boundaries = sim, boundaries
        self._same = not any(map(_asks_for_ids, sim.machine.cores)) and not any(
            feed.asks_for_ids for feed in sim.feeds if isinstance(feed, MemFeed)
        )

    def skip(self, at: int) -> int:
        """The action to go on with, a launch's first."""
        first = bisect_left(self._boundaries, at)
        if not self._same or first == len(self._boundaries) or self._boundaries[first] != at:
            return at
        following = super().skip(at)
        if following != at:
            self._drop(bisect_left(self._boundaries, following) - first)
        return following

    def _repeats(self, begin: int, at: int, period: int) -> int:
        """No more than launches that nobody has begun: who is ahead must still find what he is ahead of."""
        launches = bisect_left(self._boundaries, at) - bisect_left(self._boundaries, begin)
        untouched = min(map(len, self._queues()), default=0)
        return min(super()._repeats(begin, at, period), untouched // launches)

    def _queues(self) -> list[deque[tuple[int, ...]]]:
        return [*(feed.launches for feed in self._air.feeds), *self._air.queues.values()]

    def _drop(self, launches: int) -> None:
        """Nobody runs these."""
        for queue in self._queues():
            for _ in range(launches):
                queue.pop()

    def _more(self) -> State:
        sim, now = self._air, self._sim.loop.now
        left = len(self._boundaries) - bisect_left(self._boundaries, sim.host.at if sim.host else 0)
        feeds = tuple(_feed(feed, left, now) for feed in sim.feeds)
        queues = tuple(len(queue) - left for queue in sim.queues.values())
        labels = tuple(tuple(map(tuple, link.labels)) for link in sim.cascades.links)
        return (feeds, queues, labels, tuple(_end(end, now) for end in sim.fed.values()))


def _asks_for_ids(core: CoreProgram) -> bool:
    for op in walk(core.body):
        if op.name == "air.launches":
            ids = set(op.regions[0].entry.args)
            if any(ids & set(inner.operands) for inner in walk(op.regions[0])):
                return True
    return False


def _feed(feed: MemFeed | CoreFeed, left: int, now: int) -> State:
    if isinstance(feed, MemFeed):
        return (len(feed.launches) - left,)
    buffers = tuple(_buffer(state, now) for states in feed.states.values() for state in states)
    return (feed.taken % feed.events_of_launch if feed.events_of_launch else 0, buffers)


def _buffer(state: BufferState, now: int) -> State:
    """One copy of an L1 buffer: puts not yet out, and the latest ticks."""
    under_way = state.issued - len(state.sent.times)
    return (under_way, state.held, _last(state.released.times, now), _last(state.sent.times, now))


def _last(times: Any, now: int) -> State:
    """The ticks that lie beyond the present."""
    late: list[int] = []
    for tick in reversed(times):
        if tick <= now:
            break
        late.append(tick - now)
    return tuple(late)


def _end(end: FedEnd, now: int) -> State:
    waiting = tuple(_waiting(transfer, needs, now) for transfer, needs in end.pending)
    upcoming = None
    if end.upcoming is not None:
        upcoming = _waiting(end.upcoming, end.needs, now)
    full = tuple(max(0, tick - now) for tick in end.full)
    open_ = end.issued - len(end.ended.times) if end.ended.times or end.issued else 0
    moving = id(end.transfer) if end.left else None
    return (waiting, upcoming, moving, full, open_, max(0, end.free_at - now), _last(end.ended.times, now))


def _waiting(transfer: Any, needs: Any, now: int) -> State:
    """A transfer that was handed out, and what it waits for, relative to what has happened."""
    if isinstance(transfer, RelayTransfer):
        return (id(transfer), tuple(_nth(other.ended.times, needs[other] + n, now) for other, n in transfer.after))
    if isinstance(transfer, AskedTransfer):
        return (id(transfer), max(0, needs[0] - now), _nth(transfer.state.sent.times, needs[1], now))
    if isinstance(transfer, GetTransfer):
        state = transfer.state
        out = state.marks[needs - 1] if 0 < needs <= len(state.marks) else 0
        return (id(transfer), _nth(state.released.times, needs, now), _nth(state.sent.times, out, now))
    assert isinstance(transfer, PutTransfer)
    return (id(transfer), max(0, needs - now))


def _nth(times: Any, n: int, now: int) -> tuple[int, int]:
    """(how many are lacking until the n-th, its tick beyond the present)."""
    lacking = max(0, n - len(times))
    return (lacking, max(0, times[n - 1] - now) if n and not lacking else 0)

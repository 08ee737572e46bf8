"""Transfers of AIR channels on the engine's streams, and what each waits for.

A DMA channel of a MemTile or core is fed with transfers in the order of its party's program, as far ahead as that is known.
A transfer of a MemTile begins when those it depends on have ended. A get of a core begins when the core has let go of the
buffer's copy for the last time before (and what was put from it is out), a put when the core has come to it. All of these
carry ticks, as the locks of a compiled design do, so that no common clock is needed.
"""

from __future__ import annotations

from array import array
from collections import deque
from dataclasses import dataclass, field
from typing import Any, Protocol

from npusim.engine.channel import End
from npusim.engine.loop import Loop, Waitable
from npusim.engine.state import Array
from npusim.engine.transfer import Transfer
from npusim.ir import Loc
from npusim.machine import BufferDescriptor, MemBuffer, Route

DIMENSIONS = 8
"""Patterns are taken as they are written; see npusim.air.patterns for what a descriptor can say."""


class Ticks(Waitable):
    """When something happened for the first, second, ... time; others wait for the n-th."""

    __slots__ = ("times",)

    def __init__(self) -> None:
        super().__init__()
        self.times = array("q")


@dataclass(eq=False)
class BufferState:
    """One copy of a core's L1 buffer."""

    buffer: MemBuffer
    released: Ticks = field(default_factory=Ticks)  # the core let go of what a get had brought
    sent: Ticks = field(default_factory=Ticks)  # a put was out
    issued: int = 0  # puts that the core has come to
    held: bool = False  # a get's data are the core's
    marks: array[int] = field(default_factory=lambda: array("q"))  # ``issued`` at each release


class Feed(Protocol):
    """Where a DMA channel's transfers come from: the program of a party."""

    party: Any

    def pull(self, end: FedEnd) -> bool:
        """Append the next transfers to ``end.pending``; False if there are none for now."""


@dataclass(eq=False)
class FedEnd(End):
    """A DMA channel of a MemTile or core. ``pending`` holds its next transfers, each with what it needs to know to begin."""

    feed: Feed | None = None
    pending: deque[tuple[AirTransfer, Any]] = field(default_factory=deque)
    ended: Ticks = field(default_factory=Ticks)  # each transfer's end (of a MemTile)
    full: deque[int] = field(default_factory=deque)  # ends of gets that the core has not yet noticed
    got: Waitable = field(default_factory=Waitable)  # the core waits here for a get's end
    issued: int = 0  # transfers handed out to it, over all launches
    needs: Any = None  # of the upcoming transfer
    passed: Waitable = field(default_factory=Waitable)  # where several streams share it: one of them let go of it
    free_at: int = 0  # and when

    def advance(self) -> Transfer | None:
        """The next transfer, now ``upcoming``; None if there is none for now."""
        if not self.pending and (self.feed is None or not self.feed.pull(self)):
            return None
        transfer, self.needs = self.pending.popleft()
        self.upcoming = transfer
        return transfer


class AirTransfer(Transfer):
    """A put or get. ``loc`` is its place in the source, ``route`` its stream where a channel is shared, else None."""

    __slots__ = ("end", "loc", "route", "what")

    def __init__(self, end: FedEnd, bd: BufferDescriptor, memory: Array | None, loc: Loc, what: str) -> None:
        super().__init__(bd, memory, {}, DIMENSIONS)
        self.end, self.loc, self.what = end, loc, what
        self.route: Route | None = None


Needs = list[tuple[FedEnd, int]]
"""Transfers (the n-th of another DMA channel) that must have ended."""


class RelayTransfer(AirTransfer):
    """A transfer of a MemTile. The end's ``needs`` is a dict: how many transfers each DMA channel had had before the launch."""

    __slots__ = ("after",)

    def __init__(self, end: FedEnd, bd: BufferDescriptor, memory: Array | None, loc: Loc, what: str) -> None:
        super().__init__(end, bd, memory, loc, what)
        self.after: Needs = []

    def lacking(self) -> Any:
        before = self.end.needs
        for other, n in self.after:
            if len(other.ended.times) < before[other] + n:
                return other.ended
        return None

    def take(self, now: int, common: int) -> int:
        before = self.end.needs
        for other, n in self.after:
            n += before[other]
            if n and (tick := other.ended.times[n - 1]) > now:
                now = tick
        return now

    def give(self, now: int, loop: Loop) -> None:
        ended = self.end.ended
        ended.times.append(now)
        if ended.waiters:
            loop.wake(ended)


class GetTransfer(AirTransfer):
    """A get of a core. The end's ``needs`` is how often the copy must have been let go of."""

    __slots__ = ("state",)

    def __init__(
        self, end: FedEnd, bd: BufferDescriptor, memory: Array | None, loc: Loc, what: str, state: BufferState
    ) -> None:
        super().__init__(end, bd, memory, loc, what)
        self.state = state

    def lacking(self) -> Any:
        state, n = self.state, self.end.needs
        if len(state.released.times) < n:
            return state.released
        if n and len(state.sent.times) < state.marks[n - 1]:
            return state.sent
        return None

    def take(self, now: int, common: int) -> int:
        state, n = self.state, self.end.needs
        if n:
            now = max(now, state.released.times[n - 1])
            if out := state.marks[n - 1]:
                now = max(now, state.sent.times[out - 1])
        return now

    def give(self, now: int, loop: Loop) -> None:
        end = self.end
        end.full.append(now)
        if end.got.waiters:
            loop.wake(end.got)


class AskedTransfer(GetTransfer):
    """A get that only the core knows of. The end's ``needs`` is (the tick at which it asked, puts that must be out)."""

    __slots__ = ()

    def lacking(self) -> Any:
        return self.state.sent if len(self.state.sent.times) < self.end.needs[1] else None

    def take(self, now: int, common: int) -> int:
        asked, out = self.end.needs
        came: int = self.state.sent.times[out - 1] if out else 0
        return max(now, int(asked), came)


class PutTransfer(AirTransfer):
    """A put of a core. The end's ``needs`` is the tick at which the core came to it."""

    __slots__ = ("state",)

    def __init__(
        self, end: FedEnd, bd: BufferDescriptor, memory: Array | None, loc: Loc, what: str, state: BufferState
    ) -> None:
        super().__init__(end, bd, memory, loc, what)
        self.state = state

    def lacking(self) -> Any:
        return None

    def take(self, now: int, common: int) -> int:
        asked: int = self.end.needs
        return asked if asked > now else now

    def give(self, now: int, loop: Loop) -> None:
        sent = self.state.sent
        sent.times.append(now)
        if sent.waiters:
            loop.wake(sent)

"""The running state of a core, as others see it: its counters, its clock, what it did and where it waits."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from npusim.engine.loop import Key, Process
from npusim.ir import UNKNOWN, Loc
from npusim.machine import CoreProgram, FifoPort, MachineLock, MemBuffer
from npusim.report import CoreUse


@dataclass(eq=False)
class Site:
    """A place where a core may block: the lock it wants, and for a fifo the port and how many objects in all."""

    loc: Loc
    lock: MachineLock
    port: FifoPort | None
    count: int | None


class Step(NamedTuple):
    """Something that a core does to others: acquires or releases (``amount`` objects of a fifo), calls a kernel."""

    verb: str
    amount: int | None
    what: str
    loc: Loc


@dataclass(eq=False)
class CoreRun:
    """The running state of one core that others look at: counters, its clock, and where it blocks (``sites[at]``).

    What it last did (``z``, an index in ``steps``) and, for the end ``i`` of a fifo, how many objects it holds (``h{i}``)
    and has released (``n{i}``) are variables of its generator, so that keeping them costs next to nothing.
    """

    program: CoreProgram
    use: CoreUse
    counts: dict[str, list[int]] = field(default_factory=dict)  # kernel -> [calls, ticks]
    sites: list[Site] = field(default_factory=list)
    at: int | None = None
    clock: int = 0  # its own tick, when it last waited or ended
    ahead: deque[tuple[str, int, int]] = field(default_factory=deque)  # waits that end after the common tick
    uncounted: set[str] = field(
        default_factory=lambda: {"_", "k", "a", "t"}
    )  # locals that its future does not depend on
    read: set[MemBuffer] = field(default_factory=set)  # run-time parameters it has looked at
    waits_for: str = ""  # a cascade, when not a lock
    source: str = ""
    locs: list[Loc] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    again: set[int] = field(default_factory=set)  # acquires that gave the same objects twice, without a release between
    ends: dict[tuple[str, bool], str] = field(default_factory=dict)  # (fifo, produce) -> i in h{i} and n{i}
    given_before: int = 0  # objects released before this run
    process: Process | None = None
    final: dict[str, Any] = field(default_factory=dict)  # the generator's variables when it ended

    def stall(self, name: str, since: int, until: int, now: int) -> None:
        """Account for a wait; ``now`` is the common tick, beyond which a run may yet end."""
        self.use.stalled[name] = self.use.stalled.get(name, 0) + until - since
        if until > now:
            while self.ahead and self.ahead[0][2] <= now:
                self.ahead.popleft()
            self.ahead.append((name, since, until))

    def restart(self, begun: int) -> None:
        """Count anew from the begin of a run."""
        self.given_before, self.again = self.given, set()
        self.use.stalled = {}
        for name, since, until in self.ahead:
            if until > begun:
                self.use.stalled[name] = self.use.stalled.get(name, 0) + until - max(since, begun)
        if self.waiting and self.clock < begun:  # waits still; the last run has counted up to here
            self.use.stalled[self.waiting] = self.use.stalled.get(self.waiting, 0) + self.clock - begun

    def stalled_by(self, ended: int) -> dict[str, int]:
        """Ticks waited for each fifo or lock up to the end of a run, which cores may be ahead of."""
        stalled = dict(self.use.stalled)
        for name, since, until in self.ahead:
            stalled[name] -= max(0, until - max(since, ended))
        if self.waiting and self.clock < ended:
            stalled[self.waiting] = stalled.get(self.waiting, 0) + ended - self.clock
        return stalled

    @property
    def ended(self) -> bool:
        """Whether its program is over."""
        return bool(self.final)

    @property
    def variables(self) -> dict[str, Any]:
        """The variables of its generator; empty before it has started."""
        frame = getattr(self.process, "gi_frame", None)
        return self.final if frame is None else dict(frame.f_locals)

    @property
    def line(self) -> Loc:
        """The line of the design that it has reached."""
        frame = getattr(self.process, "gi_frame", None)
        return UNKNOWN if frame is None else self.locs[frame.f_lineno - 1]

    def objects(self, fifo: str, produce: bool) -> tuple[int, int]:
        """(held, released so far) objects of one end of a fifo."""
        i, now = self.ends.get((fifo, produce)), self.variables
        return (0, 0) if i is None else (now.get(f"h{i}", 0), now.get(f"n{i}", 0))

    @property
    def given(self) -> int:
        """Objects that it has released so far, of all fifos."""
        return sum(self.objects(*end)[1] for end in self.ends)

    @property
    def idle(self) -> bool:
        """Whether it has called no kernel, computed nothing and released nothing in this run, and waits."""
        site = self.blocked
        if site is None or any(calls for calls, _ in self.counts.values()) or self.given > self.given_before:
            return False
        return bool(self.ends) or (site is self.sites[0] and self.clock == 0)

    @property
    def last(self) -> Step | None:
        """The last thing it did that others may notice."""
        number = self.variables.get("z", -1)
        return None if number < 0 else self.steps[number]

    @property
    def blocked(self) -> Site | None:
        """The site where it waits for a lock, None if it does not."""
        return None if self.at is None else self.sites[self.at]

    @property
    def waiting(self) -> str:
        """What it waits for: a fifo, a lock, its cascade; empty if it does not."""
        site = self.blocked
        if site is None:
            return self.waits_for
        return site.port.fifo if site.port else site.lock.name

    @property
    def filename(self) -> str:
        return f"<core {self.program.name} of tile {self.program.tile}>"

    @property
    def track(self) -> str:
        """Its name in the trace."""
        return f"core {self.program.tile}"

    @property
    def key(self) -> Key:
        """Its place among processes that act in the same tick."""
        return (0, *self.program.tile)

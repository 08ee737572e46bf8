"""Who waits for whom in a run that stands still: the host, the cores and the streams as a graph."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from npusim.engine.channel import End
from npusim.engine.core.running import CoreRun
from npusim.engine.host import Host
from npusim.engine.loop import Waitable
from npusim.engine.packets import Turnstile
from npusim.engine.state import LockState
from npusim.engine.stream import Stream
from npusim.engine.users import Users
from npusim.machine import Coord, MachineLock

if TYPE_CHECKING:
    from npusim.engine.simulator import Simulator

Party = Host | CoreRun | Stream
"""Somebody who can wait and whom others can wait for."""


class Waits:
    """The wait-for graph of a simulator whose loop ran dry.

    ``path`` leads from the host to somebody who waits for nobody, or round: then ``back`` is the place in it to which the
    last one leads (0: the host).
    """

    def __init__(self, sim: Simulator) -> None:
        assert sim.host is not None
        self.sim, self.host = sim, sim.host
        self._users = Users(sim.machine)
        self._streams = {stream.route: stream for stream in sim.streams}
        self._cores = {run.program: run for run in sim.cores}
        self._by_channel = {end.channel: stream for stream in sim.streams for end in stream.every}
        self._by_tile = {run.program.tile: run for run in sim.cores}
        self.path: list[Party] = [self.host]
        self.back: int | None = None
        self._follow()

    def _follow(self) -> None:
        while needed := self.needs(self.path[-1]):
            onward = [party for party in needed if party not in self.path]
            if not onward:
                self.back = min(self.path.index(party) for party in needed)
                return
            self.path.append(onward[0])

    @property
    def circle(self) -> list[Party]:
        """Those who wait for each other; all of the path if it does not lead round."""
        return self.path[self.back or 0 :]

    @cached_property
    def others(self) -> list[Party]:
        """Those who wait and are not on the path."""
        parties: list[Party] = [*self.sim.cores, *self.sim.streams]
        return [p for p in parties if p not in self.path and self.needs(p) and not self._rests(p)]

    def _rests(self, party: Party) -> bool:
        """Whether it only waits for the host to start something, with nothing half done: its work is over."""
        blocked = self.blocked(party)
        return (
            isinstance(party, Stream)
            and blocked is not None
            and blocked[1] is None
            and not any(e.left for e in party.ends)
        )

    def needs(self, party: Party) -> list[Party]:
        """Those of whom one would have to act before it can go on."""
        if isinstance(party, Host):
            return [] if party.waiting is None else [self._by_channel[party.waiting[1].channel]]
        if isinstance(party, CoreRun) and party.waits_for:
            return self._cascade_peer(party)
        if (holder := self.holder(party)) is not None:
            return [holder]
        lock = self.lock(party)
        if lock is not None:
            return self.givers(lock.lock)
        return [self.host] if isinstance(party, Stream) and self.blocked(party) else []

    def lock(self, party: Party) -> LockState | None:
        """The lock it waits for."""
        if isinstance(party, CoreRun):
            site = party.blocked
            return None if site is None else self.sim.locks[site.lock]
        blocked = self.blocked(party)
        return blocked[1] if blocked is not None and isinstance(blocked[1], LockState) else None

    def holder(self, party: Party) -> Stream | None:
        """Whose packet is in the way of a packet-switched stream."""
        blocked = self.blocked(party)
        return blocked[1].queue[0] if blocked is not None and isinstance(blocked[1], Turnstile) else None

    def blocked(self, party: Party) -> tuple[End, Waitable | None] | None:
        """Where a stream waits and for which lock (None: for a host task); None if it does not or its program is over."""
        if not isinstance(party, Stream) or any(end.finished for end in party.ends):
            return None
        return party.blocked

    def givers(self, lock: MachineLock) -> list[Party]:
        """Those who release a lock."""
        found: list[Party] = [self._cores[p] for p in self._cores if p in self._users.givers[lock]]
        found += [self._streams[r] for r in self._streams if r in self._users.givers[lock]]
        if lock in self.sim.machine.sequence_locks.values():
            found.append(self.host)
        return found

    def _cascade_peer(self, run: CoreRun) -> list[Party]:
        mine = run.program.tile
        ends = [(link.dest, link.source) for link in self.sim.machine.cascades]
        ends = ends if run.waits_for == "cascade input" else [(source, dest) for dest, source in ends]
        peers: list[Coord] = [other for here, other in ends if here == mine]
        return [self._by_tile[tile] for tile in peers if tile in self._by_tile]

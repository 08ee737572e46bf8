"""The event loop: processes are generators, each with a clock of its own.

A core or a stream whose waits are all for tokens (see :mod:`npusim.engine.state`) needs no common clock: a token carries the
tick at which it was given, and whoever takes it goes on from the later of that tick and its own. Such a process runs ahead
as far as there are tokens. Only what is shared and served in the order of time (DDR, the host's actions, locks with several
users) needs a common clock: a process that reaches such a point yields ``(tick, key)`` and is resumed when nothing can run
any more that could still act before that tick. Equal ticks are served in the order of the keys, so neither results nor
times depend on the order in which the processes were started.

A process yields one of

* a :class:`Waitable`: resume me when somebody woke it; I look again then,
* ``(tick, key)``: resume me in the order of time,
* ``(tick, key, True)``: the same, from a process that never blocks: such ones alone do not keep a run alive.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Generator
from typing import Any

Key = tuple[int, ...]
IDLE_ROUNDS = 100
"""How often processes that never block are resumed with nobody else able to run, before that counts as a deadlock."""
BUSY_ROUNDS = 20_000
"""The same where they let others run, who may yet finish: at a stream's horizon of 20,000 cycles, 0.4 s at 1 GHz."""


class Waitable:
    """Something a process can wait for."""

    __slots__ = ("waiters",)

    def __init__(self) -> None:
        self.waiters: list[Process] = []


Process = Generator["Waitable | tuple[int, Key] | tuple[int, Key, bool]", None, Any]


class Loop:
    """Runs processes until :attr:`stopped`, or until nothing can run."""

    def __init__(self) -> None:
        self.now = 0  # the tick up to which what is shared has been served
        self.ready: deque[Process] = deque()
        self.stopped = False
        self.resumptions = 0
        self.ends = False  # whether every process ends or blocks some time, so that whoever runs gets somewhere
        self._heap: list[tuple[int, Key, int, Process]] = []

    def start(self, process: Process) -> None:
        """Let a new process run."""
        self.ready.append(process)

    def wake(self, waitable: Waitable) -> None:
        """Make everybody who waits for it ready; each looks again for itself."""
        if waitable.waiters:
            self.ready.extend(waitable.waiters)
            waitable.waiters.clear()

    def pending(self) -> list[tuple[int, Key, int]]:
        """(tick, key, whether it never blocks) of the processes that wait for their turn in the order of time."""
        return [entry[:3] for entry in self._heap]

    def run(self) -> bool:
        """Run until somebody sets ``stopped`` (True) or nothing can run any more (False: a deadlock)."""
        ready, heap = self.ready, self._heap
        push, pop, take = heapq.heappush, heapq.heappop, ready.popleft
        count = rounds = lonely = 0
        idle = sum(entry[2] for entry in heap)
        try:
            while not self.stopped:
                before = count
                while ready:
                    process = take()
                    count += 1
                    try:
                        wish: Any = process.send(None)
                    except StopIteration:
                        continue
                    if wish.__class__ is tuple:
                        if wish[0] < self.now:
                            raise AssertionError(f"process {wish[1]} acts at tick {wish[0]}, before {self.now}")
                        spins = len(wish) - 2
                        idle += spins
                        push(heap, (wish[0], wish[1], spins, process))
                    else:
                        wish.waiters.append(process)
                if self.stopped or not heap:  # stopped by now: nobody else's time may count
                    return self.stopped
                if idle == len(heap) and not self.ends:
                    rounds += 1
                    lonely = 0 if count > before + 1 else lonely + 1
                    if lonely > IDLE_ROUNDS or rounds > BUSY_ROUNDS:
                        return self.stopped
                else:
                    rounds = lonely = 0
                self.now, _, spins, process = pop(heap)
                idle -= spins
                ready.append(process)
        finally:
            self.resumptions += count
        return True

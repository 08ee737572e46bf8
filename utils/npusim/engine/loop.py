"""The event loop: processes are generators, time is whole ticks.

A process yields a number of ticks to sleep, or a :class:`Waitable` to be resumed after somebody wakes it; it then looks
again whether it may go on. Within one tick processes run in the order in which they became ready. :meth:`Loop.later` runs
a function at the end of the current tick, when nothing is ready any more: arbiters use it to see every request of a tick
before they choose, so that the outcome does not depend on the order of the processes.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable, Generator
from typing import Any


class Waitable:
    """Something a process can wait for."""

    __slots__ = ("waiters",)

    def __init__(self) -> None:
        self.waiters: list[Process] = []


Process = Generator["int | Waitable", None, None]


class Loop:
    """Runs processes until :attr:`stopped`, or until nothing can run."""

    def __init__(self) -> None:
        self.now = 0
        self.ready: deque[Process] = deque()
        self.stopped = False
        self.resumptions = 0
        self.spinners = 0  # processes that never block; alone they do not keep a run alive
        self._heap: list[tuple[int, int, Process]] = []
        self._sequence = 0
        self._late: list[Callable[[], None]] = []

    def start(self, process: Process) -> None:
        """Make a new process ready in this tick."""
        self.ready.append(process)

    def wake(self, waitable: Waitable) -> None:
        """Make everybody who waits for it ready; each looks again for itself."""
        if waitable.waiters:
            self.ready.extend(waitable.waiters)
            waitable.waiters.clear()

    def later(self, call: Callable[[], None]) -> None:
        """Call it at the end of this tick, when nothing is ready any more."""
        self._late.append(call)

    def run(self) -> bool:
        """Run until somebody sets ``stopped`` (True) or nothing can run any more (False: a deadlock)."""
        ready, heap, late = self.ready, self._heap, self._late
        push, pop, take = heapq.heappush, heapq.heappop, ready.popleft
        count, sequence = 0, self._sequence
        try:
            while not self.stopped:
                while ready:
                    process = take()
                    count += 1
                    try:
                        wish: Any = process.send(None)
                    except StopIteration:
                        continue
                    if wish.__class__ is int:
                        sequence += 1
                        push(heap, (self.now + wish, sequence, process))
                    else:
                        wish.waiters.append(process)
                if late:
                    calls = late.copy()
                    late.clear()
                    for call in calls:
                        call()
                    continue
                if len(heap) <= self.spinners:
                    return self.stopped
                self.now, _, process = pop(heap)
                ready.append(process)
                while heap and heap[0][0] == self.now:
                    ready.append(pop(heap)[2])
        finally:
            self.resumptions += count
            self._sequence = sequence
        return True

"""The state of a run: locks, buffer contents, the DDR server.

A lock that one process takes and one process gives is a queue of tokens, each with the tick at which it was given: it needs
no common clock. Any other lock (several takers or givers, exact waits, set by the host) is shared: a plain value, taken and
given in the order of time.
"""

from __future__ import annotations

from collections import deque
from typing import Any

import numpy as np

from npusim.costs import Clockwork
from npusim.engine.loop import Waitable
from npusim.machine import MachineLock, MemBuffer

Array = np.ndarray[Any, Any]


class LockState(Waitable):
    """A counting lock. ``times`` holds its tokens, or, when ``shared``, ``value`` is its count."""

    __slots__ = ("lock", "shared", "times", "value")

    def __init__(self, lock: MachineLock, shared: bool) -> None:
        super().__init__()
        self.lock, self.shared = lock, shared
        self.value = lock.init if shared else 0
        self.times: deque[int] = deque([0] * (0 if shared else lock.init))

    @property
    def available(self) -> int:
        """What can be taken: its value, once everything has happened that can."""
        return self.value if self.shared else len(self.times)

    def __repr__(self) -> str:
        return f"<lock {self.lock.name} of tile {self.lock.tile} = {self.available}>"


class Ddr:
    """DDR as one shared server with a cap a direction and one for both together; requests come in the order of time."""

    def __init__(self, clock: Clockwork) -> None:
        self._rates = {"MM2S": clock.ddr_read, "S2MM": clock.ddr_write}
        self._total = clock.ddr_total
        self._free = {"MM2S": 0, "S2MM": 0}
        self._free_total = 0

    def serve(self, now: int, direction: str, nbytes: int) -> int:
        """The tick at which ``nbytes`` asked for at tick ``now`` have passed."""
        free, total = self._free[direction], self._free_total
        free = (free if free > now else now) + nbytes * self._rates[direction]
        total = (total if total > now else now) + nbytes * self._total
        self._free[direction], self._free_total = free, total
        return free if free > total else total

    def state(self, now: int) -> tuple[int, ...]:
        """How far it is booked beyond a tick."""
        return tuple(max(0, free - now) for free in (*self._free.values(), self._free_total))


class Memory:
    """The arrays behind the machine's buffers, made on first use, zero or with their initial value."""

    def __init__(self) -> None:
        self._arrays: dict[MemBuffer, Array] = {}

    def __getitem__(self, buffer: MemBuffer) -> Array:
        if buffer not in self._arrays:
            array = np.zeros(buffer.type.shape, buffer.type.dtype)
            if buffer.initial is not None:
                array[...] = np.asarray(buffer.initial).reshape(buffer.type.shape)
            self._arrays[buffer] = array
        return self._arrays[buffer]

    def contents(self) -> tuple[bytes, ...]:
        """What all buffers made so far hold."""
        return tuple(array.tobytes() for array in self._arrays.values())

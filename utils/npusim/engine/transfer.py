"""A buffer descriptor ready to run: its locks and memory found, its walk prepared."""

from __future__ import annotations

import numpy as np

from npusim import walk
from npusim.engine.loop import Loop
from npusim.engine.state import Array, LockState
from npusim.machine import BufferDescriptor, LockUse, MachineLock

BURST = 64
"""Bytes of the smallest shim burst (AIE TM: 64, 128, 256 B); a shorter contiguous run costs the DDR a whole one. Conf. M."""

Lock = tuple[LockState, int, bool]
"""Lock, count, whether the exact value is waited for."""


class Transfer:
    """One descriptor. ``dimensions`` is how many the DMA has; without ``array`` (timing only) it has no data."""

    __slots__ = ("acquires", "array", "bd", "burst", "dimensions", "flat", "gives_shared", "nbytes", "next", "releases", "takes_shared")

    def __init__(
        self, bd: BufferDescriptor, array: Array | None, locks: dict[MachineLock, LockState], dimensions: int
    ) -> None:
        self.bd, self.nbytes, self.next, self.dimensions = bd, bd.nbytes, bd.next, dimensions
        self.acquires = [_lock(use, locks) for use in bd.acquires]
        self.releases = [_lock(use, locks) for use in bd.releases]
        self.takes_shared = any(state.shared for state, _, _ in self.acquires)
        self.gives_shared = any(state.shared for state, _, _ in self.releases)
        self.array = None if array is None else array.reshape(-1)
        self.flat = self._contiguous()
        self.burst = _burst(bd)

    def _contiguous(self) -> Array | None:
        """The descriptor's memory as bytes, if it is one piece."""
        if self.array is None or self.bd.pad or len(simple := walk.merged(self.bd.dims)) > 1:
            return None
        if simple and (simple[0][1] != 1 or simple[0][0] != self.bd.length):
            return None
        return self.array[self.bd.offset : self.bd.offset + self.bd.length].view(np.uint8)

    def read(self) -> Array:
        """The bytes it puts onto the stream."""
        if self.flat is not None:
            return self.flat
        bd = self.bd
        assert self.array is not None
        data = walk.gather(self.array, bd.offset, bd.length, bd.dims, bd.pad, bd.pad_value, dimensions=self.dimensions)
        return data.view(np.uint8)

    def write(self, data: Array) -> None:
        """Put the bytes of a whole transfer where the descriptor says."""
        if self.flat is not None:
            self.flat[:] = data
            return
        bd = self.bd
        assert self.array is not None
        elements = data.view(self.array.dtype)
        walk.scatter(self.array, bd.offset, bd.length, bd.dims, elements, dimensions=self.dimensions)

    def lacking(self) -> LockState | None:
        """A lock that it cannot take now; None if it can take all."""
        for state, count, equal in self.acquires:
            if state.shared:
                if state.value != count if equal else state.value < count:
                    return state
            elif len(state.times) < count:
                return state
        return None

    def take(self, now: int, common: int) -> int:
        """Take its locks, none lacking; gives the tick, ``now`` or later, from which it has them. ``common`` is the tick
        of the common clock."""
        for state, count, equal in self.acquires:
            if state.shared:
                now = max(now, common)
                if not equal:
                    state.value -= count
            else:
                given = state.times.popleft()
                for _ in range(count - 1):
                    given = state.times.popleft()
                if given > now:
                    now = given
        return now

    def give(self, now: int, loop: Loop) -> None:
        """Release its locks at tick ``now``."""
        for state, count, _ in self.releases:
            if state.shared:
                state.value += count
            elif count == 1:
                state.times.append(now)
            else:
                state.times.extend([now] * count)
            if state.waiters:
                loop.wake(state)


def _lock(use: LockUse, locks: dict[MachineLock, LockState]) -> Lock:
    return locks[use.lock], use.value, use.equal


def _burst(bd: BufferDescriptor) -> tuple[int, int]:
    """(bytes the DDR is busy for, bytes of payload) of one contiguous run of a host transfer."""
    simple = walk.merged(bd.dims)
    run = bd.length if not simple else simple[-1][0] if simple[-1][1] == 1 else 1
    nbytes = run * bd.buffer.type.dtype.itemsize
    return (-(-nbytes // BURST) * BURST, nbytes) if nbytes < 2**16 else (1, 1)

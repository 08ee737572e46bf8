"""The state of a run: lock values, buffer contents, cascade FIFOs, the DDR server."""

from __future__ import annotations

from collections import deque
from typing import Any

import numpy as np

from npusim.costs import Clockwork
from npusim.engine.loop import Loop, Waitable
from npusim.machine import CascadeLink, MachineLock, MemBuffer

Array = np.ndarray[Any, Any]


class LockState(Waitable):
    """A counting lock. Whoever waits looks again each time the value changed."""

    __slots__ = ("lock", "value")

    def __init__(self, lock: MachineLock) -> None:
        super().__init__()
        self.lock = lock
        self.value = lock.init

    def __repr__(self) -> str:
        return f"<lock {self.lock.name} of tile {self.lock.tile} = {self.value}>"


class CascadeState(Waitable):
    """A cascade link as a stream of bytes; ``bytes`` were put and not yet taken."""

    __slots__ = ("bytes", "data", "drained", "link")

    def __init__(self, link: CascadeLink) -> None:
        super().__init__()
        self.link = link
        self.bytes = 0
        self.data: deque[Array] = deque()  # data mode only: uint8 chunks
        self.drained = Waitable()


class Ddr:
    """DDR as one shared server with a cap a direction and one for both together.

    Requests of one tick are served in the order of their channel, whatever order the processes ran in. A request is
    answered with the tick at which its bytes have passed.
    """

    def __init__(self, loop: Loop, clock: Clockwork) -> None:
        self._loop = loop
        self._rates = {"MM2S": clock.ddr_read, "S2MM": clock.ddr_write}
        self._total = clock.ddr_total
        self._free = {"MM2S": 0, "S2MM": 0}
        self._free_total = 0
        self._requests: list[tuple[tuple[int, ...], DdrRequest]] = []

    def request(self, key: tuple[int, ...], direction: str, nbytes: int) -> DdrRequest:
        """Ask for nbytes; wait for the result, whose ``done`` is then set."""
        request = DdrRequest(direction, nbytes)
        if not self._requests:
            self._loop.later(self._serve)
        self._requests.append((key, request))
        return request

    def _serve(self) -> None:
        now = self._loop.now
        requests, self._requests = sorted(self._requests, key=lambda item: item[0]), []
        for _, request in requests:
            direction, nbytes = request.direction, request.nbytes
            self._free[direction] = max(self._free[direction], now) + nbytes * self._rates[direction]
            self._free_total = max(self._free_total, now) + nbytes * self._total
            request.done = max(self._free[direction], self._free_total)
            self._loop.wake(request)


class DdrRequest(Waitable):
    """One request; ``done`` is the tick at which it is served, None until it was scheduled."""

    __slots__ = ("direction", "done", "nbytes")

    def __init__(self, direction: str, nbytes: int) -> None:
        super().__init__()
        self.direction = direction
        self.nbytes = nbytes
        self.done: int | None = None


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

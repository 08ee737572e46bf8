"""The cascade: 64 bytes a cycle between neighbouring cores, two words deep, blocking inside the kernels.

A kernel's numpy model is a plain function that calls ``cascade.put(array)`` and ``cascade.get(shape, dtype)``. It cannot
wait in the middle, so it is tried: a get that finds too few bytes abandons the try, the array arguments are put back as
they were, the missing bytes are awaited (in simulated time) and the model is called again. Its puts go out after its own
cycles have passed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from npusim.costs import Clockwork
from npusim.engine.loop import Loop, Process, Waitable
from npusim.engine.state import Array, CascadeState
from npusim.errors import DesignError, UnsupportedError
from npusim.kernels import KernelModel
from npusim.machine import CascadeLink, Coord

if TYPE_CHECKING:
    from npusim.engine.core.writer import CoreRun

WORD = 64  # bytes; 512 bit, see devices.cascade_bytes
DEPTH = 2 * WORD  # AM020: the FIFO is two deep


class _Missing(Exception):
    """A get found too few bytes; carries how many more it needs."""

    def __init__(self, nbytes: int) -> None:
        super().__init__(nbytes)
        self.nbytes = nbytes


class Attempt:
    """What a model sees as ``cascade`` during one try."""

    def __init__(self, inbox: bytearray, receives: bool, sends: bool, where: str) -> None:
        self._inbox, self._receives, self._sends, self._where = inbox, receives, sends, where
        self.taken = 0
        self.puts: list[Array] = []

    def get(self, shape: int | tuple[int, ...], dtype: Any) -> Array:
        """Take an array off the cascade."""
        if not self._receives:
            raise DesignError(f"a kernel on {self._where} gets from the cascade, but nothing is linked to its input")
        shape = (shape,) if isinstance(shape, int) else tuple(shape)
        nbytes = int(np.prod(shape)) * np.dtype(dtype).itemsize
        short = self.taken + nbytes - len(self._inbox)
        if short > 0:
            raise _Missing(short)
        raw = bytes(self._inbox[self.taken : self.taken + nbytes])
        self.taken += nbytes
        return np.frombuffer(raw, np.dtype(dtype)).reshape(shape).copy()

    def put(self, array: Array) -> None:
        """Send an array down the cascade."""
        if not self._sends:
            raise DesignError(f"a kernel on {self._where} puts to the cascade, but nothing is linked to its output")
        self.puts.append(np.ascontiguousarray(array).reshape(-1).view(np.uint8).copy())


class CorePorts:
    """One core's cascade input and output."""

    def __init__(self, tile: Coord, loop: Loop, clock: Clockwork, trace: list[Any] | None, data: bool) -> None:
        self.tile, self._loop, self._clock, self._trace, self._data = tile, loop, clock, trace, data
        self.input: CascadeState | None = None
        self.output: CascadeState | None = None
        self._inbox = bytearray()
        self.moved = 0  # bytes taken from the input

    def call(
        self, run: CoreRun, name: str, model: KernelModel, arguments: tuple[Any, ...], types: tuple[Any, ...], ticks: int
    ) -> Process:
        """Process of one kernel call: gets, own cycles, puts."""
        puts: list[Any]
        if self._data:
            attempt, puts = Attempt(self._inbox, False, False, ""), []
            while True:
                attempt = self._attempt()
                kept = [a.copy() if isinstance(a, np.ndarray) else a for a in arguments]
                try:
                    model.compute(*arguments, cascade=attempt)
                    break
                except _Missing as missing:
                    for array, copy in zip(arguments, kept, strict=True):
                        if isinstance(array, np.ndarray):
                            array[...] = copy
                    yield from self._receive(run, missing.nbytes)
            del self._inbox[: attempt.taken]
            puts = list(attempt.puts)
            self._agree(name, model, types, attempt.taken, sum(len(p) for p in puts))
        else:
            if model.cascade_bytes is None:
                raise UnsupportedError(
                    f"timing only: kernel {name!r} uses the cascade but its model does not say how many bytes it gets "
                    "and puts; give cascade_bytes, or run with data"
                )
            got, put = model.cascade_bytes(*types)
            if got:
                yield from self._receive(run, got)
            puts = [put] if put else []
        counts = run.counts.setdefault(name, [0, 0])
        counts[0] += 1
        counts[1] += ticks
        run.busy[0] += ticks
        if self._trace is not None:
            self._trace.append((run.track, name, "kernel", self._loop.now, ticks))
        yield ticks
        for chunk in puts:
            yield from self._send(run, chunk)

    def _attempt(self) -> Attempt:
        where = f"tile {self.tile}"
        return Attempt(self._inbox, self.input is not None, self.output is not None, where)

    def _agree(self, name: str, model: KernelModel, types: tuple[Any, ...], got: int, put: int) -> None:
        if model.cascade_bytes is not None and model.cascade_bytes(*types) != (got, put):
            raise DesignError(
                f"the model of kernel {name!r} says it gets and puts {model.cascade_bytes(*types)} bytes on the cascade, "
                f"but it moved {(got, put)}"
            )

    def _receive(self, run: CoreRun, nbytes: int) -> Process:
        link = self.input
        if link is None:
            raise DesignError(f"a kernel on tile {self.tile} gets from the cascade, but nothing is linked to its input")
        while nbytes:
            if not link.bytes:
                yield from self._wait(run, link, "cascade input")
            taken = min(nbytes, link.bytes)
            yield from self._work(run, taken, "cascade get")
            if self._data:
                self._take(link, taken)
            link.bytes -= taken
            nbytes -= taken
            self.moved += taken
            self._loop.wake(link.drained)

    def _take(self, link: CascadeState, nbytes: int) -> None:
        while nbytes:
            chunk = link.data.popleft()
            if len(chunk) > nbytes:
                link.data.appendleft(chunk[nbytes:])
                chunk = chunk[:nbytes]
            self._inbox.extend(chunk.tobytes())
            nbytes -= len(chunk)

    def _send(self, run: CoreRun, chunk: Any) -> Process:
        link = self.output
        if link is None:
            raise DesignError(f"a kernel on tile {self.tile} puts to the cascade, but nothing is linked to its output")
        nbytes = len(chunk) if self._data else int(chunk)
        if self._data:
            link.data.append(chunk)
        link.bytes += nbytes
        self._loop.wake(link)
        yield from self._work(run, min(nbytes, DEPTH), "cascade put")
        while link.bytes > DEPTH:
            yield from self._wait(run, link.drained, "cascade output")

    def _work(self, run: CoreRun, nbytes: int, name: str) -> Process:
        ticks = self._clock.cycles(-(-nbytes // WORD))
        run.busy[0] += ticks
        if self._trace is not None:
            self._trace.append((run.track, name, "cascade", self._loop.now, ticks))
        yield ticks

    def _wait(self, run: CoreRun, waitable: Waitable, name: str) -> Process:
        run.waits_for, run.since = name, self._loop.now
        yield waitable
        waited = self._loop.now - run.since
        run.waits_for = ""
        run.use.stalled[name] = run.use.stalled.get(name, 0) + waited
        if self._trace is not None and waited:
            self._trace.append((run.track, name, "stall", run.since, waited))


class CascadePorts:
    """The cascade ports of every core."""

    def __init__(
        self, links: list[CascadeLink], loop: Loop, clock: Clockwork, trace: list[Any] | None, data: bool
    ) -> None:
        self._shared = (loop, clock, trace, data)
        self._ports: dict[Coord, CorePorts] = {}
        self.links = [CascadeState(link) for link in links]
        for state in self.links:
            self.ports(state.link.source).output = state
            self.ports(state.link.dest).input = state

    def ports(self, tile: Coord) -> CorePorts:
        """The ports of the core on a tile."""
        if tile not in self._ports:
            self._ports[tile] = CorePorts(tile, *self._shared)
        return self._ports[tile]

    @property
    def moved(self) -> int:
        """Bytes taken from cascade inputs so far."""
        return sum(ports.moved for ports in self._ports.values())

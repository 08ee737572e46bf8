"""The cascade: 64 bytes a cycle between neighbouring cores, two words deep, blocking inside the kernels.

A kernel's numpy model is a plain function that calls ``cascade.put(array)`` and ``cascade.get(shape, dtype)``. It cannot
wait in the middle, so it is tried: a get that finds too few bytes abandons the try, the array arguments are put back as
they were, the missing bytes are awaited (in simulated time) and the model is called again. Its puts go out after its own
cycles have passed.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any

import numpy as np

from npusim.costs import Clockwork
from npusim.engine.loop import Loop, Process, Waitable
from npusim.engine.state import Array
from npusim.errors import DesignError, UnsupportedError
from npusim.kernels import KernelModel
from npusim.machine import CascadeLink, Coord

if TYPE_CHECKING:
    from npusim.engine.core.running import CoreRun

WORD = 64  # bytes; 512 bit, see devices.cascade_bytes
DEPTH = 2 * WORD  # AM020: the FIFO is two deep


class Offer:
    """Bytes that were put at a tick and not yet taken (``data``: a uint8 array, in data mode)."""

    __slots__ = ("at", "data", "nbytes")

    def __init__(self, nbytes: int, at: int, data: Any) -> None:
        self.nbytes, self.at, self.data = nbytes, at, data


class CascadeState(Waitable):
    """A cascade link as a stream of bytes; ``bytes`` of its offers are still to be taken."""

    __slots__ = ("bytes", "drained", "drained_at", "labels", "link", "offers")

    def __init__(self, link: CascadeLink) -> None:
        super().__init__()
        self.link = link
        self.bytes = 0
        self.offers: deque[Offer] = deque()
        self.labels: deque[list[Any]] = deque()  # [name, bytes left] of what was sent by name
        self.drained = Waitable()
        self.drained_at = 0


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
        self,
        run: CoreRun,
        now: int,
        name: str,
        model: KernelModel,
        arguments: tuple[Any, ...],
        types: tuple[Any, ...],
        ticks: int,
    ) -> Process:
        """Process of one kernel call that begins at tick ``now``: gets, own cycles, puts. Gives the tick of its end."""
        if self._data:
            now, puts = yield from self._compute(run, now, name, model, arguments, types)
        else:
            got, put = _declared(name, model, types)
            if got:
                now = yield from self._receive(run, now, got)
            puts = [put] if put else []
        counts = run.counts.setdefault(name, [0, 0])
        counts[0] += 1
        counts[1] += ticks
        self._note(run, name, "kernel", now, ticks)
        now += ticks
        for chunk in puts:
            now = yield from self._send(run, now, chunk)
        return now

    def send(self, run: CoreRun, now: int, chunk: Any, name: str) -> Process:
        """Process of putting a chunk (bytes, or in timing-only runs their number) on the output under a name."""
        if self.output is not None:
            self.output.labels.append([name, len(chunk) if self._data else int(chunk)])
        now = yield from self._send(run, now, chunk)
        return now

    def receive(self, run: CoreRun, now: int, nbytes: int, name: str) -> Process:
        """Process of getting bytes that were sent under a name. Gives the tick of its end and the bytes (None: timing only).

        DesignError if what comes next was sent under another name.
        """
        now = yield from self._receive(run, now, nbytes)
        self.check_label(name, nbytes)
        if not self._data:
            return now, None
        raw = bytes(self._inbox[:nbytes])
        del self._inbox[:nbytes]
        return now, np.frombuffer(raw, np.uint8)

    def check_label(self, name: str, nbytes: int) -> None:
        """Bytes taken from the input must have been sent under this name."""
        assert self.input is not None
        labels = self.input.labels
        while nbytes and labels:
            sent, left = labels[0]
            if sent != name:
                raise DesignError(
                    f"a get on cascade channel {name!r} on tile {self.tile} finds data that were put on {sent!r}: two cores have one "
                    "cascade between them, whatever the number of channels, so gets must come in the order of the puts"
                )
            labels[0][1] = max(0, left - nbytes)
            nbytes -= min(left, nbytes)
            if not labels[0][1]:
                labels.popleft()

    def _compute(
        self, run: CoreRun, now: int, name: str, model: KernelModel, arguments: tuple[Any, ...], types: tuple[Any, ...]
    ) -> Process:
        """Try the model until all it gets is there; gives the tick and what it puts."""
        while True:
            attempt = Attempt(self._inbox, self.input is not None, self.output is not None, f"tile {self.tile}")
            kept = [a.copy() if isinstance(a, np.ndarray) else a for a in arguments]
            try:
                model.compute(*arguments, cascade=attempt)
                break
            except _Missing as missing:
                for array, copy in zip(arguments, kept, strict=True):
                    if isinstance(array, np.ndarray):
                        array[...] = copy
                now = yield from self._receive(run, now, missing.nbytes)
        del self._inbox[: attempt.taken]
        self._agree(name, model, types, attempt.taken, sum(len(p) for p in attempt.puts))
        return now, attempt.puts

    def _agree(self, name: str, model: KernelModel, types: tuple[Any, ...], got: int, put: int) -> None:
        if model.cascade_bytes is not None and model.cascade_bytes(*types) != (got, put):
            raise DesignError(
                f"the model of kernel {name!r} says it gets and puts {model.cascade_bytes(*types)} bytes on the cascade, "
                f"but it moved {(got, put)}"
            )

    def _receive(self, run: CoreRun, now: int, nbytes: int) -> Process:
        link = self.input
        if link is None:
            raise DesignError(f"a kernel on tile {self.tile} gets from the cascade, but nothing is linked to its input")
        while nbytes:
            if not link.offers:
                run.waits_for, run.clock = "cascade input", now
                while not link.offers:
                    yield link
                run.waits_for = ""
            offer = link.offers[0]
            now = self._waited(run, "cascade input", now, offer.at)
            taken = min(nbytes, offer.nbytes)
            now = self._work(run, "cascade get", now, taken)
            if self._data:
                self._inbox.extend(offer.data[:taken].tobytes())
                offer.data = offer.data[taken:]
            offer.nbytes -= taken
            if not offer.nbytes:
                link.offers.popleft()
            nbytes -= taken
            link.bytes -= taken
            self.moved += taken
            if link.bytes <= DEPTH:
                link.drained_at = now
                self._loop.wake(link.drained)
        return now

    def _send(self, run: CoreRun, now: int, chunk: Any) -> Process:
        link = self.output
        if link is None:
            raise DesignError(f"a kernel on tile {self.tile} puts to the cascade, but nothing is linked to its output")
        nbytes = len(chunk) if self._data else int(chunk)
        link.offers.append(Offer(nbytes, now, chunk))
        link.bytes += nbytes
        self._loop.wake(link)
        now = self._work(run, "cascade put", now, min(nbytes, DEPTH))
        if nbytes > DEPTH:
            if link.bytes > DEPTH:
                run.waits_for, run.clock = "cascade output", now
                while link.bytes > DEPTH:
                    yield link.drained
                run.waits_for = ""
            now = self._waited(run, "cascade output", now, link.drained_at)
        return now

    def _work(self, run: CoreRun, name: str, now: int, nbytes: int) -> int:
        ticks = self._clock.cycles(-(-nbytes // WORD))
        self._note(run, name, "cascade", now, ticks)
        return now + ticks

    def _waited(self, run: CoreRun, name: str, since: int, until: int) -> int:
        if until <= since:
            return since
        run.stall(name, since, until, self._loop.now)
        self._note(run, name, "stall", since, until - since)
        return until

    def _note(self, run: CoreRun, name: str, kind: str, start: int, ticks: int) -> None:
        if self._trace is not None:
            self._trace.append((run.track, name, kind, start, ticks))


def _declared(name: str, model: KernelModel, types: tuple[Any, ...]) -> tuple[int, int]:
    """The bytes that a kernel gets and puts, as its model says; UnsupportedError if it does not."""
    if model.cascade_bytes is None:
        raise UnsupportedError(
            f"timing only: kernel {name!r} uses the cascade but its model does not say how many bytes it gets and puts; "
            "give cascade_bytes, or run with data"
        )
    return model.cascade_bytes(*types)


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

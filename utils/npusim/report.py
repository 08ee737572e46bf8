"""What a run gives back: time, bytes at each memory level, busy and stalled cycles, trace. Always simulated."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any, Literal, NamedTuple, overload

from npusim.machine import Coord, DmaChannel, Machine

Level = Literal["ddr", "memtile", "l1"]
LEVELS: tuple[Level, ...] = ("ddr", "memtile", "l1")


class TraceEvent(NamedTuple):
    """An interval of one track. ``kind``: kernel, scalar, stall, transfer, task, cascade. Times in ticks."""

    track: str  # "core (0,2)", "MM2S 0 of tile (0,0)", "host"
    name: str
    kind: str
    start: int
    duration: int


class Trace(Sequence[TraceEvent]):
    """The events of a run in the order of their begin, put in order when first looked at.

    ``recorded`` holds them as they came, in absolute ticks; what lies outside ``begun`` to ``ended`` is cut off, since
    cores may run ahead of the end.
    """

    def __init__(self, recorded: list[Any], begun: int, ended: int) -> None:
        self._recorded, self._begun, self._ended = recorded, begun, ended

    @cached_property
    def _events(self) -> list[TraceEvent]:
        begun, ended = self._begun, self._ended
        cut = (
            TraceEvent(track, name, kind, max(start, begun) - begun, min(start + duration, ended) - max(start, begun))
            for track, name, kind, start, duration in self._recorded
            if start < ended and start + duration > begun
        )
        return sorted((e for e in cut if e.duration > 0), key=lambda e: (e.start, e.track))

    def __len__(self) -> int:
        return len(self._events)

    @overload
    def __getitem__(self, index: int) -> TraceEvent: ...
    @overload
    def __getitem__(self, index: slice) -> list[TraceEvent]: ...
    def __getitem__(self, index: int | slice) -> TraceEvent | list[TraceEvent]:
        return self._events[index]

    def __iter__(self) -> Iterator[TraceEvent]:
        return iter(self._events)


@dataclass
class Traffic:
    """Bytes that DMA channels read from and wrote to one memory level (DDR: shim DMAs; memtile; l1: compute tiles)."""

    read: int = 0
    written: int = 0

    @property
    def total(self) -> int:
        return self.read + self.written


@dataclass
class ChannelUse:
    """What one DMA channel did. Times in ticks: ``busy`` moving data, ``starved`` waiting for the other end or a lock."""

    channel: DmaChannel
    bytes: int = 0
    transfers: int = 0
    busy: int = 0


@dataclass
class CoreUse:
    """What one core did. Times in ticks."""

    tile: Coord
    name: str
    busy: int = 0
    stalled: dict[str, int] = field(default_factory=dict)  # fifo, lock or "cascade" -> ticks waited for it
    kernels: dict[str, tuple[int, int]] = field(default_factory=dict)  # kernel or "scalar code" -> (calls, ticks)

    @property
    def stall(self) -> int:
        return sum(self.stalled.values())


@dataclass
class Report:
    """The outcome of one simulated run. ``ticks`` are exact integers; ``ticks_per_cycle`` ticks make one core cycle."""

    machine: Machine
    ticks: int
    ticks_per_cycle: int
    clock_hz: float
    traffic: dict[Level, Traffic]
    channels: list[ChannelUse]
    cores: list[CoreUse]
    trace: Sequence[TraceEvent]
    cascade_bytes: int = 0
    resumptions: int = 0  # process resumptions of the event loop
    warnings: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)  # what to know about how the run was simulated
    extrapolated_periods: int = 0  # repetitions of the host's rounds that were added up instead of run

    @property
    def exact_cycles(self) -> Fraction:
        """Core cycles, exactly."""
        return Fraction(self.ticks, self.ticks_per_cycle)

    @property
    def cycles(self) -> float:
        """Core cycles."""
        return self.ticks / self.ticks_per_cycle

    @property
    def seconds(self) -> float:
        """Simulated seconds at the device's clock."""
        return self.cycles / self.clock_hz

    def core(self, tile: tuple[int, int]) -> CoreUse:
        """The use of the core at (col, row); KeyError if none runs there."""
        for use in self.cores:
            if use.tile == tile:
                return use
        raise KeyError(tile)

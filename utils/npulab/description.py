"""A mapping on paper: what work there is, over which DMA streams data goes from level to level, what the compute tiles do.

Nothing here knows a device or a time; :mod:`npulab.prediction` puts a description beside a device.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from npusim.report import LEVELS, Level, Traffic


@dataclass(frozen=True)
class Stream:
    """Data that DMA takes from one level to another: ``bytes`` leave ``source`` over ``channels`` MM2S channels together, and
    each channel's arrive at ``receivers`` S2MM channels of ``dest`` (a broadcast for more than one).

    ``busiest`` is what the busiest channel sends (default: all channels the same). What neighbours share in memory and what
    goes down the cascade is no DMA, and no stream. ValueError for a level that is not known and for what cannot be.
    """

    name: str
    source: Level
    dest: Level
    bytes: int
    channels: int = 1
    receivers: int = 1
    busiest: float | None = None

    def __post_init__(self) -> None:
        for level in (self.source, self.dest):
            if level not in LEVELS:
                raise ValueError(f"stream {self.name!r}: unknown level {level!r}; known: {', '.join(LEVELS)}")
        if self.bytes < 0 or self.channels < 1 or self.receivers < 1:
            raise ValueError(f"stream {self.name!r}: bytes >= 0, channels >= 1 and receivers >= 1 are needed")
        if self.busiest is not None and not self.bytes / self.channels <= self.busiest <= self.bytes:
            raise ValueError(
                f"stream {self.name!r}: its busiest channel sends {self.bytes / self.channels:,.0f} to {self.bytes:,} bytes, "
                f"not {self.busiest:,.0f}"
            )

    @property
    def most(self) -> float:
        """Bytes over the busiest channel."""
        return self.bytes / self.channels if self.busiest is None else self.busiest

    def __str__(self) -> str:
        return f"stream {self.name}, {self.source} to {self.dest}"


@dataclass(frozen=True)
class Stage:
    """What ``tiles`` compute tiles do: ``cycles`` core cycles for each block of work, of which there are ``blocks`` in all; the
    busiest tile does ``most`` of them (default: an even share)."""

    name: str
    tiles: int
    cycles: float
    blocks: float = 1
    most: float | None = None

    def __post_init__(self) -> None:
        if self.tiles < 1 or self.cycles < 0 or self.blocks < 0:
            raise ValueError(f"stage {self.name!r}: tiles >= 1, cycles >= 0 and blocks >= 0 are needed")
        if self.most is not None and not self.blocks / self.tiles <= self.most * (1 + 1e-9):
            raise ValueError(f"stage {self.name!r}: its busiest tile does {self.blocks / self.tiles:g} blocks or more, not {self.most:g}")

    @property
    def work(self) -> float:
        """Core cycles of all its tiles together."""
        return self.cycles * self.blocks

    @property
    def longest(self) -> float:
        """Core cycles of its busiest tile."""
        return self.cycles * (self.blocks / self.tiles if self.most is None else self.most)


@dataclass(frozen=True)
class Phase:
    """What runs at the same time: streams and stages. ``alone`` are core cycles, by name, in which the pace stands still;
    ``tasks`` is how many transfers the host starts while the array waits for it."""

    name: str
    streams: tuple[Stream, ...]
    stages: tuple[Stage, ...]
    alone: Mapping[str, float] = field(default_factory=dict)
    tasks: int = 0

    @property
    def traffic(self) -> dict[Level, Traffic]:
        """Bytes that leave and enter each level."""
        sums = {level: Traffic() for level in LEVELS}
        for stream in self.streams:
            sums[stream.source].read += stream.bytes
            sums[stream.dest].written += stream.bytes * stream.receivers
        return sums

    @property
    def channels(self) -> dict[Level, tuple[int, int]]:
        """DMA channels in use at each level: (reading, writing)."""
        counts = dict.fromkeys(LEVELS, (0, 0))
        for stream in self.streams:
            read, written = counts[stream.source]
            counts[stream.source] = read + stream.channels, written
            read, written = counts[stream.dest]
            counts[stream.dest] = read, written + stream.channels * stream.receivers
        return counts

    @property
    def tiles(self) -> int:
        """Compute tiles in use."""
        return sum(stage.tiles for stage in self.stages)


@dataclass(frozen=True)
class Description:
    """A mapping on paper: ``flops`` of the whole work, and phases one after the other.

    ValueError without any phase.
    """

    name: str
    flops: float
    phases: tuple[Phase, ...]

    def __post_init__(self) -> None:
        if not self.phases:
            raise ValueError(f"{self.name}: a description needs at least one phase")

    @property
    def traffic(self) -> dict[Level, Traffic]:
        """Bytes that leave and enter each level, all phases together."""
        sums = {level: Traffic() for level in LEVELS}
        for phase in self.phases:
            for level, moved in phase.traffic.items():
                sums[level].read += moved.read
                sums[level].written += moved.written
        return sums

    @property
    def channels(self) -> dict[Level, tuple[int, int]]:
        """The most DMA channels that a phase uses at each level: (reading, writing)."""
        every = [phase.channels for phase in self.phases]
        return {level: (max(c[level][0] for c in every), max(c[level][1] for c in every)) for level in LEVELS}

    @property
    def tiles(self) -> int:
        """The most compute tiles that a phase uses."""
        return max(phase.tiles for phase in self.phases)

    @property
    def flops_per_cycle_and_tile(self) -> float | None:
        """FLOP a cycle of a tile that never waits, from the cycles of all stages; None where no stage has any."""
        work = sum(stage.work for phase in self.phases for stage in phase.stages)
        return self.flops / work if work else None

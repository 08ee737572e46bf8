"""The record of one run, the same whether the NPU was simulated or real; it always says which.

What a real NPU cannot tell (cycles, bytes at each level, stalls) is None there, unless the caller knows it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from html import escape
from typing import Any, Literal, NamedTuple

import numpy as np

from npusim.devices import Device
from npusim.machine import Coord, Machine
from npusim.report import LEVELS, ChannelUse, CoreUse, Level, Report, TraceEvent, Traffic

Kind = Literal["simulated", "measured"]
Convention = Literal["both ways", "each way", "by level"]
"""How bytes and bandwidth are counted: reads and writes together, the busier of the two directions alone, or each level as it
is wired: on the chip, where each direction has channels of its own, each way; at DDR, where they share one memory, both."""

LEVEL_NAMES: dict[Level, str] = {"ddr": "DDR (shim DMA)", "memtile": "MemTile DMA", "l1": "compute-tile DMA"}


def way(convention: Convention, level: Level) -> Literal["both ways", "each way"]:
    """What a convention means at a level."""
    if convention == "by level":
        return "both ways" if level == "ddr" else "each way"
    return convention


def counted_text(convention: Convention) -> str:
    """A convention in words: ``both ways``, or ``both ways at DDR, each way on the chip``."""
    return "both ways at DDR, each way on the chip" if convention == "by level" else convention


def counted(traffic: Traffic, convention: Literal["both ways", "each way"]) -> int:
    """Bytes of a level's traffic, counted one way or the other."""
    return traffic.total if convention == "both ways" else max(traffic.read, traffic.written)


def si(value: float, unit: str) -> str:
    """A number with three or four digits and an SI prefix: ``18.13 µs``, ``3.622 TFLOP/s``."""
    for factor, prefix in (
        (1e12, "T"),
        (1e9, "G"),
        (1e6, "M"),
        (1e3, "k"),
        (1.0, ""),
        (1e-3, "m"),
        (1e-6, "µ"),
        (1e-9, "n"),
    ):
        if abs(value) >= factor:
            return f"{value / factor:.4g} {prefix}{unit}"
    return f"{value:.4g} {unit}"


class Part(NamedTuple):
    """A run of a chain (see :mod:`npulab.chains`), and how many times it stands there."""

    run: Run
    times: int


@dataclass(frozen=True)
class Run:
    """One run of a design.

    Attributes:
        kind: ``simulated`` or ``measured``.
        seconds: time of the run; simulated at the device's clock, or the smallest of ``samples`` measured.
        outputs: the arrays that the design wrote, in the order of its arguments.
        cycles: core cycles; None when measured, since the clock is not known.
        traffic: bytes read from and written to each memory level by DMA; None when unknown.
        flops: floating-point (or integer) operations, given by the caller; None when not given.
        report: the simulator's report; None when measured.
        samples: seconds of each timed repetition, when measured.
        parts: the runs that a chain consists of; empty for a single run.
    """

    kind: Kind
    device: Device
    seconds: float
    outputs: tuple[np.ndarray[Any, Any], ...] = ()
    name: str = "run"
    cycles: float | None = None
    traffic: Mapping[Level, Traffic] | None = None
    flops: float | None = None
    report: Report | None = field(default=None, repr=False)
    samples: tuple[float, ...] = field(default=(), repr=False)
    parts: tuple[Part, ...] = field(default=(), repr=False)

    @classmethod
    def of_report(cls, report: Report, outputs: Sequence[np.ndarray[Any, Any]] = (), **more: Any) -> Run:
        """The record of a simulated run; ``more`` may give ``name`` and ``flops``."""
        return cls(
            kind="simulated",
            device=report.machine.device,
            seconds=report.seconds,
            outputs=tuple(outputs),
            cycles=report.cycles,
            traffic=report.traffic,
            report=report,
            **more,
        )

    def having(
        self, *, flops: float | None = None, traffic: Mapping[Level, Traffic] | None = None, name: str = ""
    ) -> Run:
        """The same run with what only the caller knows: operations, or the bytes of a measured run."""
        return replace(self, flops=flops or self.flops, traffic=traffic or self.traffic, name=name or self.name)

    @property
    def machine(self) -> Machine | None:
        """The placed design; None when measured."""
        return self.report.machine if self.report else None

    @property
    def output(self) -> np.ndarray[Any, Any]:
        """The only output; ValueError if there are none or several."""
        if len(self.outputs) != 1:
            raise ValueError(f"this run has {len(self.outputs)} outputs; use outputs[i]")
        return self.outputs[0]

    @property
    def flops_per_second(self) -> float | None:
        return None if self.flops is None else self.flops / self.seconds

    @property
    def flops_per_cycle(self) -> float | None:
        """Operations a core cycle; None without ``flops`` or cycles."""
        return None if self.flops is None or not self.cycles else self.flops / self.cycles

    def bytes(self, level: Level, convention: Convention = "both ways") -> int | None:
        """Bytes that DMA moved at a level; None when unknown."""
        return None if self.traffic is None else counted(self.traffic[level], way(convention, level))

    def intensity(self, level: Level, convention: Convention = "both ways") -> float | None:
        """Operational intensity in FLOP/B; None when unknown or when nothing moved at that level."""
        moved = self.bytes(level, convention)
        return None if self.flops is None or not moved else self.flops / moved

    @property
    def cores(self) -> list[CoreUse]:
        """Busy and stalled time of each core, in ticks of the report; empty when measured."""
        return self.report.cores if self.report else []

    @property
    def channels(self) -> list[ChannelUse]:
        """Use of each DMA channel; empty when measured."""
        return self.report.channels if self.report else []

    @property
    def trace(self) -> Sequence[TraceEvent]:
        """The trace; empty when measured or not recorded."""
        return self.report.trace if self.report else ()

    def busy(self, tile: tuple[int, int] | None = None) -> float | None:
        """The share of the run that a core (or all cores together) worked, 0 to 1; None when measured."""
        return self._share(tile, "busy")

    def stalled(self, tile: tuple[int, int] | None = None) -> float | None:
        """The share of the run that a core (or all cores together) waited; None when measured."""
        return self._share(tile, "stall")

    def _share(self, tile: tuple[int, int] | None, what: str) -> float | None:
        if self.report is None or not self.report.cores or not self.report.ticks:
            return None
        uses = self.report.cores if tile is None else [self.report.core(Coord(*tile))]
        ticks: int = sum(getattr(use, what) for use in uses)
        return ticks / (self.report.ticks * len(uses))

    # How it shows itself

    @property
    def time_text(self) -> str:
        """``18,131 cycles = 18.13 µs at 1 GHz, simulated`` or ``24.1 µs, measured (least of 20)``."""
        if self.kind == "measured":
            return f"{si(self.seconds, 's')}, measured" + (f" (least of {len(self.samples)})" if self.samples else "")
        clock = f"at {self.device.clock_hz / 1e9:g} GHz"
        return f"{self.cycles:,.0f} cycles = {si(self.seconds, 's')} {clock}, simulated"

    def rows(self) -> list[tuple[str, str]]:
        """What the record shows: (what, value with unit)."""
        rows = [("time", self.time_text), ("device", f"{self.device.name} ({self.kind})")]
        if self.flops is not None:
            speed = [si(self.flops_per_second or 0.0, "FLOP/s")]
            if self.flops_per_cycle is not None:
                speed.append(f"{self.flops_per_cycle:.4g} FLOP/cycle")
            rows.append(("work", f"{self.flops:,.0f} FLOP, {', '.join(speed)} ({self.kind})"))
        rows += [self._part_row(part) for part in self.parts]
        rows += [self._level_row(level) for level in LEVELS if self.traffic is not None and self.traffic[level].total]
        if (busy := self.busy()) is not None:
            cores = len(self.cores)
            rows.append(
                ("cores", f"{cores} in use, busy {busy:.0%}, waiting {self.stalled() or 0:.0%} of the time (simulated)")
            )
        return rows

    def _part_row(self, part: Part) -> tuple[str, str]:
        share = part.times * part.run.seconds / self.seconds
        often = f" x {part.times}" if part.times > 1 else ""
        return part.run.name, f"{si(part.run.seconds, 's')}{often}, {share:.0%} of the time ({self.kind})"

    def _level_row(self, level: Level) -> tuple[str, str]:
        assert self.traffic is not None
        traffic, intensity = self.traffic[level], self.intensity(level)
        words = f"{traffic.read:,} B read, {traffic.written:,} B written"
        return LEVEL_NAMES[level], words + (f"; {intensity:.4g} FLOP/B" if intensity is not None else "")

    def __str__(self) -> str:
        wide = max(len(what) for what, _ in self.rows())
        return "\n".join([f"{self.name} ({self.kind})", *(f"  {what:<{wide}}  {value}" for what, value in self.rows())])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        cells = "".join(
            f'<tr><th scope="row" style="text-align:left">{escape(what)}</th><td style="text-align:left">{escape(value)}</td></tr>'
            for what, value in self.rows()
        )
        caption = f'<caption style="text-align:left;caption-side:top"><b>{escape(self.name)}</b>: {self.kind}</caption>'
        return f'<table class="dataframe npulab-run">{caption}<tbody>{cells}</tbody></table>'

"""What a mapping can reach, from its description alone: before any code is written, and without a simulation.

A description (:mod:`npulab.description`) says what work there is, over which DMA streams data goes from level to level, and
what the compute tiles do. :func:`predict` answers twice:

* **the bound**: operational intensities at the three levels beside the ridge points of the device; which side of each ridge
  the mapping lies on, and what is the most that it can reach. This is the roofline, and nothing can be faster;
* **the pace**, finer: the slowest of all stages and DMA channels sets it, so it knows how evenly work is spread over tiles,
  and how many of them there are; what nothing overlaps with (the host's tasks, filling, merging) comes on top.

Neither knows of latencies, of waiting for buffers or of one stream in another's way: that is what the simulation is for.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from html import escape
from typing import Literal

from npulab import roofline
from npulab.description import Description, Phase
from npulab.record import LEVEL_NAMES, Convention, si
from npulab.roofline import Limit, Roofline
from npulab.roofline import Prediction as Bound
from npusim.costs import Costs
from npusim.devices import Device
from npusim.devices import device as device_named
from npusim.report import LEVELS, Level

Ceiling = Literal["kernels", "matrix units"]


# ---- the pace


@dataclass(frozen=True)
class Pace:
    """Core cycles of a phase: what each stage, each stream and DDR would take alone (``bounds``; the longest sets the pace),
    and what comes on top because nothing overlaps with it (``alone``)."""

    name: str
    bounds: Mapping[str, float]
    alone: Mapping[str, float]

    @property
    def limit(self) -> str:
        """What sets the pace."""
        return max(self.bounds, key=lambda what: self.bounds[what])

    @property
    def steady(self) -> float:
        """Core cycles at the pace."""
        return self.bounds[self.limit]

    @property
    def cycles(self) -> float:
        """Core cycles in all."""
        return self.steady + sum(self.alone.values())


def _pace(phase: Phase, on: Device) -> Pace:
    bounds = {f"stage {stage.name}": stage.longest for stage in phase.stages}
    for stream in phase.streams:
        bounds[str(stream)] = stream.most / float(on.stream_bytes_per_cycle)
    bounds["DDR"] = _ddr_cycles(phase, on)
    push = Fraction(Costs().task_push.value, 10**9) * Fraction(on.clock_hz)
    host = {"the host's tasks": float(phase.tasks * push)} if phase.tasks else {}
    return Pace(phase.name, bounds, {**phase.alone, **host})


def _ddr_cycles(phase: Phase, on: Device) -> float:
    """Cycles that DDR takes: each direction at its cap, and both together at theirs."""
    moved, width = phase.traffic["ddr"], roofline.bandwidth(on, "ddr", phase.channels["ddr"])
    pairs = ((moved.read, width.read), (moved.written, width.written), (moved.total, width.total))
    return max(n / w if n else 0.0 for n, w in pairs)


# ---- both together


@dataclass(frozen=True)
class Prediction:
    """What :func:`predict` says of a description on a device. ``bound`` is the roofline's answer, ``phases`` hold the pace."""

    description: Description
    roofline: Roofline
    bound: Bound
    phases: tuple[Pace, ...]

    # -- the bound

    def intensity(self, level: Level) -> float | None:
        """Operational intensity in FLOP/B; None where nothing moves."""
        return self.bound.intensity(level)

    def ridge(self, level: Level) -> float:
        """The ridge point in FLOP/B."""
        return self.roofline.ridge(level)

    def regime(self, level: Level) -> str:
        """``compute bound`` from the ridge point on, ``bandwidth bound`` before it, ``nothing moves``."""
        intensity = self.intensity(level)
        if intensity is None:
            return "nothing moves"
        return "compute bound" if intensity >= self.ridge(level) else "bandwidth bound"

    @property
    def limit(self) -> Limit:
        """What limits by the roofline: ``compute`` or a level."""
        return self.bound.limit

    @property
    def most_flops_per_second(self) -> float:
        """FLOP/s that the roofline allows."""
        return self.description.flops / self.bound.seconds if self.bound.seconds else 0.0

    # -- the pace

    @property
    def cycles(self) -> float:
        """Core cycles at the pace of the slowest, with what comes on top."""
        return sum(phase.cycles for phase in self.phases)

    @property
    def seconds(self) -> float:
        """The same in seconds, at the device's clock."""
        return self.cycles / self.roofline.device.clock_hz

    @property
    def flops_per_second(self) -> float:
        """FLOP/s at the pace of the slowest."""
        return self.description.flops / self.seconds if self.cycles else 0.0

    @property
    def slowest(self) -> str:
        """What sets the pace of the longest phase."""
        return max(self.phases, key=lambda phase: phase.cycles).limit

    @property
    def balance(self) -> float:
        """The share of the steady time that the tiles in use work: 1 if every tile keeps the pace."""
        work = sum(stage.work for phase in self.description.phases for stage in phase.stages)
        held = sum(phase.steady * described.tiles for phase, described in zip(self.phases, self.description.phases, strict=True))
        return work / held if held else 0.0

    @property
    def tiles_in_use(self) -> float:
        """The share of the device's compute tiles that the mapping uses."""
        return self.description.tiles / self.roofline.device.compute_tiles

    # -- how it shows itself

    def levels(self) -> list[tuple[str, str, str, str]]:
        """A row a level: name, FLOP/B, ridge point, regime."""
        rows = []
        for level in LEVELS:
            intensity = self.intensity(level)
            shown = "-" if intensity is None else f"{intensity:.1f}"
            rows.append((LEVEL_NAMES[level], shown, f"{self.ridge(level):.1f}", self.regime(level)))
        return rows

    def rows(self) -> list[tuple[str, str]]:
        """What is predicted: (what, value with unit)."""
        rows = [(name, f"{intensity} FLOP/B, ridge point {ridge}: {regime}") for name, intensity, ridge, regime in self.levels()]
        most = f"at most {si(self.most_flops_per_second, 'FLOP/s')}, limited by {self.bound.limit_text}"
        rows.append(("bound", f"{most} (ceiling: {self.roofline.ceiling_source})"))
        for phase in self.phases:
            rows.append((f"pace of {phase.name}", f"{phase.steady:,.0f} cycles, set by {phase.limit}"))
            rows += [("  on top", f"{cycles:,.0f} cycles, {what}") for what, cycles in phase.alone.items()]
        tiles = f"{self.description.tiles} of {self.roofline.device.compute_tiles} tiles, working {self.balance:.0%} of the time"
        rows.append(("time", f"{si(self.seconds, 's')} = {si(self.flops_per_second, 'FLOP/s')} ({tiles})"))
        return rows

    def __str__(self) -> str:
        head = f"{self.description.name} on {self.roofline.device.name}: predicted from its description"
        wide = max(len(what) for what, _ in self.rows())
        return "\n".join([head, *(f"  {what:<{wide}}  {value}" for what, value in self.rows())])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        cells = "".join(
            f'<tr><th scope="row" style="text-align:left">{escape(what)}</th><td style="text-align:left">{escape(value)}</td></tr>'
            for what, value in self.rows()
        )
        name = escape(f"{self.description.name} on {self.roofline.device.name}")
        caption = f'<caption style="text-align:left;caption-side:top"><b>{name}</b>: predicted from its description</caption>'
        return f'<table class="dataframe npulab-run">{caption}<tbody>{cells}</tbody></table>'


def predict(
    description: Description,
    on: Device | str,
    *,
    ceiling: Ceiling = "kernels",
    convention: Convention = "both ways",
    channels: Literal["all", "used"] = "all",
    dtype: str = "bf16",
    clock_hz: float | None = None,
    stream_bytes_per_cycle: int | None = None,
) -> Prediction:
    """Predict a mapping from its description.

    ``ceiling``: what the described stages reach on the tiles in use (``kernels``), or the peak of the whole device's matrix
    units for ``dtype`` (``matrix units``). ``channels``: bandwidths of all the device's DMA channels, or of those in use. Ridge
    points mean something only with both said, and with the ``convention`` of counting (:mod:`npulab.roofline`).

    Raises:
        ValueError: if the mapping uses more tiles or channels than the device has, for ``kernels`` without any stage, or for
            what :func:`npulab.roofline.roofline` refuses.
    """
    of = device_named(on) if isinstance(on, str) else on
    of = of.with_options(clock_hz=clock_hz, stream_bytes_per_cycle=stream_bytes_per_cycle)
    _fits(description, of)
    over = _roofline(description, of, ceiling, convention, channels, dtype)
    bound = roofline.predict(description.flops, description.traffic, over, name=description.name)
    return Prediction(description, over, bound, tuple(_pace(phase, of) for phase in description.phases))


def _fits(description: Description, of: Device) -> None:
    if description.tiles > of.compute_tiles:
        raise ValueError(f"{description.name} uses {description.tiles} compute tiles; {of.name} has {of.compute_tiles}")
    there = roofline.all_channels(of, of.compute_tiles)
    for level, counts in description.channels.items():
        for used, most, what in zip(counts, there[level], ("read from", "write to"), strict=True):
            if used > most:
                raise ValueError(f"{description.name} has {used} DMA channels that {what} {level}; {of.name} has {most}")


def _roofline(
    description: Description, of: Device, ceiling: Ceiling, convention: Convention, channels: str, dtype: str
) -> Roofline:
    if ceiling not in ("kernels", "matrix units"):
        raise ValueError(f"ceiling must be 'kernels' or 'matrix units', got {ceiling!r}")
    if channels not in ("all", "used"):
        raise ValueError(f"channels must be 'all' or 'used', got {channels!r}")
    used = {level: pair for level, pair in description.channels.items() if any(pair)} if channels == "used" else None
    if ceiling == "matrix units":
        return roofline.roofline(of, dtype, convention=convention, channels=used)
    speed = description.flops_per_cycle_and_tile
    if speed is None:
        raise ValueError(f"{description.name} has no stage with cycles: predict with ceiling='matrix units'")
    source = "the stages' own cycles, on tiles that never wait"
    return roofline.roofline(
        of, dtype, convention=convention, tiles=description.tiles, channels=used, flops_per_cycle_and_tile=speed, ceiling_source=source
    )

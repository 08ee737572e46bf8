"""Rooflines at three memory levels: what a design can reach at most, and which level or the cores stand in its way.

Levels: ``ddr`` (shim DMA, capped by what DDR delivers), ``memtile`` (MemTile DMA) and ``l1`` (compute-tile DMA). Several
ways of counting are in use, and a ridge point means nothing without saying which; every function takes ``convention``:

* ``both ways``: reads and writes together, against the bandwidth of both directions together;
* ``each way``: the busier direction alone, against the bandwidth of one direction;
* ``by level``: as the machine is wired, each way on the chip; at DDR both ways, and neither beyond its own cap.

Bandwidths on the chip are channels x stream width, so work in FLOP/cycle and B/cycle: the clock cancels. DDR's measured
caps are absolute (B/s), and only there does the clock matter.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from html import escape
from typing import Any, Literal, NamedTuple

from npulab.record import LEVEL_NAMES, Convention, Run, counted_text, si, way
from npusim.devices import Device, device
from npusim.report import LEVELS, Level, Traffic

Limit = Literal["compute", "ddr", "memtile", "l1"]
Bytes = int | tuple[int, int] | Traffic
"""Bytes at a level: both directions together, (read, written), or the traffic of a run."""


def _tiles(n: int) -> str:
    return "1 tile" if n == 1 else f"{n} tiles"


class Bandwidth(NamedTuple):
    """B/cycle of one level: what can be read from it, written to it, and both together."""

    read: float
    written: float
    total: float

    def of(self, convention: Literal["both ways", "each way"]) -> float:
        """B/cycle to draw the roof with; for ``each way`` the faster direction."""
        return self.total if convention == "both ways" else max(self.read, self.written)


@dataclass(frozen=True)
class Roofline:
    """Ceiling (FLOP/cycle, all tiles together) and bandwidths of a device, or of the part of it that a design uses."""

    device: Device
    dtype: str
    tiles: int
    ceiling: float
    bandwidth: Mapping[Level, Bandwidth]
    convention: Convention = "both ways"
    scope: str = "whole device"
    channels: Mapping[Level, tuple[int, int]] = field(default_factory=dict)
    ceiling_source: str = ""

    def width(self, level: Level) -> float:
        """B/cycle of a level under the convention."""
        return self.bandwidth[level].of(way(self.convention, level))

    def ridge(self, level: Level) -> float:
        """The ridge point of a level in FLOP/B: from there on the cores are the limit."""
        return self.ceiling / self.width(level)

    def attainable(self, level: Level, intensity: float) -> float:
        """The most that one level allows at an operational intensity (FLOP/B), in FLOP/cycle."""
        return min(self.ceiling, intensity * self.width(level))

    def counting(self, convention: Convention) -> Roofline:
        """The same roofline under the other way of counting."""
        return replace(self, convention=convention)

    def rows(self) -> list[tuple[str, str]]:
        """What limits, with value and source."""
        peak = f"{self.ceiling:,.6g} FLOP/cycle = {si(self.ceiling * self.device.clock_hz, 'FLOP/s')}"
        rows = [("compute", f"{peak} ({_tiles(self.tiles)}, {self.dtype}; {self.ceiling_source})")]
        for level in LEVELS:
            width = self.width(level)
            speed = f"{width:.4g} B/cycle = {si(width * self.device.clock_hz, 'B/s')}"
            rows.append((LEVEL_NAMES[level], f"{speed}, ridge point {self.ridge(level):.4g} FLOP/B"))
        return rows

    def __str__(self) -> str:
        how = f"counted {counted_text(self.convention)}, at {self.device.clock_hz / 1e9:g} GHz"
        head = f"Roofline of {self.device.name}, {self.scope}, {how}"
        return "\n".join([head, *(f"  {what:<16}  {value}" for what, value in self.rows())])

    __repr__ = __str__


_KINDS: dict[Level, Literal["shim", "mem", "core"]] = {"ddr": "shim", "memtile": "mem", "l1": "core"}


def all_channels(of: Device, tiles: int) -> dict[Level, tuple[int, int]]:
    """(DMA channels that read from the level, that write to it) of every level, for so many compute tiles."""
    return {
        "ddr": (of.columns * of.shim.mm2s.value, of.columns * of.shim.s2mm.value),
        "memtile": (of.columns * of.mem.mm2s.value, of.columns * of.mem.s2mm.value),
        "l1": (tiles * of.core.mm2s.value, tiles * of.core.s2mm.value),
    }


def bandwidth(of: Device, level: Level, channels: tuple[int, int], *, measured_ddr: bool = True) -> Bandwidth:
    """B/cycle of a level with so many (reading, writing) channels; DDR also capped by its measured bandwidth."""
    read, written = (n * float(of.stream_bytes_per_cycle) for n in channels)
    total = read + written
    if level == "ddr" and measured_ddr:
        read, written = min(read, of.ddr_read.value / of.clock_hz), min(written, of.ddr_write.value / of.clock_hz)
        total = min(total, of.ddr_total.value / of.clock_hz)
    return Bandwidth(read, written, total)


def roofline(
    on: Device | str,
    dtype: str = "bf16",
    *,
    convention: Convention = "both ways",
    tiles: int | None = None,
    channels: Mapping[Level, tuple[int, int]] | None = None,
    flops_per_cycle_and_tile: float | None = None,
    ceiling_source: str = "given by the caller",
    measured_ddr: bool = True,
) -> Roofline:
    """The roofline of a device, or of a part: ``tiles`` compute tiles and, for each level given in ``channels``, so many
    (reading, writing) DMA channels. ``flops_per_cycle_and_tile`` replaces the matrix-multiply peak of the element type
    (2 FLOP a MAC), for code that cannot use it; ``ceiling_source`` says where it is from. Without ``measured_ddr`` the shim
    DMA alone limits DDR.

    Raises:
        ValueError: if the device has no peak for the element type, or ``convention`` is unknown.
    """
    of = device(on) if isinstance(on, str) else on
    if convention not in ("both ways", "each way", "by level"):
        raise ValueError(f"convention must be 'both ways', 'each way' or 'by level', got {convention!r}")
    count = of.compute_tiles if tiles is None else tiles
    source = f"{of.macs.source}, confidence {of.macs.confidence}"
    if flops_per_cycle_and_tile is None:
        if dtype not in of.macs.value:
            raise ValueError(f"{of.name} has no matrix peak for {dtype!r}; known: {', '.join(of.macs.value)}")
        flops_per_cycle_and_tile = 2.0 * of.macs.value[dtype]
    else:
        source = ceiling_source
    used = {**all_channels(of, count), **(channels or {})}
    return Roofline(
        of,
        dtype,
        count,
        flops_per_cycle_and_tile * count,
        {level: bandwidth(of, level, used[level], measured_ddr=measured_ddr) for level in LEVELS},
        convention,
        "whole device" if tiles is None and channels is None else _tiles(count),
        used,
        source,
    )


def used_by(of: Any, dtype: str = "bf16", **more: Any) -> Roofline:
    """The roofline of the tiles and DMA channels that a design uses: pass its Machine, Report or simulated Run.

    A level that the design does not use keeps all its channels. ``more`` goes to :func:`roofline`.
    """
    from npulab.draw.contents import parts

    machine, _ = parts(of)
    count = Counter((machine.device.kind(c.tile.row), c.direction) for c in machine.channels)
    channels: dict[Level, tuple[int, int]] = {}
    for level in LEVELS:
        found = count[_KINDS[level], "MM2S"], count[_KINDS[level], "S2MM"]
        if any(found):
            channels[level] = found
    made = roofline(machine.device, dtype, tiles=max(len(machine.cores), 1), channels=channels, **more)
    return replace(made, scope=f"{_tiles(made.tiles)} and the DMA channels of the design")


@dataclass(frozen=True)
class Prediction:
    """The least time that the roofline allows: a lower bound, since nothing else is counted."""

    name: str
    roofline: Roofline
    flops: float
    bytes: Mapping[Level, int]
    """Bytes under the roofline's convention."""
    bounds: Mapping[Limit, float]
    """Core cycles that each limit alone would take."""

    @property
    def limit(self) -> Limit:
        """What takes longest."""
        return max(self.bounds, key=lambda k: self.bounds[k])

    @property
    def cycles(self) -> float:
        return self.bounds[self.limit]

    @property
    def seconds(self) -> float:
        return self.cycles / self.roofline.device.clock_hz

    @property
    def flops_per_cycle(self) -> float:
        """The most that is attainable; 0 for a design without operations (or without time)."""
        return self.flops / self.cycles if self.cycles else 0.0

    def intensity(self, level: Level) -> float | None:
        """FLOP/B at a level; None where nothing moves."""
        moved = self.bytes.get(level)
        return self.flops / moved if moved else None

    @property
    def limit_text(self) -> str:
        return "the cores" if self.limit == "compute" else LEVEL_NAMES[self.limit]

    def compare(self, run: Run) -> str:
        """One line: predicted, achieved, and how far apart."""
        ratio = run.seconds / self.seconds
        return (
            f"predicted at least {si(self.seconds, 's')} (limited by {self.limit_text}), "
            f"{run.kind} {si(run.seconds, 's')}: {ratio:.2f} times the bound"
        )

    def rows(self) -> list[tuple[str, str]]:
        """Each bound, longest first."""
        rows = []
        for key, cycles in sorted(self.bounds.items(), key=lambda item: -item[1]):
            name = "cores" if key == "compute" else LEVEL_NAMES[key]
            what = f"{self.flops:,.0f} FLOP" if key == "compute" else f"{self.bytes[key]:,} B"
            mark = "  <- the limit" if key == self.limit else ""
            seconds = si(cycles / self.roofline.device.clock_hz, "s")
            rows.append((name, f"{what}: at least {cycles:,.0f} cycles = {seconds}{mark}"))
        return rows

    def __str__(self) -> str:
        how = f"counted {counted_text(self.roofline.convention)}"
        head = f"{self.name}: predicted from the roofline of {self.roofline.device.name}, {how}"
        return "\n".join([head, *(f"  {what:<16}  {value}" for what, value in self.rows())])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        cells = "".join(
            f'<tr><th scope="row" style="text-align:left">{escape(what)}</th><td style="text-align:left">{escape(value)}</td></tr>'
            for what, value in self.rows()
        )
        caption = f'<caption style="text-align:left;caption-side:top"><b>{escape(self.name)}</b>: predicted</caption>'
        return f'<table class="dataframe npulab-run">{caption}<tbody>{cells}</tbody></table>'


def _time(moved: Bytes, width: Bandwidth, convention: Convention, level: Level) -> tuple[int, float]:
    """(bytes under the convention, cycles)."""
    counted = way(convention, level)
    if isinstance(moved, int) and counted == "each way":
        raise ValueError(f"counting each way needs (read, written) bytes for {level}, got one number")
    if isinstance(moved, int):
        return moved, moved / width.total if moved else 0.0
    read, written = (moved.read, moved.written) if isinstance(moved, Traffic) else moved
    together = (read + written) / width.total if read + written else 0.0
    apart = max(n / w if n else 0.0 for n, w in ((read, width.read), (written, width.written)))
    if counted == "each way":
        return max(read, written), apart
    return read + written, max(together, apart) if convention == "by level" else together


def predict(
    flops: float,
    bytes_by_level: Mapping[Level, Bytes],
    on: Roofline | Device | str,
    dtype: str = "bf16",
    *,
    convention: Convention | None = None,
    name: str = "design",
    **more: Any,
) -> Prediction:
    """The least time for so many operations and bytes, and what limits it. ``on`` is a Roofline (see :func:`used_by`) or a
    device, for which one is made with ``dtype`` and ``more``.

    Raises:
        ValueError: if a level is unknown, or one number is given where (read, written) is needed.
    """
    roof = on if isinstance(on, Roofline) else roofline(on, dtype, convention=convention or "both ways", **more)
    if convention and roof.convention != convention:
        roof = roof.counting(convention)
    unknown = set(bytes_by_level) - set(LEVELS)
    if unknown:
        raise ValueError(f"unknown level {', '.join(sorted(unknown))}; known: {', '.join(LEVELS)}")
    moved: dict[Level, int] = {}
    bounds: dict[Limit, float] = {"compute": flops / roof.ceiling}
    for level, n in bytes_by_level.items():
        moved[level], bounds[level] = _time(n, roof.bandwidth[level], roof.convention, level)
    return Prediction(name, roof, flops, moved, bounds)


def plot(
    *points: Any, roof: Roofline | None = None, unit: Literal["cycle", "second"] = "cycle", title: str = ""
) -> Any:
    """The picture of the three rooflines with points; see :func:`npulab.roofplot.plot`."""
    from npulab.roofplot import plot as draw  # matplotlib only when something is plotted

    return draw(*points, roof=roof, unit=unit, title=title)


def levels(*points: Any, **options: Any) -> Any:
    """The same points on the roof of each level, side by side; see :func:`npulab.roofpanels.levels`."""
    from npulab.roofpanels import levels as draw

    return draw(*points, **options)


def alt(picture: Any) -> str:
    """The text alternative of a picture."""
    return str(picture.alt)

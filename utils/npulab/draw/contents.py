"""What a machine holds, tile by tile, and which colour stands for which fifo."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from npulab.draw import theme
from npulab.draw.wires import channel_key, family, letters
from npusim.machine import Coord, CoreProgram, DmaChannel, Machine, MemBuffer
from npusim.report import CoreUse, Report


def parts(of: Any) -> tuple[Machine, Report | None]:
    """The machine and, if there is one, the report behind what a notebook has at hand (Machine, Report, Run).

    Raises:
        TypeError: if it is none of them.
    """
    if isinstance(of, Machine):
        return of, None
    report = of if isinstance(of, Report) else getattr(of, "report", None)
    if isinstance(report, Report):
        return report.machine, report
    if isinstance(machine := getattr(of, "machine", None), Machine):
        return machine, None
    raise TypeError(
        f"nothing to draw in {type(of).__name__}: pass a Machine, a Report or a Run of the simulated NPU "
        "(a measured run knows nothing about the tiles)"
    )


@dataclass
class TileContents:
    """What one tile of the machine holds."""

    at: Coord
    core: CoreProgram | None = None
    use: CoreUse | None = None
    buffers: list[MemBuffer] = field(default_factory=list)
    channels: list[DmaChannel] = field(default_factory=list)

    @property
    def stack(self) -> int:
        return self.core.stack_size if self.core else 0

    @property
    def nbytes(self) -> int:
        return self.stack + sum(b.type.nbytes for b in self.buffers)

    @property
    def used(self) -> bool:
        return bool(self.core or self.buffers or self.channels)

    def groups(self) -> list[tuple[str, int, int]]:
        """Buffers by fifo: (name, how many, bytes together)."""
        found: dict[str, list[int]] = defaultdict(list)
        for b in self.buffers:
            found[b.fifo or b.name].append(b.type.nbytes)
        return [(name, len(sizes), sum(sizes)) for name, sizes in found.items()]


def tiles(machine: Machine, report: Report | None) -> dict[Coord, TileContents]:
    """The contents of every tile of the device, used or not."""
    device = machine.device
    found = {Coord(c, r): TileContents(Coord(c, r)) for c in range(device.columns) for r in range(device.rows)}
    for core in machine.cores:
        found[core.tile].core = core
    for buffer in machine.buffers:
        found[buffer.tile].buffers.append(buffer)
    for channel in machine.channels:
        found[channel.tile].channels.append(channel)
    for use in report.cores if report else ():
        found[use.tile].use = use
    return found


def channel_names(machine: Machine) -> dict[tuple[Coord, str, int], str]:
    """What each channel moves: its fifo, or the stream that it belongs to."""
    found = {channel_key(c): c.fifo for c in machine.channels if c.fifo}
    for route in machine.routes:
        for channel in (route.source, *route.dests):
            found.setdefault(channel_key(channel), route.name)
    return found


def _kinds(names: Iterable[str]) -> dict[str, list[str]]:
    """Names by what they are drawn as: each its own while there are few, else by family (``memA_0``, ``memA_1``), else by
    the letters that they begin with."""
    names = list(names)
    kinds: dict[str, list[str]] = {}
    for kind_of in (str, family, letters):
        kinds = {}
        for name in names:
            kinds.setdefault(kind_of(name), []).append(name)
        if len(kinds) <= len(theme.FIFO_HUES):
            break
    return kinds


def fifo_hues(machine: Machine) -> dict[str, str]:
    """The hue of every fifo and stream."""
    names = dict.fromkeys(channel_names(machine).values())
    names |= dict.fromkeys(b.fifo for b in machine.buffers if b.fifo)
    for core in machine.cores:
        names |= dict.fromkeys(fifo for fifo, _ in core.ports)
    return {name: theme.hue(i) for i, alike in enumerate(_kinds(names).values()) for name in alike}


def legend_names(hues: dict[str, str]) -> list[tuple[str, str]]:
    """(class, words) of a legend's entries for :func:`fifo_hues`."""
    shown = [
        (f"f-{hues[alike[0]]}", alike[0] if len(alike) == 1 else f"{kind}… ({len(alike)} fifos)")
        for kind, alike in _kinds(hues).items()
    ]
    return shown if len(shown) <= 14 else [*shown[:13], ("grey", f"and {len(shown) - 13} more")]

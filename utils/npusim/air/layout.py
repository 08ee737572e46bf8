"""Where segments and herds lie: instances of a segment side by side, herds of a segment in the first place that is free.

The order is that of mlir-air's placement (AIRHerdPlacementPass, August 2026): the largest herd first, and for each place,
row by row from the lowest, the first herd that fits.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from npusim.air.project import Index, Visit
from npusim.devices import Device
from npusim.errors import CapacityError, UnsupportedError
from npusim.ir import Loc
from npusim.machine import Coord
from npusim.messages import count, explain

FIRST_ROW = 2


@dataclass(eq=False)
class Herd:
    """A herd of one segment instance. Core (x, y) lies ``x`` columns east and ``y`` rows north of ``at``."""

    segment: int
    instance: Index
    name: str
    columns: int
    rows: int
    loc: Loc
    at: Coord = Coord(-1, -1)
    pinned: tuple[int, int] | None = None  # column and row that the design asks for

    def tile(self, core: Index) -> Coord:
        return Coord(self.at.col + core[0], self.at.row + core[1])

    def cores(self) -> Iterator[Index]:
        return ((x, y) for x in range(self.columns) for y in range(self.rows))

    def __str__(self) -> str:
        return f"herd {self.name!r} of {self.columns} x {self.rows} tiles"


@dataclass(eq=False)
class Part:
    """One segment instance: its columns and its herds."""

    segment: int
    instance: Index
    columns: range
    herds: list[Herd] = field(default_factory=list)


def layout(device: Device, instances: Iterable[tuple[int, Index]], visits: list[Visit]) -> list[Part]:
    """The segment instances with their herds placed. Raises CapacityError for a herd that finds no place."""
    every = list(instances)
    if len({number for number, _ in every}) > 1:
        raise UnsupportedError("a launch with several segments is not served; put their herds into one segment")
    if len(every) > device.columns:
        raise CapacityError(
            explain(
                f"{count(len(every), 'segment instance')} want columns of their own; {device.name} has {device.columns}.",
                hint="give the segment smaller sizes, and let the launch do the rest in turn.",
            )
        )
    width = device.columns // max(len(every), 1)
    parts = [Part(n, i, range(k * width, (k + 1) * width)) for k, (n, i) in enumerate(every)]
    for part in parts:
        part.herds = _herds(v for v in visits if (v.segment, v.instance) == (part.segment, part.instance))
        _place(device, part)
    return parts


def _herds(visits: Iterator[Visit]) -> list[Herd]:
    """Herds of one name are one herd; it is as large as its largest."""
    found: dict[str, Herd] = {}
    for visit in visits:
        columns, rows = visit.sizes
        herd = found.setdefault(
            visit.name, Herd(visit.segment, visit.instance, visit.name, columns, rows, visit.op.loc)
        )
        herd.columns, herd.rows = max(herd.columns, columns), max(herd.rows, rows)
        if "x_loc" in visit.op.attrs and "y_loc" in visit.op.attrs:
            herd.pinned = int(visit.op.attrs["x_loc"]), int(visit.op.attrs["y_loc"])
    return list(found.values())


def _place(device: Device, part: Part) -> None:
    free = {(c, r) for c in part.columns for r in range(FIRST_ROW, device.rows)}
    waiting = sorted(part.herds, key=lambda herd: -herd.columns * herd.rows)
    for herd in [h for h in waiting if h.pinned is not None]:
        assert herd.pinned is not None
        if not _fits(herd, herd.pinned, free):
            raise _no_room(device, part, herd)
        _take(herd, herd.pinned, free)
        waiting.remove(herd)
    for row in range(FIRST_ROW, device.rows):
        for col in part.columns:
            for herd in waiting:
                if _fits(herd, (col, row), free):
                    _take(herd, (col, row), free)
                    waiting.remove(herd)
                    break
    if waiting:
        raise _no_room(device, part, waiting[0])


def _tiles(herd: Herd, at: tuple[int, int]) -> set[tuple[int, int]]:
    return {(at[0] + x, at[1] + y) for x in range(herd.columns) for y in range(herd.rows)}


def _fits(herd: Herd, at: tuple[int, int], free: set[tuple[int, int]]) -> bool:
    return _tiles(herd, at) <= free


def _take(herd: Herd, at: tuple[int, int], free: set[tuple[int, int]]) -> None:
    herd.at = Coord(*at)
    free -= _tiles(herd, at)


def _no_room(device: Device, part: Part, herd: Herd) -> CapacityError:
    columns, rows = len(part.columns), device.rows - FIRST_ROW
    others = [h for h in part.herds if h is not herd]
    if herd.columns > columns or herd.rows > rows:
        problem = f"{herd} is larger than the {columns} columns x {rows} rows of compute tiles its segment has on {device.name}."
    else:
        problem = (
            f"{herd} finds no free place among the {columns} columns x {rows} rows of its segment on {device.name}."
        )
    return CapacityError(
        explain(
            problem,
            details=[f"{other} at {other.at}" if other.at.col >= 0 else f"{other}, not placed" for other in others],
            phrase=("No valid placement found", f"'aie.tile' op row index ({FIRST_ROW + rows}) must be less than"),
            hint="a herd's sizes are [columns, rows]; use fewer tiles and loop inside the body, or fewer segment instances.",
            loc=herd.loc,
        )
    )

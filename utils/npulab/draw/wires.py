"""Where the streams of a design run on the picture of the array: lanes beside the tiles, as on an underground map.

Each tile has a switch at its lower left corner. Streams between rows run in the corridor left of a column, streams between
columns in the corridor below a row; two streams that would overlap get different lanes. Pure geometry in grid units: no
pixels, no colours.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field

from npusim.machine import Coord, CoreProgram, DmaChannel, Machine, Route

STEPS = {"North": (0, 1), "South": (0, -1), "East": (1, 0), "West": (-1, 0)}


@dataclass
class Wire:
    """One stream as drawn. ``up`` maps a column to the runs of rows (low, high) that it covers there, ``across`` a row to
    the runs of columns; ``lane_x`` and ``lane_y`` say in which lane of each corridor."""

    route: Route
    family: str
    tiles: set[Coord] = field(default_factory=set)
    up: dict[int, list[tuple[int, int]]] = field(default_factory=dict)
    across: dict[int, list[tuple[int, int]]] = field(default_factory=dict)
    lane_x: dict[int, int] = field(default_factory=dict)
    lane_y: dict[int, int] = field(default_factory=dict)
    crossings: set[tuple[Coord, Coord]] = field(default_factory=set)  # (from, to) of neighbouring switches


@dataclass
class Neighbours:
    """A fifo in memory that both of its cores reach: no DMA, no stream."""

    fifo: str
    source: Coord
    dest: Coord


def family(name: str) -> str:
    """What related fifos have in common: ``memA_0_cons`` and ``memA_3`` are both ``memA``."""
    base = re.sub(r"_(split|join|fwd|cons|prod)\w*$", "", name)
    return re.sub(r"[_\d]+$", "", base) or base or name


def letters(name: str) -> str:
    """The letters that a name begins with: ``C`` of ``C01_l1``."""
    found = re.match(r"[A-Za-z]+", name)
    return found[0] if found else name


def neighbour(tile: Coord, port: str) -> Coord | None:
    """The tile at the other end of a port (``North 2``), None for a port that leads into the tile itself."""
    step = STEPS.get(port.split()[0])
    return Coord(tile.col + step[0], tile.row + step[1]) if step else None


def _links(route: Route) -> set[tuple[Coord, Coord]]:
    if route.hops:
        ends = ((hop.tile, neighbour(hop.tile, hop.exit)) for hop in route.hops)
        return {(a, b) for a, b in ends if b is not None}
    found: set[tuple[Coord, Coord]] = set()
    for dest in route.dests:
        found.update(_straight(route.source.tile, dest.tile))
    return found


def _straight(a: Coord, b: Coord) -> Iterable[tuple[Coord, Coord]]:
    """Across in the first row, then up or down: the way drawn when the machine has no routes yet."""
    at = a
    while at != b:
        if at.col != b.col:
            to = Coord(at.col + (1 if b.col > at.col else -1), at.row)
        else:
            to = Coord(at.col, at.row + (1 if b.row > at.row else -1))
        yield at, to
        at = to


def _runs(edges: Iterable[int]) -> list[tuple[int, int]]:
    """Neighbouring unit edges (i, i + 1) joined to runs (low, high)."""
    runs: list[tuple[int, int]] = []
    for i in sorted(set(edges)):
        if runs and runs[-1][1] == i:
            runs[-1] = (runs[-1][0], i + 1)
        else:
            runs.append((i, i + 1))
    return runs


def _wire(route: Route) -> Wire:
    wire = Wire(route, family(route.name), {route.source.tile, *(d.tile for d in route.dests)})
    wire.crossings = _links(route)
    up, across = defaultdict(list), defaultdict(list)
    for a, b in wire.crossings:
        wire.tiles |= {a, b}
        if a.col == b.col:
            up[a.col].append(min(a.row, b.row))
        else:
            across[a.row].append(min(a.col, b.col))
    wire.up = {col: _runs(rows) for col, rows in up.items()}
    wire.across = {row: _runs(cols) for row, cols in across.items()}
    for tile in (route.source.tile, *(d.tile for d in route.dests)):  # the stub into the tile needs a lane as well
        wire.up.setdefault(tile.col, []).append((tile.row, tile.row))
    return wire


def _assign(wires: list[Wire], along: str, lane: str) -> int:
    """Give each wire a lane in each corridor, longest first, so that no two overlap; returns how many lanes it took."""
    taken: dict[tuple[int, int], list[tuple[int, int]]] = defaultdict(list)
    most = 0
    for wire in sorted(wires, key=lambda w: -len(w.crossings)):
        for corridor, runs in getattr(wire, along).items():
            low, high = min(r[0] for r in runs), max(r[1] for r in runs)
            n = 0
            while any(a <= high and low <= b for a, b in taken[corridor, n]):
                n += 1
            taken[corridor, n].append((low, high))
            getattr(wire, lane)[corridor] = n
            most = max(most, n + 1)
    return most


def wires(machine: Machine) -> tuple[list[Wire], int, int]:
    """The streams of a machine, with how many lanes the columns' and the rows' corridors need."""
    found = [_wire(route) for route in machine.routes]
    return found, _assign(found, "up", "lane_x"), _assign(found, "across", "lane_y")


def neighbours(machine: Machine) -> list[Neighbours]:
    """The fifos that two cores exchange through memory both can reach."""
    streamed = {route.name for route in machine.routes} | {c.fifo for c in machine.channels}
    ends: dict[str, tuple[list[CoreProgram], list[CoreProgram]]] = defaultdict(lambda: ([], []))
    for core in machine.cores:
        for (fifo, produce), _ in core.ports.items():
            ends[fifo][0 if produce else 1].append(core)
    return [
        Neighbours(fifo, a.tile, b.tile)
        for fifo, (producers, consumers) in ends.items()
        if fifo not in streamed
        for a in producers
        for b in consumers
        if a.tile != b.tile
    ]


def busiest(found: list[Wire], machine: Machine) -> tuple[int, int, Coord, str] | None:
    """The boundary between two switches that is closest to full: (streams, how many fit, tile, direction); None if no
    stream crosses any."""
    count: dict[tuple[Coord, Coord], int] = defaultdict(int)
    for wire in found:
        for link in wire.crossings:
            count[link] += 1
    best = None
    for (a, b), n in sorted(count.items()):
        way = next(k for k, step in STEPS.items() if step == (b.col - a.col, b.row - a.row))
        room = machine.device.limits(a.row).ports.value.get(way, (n, n))[0]
        if best is None or n / room > best[0] / best[1]:
            best = (n, room, a, way.lower())
    return best


def channel_key(channel: DmaChannel) -> tuple[Coord, str, int]:
    """What identifies a channel."""
    return channel.tile, channel.direction, channel.index

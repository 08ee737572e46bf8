"""The use of every limit of a machine as a table: used / available for each tile."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from npusim.machine import Coord, Machine
from npusim.place.compass import OPPOSITE, STEPS, beyond
from npusim.place.routes import capacity

_KINDS = {"core": "compute", "mem": "MemTile", "shim": "shim"}


def limits_table(machine: Machine) -> list[str]:
    """One line a tile in use, and one over them: memory (bytes), BDs, locks, DMA channels, stream ports out and in.

    A shim tile's BDs are those that the host's transfers use at once, at most. Ports that lead nowhere (the edge of the
    array, sideways between MemTiles) and memory that is not there are ``-``, what a compiled module does not tell is ``?``.
    """
    tiles = sorted(_tiles(machine), key=lambda t: (-min(t.row, 2), t))
    rows = [_row(machine, tile) for tile in tiles]
    head = [
        "tile",
        "memory",
        "BDs",
        "locks",
        "S2MM",
        "MM2S",
        *(f"{side[0]} {way}" for way in ("out", "in") for side in STEPS),
    ]
    widths = [max(len(row[i]) for row in [head, *rows]) for i in range(len(head))]
    return [_line(row, widths) for row in (head, *rows)]


def _line(cells: list[str], widths: list[int]) -> str:
    first, *rest = zip(cells, widths, strict=True)
    return "  ".join([first[0].ljust(first[1]), *(cell.rjust(width) for cell, width in rest)]).rstrip()


def _tiles(machine: Machine) -> set[Coord]:
    """Tiles that hold or pass something."""
    placed: Iterable[Coord] = (
        x.tile for part in (machine.buffers, machine.channels, machine.cores, machine.locks) for x in part
    )
    return set(placed) | {hop.tile for route in machine.routes for hop in route.hops}


def _row(machine: Machine, tile: Coord) -> list[str]:
    device = machine.device
    limits = device.limits(tile.row)
    channels = [c for c in machine.channels if c.tile == tile]
    direction = Counter(c.direction for c in channels)
    return [
        f"{_KINDS[device.kind(tile.row)]} {tile}",
        _memory(machine, tile, limits.memory.value),
        f"{_descriptors(machine, tile)}/{limits.bds.value}",
        f"{sum(lock.tile == tile for lock in machine.locks)}/{limits.locks.value}",
        f"{direction['S2MM']}/{limits.s2mm.value}",
        f"{direction['MM2S']}/{limits.mm2s.value}",
        *_ports(machine, tile),
    ]


def _memory(machine: Machine, tile: Coord, available: int) -> str:
    if not available:
        return "-"
    stack = sum(core.stack_size for core in machine.cores if core.tile == tile)
    used = stack + sum(b.type.nbytes for b in machine.buffers if b.tile == tile)
    return f"{used:,}/{available:,}"


def _descriptors(machine: Machine, tile: Coord) -> str:
    if tile.row > 0:
        return str(sum(len(c.descriptors) for c in machine.channels if c.tile == tile))
    unknown = machine.design is None and any(c.tile == tile for c in machine.channels)
    return "?" if unknown else str(machine.host_bds.get(tile, 0))


def _ports(machine: Machine, tile: Coord) -> list[str]:
    """Streams that leave and enter, each in the order of STEPS; a broadcast takes a port once."""
    hops = [hop for route in machine.routes for hop in route.hops if hop.tile == tile]
    used = Counter(("out", port.split()[0]) for port in {hop.exit for hop in hops})
    used.update(("in", port.split()[0]) for port in {hop.entry for hop in hops})
    cells = []
    for way in ("out", "in"):
        for side in STEPS:
            available = _available(machine, tile, side, way)
            cells.append(f"{used[way, side]}/{available}" if available else "-")
    return cells


def _available(machine: Machine, tile: Coord, side: str, way: str) -> int:
    """Streams that can leave to a side, or come from there."""
    if way == "out":
        return capacity(machine.device, tile, side)
    other = beyond((tile, side))
    return capacity(machine.device, other, OPPOSITE[side]) if machine.device.contains(*other) else 0

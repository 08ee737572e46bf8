"""Which memories a tile reaches without a DMA, and where a cascade can go.

Source: mlir-aie's target model (AIE2TargetModel::isLegalMemAffinity, isSouth, isEast), August 2026.
"""

from __future__ import annotations

from typing import Literal

from npusim.devices import Device
from npusim.machine import Coord

Side = Literal["none", "first", "second", "both"]
"""Whose memory two tiles can both reach."""


def reaches(device: Device, user: Coord, memory: Coord) -> bool:
    """Whether the core (or MemTile DMA) of ``user`` reaches the memory of ``memory`` directly.

    A core reaches its own memory and those to the west, north and south; a MemTile its own and those east and west.
    """
    if not (device.contains(*user) and device.contains(*memory)):
        return False
    kind = device.kind(user.row)
    if kind != device.kind(memory.row) or kind == "shim":
        return False
    step = (memory.col - user.col, memory.row - user.row)
    if kind == "mem":
        return step in ((0, 0), (-1, 0), (1, 0))
    return step in ((0, 0), (-1, 0), (0, 1), (0, -1))


def shared_side(device: Device, first: Coord, second: Coord) -> Side:
    """Whose memory both tiles reach: a fifo between them needs no DMA if there is one."""
    in_first, in_second = reaches(device, second, first), reaches(device, first, second)
    if in_first and in_second:
        return "both"
    return "first" if in_first else "second" if in_second else "none"


def memory_neighbours(device: Device, core: Coord) -> list[Coord]:
    """The other compute tiles whose memory the core of this tile reaches, south first (the placer's order)."""
    col, row = core
    around = (Coord(col, row - 1), Coord(col, row + 1), Coord(col - 1, row))
    return [tile for tile in around if reaches(device, core, tile)]


def cascades(source: Coord, dest: Coord) -> bool:
    """Whether the cascade output of ``source`` is wired to the input of ``dest``: its south or its east neighbour."""
    return (dest.col - source.col, dest.row - source.row) in ((0, -1), (1, 0))


def adjacent(first: Coord, second: Coord) -> bool:
    """Whether two tiles lie side by side."""
    return abs(first.col - second.col) + abs(first.row - second.row) == 1

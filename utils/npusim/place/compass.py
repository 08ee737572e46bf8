"""Directions on the array, and the boundary between two neighbouring stream switches."""

from __future__ import annotations

from npusim.machine import Coord

STEPS = {"North": (0, 1), "South": (0, -1), "West": (-1, 0), "East": (1, 0)}
OPPOSITE = {"North": "South", "South": "North", "West": "East", "East": "West"}

Boundary = tuple[Coord, str]
"""Leaving a tile in a direction."""


def beyond(boundary: Boundary) -> Coord:
    """The tile behind a boundary."""
    tile, direction = boundary
    step = STEPS[direction]
    return Coord(tile.col + step[0], tile.row + step[1])

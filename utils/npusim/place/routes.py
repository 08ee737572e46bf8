"""Routes through the stream switches: which tiles every stream crosses, so that no boundary carries too many.

Streams are circuit-switched: no two share a port. Between two tiles run 6 streams north, 4 south, 4 east and 4 west, none
sideways between MemTiles. Every destination is reached by a shortest way; where more streams want a boundary than it has
ports, all are ripped up and routed again with a price on crowded boundaries (the negotiated congestion of L. McMurchie and
C. Ebeling, "PathFinder", FPGA 1995), until none is over its limit.
"""

from __future__ import annotations

import heapq
from collections import Counter
from dataclasses import dataclass, field

from npusim.devices import Device
from npusim.errors import CapacityError
from npusim.ir import UNKNOWN
from npusim.machine import Coord, Route
from npusim.messages import count, explain
from npusim.place.compass import OPPOSITE, STEPS, Boundary, beyond
from npusim.place.draft import label
from npusim.place.ports import assign_ports

ROUNDS = 60
"""Attempts before a design counts as unroutable."""


def route(device: Device, nets: list[Route]) -> None:
    """Set the hops of every route. Raises CapacityError naming the boundary and the streams that want it."""
    router = _Router(device, nets)
    router.negotiate()
    assign_ports(device, nets, router.trees)


def capacity(device: Device, tile: Coord, direction: str) -> int:
    """How many streams can leave a tile in a direction."""
    other = beyond((tile, direction))
    if not device.contains(*other):
        return 0
    out = device.limits(tile.row).ports.value.get(direction, (0, 0))[0]
    into = device.limits(other.row).ports.value.get(OPPOSITE[direction], (0, 0))[1]
    return min(out, into)


@dataclass
class _Router:
    """The negotiation. ``trees`` holds the boundaries that each net crosses."""

    device: Device
    nets: list[Route]
    trees: list[dict[Boundary, None]] = field(default_factory=list)  # an ordered set a net

    def __post_init__(self) -> None:
        columns, rows = range(self.device.columns), range(self.device.rows)
        every = ((Coord(c, r), d) for c in columns for r in rows for d in STEPS)
        self.limit = {b: n for b in every if (n := capacity(self.device, *b))}
        self.history: Counter[Boundary] = Counter()
        self.load: Counter[Boundary] = Counter()

    def negotiate(self) -> None:
        for attempt in range(ROUNDS):
            self.load.clear()
            self.trees = []
            for net in self.nets:
                tree = self._tree(net, attempt)
                self.trees.append(tree)
                self.load.update(list(tree))
            crowded = [b for b in self.limit if self.load[b] > self.limit[b]]
            if not crowded:
                return
            for boundary in crowded:
                self.history[boundary] += self.load[boundary] - self.limit[boundary]
        raise self._unroutable(crowded)

    def _tree(self, net: Route, attempt: int) -> dict[Boundary, None]:
        """The boundaries on the ways to all destinations; ways share what they can."""
        tree: dict[Boundary, None] = {}
        for dest in sorted(net.dests, key=lambda d: (d.tile, d.index)):
            tree |= dict.fromkeys(self._way(net.source.tile, dest.tile, tree, attempt))
        return tree

    def _way(self, start: Coord, goal: Coord, tree: dict[Boundary, None], attempt: int) -> list[Boundary]:
        """The cheapest way by (price, boundaries new to the tree), Dijkstra; ties go up or down the column first.

        A tile that the tree has reached may not be entered a second time by another boundary.
        """
        entered = {beyond(b): b for b in tree}
        best: dict[Coord, tuple[float, int]] = {start: (0.0, 0)}
        came: dict[Coord, Boundary] = {}
        queue: list[tuple[float, int, int, Coord]] = [(0.0, 0, 0, start)]
        while queue:
            price, fresh, _, tile = heapq.heappop(queue)
            if tile == goal:
                break
            if (price, fresh) > best[tile]:
                continue
            for direction in STEPS:
                boundary = (tile, direction)
                if boundary not in self.limit:
                    continue
                other = beyond(boundary)
                if entered.get(other, boundary) != boundary or other == start:
                    continue
                offer = (price + self._price(boundary, tree, attempt), fresh + (boundary not in tree))
                if offer < best.get(other, (float("inf"), 0)):
                    best[other] = offer
                    came[other] = boundary
                    heapq.heappush(queue, (*offer, abs(other.row - goal.row), other))
        way = []
        tile = goal
        while tile != start:
            way.append(came[tile])
            tile = came[tile][0]
        return way[::-1]

    def _price(self, boundary: Boundary, tree: dict[Boundary, None], attempt: int) -> float:
        if boundary in tree:
            return 1.0
        excess = max(0, self.load[boundary] + 1 - self.limit[boundary])
        return (1 + self.history[boundary]) * (1 + excess * (attempt + 1))

    def _unroutable(self, crowded: list[Boundary]) -> CapacityError:
        worst = max(crowded, key=lambda b: (self.load[b] - self.limit[b], b))
        tile, direction = worst
        rivals = [net for net, tree in zip(self.nets, self.trees) if worst in tree]
        text = explain(
            f"{count(len(rivals), 'stream')} want to leave {label(tile)} to the {direction.lower()}, towards "
            f"{label(beyond(worst))}; the switch has {self.limit[worst]} {direction} ports, and no way round was "
            "found.",
            details=[f"{net.name}: {net.source} to {', '.join(map(str, net.dests))}{_at(net)}" for net in rivals],
            phrase="Unable to find a legal routing",
            hint="use fewer streams (broadcast one instead of sending copies, join on a MemTile), place producers and "
            "consumers nearer to each other, or spread the shim and MemTile ends over more columns.",
            loc=rivals[-1].source.loc,
        )
        return CapacityError(text)


def _at(net: Route) -> str:
    return "" if net.source.loc is UNKNOWN else f" ({net.source.loc})"

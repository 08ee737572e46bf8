"""Which port a stream takes at every boundary that it crosses.

A switch joins any input to any output, except that a MemTile passes a stream from south to north (or back) only on the
same port number (mlir-aie's AIE2TargetModel::isLegalTileConnection). So streams that pass a MemTile choose first.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from npusim.devices import Device
from npusim.machine import Coord, Hop, Route
from npusim.place.compass import OPPOSITE, Boundary, beyond


def assign_ports(device: Device, nets: list[Route], trees: list[dict[Boundary, None]]) -> None:
    """Turn the boundaries that each net crosses into hops with port numbers."""
    chains = [_Chain(net, tree) for net, tree in zip(nets, trees)]
    taken: dict[Boundary, set[int]] = defaultdict(set)
    numbers: dict[tuple[int, Boundary], int] = {}
    groups = [(i, group) for i, chain in enumerate(chains) for group in chain.groups()]
    for i, group in sorted(groups, key=lambda g: -len(g[1])):
        number = next(n for n in range(_width(device, group)) if all(n not in taken[b] for b in group))
        for boundary in group:
            taken[boundary].add(number)
            numbers[i, boundary] = number
    for i, (net, chain) in enumerate(zip(nets, chains)):
        net.hops = tuple(chain.hops({b: n for (j, b), n in numbers.items() if j == i}))


def _width(device: Device, group: Iterable[Boundary]) -> int:
    return min(device.limits(tile.row).ports.value[direction][0] for tile, direction in group)


class _Chain:
    """A net's tree of boundaries."""

    def __init__(self, net: Route, tree: dict[Boundary, None]) -> None:
        self.net, self.tree = net, tree
        self.into = {beyond(boundary): boundary for boundary in tree}

    def groups(self) -> list[list[Boundary]]:
        """Boundaries that must have one number: those before and after a MemTile in the same direction."""
        groups = {boundary: [boundary] for boundary in self.tree}
        for boundary in self.tree:
            tile, direction = boundary
            before = self.into.get(tile)
            if tile.row == 1 and before is not None and before[1] == direction:
                merged = [*groups[before], *groups[boundary]]
                for member in merged:
                    groups[member] = merged
        return list({id(group): group for group in groups.values()}.values())

    def hops(self, numbers: dict[Boundary, int]) -> list[Hop]:
        """The crossings from the source on, every branch of a broadcast included."""
        found: list[Hop] = []
        waiting = [self.net.source.tile]
        while waiting:
            tile = waiting.pop(0)
            entry = self._entry(tile, numbers)
            for boundary in [b for b in self.tree if b[0] == tile]:
                found.append(Hop(tile, entry, f"{boundary[1]} {numbers[boundary]}"))
                waiting.append(beyond(boundary))
            found += [Hop(tile, entry, f"DMA {dest.index}") for dest in self.net.dests if dest.tile == tile]
        return found

    def _entry(self, tile: Coord, numbers: dict[Boundary, int]) -> str:
        before = self.into.get(tile)
        if before is None:
            return f"DMA {self.net.source.index}"
        return f"{OPPOSITE[before[1]]} {numbers[before]}"

"""Routes read back from configured stream switches: each stream is followed from its source channel to where it ends."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import NamedTuple

from npusim.errors import DesignError
from npusim.ir import Value
from npusim.machine import Coord, Hop
from npusim.mlir.enums import BUNDLES
from npusim.mlir.generic import RawOp, ops_of
from npusim.place.compass import OPPOSITE, STEPS, beyond


class Port(NamedTuple):
    """A port of a switch: ``North 1``, ``DMA 0``."""

    bundle: str
    channel: int

    def __str__(self) -> str:
        return f"{self.bundle} {self.channel}"


Wiring = dict[Coord, dict[Port, list[Port]]]


class Rule(NamedTuple):
    """Packets whose id under the mask is the value go to these ports."""

    mask: int
    value: int
    dests: list[Port]


class Switches:
    """The connections of a module: in switchboxes, and in the shim multiplexers beneath them; and the rules for packets."""

    def __init__(self) -> None:
        self.boxes: Wiring = defaultdict(lambda: defaultdict(list))
        self.muxes: Wiring = defaultdict(lambda: defaultdict(list))
        self.rules: dict[Coord, dict[Port, list[Rule]]] = defaultdict(lambda: defaultdict(list))

    def add(self, tile: Coord, op: RawOp) -> None:
        """Take in an ``aie.switchbox`` or ``aie.shim_mux``."""
        wiring = self.boxes if op.name == "aie.switchbox" else self.muxes
        self._add_rules(tile, op)
        for connect in ops_of(op):
            if connect.name == "aie.connect":
                source, dest = (
                    Port(BUNDLES[connect.need(f"{end}_bundle")], connect.need(f"{end}_channel"))
                    for end in ("source", "dest")
                )
                wiring[tile][source].append(dest)

    def _add_rules(self, tile: Coord, op: RawOp) -> None:
        masters: dict[Value, list[Port]] = defaultdict(list)
        for master in (o for o in ops_of(op) if o.name == "aie.masterset"):
            for select in master.operands:
                masters[select].append(Port(BUNDLES[master.need("dest_bundle")], master.need("dest_channel")))
        for rules in (o for o in ops_of(op) if o.name == "aie.packet_rules"):
            source = Port(BUNDLES[rules.need("source_bundle")], rules.need("source_channel"))
            for rule in (o for o in ops_of(rules) if o.name == "aie.rule"):
                self.rules[tile][source].append(Rule(rule.need("mask"), rule.need("value"), masters[rule.operands[0]]))

    def _out(self, tile: Coord, entry: Port, packet: int | None) -> list[Port]:
        """Where a stream leaves a switch."""
        found = list(self.boxes[tile][entry])
        if packet is not None:
            found += next((r.dests for r in self.rules[tile][entry] if packet & r.mask == r.value), [])
        return found

    def sources(self) -> Iterator[tuple[Coord, int]]:
        """The MM2S channels from which a stream starts, as (tile, index)."""
        for wiring in (self.boxes, self.muxes):
            for tile, connections in wiring.items():
                yield from ((tile, port.channel) for port in connections if port.bundle == "DMA")

    def follow(self, tile: Coord, index: int, packet: int | None = None) -> tuple[list[Hop], list[tuple[Coord, int]]]:
        """The crossings of the stream (of packets of one id) from MM2S channel ``index`` of a tile, and the S2MM channels it
        reaches.

        DesignError if it goes round in a circle.
        """
        start = Port("DMA", index)
        if tile not in self.muxes:
            return self._follow(
                [(tile, start)], packet, lambda at, port: start if (at, port) == (tile, start) else port
            )
        entries = [Port("South", port.channel) for port in self.muxes[tile][start]]
        return self._follow(
            [(tile, entry) for entry in entries],
            packet,
            lambda at, port: start if at == tile and port in entries else port,
        )

    def _follow(
        self, waiting: list[tuple[Coord, Port]], packet: int | None, shown: Callable[[Coord, Port], Port]
    ) -> tuple[list[Hop], list[tuple[Coord, int]]]:
        hops: list[Hop] = []
        ends: list[tuple[Coord, int]] = []
        seen: set[tuple[Coord, Port]] = set()
        while waiting:
            tile, entry = waiting.pop(0)
            if (tile, entry) in seen:
                raise DesignError(f"a stream comes back to port {entry} of the switch of tile {tile}")
            seen.add((tile, entry))
            for port in self._out(tile, entry, packet):
                final = self._final(tile, port)
                hops += [Hop(tile, str(shown(tile, entry)), str(p)) for p in final or [port]]
                ends += [(tile, p.channel) for p in final]
                if not final and port.bundle in STEPS:
                    waiting.append((beyond((tile, port.bundle)), Port(OPPOSITE[port.bundle], port.channel)))
        return hops, ends

    def _final(self, tile: Coord, port: Port) -> list[Port]:
        """The DMA channels that a port of a switchbox ends in, through the multiplexer on a shim tile."""
        if port.bundle == "DMA":
            return [port]
        if port.bundle == "South" and tile in self.muxes:
            return [p for p in self.muxes[tile][Port("North", port.channel)] if p.bundle == "DMA"]
        return []

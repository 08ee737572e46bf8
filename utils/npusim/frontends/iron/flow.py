"""``Flow`` and ``PacketFlow``: explicit streams between two tiles' ports."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from npusim import graph
from npusim.errors import DesignError, UnsupportedError
from npusim.frontends.iron.context import design
from npusim.frontends.iron.device import Tile
from npusim.frontends.iron.enums import DMAChannelDir, WireBundle
from npusim.frontends.iron.resolvable import NotResolvedError, Resolvable
from npusim.frontends.tracing import here
from npusim.ir import Loc


class Flow(Resolvable):
    """A circuit-switched stream. ``shim_symbol`` names its shim end for the host sequence (aiex tasks)."""

    def __init__(
        self,
        src: Tile,
        dst: Tile,
        *,
        src_port: WireBundle = WireBundle.DMA,
        src_channel: int = 0,
        dst_port: WireBundle = WireBundle.DMA,
        dst_channel: int = 0,
        shim_symbol: str | None = None,
    ) -> None:
        self._loc = here()
        self._src, self._src_port, self._src_channel = src, src_port, src_channel
        self._dst, self._dst_port, self._dst_channel = dst, dst_port, dst_channel
        self._shim_symbol = shim_symbol
        self._op: graph.Flow | None = None

    @property
    def src(self) -> Tile:
        return self._src

    @property
    def dst(self) -> Tile:
        return self._dst

    @property
    def op(self) -> graph.Flow:
        if self._op is None:
            raise NotResolvedError(
                f"a Flow (made at {self._loc}) is not part of the design: register it with Runtime.add_flow()"
            )
        return self._op

    def all_tiles(self) -> list[Tile]:
        """The tiles that the flow touches."""
        return [self._src, self._dst]

    def tiles(self) -> list[Any]:
        return []

    def resolve(self, loc: Any = None, ip: Any = None) -> None:
        if self._op is None:
            ends = (self._src.op, self._dst.op, self._src_port, self._src_channel, self._dst_port, self._dst_channel)
            self._op = connect(*ends, loc=self._loc)
            name_shim_end(self._shim_symbol, self._op, "Flow")


@dataclass
class PacketDest:
    """One more destination of a PacketFlow."""

    tile: Tile
    port: WireBundle = WireBundle.DMA
    channel: int = 0


class PacketFlow(Resolvable):
    """A packet-switched stream of one packet id, to one destination or several."""

    def __init__(
        self,
        pkt_id: int,
        src: Tile,
        dst: Tile,
        *,
        src_port: WireBundle = WireBundle.DMA,
        src_channel: int = 0,
        dst_port: WireBundle = WireBundle.DMA,
        dst_channel: int = 0,
        extra_dsts: Sequence[PacketDest] = (),
        keep_pkt_header: bool = False,
        shim_symbol: str | None = None,
    ) -> None:
        self._loc = here()
        if keep_pkt_header:
            raise UnsupportedError("PacketFlow(keep_pkt_header=True) is not served: headers never reach memory here")
        self._pkt_id = pkt_id
        self._src, self._src_port, self._src_channel = src, src_port, src_channel
        self._dests = [PacketDest(dst, dst_port, dst_channel), *extra_dsts]
        self._shim_symbol = shim_symbol
        self._op: list[graph.Flow] | None = None

    @property
    def pkt_id(self) -> int:
        return self._pkt_id

    @property
    def op(self) -> list[graph.Flow]:
        """The flows in the design being resolved, one a destination."""
        if self._op is None:
            raise NotResolvedError(
                f"a PacketFlow (made at {self._loc}) is not part of the design: register it with Runtime.add_flow()"
            )
        return self._op

    def all_tiles(self) -> list[Tile]:
        """The tiles that the flow touches."""
        return [self._src, *(d.tile for d in self._dests)]

    def tiles(self) -> list[Any]:
        return []

    def resolve(self, loc: Any = None, ip: Any = None) -> None:
        if self._op is None:
            source = (self._src_port, self._src_channel)
            self._op = [
                connect(self._src.op, d.tile.op, *source, d.port, d.channel, packet_id=self._pkt_id, loc=self._loc)
                for d in self._dests
            ]
            name_shim_end(self._shim_symbol, self._op[0], "PacketFlow")


def connect(
    source: graph.LogicalTile,
    dest: graph.LogicalTile,
    source_port: WireBundle,
    source_channel: int,
    dest_port: WireBundle,
    dest_channel: int,
    *,
    packet_id: int | None = None,
    loc: Loc | None = None,
) -> graph.Flow:
    """Write a flow down."""
    ports = (WireBundle(source_port).name, int(source_channel), WireBundle(dest_port).name, int(dest_channel))
    flow = graph.Flow(source, dest, *ports, packet_id=packet_id, loc=here() if loc is None else loc)
    design("a flow").flows.append(flow)
    return flow


def name_shim_end(symbol: str | None, flow: graph.Flow, what: str) -> None:
    """Let the host sequence drive the shim end of a flow under a name."""
    if symbol is None:
        return
    if "shim" not in (flow.source.kind, flow.dest.kind):
        raise DesignError(
            f"{what}: shim_symbol={symbol!r} needs a shim tile at one end, got {flow.source} and {flow.dest}"
        )
    flow.shim_symbol = symbol


def shim_end(tile: graph.LogicalTile, direction: DMAChannelDir, channel: int) -> str:
    """The name by which the host sequence drives a channel of a shim tile: that of the explicit flow that ends there."""
    sends = direction == DMAChannelDir.MM2S
    for flow in design("a shim channel").flows:
        end = (flow.source, flow.source_channel) if sends else (flow.dest, flow.dest_channel)
        if end == (tile, channel):
            flow.shim_symbol = flow.shim_symbol or f"{direction.name.lower()}{channel}_of_{_place(tile)}"
            return flow.shim_symbol
    raise DesignError(
        f"{direction.name} {channel} of {tile} is driven by the host, but no explicit flow "
        f"{'starts' if sends else 'ends'} there: register a Flow with Runtime.add_flow()"
    )


def _place(tile: graph.LogicalTile) -> str:
    return "_".join("x" if n is None else str(n) for n in (tile.col, tile.row))

"""The streams of a design: one source channel each, and the channels that it is sent to (broadcast)."""

from __future__ import annotations

from npusim.errors import DesignError, UnsupportedError
from npusim.graph import Flow
from npusim.ir import Loc
from npusim.machine import Coord, Direction, DmaChannel, Route
from npusim.messages import explain
from npusim.place.channels import channel_count
from npusim.place.draft import Draft, label


def make_nets(draft: Draft) -> list[Route]:
    """A route without hops for every stream, fifos first. Raises DesignError for a channel that two streams use."""
    channels = {(c.tile, c.direction, c.index): c for c in draft.channels}
    nets: list[Route] = []
    for stream in draft.streams:
        source, *dests = (channels[_key(end.tile, end.produce, end.channel)] for end in stream.ends)
        nets.append(Route(source, dests, stream.fifo.name))
    by_source = {net.source: net for net in nets}
    for flow in draft.design.flows:
        _add_flow(draft, flow, channels, nets, by_source)
    _check_dests(nets)
    return nets


def _key(tile: Coord, produce: bool, index: int | None) -> tuple[Coord, Direction, int]:
    assert index is not None
    return tile, "MM2S" if produce else "S2MM", index


def _add_flow(
    draft: Draft,
    flow: Flow,
    channels: dict[tuple[Coord, Direction, int], DmaChannel],
    nets: list[Route],
    by_source: dict[DmaChannel, Route],
) -> None:
    if flow.packet_id is not None:
        raise UnsupportedError(f"packet-switched flows are not served yet: packet {flow.packet_id} ({flow.loc})")
    if (flow.source_port, flow.dest_port) != ("DMA", "DMA"):
        raise UnsupportedError(
            f"a flow from port {flow.source_port} to port {flow.dest_port} is not served; flows join DMA channels "
            f"({flow.loc})"
        )
    source = _endpoint(draft, draft.at(flow.source), "MM2S", flow.source_channel, flow, channels)
    dest = _endpoint(draft, draft.at(flow.dest), "S2MM", flow.dest_channel, flow, channels)
    known = by_source.get(source)
    if known is None:
        net = Route(source, [dest], flow.shim_symbol or f"{source.tile} {source.direction} {source.index}")
        by_source[source] = net
        nets.append(net)
    elif source.fifo is None:
        known.dests.append(dest)  # several flows from one channel are a broadcast
    else:
        raise DesignError(
            explain(
                f"a flow starts at {source}, which fifo {source.fifo!r} uses.",
                hint="use another channel for the flow, or pin the fifo to another one with channel=.",
                loc=flow.loc,
            )
        )


def _endpoint(
    draft: Draft,
    tile: Coord,
    direction: Direction,
    index: int,
    flow: Flow,
    channels: dict[tuple[Coord, Direction, int], DmaChannel],
) -> DmaChannel:
    """The channel at one end of a flow; on a shim tile the host drives it, elsewhere it needs a DMA program."""
    channel = channels.get((tile, direction, index))
    if channel is not None:
        return channel
    have = channel_count(draft, tile, direction)
    if not 0 <= index < have:
        raise DesignError(f"{label(tile)} has no channel {direction} {index}: it has {have} of them ({flow.loc})")
    channel = DmaChannel(tile, direction, index, fifo=flow.shim_symbol, loc=flow.loc)
    channels[tile, direction, index] = channel
    draft.channels.append(channel)
    if tile.row > 0:
        draft.warn(
            explain(
                f"a flow uses {direction} {index} of {label(tile)}, but no DMA program runs on that channel.",
                hint="add a TileDma for the tile (and rt.add_tile_dma), or nothing will move.",
                loc=flow.loc,
            )
        )
    return channel


def _check_dests(nets: list[Route]) -> None:
    users: dict[DmaChannel, list[Route]] = {}
    for net in nets:
        for dest in net.dests:
            users.setdefault(dest, []).append(net)
    for dest, rivals in users.items():
        if len(rivals) > 1:
            loc: Loc = dest.loc
            raise DesignError(
                explain(
                    f"{len(rivals)} streams end at {dest}; a circuit-switched channel receives one.",
                    details=[f"{net.name} from {net.source}" for net in rivals],
                    phrase="Unable to find a legal routing",
                    hint="send them to two channels, or join them on a MemTile.",
                    loc=loc,
                )
            )

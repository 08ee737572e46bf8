"""Packets followed through recorded switches: each id goes where its flow says."""

from __future__ import annotations

from pathlib import Path

import pytest

from npusim.mlir import read_low

DATA = Path(__file__).parents[2] / "data" / "reference" / "mlir"


@pytest.mark.parametrize("device", ["npu1", "npu2"])
def test_packets_take_the_way_of_their_rules(device):
    machine = read_low((DATA / f"air_herd2x2_broadcast.{device}.low.mlir").read_text())
    packets = {route.packet_id: route for route in machine.routes if route.packet_id is not None}
    assert sorted(packets) == [0, 1, 2, 3]
    for route in packets.values():
        last = {(hop.tile, hop.exit) for hop in route.hops if hop.exit.startswith("DMA")}
        assert last == {(dest.tile, f"DMA {dest.index}") for dest in route.dests}
        assert route.hops[0].tile == route.source.tile


def test_streams_of_circuits_are_no_packets():
    machine = read_low((DATA / "air_segment_l2.npu1.low.mlir").read_text())
    assert all(route.packet_id is None and route.hops for route in machine.routes)

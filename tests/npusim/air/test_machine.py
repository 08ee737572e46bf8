"""The machine made of an AIR design: addresses, locks, descriptors, routes, and what the lab draws of it."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from npusim.load import load_design
from npusim.place import place
from npusim.summary import explanation

DATA = Path(__file__).parents[2] / "data" / "reference" / "designs"
DESIGNS = sorted(path.stem for path in DATA.glob("air_*.py"))


@pytest.fixture(params=list(itertools.product(DESIGNS, ["npu1", "npu2"])), ids=lambda p: f"{p[0]}-{p[1]}")
def machine(request):
    name, device = request.param
    return place(load_design(DATA / f"{name}.py", device))


def test_buffers_do_not_overlap(machine):
    for tile in {b.tile for b in machine.buffers}:
        mine = sorted((b.address, b.address + b.type.nbytes) for b in machine.buffers if b.tile == tile)
        assert all(end <= begin for (_, end), (begin, _) in itertools.pairwise(mine))
        assert mine[-1][1] <= machine.device.limits(tile.row).memory.value


def test_streams_reach_from_their_source_to_every_destination(machine):
    for route in machine.routes:
        assert route.hops[0].tile == route.source.tile
        assert {hop.tile for hop in route.hops if hop.exit.startswith("DMA")} == {dest.tile for dest in route.dests}


def test_everything_can_be_explained(machine):
    text = explanation(machine)
    assert all(core.name in text for core in machine.cores)
    assert "routes" in text


def test_outputs_are_what_is_got_into():
    assert place(load_design(DATA / "air_segment_l2.py", "npu1")).outputs == [1]
    assert place(load_design(DATA / "air_herd2x2_broadcast.py", "npu1")).outputs == [2]

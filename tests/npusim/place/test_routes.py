"""Routes: every stream arrives, no two share a port, boundaries keep their limits, and too many are refused."""

from __future__ import annotations

import random
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from npusim.devices import device
from npusim.errors import CapacityError
from npusim.machine import Coord, DmaChannel, Route
from npusim.place.compass import OPPOSITE, STEPS, beyond
from npusim.place.routes import route

DEVICE = device("npu1")


def net(source: Coord, index: int, dests: list[tuple[Coord, int]], name: str = "s") -> Route:
    return Route(DmaChannel(source, "MM2S", index), [DmaChannel(t, "S2MM", i) for t, i in dests], name)


def check(nets: list[Route]) -> None:
    """The hops of every net form a tree from its source to all its destinations, over ports that nobody else uses."""
    outputs: Counter[tuple[Coord, str]] = Counter()
    for r in nets:
        reached: dict[Coord, str] = {r.source.tile: f"DMA {r.source.index}"}
        arrived = set()
        for hop in r.hops:
            assert reached[hop.tile] == hop.entry  # a switch is entered before it is left, and by one port
            outputs[hop.tile, hop.exit] += 1
            direction, number = hop.exit.split()
            if direction == "DMA":
                arrived.add((hop.tile, int(number)))
                continue
            other = beyond((hop.tile, direction))
            assert other not in reached
            reached[other] = f"{OPPOSITE[direction]} {number}"
            limits = DEVICE.limits(hop.tile.row).ports.value[direction]
            assert int(number) < limits[0]
            through_memtile = hop.tile.row == 1 and hop.entry == f"{OPPOSITE[direction]} {number}"
            assert hop.tile.row != 1 or hop.entry.startswith("DMA") or through_memtile
        assert arrived == {(d.tile, d.index) for d in r.dests}
    assert all(n == 1 for n in outputs.values())


def test_a_broadcast_shares_its_way() -> None:
    tree = net(Coord(0, 0), 0, [(Coord(0, row), 0) for row in (2, 3, 4, 5)])
    route(DEVICE, [tree])
    check([tree])
    assert sum(hop.exit.startswith("North") for hop in tree.hops) == 5


def test_six_streams_go_up_a_column() -> None:
    """Six fit through the MemTile's switch; the next ones go round by another column."""
    nets = [net(Coord(0, 1), i, [(Coord(0, 2 + i // 2), i % 2)]) for i in range(6)]
    nets += [net(Coord(0, 0), i, [(Coord(0, 5), i)]) for i in range(2)]
    route(DEVICE, nets)
    check(nets)
    first_steps = [n.hops[0].exit.split()[0] for n in nets[6:]]
    assert first_steps == ["East", "East"]


def test_what_cannot_be_routed_names_the_boundary() -> None:
    """Seven streams leave a one-column MemTile to the north, which has six ports."""
    small = device("npu1_1col")
    nets = [net(Coord(0, 1), i, [(Coord(0, 2 + i // 2), i % 2)], f"s{i}") for i in range(6)]
    nets.append(net(Coord(0, 0), 0, [(Coord(0, 5), 0)], "late"))
    words = r"(?s)7 streams want to leave MemTile \(0,1\) to the north, towards compute tile \(0,2\); .* has 6 North ports.*late"
    with pytest.raises(CapacityError, match=words):
        route(small, nets)


def test_no_way_sideways_between_memtiles() -> None:
    """From one MemTile to the next, a stream goes over the row above or below."""
    wanted = net(Coord(0, 1), 0, [(Coord(1, 1), 0)])
    route(DEVICE, [wanted])
    check([wanted])
    assert [hop.exit.split()[0] for hop in wanted.hops] in (
        ["North", "East", "South", "DMA"],
        ["South", "East", "North", "DMA"],
    )


def test_shortest_when_there_is_room() -> None:
    wanted = net(Coord(0, 0), 1, [(Coord(3, 5), 1)])
    route(DEVICE, [wanted])
    check([wanted])
    assert len(wanted.hops) == 3 + 5 + 1


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 24))
def test_random_streams_are_legal_or_refused(seed: int, wanted: int) -> None:
    rng = random.Random(seed)
    tiles = [Coord(c, r) for c in range(4) for r in range(6)]
    channels = {t: DEVICE.limits(t.row).s2mm.value for t in tiles}
    sources = rng.sample([(t, i) for t in tiles for i in range(channels[t])], wanted)
    dests = rng.sample([(t, i) for t in tiles for i in range(channels[t])], wanted)
    nets = [net(t, i, [d], f"s{n}") for n, ((t, i), d) in enumerate(zip(sources, dests, strict=True))]
    try:
        route(DEVICE, nets)
    except CapacityError:
        return
    check(nets)


def test_the_order_of_hops_does_not_depend_on_chance() -> None:
    def once() -> list[tuple[object, ...]]:
        nets = [net(Coord(c, 0), i, [(Coord((c + 2) % 4, 3), i), (Coord(c, 5), i)]) for c in range(4) for i in range(2)]
        route(DEVICE, nets)
        check(nets)
        return [n.hops for n in nets]

    assert once() == once()


def test_directions_are_consistent() -> None:
    for direction in STEPS:
        there = beyond((Coord(1, 3), direction))
        assert beyond((there, OPPOSITE[direction])) == (1, 3)

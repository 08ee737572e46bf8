"""The device tables against what mlir-aie's target model answers (recorded), and that every fact is sourced."""

import json
from pathlib import Path

import pytest

from npusim.devices import DEVICES, Device, Fact, device, facts
from npusim.errors import DesignError

RECORDED = json.loads((Path(__file__).parents[1] / "data" / "api" / "target_model.json").read_text())
MODELS = ("npu1", "npu1_1col", "npu2", "npu2_1col")
ARCH = {2: "AIE2", 3: "AIE2P"}  # the values of mlir-aie's enumeration
BUNDLES = ("North", "South", "East", "West")


def recorded(name: str, query: str) -> dict[tuple[int, int], int]:
    """The answers of one query by (col, row)."""
    return {eval(tile): answer for tile, answer in RECORDED[name][query].items()}


def ports(name: str, query: str) -> dict[tuple[int, int], dict[str, int]]:
    """The connections of one query by (col, row), then by bundle."""
    found: dict[tuple[int, int], dict[str, int]] = {}
    for key, count in RECORDED[name][query].items():
        tile, bundle = key.rsplit(" ", 1)
        found.setdefault(eval(tile), {})[bundle] = count
    return found


@pytest.mark.parametrize("name", MODELS)
def test_shape(name: str) -> None:
    of = device(name)
    assert (of.columns, of.rows) == (RECORDED[name]["columns"], RECORDED[name]["rows"])
    assert of.arch == ARCH[RECORDED[name]["get_target_arch"]]


@pytest.mark.parametrize("name", MODELS)
def test_kinds_of_tiles(name: str) -> None:
    kinds = {0: "core", 1: "mem", 2: "shim"}
    for (_, row), kind in recorded(name, "get_tile_type").items():
        assert device(name).kind(row) == kinds[kind]


@pytest.mark.parametrize("name", MODELS)
def test_memories_locks_and_descriptors(name: str) -> None:
    of = device(name)
    assert of.core.memory.value == RECORDED[name]["get_local_memory_size"]
    assert of.mem.memory.value == RECORDED[name]["get_mem_tile_size"]
    for query, field in (("get_num_locks", "locks"), ("get_num_bds", "bds")):
        for (_, row), count in recorded(name, query).items():
            assert getattr(of.limits(row), field).value == count, (query, row)


@pytest.mark.parametrize("name", MODELS)
def test_ports_of_switchboxes(name: str) -> None:
    of = device(name)
    for index, query in enumerate(("get_num_dest_switchbox_connections", "get_num_source_switchbox_connections")):
        for tile, counts in ports(name, query).items():
            mine = of.limits(tile[1]).ports.value
            for bundle in BUNDLES:
                if bundle in counts:  # a tile at the edge has none to the outside
                    assert mine[bundle][index] == counts[bundle], (query, tile, bundle)
                elif of.kind(tile[1]) == "mem" and bundle in ("East", "West"):
                    assert bundle not in mine


@pytest.mark.parametrize("name", MODELS)
def test_dma_channels(name: str) -> None:
    of = device(name)
    tables = {
        "s2mm": ("get_num_dest_switchbox_connections", "get_num_dest_shim_mux_connections"),
        "mm2s": ("get_num_source_switchbox_connections", "get_num_source_shim_mux_connections"),
    }
    for field, queries in tables.items():
        for query in queries:
            for tile, counts in ports(name, query).items():
                if "DMA" in counts:
                    assert getattr(of.limits(tile[1]), field).value == counts["DMA"], (field, tile)


@pytest.mark.parametrize("of", DEVICES.values(), ids=lambda d: d.name)
def test_every_fact_is_sourced(of: Device) -> None:
    table = facts(of)
    assert len({name for name, _ in table}) == len(table)
    for name, fact in table:
        assert isinstance(fact, Fact), name
        assert fact.unit, name
        assert fact.source, name
        assert fact.confidence in ("H", "M", "L"), name


def test_partitions_take_over_everything_but_their_columns() -> None:
    for family, columns in (("npu1", 4), ("npu2", 8)):
        for n in range(1, columns):
            part = device(f"{family}_{n}col")
            assert (part.columns, part.family, part.compute_tiles) == (n, family, 4 * n)
            assert [f for _, f in facts(part)] == [f for _, f in facts(device(family))]


def test_options() -> None:
    npu2 = device("npu2")
    chosen = npu2.with_options(clock_hz=1.0e9, stream_bytes_per_cycle=8)
    assert (chosen.clock_hz, chosen.stream_bytes_per_cycle) == (1.0e9, 8)
    assert chosen.clock.note == chosen.stream.note == "chosen by the caller"
    assert npu2.with_options() == npu2
    with pytest.raises(DesignError, match="4 or 8"):
        npu2.with_options(stream_bytes_per_cycle=16)
    with pytest.raises(DesignError, match="positive"):
        npu2.with_options(clock_hz=0)


def test_containing() -> None:
    npu1 = device("npu1")
    assert npu1.contains(3, 5)
    assert not any(npu1.contains(*tile) for tile in ((4, 0), (-1, 0), (0, 6), (0, -1)))


def test_unknown_device() -> None:
    with pytest.raises(DesignError, match="no device 'xcvc1902'; known: npu1, npu2"):
        device("xcvc1902")

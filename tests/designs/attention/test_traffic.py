"""Bytes at every level are to the byte what the closed formulas say, and go through the tiles they should go through."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from designs.attention import formulas
from designs.attention import run as running
from npusim.report import Traffic
from tests.designs.attention.runs import DEVICES, MASKED, NAMES, outcome

GRID: list[dict[str, Any]] = [
    {"lq": 256, "num_heads": 1},
    {"lq": 256, "num_heads": 3},
    {"lq": 256, "num_heads": 12, "num_kv_heads": 4},
    {"lq": 512, "lk": 256, "num_heads": 8, "num_kv_heads": 2},
    {"lq": 768, "lk": 1344, "num_heads": 2},
    {"lq": 1024, "num_heads": 12},
    {"lq": 2048, "num_heads": 5},
    {"lq": 1024, "lk": 4224, "num_heads": 2},
    {"lq": 256, "dk": 32, "num_heads": 4},
]
FUSED_GRID: list[dict[str, Any]] = [
    {"lq": 256, "num_heads": 4},
    {"lq": 256, "num_heads": 12, "num_kv_heads": 4},
    {"lq": 512, "lk": 256, "num_heads": 8, "num_kv_heads": 2},
    {"lq": 768, "lk": 1280},
    {"lq": 1024, "num_heads": 12},
    {"lq": 256, "dk": 128},
    {"lq": 512, "dk": 64, "dv": 128},
    {"lq": 256, "lk": 384, "num_cascade_stages": 3},
    {"lq": 256, "lqp": 128, "lkp": 32},
]
CAUSAL: list[dict[str, Any]] = [
    {"lq": 256, "num_heads": 3},
    {"lq": 1024, "num_heads": 12, "num_kv_heads": 4},
    {"lq": 2560, "num_heads": 2},
]


def shown(given: dict[str, Any]) -> str:
    return " ".join(f"{k}={v}" for k, v in given.items())


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(
    ("name", "given"),
    [(name, given) for name in NAMES for given in (FUSED_GRID if name == "fused" else GRID)],
    ids=lambda x: x if isinstance(x, str) else shown(x),
)
def test_every_byte(name: str, device: str, given: dict[str, Any]) -> None:
    done = outcome(name, device, data=False, **given)
    assert done.run.traffic == formulas.traffic(done.mapping.name, done.parameters)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", MASKED)
@pytest.mark.parametrize("given", CAUSAL, ids=shown)
def test_every_byte_under_a_mask(name: str, device: str, given: dict[str, Any]) -> None:
    if name == "fused" and given["num_heads"] % 2:
        given = {**given, "num_heads": given["num_heads"] + 1}
    done = outcome(name, device, data=False, causal=True, **given)
    assert done.run.traffic == formulas.traffic(done.mapping.name, done.parameters)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("length", [1, 200, 700])
def test_every_byte_of_padded_lengths(device: str, length: int) -> None:
    done = outcome("iron", device, data=False, lq=length)
    assert done.run.traffic == formulas.traffic("iron", done.parameters)


@pytest.mark.parametrize("device", DEVICES)
def test_each_program_of_layer_by_layer(device: str) -> None:
    done = outcome("layerwise", device, data=False, lq=512, num_heads=8)
    parts = {name: formulas.moved(own) for name, own in formulas.streams("layerwise", done.parameters, device).items()}
    assert {part.run.name: part.run.traffic for part in done.run.parts} == parts


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", NAMES)
def test_what_leaves_a_stream_s_source_arrives_everywhere(name: str, device: str) -> None:
    done = outcome(name, device, data=False, lq=512)
    for run in [part.run for part in done.run.parts] or [done.run]:
        assert run.machine is not None
        moved = {use.channel: use.bytes for use in run.channels}
        for route in run.machine.routes:
            assert {moved[end] for end in (route.source, *route.dests)} == {moved[route.source]}, route.name


@pytest.mark.parametrize("device", DEVICES)
def test_no_memtile_sees_a_score_of_dato(device: str) -> None:
    """Through MemTiles go Q, K, V and O only; over streams between compute tiles only the corrections."""
    done = outcome("dato", device, data=False, lq=512)
    machine, p = done.run.machine, done.parameters
    assert machine is not None and done.run.traffic is not None
    kinds = Counter((route.source.tile.row > 1, route.dests[0].tile.row > 1) for route in machine.routes)
    between = [route for route in machine.routes if route.source.tile.row > 1 and route.dests[0].tile.row > 1]
    assert {route.name.rstrip("0123456789") for route in between} == {"r"} and kinds[True, True] == p.tile("num_q_tiles")
    inputs = done.run.traffic["ddr"]
    assert done.run.traffic["memtile"] == Traffic(read=inputs.total, written=inputs.total)


@pytest.mark.parametrize("device", DEVICES)
def test_scores_of_the_iron_mapping_go_in_and_out_of_a_memtile(device: str) -> None:
    done = outcome("iron", device, data=False, lq=512)
    p, machine = done.parameters, done.run.machine
    assert machine is not None
    scores = 2 * p.num_heads * p.lq * p.keys
    moved = {use.channel: use.bytes for use in done.run.channels}
    through = {"s": 0, "p": 0}
    for route in machine.routes:
        first = route.name[0]
        if first in through and 1 in (route.source.tile.row, route.dests[0].tile.row):
            through[first] += moved[route.source]
    assert through == {"s": 2 * scores, "p": 2 * scores}


@pytest.mark.slow
@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", NAMES)
def test_every_byte_of_32768_tokens(name: str, device: str) -> None:
    """GPT-2 Small, with rounds that repeat left out."""
    done = outcome(name, device, data=False, lq=32768, num_heads=12)
    assert running.exact(done)

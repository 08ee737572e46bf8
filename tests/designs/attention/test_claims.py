"""What is claimed of the mappings, held against simulated runs; designs/attention/FINDINGS.md says what follows."""

from __future__ import annotations

import json
from typing import Any

import pytest

from designs.attention import compare, formulas
from designs.attention import run as running
from designs.attention.parameters import Parameters
from npulab import roofline
from npulab.prediction import predict
from npulab.record import Run
from npusim.costs import Costs
from npusim.devices import device as device_named
from tests.designs.attention.runs import DEVICES, NAMES, outcome


@pytest.fixture(scope="module")
def rows() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(compare.DATA.read_text())
    return found


def row(rows: list[dict[str, Any]], name: str, device: str, length: int, kind: str = "simulated") -> dict[str, Any]:
    (found,) = (
        r for r in rows if (r["mapping"], r["device"], r["length"], r["kind"]) == (name, device, length, kind)
    )
    return found


def gpt2(name: str, device: str, length: int, **options: Any) -> Run:
    return outcome(name, device, data=False, lq=length, num_heads=12, **options).run


def test_published_gains_are_those_of_the_review() -> None:
    assert compare.PUBLISHED_GAINS[256] == (3.91, 3.91) and 512 not in compare.PUBLISHED_GAINS
    assert {compare.PUBLISHED_GAINS[n] for n in (1024, 32768)} == {(1.95, 2.01)}


def test_the_published_range_is_one_for_all_lengths_but_the_shortest(rows: list[dict[str, Any]]) -> None:
    lengths, low, high = compare.published_range(compare.gains(rows))
    assert lengths == [1024, 2048, 4096, 8192, 16384, 32768]
    assert set(low) == {1.95} and set(high) == {2.01} and len(low) == len(high) == len(lengths)


def test_the_data_is_complete(rows: list[dict[str, Any]]) -> None:
    for name in NAMES:
        for device in DEVICES:
            assert [r["length"] for r in rows if (r["mapping"], r["device"], r["kind"]) == (name, device, "simulated")] == list(
                compare.LENGTHS
            )
    assert all(r["source"] for r in rows if r["kind"] == "published")
    assert {r["kind"] for r in rows} == {"simulated", "published"}


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("length", [256, 1024])
def test_the_data_is_what_the_command_computes(rows: list[dict[str, Any]], name: str, device: str, length: int) -> None:
    again = json.loads(json.dumps(compare.simulated(name, device, length)))  # type: ignore[arg-type]
    assert again == row(rows, name, device, length), "run python -m designs.attention.compare --write"


# ---- layer by layer is bandwidth bound


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("length", [1024, 32768])
def test_layer_by_layer_lies_left_of_the_ridge_at_ddr(device: str, length: int) -> None:
    """The paper's argument: at most d/2 FLOP/B, where the matrix units need twice as much or more."""
    p = Parameters(lq=length).of_mapping("layerwise", device)
    intensity = formulas.intensity("layerwise", p, "ddr")
    assert intensity < 32
    assert roofline.roofline(device).ridge("ddr") > 2 * intensity


@pytest.mark.parametrize("length", [1024, 2048])
def test_layer_by_layer_is_bandwidth_bound_on_xdna_2(length: int) -> None:
    """Every operator: DDR is busy nine tenths of the time and more, no core two thirds of it."""
    done = gpt2("layerwise", "npu2", length)
    for part, use in zip(done.parts, running.stages(done), strict=True):
        assert part.run.traffic is not None
        used = part.run.traffic["ddr"].total / part.run.seconds / done.device.ddr_total.value
        assert used > 0.9 and use.busy < 0.65, part.run.name


@pytest.mark.parametrize("length", [1024, 2048])
def test_layer_by_layer_on_xdna_1_is_bandwidth_bound_in_the_products_and_not_in_softmax(length: int) -> None:
    """Half of the claim: scores wait for the one stream that leaves each column, the output for the one that enters; softmax,
    whose exponentials come from tables, keeps the cores busy."""
    done = gpt2("layerwise", "npu1", length)
    busiest, cores = {}, {}
    for part, use in zip(done.parts, running.stages(done), strict=True):
        assert part.run.report is not None
        shim = [c.busy / part.run.report.ticks for c in part.run.channels if c.channel.tile.row == 0]
        busiest[part.run.name], cores[part.run.name] = max(shim), use.busy
    assert busiest["scores"] > 0.95 and cores["scores"] < 0.5
    assert busiest["output"] > 0.95 and cores["output"] < 0.5
    assert busiest["softmax"] < 0.5 and cores["softmax"] > 0.95


# ---- streaming is bound by its slowest stage, not by a memory


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", ["dato", "iron"])
def test_streaming_is_bound_by_its_softmax(rows: list[dict[str, Any]], name: str, device: str) -> None:
    for length in (4096, 32768):
        found = row(rows, name, device, length)
        assert found["limiting"] == "softmax" and found["stages"]["softmax"]["busy"] > 0.9
        assert all(use["busy"] < 0.75 for stage, use in found["stages"].items() if stage != "softmax")


def test_memtiles_do_not_slow_the_iron_mapping() -> None:
    """32 FLOP/B beside a ridge of 33.7 is not why: score streams are busy a third of the time at most, and streams of twice
    the width gain less than two per cent."""
    done = gpt2("iron", "npu2", 4096)
    assert done.report is not None
    busy = [c.busy / done.report.ticks for c in done.channels if c.channel.tile.row == 1 and (c.channel.fifo or "")[0] in "sp"]
    assert len(busy) == 32 and 0.15 < max(busy) < 0.35
    p = Parameters(lq=4096)
    wide = running.run(running.mapping("iron"), p, "npu2", data=False, stream_bytes_per_cycle=8).run
    assert 1 <= done.seconds / wide.seconds < 1.02


# ---- fused beside streaming


def gain(rows: list[dict[str, Any]], device: str, length: int) -> compare.Gain:
    (found,) = (g for g in compare.gains(rows) if (g.device, g.length) == (device, length))
    return found


@pytest.mark.parametrize("length", [1024, 2048, 4096, 8192, 16384, 32768])
def test_what_the_arrays_do_on_xdna_2_gains_two(rows: list[dict[str, Any]], length: int) -> None:
    """Claimed: 1.6 to 2.3 from 1,024 tokens on (published 1.95 to 2.01). Holds for what the array takes."""
    found = gain(rows, "npu2", length)
    assert 1.6 < found.without_host < 2.3
    assert found.tiles == pytest.approx(32 / 24)


def test_with_the_host_s_time_it_holds_for_long_sequences_only(rows: list[dict[str, Any]]) -> None:
    """The fused mapping's host starts 24 transfers for each launch of 256 queries, the IRON mapping's 4 before a group of 512 can begin; at 3 us each
    (a Phoenix trace) that decides below 8,192 tokens."""
    assert all(1.6 < gain(rows, "npu2", length).simulated < 2.3 for length in (8192, 16384, 32768))
    assert all(gain(rows, "npu2", length).simulated < 1.6 for length in (1024, 2048, 4096))
    for length in (1024, 32768):
        fused, iron = row(rows, "fused", "npu2", length), row(rows, "iron", "npu2", length)
        host = {r["mapping"]: (r["ms"] - r["ms_without_host"]) / (length // 256) for r in (fused, iron)}
        assert 4 < host["fused"] / host["iron"] < 10


def test_what_the_host_starts_before_the_array_can_work() -> None:
    """24 tasks, 71 us, for each launch of two heads and 256 queries; 4 tasks, 12 us, for 512 queries of a head."""
    push = Costs().task_push.value / 1e3  # us
    for name, pieces, tasks, microseconds in (("fused", 12 // 2 * 1024 // 256, 24, 71), ("iron", 12 * 1024 // 512, 4, 12)):
        p = Parameters(lq=1024).of_mapping(name, "npu2")  # type: ignore[arg-type]
        _, started = running.mapping(name).waits(p, device_named("npu2"))  # type: ignore[arg-type]
        assert started == tasks * pieces
        assert tasks * push == pytest.approx(microseconds, abs=0.5)


def test_at_256_tokens_padding_gains_more_than_three(rows: list[dict[str, Any]]) -> None:
    """Claimed: more than 3 (published 3.91). 3.7 for what the array takes, 1.4 with the host's time."""
    assert gain(rows, "npu2", 256).without_host > 3
    assert 1.2 < gain(rows, "npu2", 256).simulated < 1.7


def test_fusing_on_xdna_1_gains_more_than_tiles(rows: list[dict[str, Any]]) -> None:
    """Claimed: under 1.2 a tile. Holds up to 1,024 tokens, where the host takes most of the time; 1.7 in the end."""
    assert all(gain(rows, "npu1", length).per_tile < 1.2 for length in (256, 512, 1024))
    assert all(1.3 < gain(rows, "npu1", length).per_tile < 1.7 for length in (2048, 4096, 8192, 16384, 32768))


@pytest.mark.parametrize("device", DEVICES)
def test_fusing_gains_more_than_tiles_by_kernel_costs_alone(device: str) -> None:
    """On both devices the softmax tile, which alone takes half of a block's work, makes it 1.7."""
    p, q = (Parameters(lq=32768).of_mapping(name, device) for name in ("iron", "fused"))
    streaming, fused = (running.mapping(name).describe(x, device) for name, x in (("iron", p), ("fused", q)))
    slowest = max(stage.longest for stage in streaming.phases[0].stages)
    each = fused.phases[0].stages[0].longest
    assert slowest / each / (fused.tiles / streaming.tiles) == pytest.approx(1.7, abs=0.1)


# ---- layer by layer beside streaming


def test_layer_by_layer_beside_streaming(rows: list[dict[str, Any]]) -> None:
    """TFLOP/s at 4,096 tokens, and but for 512 tokens on XDNA 2; from 8,192 on softmax reads rows twice, and streaming is ahead
    there."""

    def speed(name: str, device: str, length: int) -> float:
        return float(row(rows, name, device, length)["gflops"]) / 1e3

    for device, by_layers, streaming in (("npu1", 0.6, 0.35), ("npu2", 1.9, 1.6)):
        assert speed("layerwise", device, 4096) == pytest.approx(by_layers, abs=0.05)
        assert all(speed(name, device, 4096) == pytest.approx(streaming, abs=0.05) for name in ("dato", "iron"))
        for length in (256, 512, 1024, 2048, 4096):
            ahead = speed("layerwise", device, length) > max(speed(name, device, length) for name in ("dato", "iron"))
            assert ahead == ((device, length) != ("npu2", 512))
    assert (speed("dato", "npu2", 512), speed("layerwise", "npu2", 512)) == pytest.approx((1.5, 1.4), abs=0.05)
    for length in (8192, 16384, 32768):
        assert speed("layerwise", "npu2", length) < min(speed(name, "npu2", length) for name in ("dato", "iron"))
        assert speed("layerwise", "npu1", length) > max(speed(name, "npu1", length) for name in ("dato", "iron"))


def test_with_three_programs_to_load_layer_by_layer_is_ahead_at_2048_and_4096_tokens_only(rows: list[dict[str, Any]]) -> None:
    """On XDNA 2; 280 us each. At 1,024 tokens it is ahead by its own time, and behind both with that."""
    streaming = {n: [row(rows, name, "npu2", n)["ms"] for name in ("dato", "iron")] for n in compare.LENGTHS}
    in_turn = {n: row(rows, "layerwise", "npu2", n)["ms"] + 3 * 0.28 for n in compare.LENGTHS}
    assert [n for n in compare.LENGTHS if in_turn[n] < min(streaming[n])] == [2048, 4096]


# ---- under a causal mask


def test_under_a_causal_mask_fusing_gains_next_to_nothing_at_4096_tokens() -> None:
    """IRON skips hidden blocks; fused masks them, or skips and has uneven rows."""
    iron, masked, fused = (gpt2(name, "npu2", 4096, causal=causal).seconds for name, causal in (("iron", True), ("fused", True), ("fused", False)))
    skips = gpt2("fused", "npu2", 4096, causal=True, causal_skip=True).seconds
    assert 1 < iron / masked < 1.05 < iron / skips < 1.15
    assert skips < fused < masked < 1.05 * fused
    of = running.mapping("fused")
    uneven = predict(of.describe(Parameters(lq=4096, causal=True, causal_skip=True).of_mapping("fused", "npu2"), "npu2"), "npu2")
    assert uneven.balance == pytest.approx(0.56, abs=0.005)


# ---- padding, and published points


def test_iron_pays_for_padding_at_256(rows: list[dict[str, Any]]) -> None:
    """Four times the work on XDNA 2: as long as 512 tokens. XDNA 1 has half as many pipelines and pads nothing."""
    assert row(rows, "iron", "npu2", 256)["ms"] == row(rows, "iron", "npu2", 512)["ms"]
    assert row(rows, "iron", "npu1", 256)["ms"] < 0.4 * row(rows, "iron", "npu1", 512)["ms"]


@pytest.mark.parametrize(
    ("length", "low", "high"), [(32768, 0.97, 1.01), (2048, 1.2, 1.4), (1024, 1.05, 1.25)]
)
def test_fused_beside_published_points(rows: list[dict[str, Any]], length: int, low: float, high: float) -> None:
    """Calibrated at 16,384 tokens of two heads only. Short sequences are too slow: the host's time."""
    ratio = row(rows, "fused", "npu2", length)["ms"] / row(rows, "fused", "npu2", length, "published")["ms"]
    assert low < ratio < high


def test_iron_at_32768_tokens_lies_near_the_published_point(rows: list[dict[str, Any]]) -> None:
    """Not calibrated on: within ten per cent. At 2,048 tokens a quarter is missing, which is time between kernels."""
    for length, low, high in ((32768, 0.9, 1.1), (2048, 0.65, 0.9)):
        assert low < row(rows, "iron", "npu2", length)["ms"] / row(rows, "iron", "npu2", length, "published")["ms"] < high


def test_curves_for_the_chart(rows: list[dict[str, Any]]) -> None:
    lengths, speeds = compare.curve(rows, "fused", "npu2")
    assert tuple(lengths) == compare.LENGTHS and speeds[-1] == row(rows, "fused", "npu2", 32768)["gflops"] / 1e3
    assert sorted(compare.curve(rows, "iron", "npu2", "published")[0]) == [2048, 32768]
    assert compare.curve(rows, "dato", "npu2", "published") == ([], [])

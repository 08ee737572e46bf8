"""The mappings on paper: streams are those of the runs, channel by channel; bound and pace beside what is simulated."""

from __future__ import annotations

import json
from typing import Any

import pytest

from designs.attention import ablations, compare, report
from designs.attention import run as running
from designs.attention.parameters import Parameters
from designs.attention.run import Outcome
from designs.kernels.models import MODELS
from npulab.prediction import Prediction, predict
from npusim.report import Level
from tests.designs.attention.runs import DEVICES, MASKED, NAMES, outcome

HERDS = ((1, 2), (1, 4), (2, 2), (2, 3), (4, 2), (4, 4))
"""Columns and rows of the fused mapping's, few enough for both devices."""
KINDS: dict[int, Level] = {0: "ddr", 1: "memtile"}


@pytest.fixture(scope="module")
def rows() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(compare.DATA.read_text())
    return found


def before(done: Outcome, **options: Any) -> Prediction:
    return predict(done.mapping.describe(done.parameters, done.device), done.device, **options)


def gpt2(name: str, device: str, length: int, **given: Any) -> Outcome:
    return outcome(name, device, data=False, lq=length, num_heads=12, **given)


def _as_run(done: Outcome) -> list[dict[tuple[Level, str], tuple[int, int, int]]]:
    """For each program and (level, direction): channels, bytes, bytes of the busiest one."""
    found = []
    for run in [part.run for part in done.run.parts] or [done.run]:
        moved: dict[tuple[Level, str], list[int]] = {}
        for use in run.channels:
            level = KINDS.get(use.channel.tile.row, "l1")
            moved.setdefault((level, use.channel.direction), []).append(use.bytes)
        found.append({key: (len(n), sum(n), max(n)) for key, n in moved.items()})
    return found


def _as_described(done: Outcome) -> list[dict[tuple[Level, str], tuple[int, int, int]]]:
    found = []
    for phase in done.mapping.describe(done.parameters, done.device).phases:
        sums: dict[tuple[Level, str], tuple[int, int, int]] = {}
        for stream in phase.streams:
            ends = ((stream.source, "MM2S", 1), (stream.dest, "S2MM", stream.receivers))
            for level, direction, times in ends:
                channels, total, most = sums.get((level, direction), (0, 0, 0))
                busiest = max(most, round(stream.most))
                sums[level, direction] = channels + stream.channels * times, total + stream.bytes * times, busiest
        found.append(sums)
    return found


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("given", [{"lq": 256, "num_heads": 12}, {"lq": 1024}, {"lq": 1024, "num_heads": 6, "num_kv_heads": 2}], ids=str)
def test_each_channel_moves_what_the_description_says(name: str, device: str, given: dict[str, int]) -> None:
    done = outcome(name, device, data=False, **given)
    assert _as_run(done) == _as_described(done)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(
    ("name", "given"),
    [
        *(("fused", {"num_q_tiles": n, "lkp": 32, "lqp": 32 * n, "num_cascade_stages": s, "lk": 96 * s}) for n, s in HERDS),
        ("fused", {"num_heads_per_unroll": 1, "dk": 128, "dv": 192}),
        ("dato", {"num_q_tiles": 4, "lqp": 256, "lkp": 64, "kv_sharing": 2}),
        ("iron", {"num_q_tiles": 4, "lqp": 128, "lkp": 32, "lk": 33}),
        ("layerwise", {"lq": 768, "lk": 320, "num_heads": 5, "dk": 32}),
    ],
    ids=str,
)
def test_also_in_other_pieces(name: str, device: str, given: dict[str, int]) -> None:
    done = outcome(name, device, data=False, **{"lq": 768, **given})
    assert _as_run(done) == _as_described(done)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", MASKED)
def test_also_under_a_mask(name: str, device: str) -> None:
    done = outcome(name, device, data=False, lq=1024, causal=True)
    assert _as_run(done) == _as_described(done)


# ---- the bound


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("length", [256, 1024])
def test_nothing_is_faster_than_the_bound(name: str, device: str, length: int) -> None:
    done = gpt2(name, device, length)
    for ceiling in ("kernels", "matrix units"):
        for channels in ("all", "used"):
            for convention in ("both ways", "each way", "by level"):
                said = before(done, ceiling=ceiling, channels=channels, convention=convention)
                assert said.bound.seconds < done.run.seconds
    assert before(done).cycles >= before(done).bound.cycles * (1 - 1e-9)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", NAMES)
def test_intensities_are_those_of_the_run(name: str, device: str) -> None:
    done = gpt2(name, device, 1024)
    said = before(done)
    for level in ("ddr", "memtile", "l1"):
        assert said.intensity(level) == pytest.approx(done.run.intensity(level))  # type: ignore[arg-type]


def test_regimes_of_long_sequences() -> None:
    """With what the kernels reach as the ceiling, layer by layer is bandwidth bound on XDNA 2 and nothing else is."""
    for device in DEVICES:
        for name in NAMES:
            p = Parameters(lq=32768).of_mapping(name, device)  # type: ignore[arg-type]
            said = predict(running.mapping(name).describe(p, device), device)  # type: ignore[arg-type]
            left = {level for level in ("ddr", "memtile", "l1") if said.regime(level) == "bandwidth bound"}  # type: ignore[arg-type]
            assert left == ({"ddr"} if (name, device) == ("layerwise", "npu2") else set()), (name, device)
            assert said.limit == ("ddr" if left else "compute")


def test_regimes_under_the_matrix_units() -> None:
    """The published argument, on XDNA 2: under the peak of the matrix units the mapping with scores in MemTiles is bandwidth
    bound there, DATO and the fused one are not."""
    memtile = {}
    for name in NAMES:
        p = Parameters(lq=32768).of_mapping(name, "npu2")  # type: ignore[arg-type]
        said = predict(running.mapping(name).describe(p, "npu2"), "npu2", ceiling="matrix units")  # type: ignore[arg-type]
        memtile[name] = said.regime("memtile")
        assert said.ridge("memtile") == pytest.approx(32 * 2 * 256 / (96 * 4), rel=1e-3)  # 42.7, counted both ways
    assert memtile == {
        "layerwise": "bandwidth bound",
        "iron": "bandwidth bound",
        "dato": "compute bound",
        "fused": "compute bound",
    }


# ---- the pace


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("length", "low", "high"), [(1024, 0.93, 1.05), (4096, 0.95, 1.02)])
def test_the_pace_is_what_is_simulated(name: str, device: str, length: int, low: float, high: float) -> None:
    """From stages, tiles and streams alone: within 7 % at 1,024 tokens, within 5 % from 4,096 on."""
    done = gpt2(name, device, length)
    assert low < before(done).seconds / done.run.seconds < high


def test_all_lengths(rows: list[dict[str, Any]]) -> None:
    """The table's: no row is faster than its bound, and from 4,096 tokens on the pace is within 5 %."""
    simulated = [row for row in rows if row["kind"] == "simulated"]
    assert len(simulated) == 64
    for row in simulated:
        assert row["gflops"] < row["predicted"]["most_gflops"]
        if row["length"] >= 4096:
            assert 0.95 < row["predicted"]["ms"] / row["ms"] < 1.02


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", NAMES)
def test_short_sequences_take_up_to_twice_as_long_and_more(name: str, device: str) -> None:
    """What is not in the pace, starts and filling, is most of 256 tokens where the host keeps ahead."""
    done = gpt2(name, device, 256)
    assert (0.4 if name in ("layerwise", "dato") else 0.95) < before(done).seconds / done.run.seconds < 1.07


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("iron", {"causal": True}),
        ("layerwise", {"causal": True}),
        ("fused", {"causal": True}),
        ("fused", {"num_cascade_stages": 2}),
        ("fused", {"dk": 128}),
        ("dato", {"num_kv_heads": 4}),
    ],
    ids=str,
)
def test_the_pace_of_other_work(name: str, device: str, given: dict[str, Any]) -> None:
    done = gpt2(name, device, 4096, **given)
    assert 0.95 < before(done).seconds / done.run.seconds < 1.05


@pytest.mark.parametrize(
    ("name", "given", "low", "high"),
    [
        ("layerwise", {"lq": 1024, "num_heads": 2}, 0.65, 0.75),
        ("dato", {"lq": 1024, "num_heads": 2}, 0.88, 0.92),
        ("fused", {"lq": 1024, "num_heads": 2, "causal": True, "causal_skip": True}, 1.08, 1.12),
        ("fused", {"lq": 4096, "num_heads": 12, "num_q_tiles": 1, "lqp": 64, "causal": True, "causal_skip": True}, 1.08, 1.15),
    ],
    ids=str,
)
def test_the_pace_of_less_work_is_as_far_off_as_that_of_shorter_sequences(name: str, given: dict[str, Any], low: float, high: float) -> None:
    """FINDINGS.md says for which work the margins hold: twelve heads, in the mappings' own pieces."""
    done = outcome(name, "npu2", data=False, **given)
    assert low < before(done).seconds / done.run.seconds < high


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(("window", "low", "high"), [(None, 0.98, 1.07), (1024, 0.98, 1.07), (256, 0.85, 1.0)])
def test_the_pace_where_blocks_are_skipped(device: str, window: int | None, low: float, high: float) -> None:
    """The busiest tile of each launch, in whichever row, and the hidden keys that come by: within 15 % where a window leaves
    little to do, and some of the host's tasks are hidden that the pace counts."""
    done = gpt2("fused", device, 4096, causal=True, causal_skip=True, window=window)
    assert low < before(done).seconds / done.run.seconds < high


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", NAMES)
def test_other_clocks_and_streams(name: str, device: str) -> None:
    how = {"clock_hz": 1.4e9, "stream_bytes_per_cycle": 8}
    done = running.run(running.mapping(name), Parameters(lq=4096), device, data=False, **how)  # type: ignore[arg-type]
    said = predict(done.mapping.describe(done.parameters, device), device, **how)  # type: ignore[arg-type]
    assert said.roofline.device == done.run.device
    assert 0.93 < said.seconds / done.run.seconds < 1.05
    done = running.run(running.mapping(name), Parameters(lq=1024), device, data=False, **how)  # type: ignore[arg-type]
    assert 0.93 < report.predicted(done).seconds / done.run.seconds < 1.06


@pytest.mark.parametrize("name", NAMES)
def test_other_kernels_and_costs_are_not_predicted(name: str) -> None:
    """And the table says so: what they reach may be more than the bound."""
    halved = {kernel: ablations.scaled(model, 0.5) for kernel, model in MODELS.items()}
    p, of = Parameters(lq=1024), running.mapping(name)  # type: ignore[arg-type]
    plain = running.run(of, p, data=False, kernels=None)
    for how, words in (
        ({"kernels": halved}, "the run was given other kernels"),
        ({"costs": compare.NO_HOST}, "the run was given other costs"),
        ({"costs": compare.NO_HOST, "kernels": halved}, "the run was given other costs and kernels"),
    ):
        done = running.run(of, p, data=False, **how)  # type: ignore[arg-type]
        assert done.run.seconds < plain.run.seconds
        assert report.predicted(done).seconds == report.predicted(plain).seconds
        assert f"predicted for the calibrated kernels and costs: {words}" in report.notes(done)
    assert not any("was given" in line for line in report.notes(plain))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(
    ("name", "slowest"), [("dato", "stage softmax"), ("iron", "stage softmax"), ("fused", "stage attention, row 0")]
)
def test_what_sets_the_pace(name: str, slowest: str, device: str) -> None:
    done = gpt2(name, device, 4096)
    assert before(done).slowest == slowest
    assert running.limiting(done.run).name == slowest.removeprefix("stage ")


def test_what_sets_the_pace_of_layer_by_layer() -> None:
    """XDNA 2: DDR, in all three. XDNA 1: the streams down from and up to a column in the products, the cores in softmax."""
    assert [pace.limit for pace in before(gpt2("layerwise", "npu2", 4096)).phases] == ["DDR"] * 3
    assert [pace.limit for pace in before(gpt2("layerwise", "npu1", 4096)).phases] == [
        "stream s, memtile to ddr",
        "stage softmax",
        "stream p, ddr to memtile",
    ]


def test_balance_is_how_much_tiles_work(rows: list[dict[str, Any]]) -> None:
    """Of pipelines the mean over the busiest stage; the same work everywhere in the fused mapping."""
    seen = []
    for row in rows:
        if row["kind"] == "simulated" and row["length"] == 32768 and row["mapping"] != "layerwise":
            worked = [use["busy"] for use in row["stages"].values()]  # as many tiles each
            assert row["predicted"]["balance"] == pytest.approx(sum(worked) / len(worked), rel=0.08)
            seen.append((row["mapping"], round(row["predicted"]["balance"], 2)))
    assert seen == [("dato", 0.54), ("dato", 0.56), ("iron", 0.59), ("iron", 0.59), ("fused", 1), ("fused", 1)]

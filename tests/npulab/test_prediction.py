"""Predictions from a description: traffic, ridge points and regimes, the bound, the pace, and what is refused."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from dataclasses import replace
from typing import Any

import pytest

import npulab
from npulab import roofline
from npulab.description import Description, Phase, Stage, Stream
from npulab.prediction import predict
from npusim.costs import Costs
from npusim.devices import device
from npusim.report import Traffic

MIB = 2**20

X = Stream("x", "ddr", "memtile", 4 * MIB, channels=4)
X_ALL = Stream("x", "memtile", "l1", 4 * MIB, channels=4, receivers=4)
Y = Stream("y", "l1", "ddr", 1 * MIB, channels=4)
FAST, SLOW = Stage("fast", 8, 1000, blocks=800), Stage("slow", 8, 3000, blocks=800)


def described(*streams: Stream, stages: tuple[Stage, ...] = (FAST, SLOW), **phase: Any) -> Description:
    return Description("mine", 1e9, (Phase("all", streams or (X, X_ALL, Y), stages, **phase),))


def test_traffic_and_channels_of_streams() -> None:
    """A broadcast leaves its level once and arrives four times."""
    of = described()
    assert of.traffic == {
        "ddr": Traffic(4 * MIB, 1 * MIB),
        "memtile": Traffic(4 * MIB, 4 * MIB),
        "l1": Traffic(1 * MIB, 16 * MIB),
    }
    assert of.channels == {"ddr": (4, 4), "memtile": (4, 4), "l1": (4, 16)}
    assert of.tiles == 16


def test_phases_add_bytes_and_take_the_most_tiles() -> None:
    of = Description("two", 1e9, (*described().phases, Phase("again", (X,), (replace(FAST, tiles=4),))))
    assert of.traffic["ddr"] == Traffic(8 * MIB, 1 * MIB)
    assert of.channels["ddr"] == (4, 4) and of.tiles == 16
    assert of.flops_per_cycle_and_tile == pytest.approx(1e9 / (800 * 1000 + 800 * 3000 + 800 * 1000))


def test_intensities_ridges_and_regimes() -> None:
    """npu1 at 1 GHz: MemTile DMA 2 x 24 channels x 4 B; DDR 56.2 GB/s; kernels 1e9 FLOP in 3.2e6 cycles on each of 16 tiles."""
    said = predict(described(), "npu1")
    ceiling = 16 * 1e9 / 3.2e6
    assert said.intensity("ddr") == pytest.approx(1e9 / (5 * MIB))
    assert said.ridge("ddr") == pytest.approx(ceiling / 56.2)
    assert said.ridge("memtile") == pytest.approx(ceiling / 192)
    assert said.ridge("l1") == pytest.approx(ceiling / (16 * 4 * 4))
    assert [said.regime(level) for level in ("ddr", "memtile", "l1")] == ["compute bound"] * 3
    assert said.limit == "compute"
    assert said.most_flops_per_second == pytest.approx(ceiling * 1e9)


def test_with_the_peak_of_the_matrix_units_the_same_mapping_is_left_of_the_ridge() -> None:
    said = predict(described(), "npu1", ceiling="matrix units")
    assert said.roofline.ceiling == 16 * 2 * 128
    assert said.ridge("ddr") == pytest.approx(4096 / 56.2)
    assert said.intensity("ddr") > said.ridge("ddr")  # type: ignore[operator]
    lean = predict(replace(described(), flops=1e8), "npu1", ceiling="matrix units")
    assert lean.regime("ddr") == "bandwidth bound" and lean.limit == "ddr"
    assert lean.most_flops_per_second == pytest.approx(1e8 / (5 * MIB) * 56.2e9)


def test_the_bound_is_the_roofline_s() -> None:
    of = described()
    said = predict(of, "npu2")
    over = roofline.roofline("npu2", tiles=16, flops_per_cycle_and_tile=1e9 / 3.2e6)
    assert said.bound.cycles == pytest.approx(roofline.predict(1e9, of.traffic, over).cycles)


def test_channels_in_use_move_the_ridge() -> None:
    all_of_them, used = predict(described(), "npu2"), predict(described(), "npu2", channels="used")
    assert all_of_them.ridge("memtile") * 2 * 48 * 4 == pytest.approx(used.ridge("memtile") * 8 * 4)
    each_way = predict(described(), "npu2", channels="used", convention="each way")
    assert each_way.ridge("memtile") == pytest.approx(2 * used.ridge("memtile"))


def test_the_slowest_stage_sets_the_pace() -> None:
    said = predict(described(), "npu1")
    (pace,) = said.phases
    assert (pace.limit, pace.steady, pace.cycles) == ("stage slow", 300_000, 300_000)
    assert said.slowest == "stage slow"
    assert said.seconds == pytest.approx(300e-6)
    assert said.balance == pytest.approx((800 * 1000 + 800 * 3000) / (16 * 300_000))
    assert said.tiles_in_use == 1


def test_an_uneven_share_counts_for_the_busiest_tile() -> None:
    uneven = replace(SLOW, most=200)
    said = predict(described(stages=(FAST, uneven)), "npu1")
    assert said.cycles == 600_000
    assert said.roofline.ceiling == predict(described(), "npu1").roofline.ceiling, "the work is the same"


def test_a_stream_may_set_the_pace() -> None:
    """The busiest channel at 4 B a cycle, or at 8."""
    crowded = replace(X, busiest=2 * MIB)
    said = predict(described(crowded, X_ALL, Y), "npu1")
    assert said.slowest == "stream x, ddr to memtile" and said.cycles == 2 * MIB / 4
    wide = predict(described(crowded, X_ALL, Y), "npu1", stream_bytes_per_cycle=8)
    assert wide.slowest == "stage slow"


@pytest.mark.parametrize(("name", "read", "total"), [("npu1", 28.1e9, 56.2e9), ("npu2", None, 66.6e9)])
def test_ddr_may_set_the_pace(name: str, read: float | None, total: float) -> None:
    """Reads alone at their cap where there is one (XDNA 1), reads and writes together at theirs."""
    idle = (replace(FAST, cycles=1),)
    many = Stream("x", "ddr", "memtile", 64 * MIB, channels=8), Stream("y", "memtile", "ddr", 16 * MIB, channels=8)
    said = predict(described(*many, stages=idle), name, clock_hz=100e9)  # no stream is in the way
    assert said.slowest == "DDR"
    assert said.seconds == pytest.approx(max(80 * MIB / total, 64 * MIB / read if read else 0))


def test_phases_take_their_time_one_after_the_other() -> None:
    first, second = described().phases[0], Phase("next", (X,), (FAST,))
    said = predict(Description("two", 1e9, (first, second)), "npu1")
    assert [pace.limit for pace in said.phases] == ["stage slow", "stream x, ddr to memtile"]
    assert said.cycles == 300_000 + MIB / 4
    assert said.slowest == "stage slow"


def test_what_nothing_overlaps_with_comes_on_top() -> None:
    said = predict(described(alone={"merging": 500.0}, tasks=10), "npu1", clock_hz=2e9)
    push = Costs().task_push.value * 1e-9 * 2e9
    assert said.phases[0].alone == {"merging": 500.0, "the host's tasks": pytest.approx(10 * push)}
    assert said.cycles == pytest.approx(300_000 + 500 + 10 * push)
    assert said.bound.cycles < said.phases[0].steady


def test_work_of_no_time_and_levels_where_nothing_moves() -> None:
    nothing = predict(Description("none", 0, (Phase("all", (), ()),)), "npu2", ceiling="matrix units")
    assert (nothing.cycles, nothing.flops_per_second, nothing.most_flops_per_second, nothing.balance) == (0, 0, 0, 0)
    assert nothing.intensity("ddr") is None and nothing.regime("ddr") == "nothing moves"
    assert "-" in str(nothing)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Stream("x", "l2", "l1", 1), "stream 'x': unknown level 'l2'; known: ddr, memtile, l1"),
        (lambda: Stream("x", "ddr", "l1", -1), "bytes >= 0"),
        (lambda: Stream("x", "ddr", "l1", 1, channels=0), "channels >= 1"),
        (lambda: Stream("x", "ddr", "l1", 100, channels=4, busiest=20), "its busiest channel sends 25 to 100 bytes, not 20"),
        (lambda: Stream("x", "ddr", "l1", 100, channels=4, busiest=101), "25 to 100 bytes, not 101"),
        (lambda: Stage("s", 0, 1), "stage 's': tiles >= 1"),
        (lambda: Stage("s", 4, 1, blocks=8, most=1), "its busiest tile does 2 blocks or more, not 1"),
        (lambda: Description("d", 1, ()), "d: a description needs at least one phase"),
        (lambda: predict(described(), "npu1", ceiling="roof"), "ceiling must be 'kernels' or 'matrix units', got 'roof'"),  # type: ignore[arg-type]
        (lambda: predict(described(), "npu1", channels="few"), "channels must be 'all' or 'used', got 'few'"),  # type: ignore[arg-type]
        (lambda: predict(described(), "npu1", convention="both"), "convention must be"),  # type: ignore[arg-type]
        (lambda: predict(described(), "npu3"), "npu3"),
        (lambda: predict(described(stages=(replace(FAST, tiles=17),)), "npu1"), "mine uses 17 compute tiles; npu1 has 16"),
        (
            lambda: predict(described(replace(X, channels=9)), "npu1"),
            "mine has 9 DMA channels that read from ddr; npu1 has 8",
        ),
        (
            lambda: predict(described(replace(X, dest="l1", channels=8, receivers=5)), "npu1"),
            "mine has 40 DMA channels that write to l1; npu1 has 32",
        ),
        (lambda: predict(described(stages=()), "npu1"), "mine has no stage with cycles: predict with ceiling='matrix units'"),
    ],
)
def test_what_cannot_be_is_said(make: Any, words: str) -> None:
    with pytest.raises(ValueError) as caught:
        make()
    assert words in str(caught.value)


def test_it_shows_all_of_it() -> None:
    said = predict(described(alone={"merging": 500.0}, tasks=10), "npu1")
    text = str(said)
    for words in (
        "mine on npu1: predicted from its description",
        "DDR (shim DMA)",
        "FLOP/B, ridge point",
        "compute bound",
        "at most 5 TFLOP/s, limited by the cores (ceiling: the stages' own cycles, on tiles that never wait)",
        "pace of all",
        "300,000 cycles, set by stage slow",
        "500 cycles, merging",
        "the host's tasks",
        "16 of 16 tiles, working 67% of the time",
    ):
        assert words in text, words
    table = ET.fromstring(said._repr_html_())
    cells = ["".join(cell.itertext()) for cell in table.iter() if cell.tag in ("th", "td")]
    assert cells == [cell for row in said.rows() for cell in row]


def test_from_npulab() -> None:
    assert npulab.predict is predict and npulab.Description is Description
    assert {"predict", "Description", "Phase", "Stage", "Stream"} <= set(npulab.__all__)
    assert predict(described(), device("npu1")).seconds == predict(described(), "npu1").seconds

"""Rooflines: bandwidths, ridge points, predictions, and their picture."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import pytest

from npulab import roofline as rl
from npulab.record import Run
from npulab.roofplot import Point, adopt, published
from npusim.devices import device
from npusim.report import LEVELS, Traffic
from tests.npulab import machines
from tests.npulab.draw.pictures import tree

GB = 1e9


@pytest.mark.parametrize(
    ("name", "clock", "width", "shim", "memtile", "l1"),
    [
        ("npu1", 1.0e9, 4, 32.0, 96.0, 128.0),
        ("npu1", 1.8e9, 4, 57.6, 172.8, 230.4),
        ("npu2", 1.8e9, 4, 115.2, 345.6, 460.8),
        ("npu2", 1.8e9, 8, 230.4, 691.2, 921.6),
    ],
)
def test_bandwidths_of_a_direction(name: str, clock: float, width: int, shim: float, memtile: float, l1: float) -> None:
    """GB/s as in the facts: columns x 2, columns x 6 and tiles x 2 channels, times stream width and clock."""
    of = device(name).with_options(clock_hz=clock, stream_bytes_per_cycle=width)
    one = rl.roofline(of, convention="each way", measured_ddr=False)
    both = rl.roofline(of, measured_ddr=False)
    for level, want in zip(LEVELS, (shim, memtile, l1)):
        assert one.bandwidth[level].of("each way") * clock / GB == pytest.approx(want)
        assert both.bandwidth[level].of("both ways") * clock / GB == pytest.approx(2 * want)


@pytest.mark.parametrize(("name", "total"), [("npu1", 56.2), ("npu2", 66.6)])
def test_ddr_is_capped_by_what_was_measured(name: str, total: float) -> None:
    roof = rl.roofline(device(name).with_options(clock_hz=1.8e9))
    assert roof.bandwidth["ddr"].total * 1.8e9 / GB == pytest.approx(total)


def test_ceilings_and_ridge_points() -> None:
    """npu2 bf16: 32 tiles x 256 MAC; both ways the MemTiles' ridge is at 42.7 FLOP/B, with bfp16 at 85.3."""
    roof = rl.roofline("npu2", "bf16")
    assert roof.ceiling == 32 * 256 * 2
    assert roof.ceiling * 1.8e9 == pytest.approx(29.5e12, rel=2e-3)
    assert roof.ridge("memtile") == pytest.approx(42.7, rel=2e-3)
    assert rl.roofline("npu2", "bfp16").ridge("memtile") == pytest.approx(85.3, rel=1e-3)
    assert rl.roofline("npu1", "bf16").ridge("memtile") == pytest.approx(21.3, rel=2e-3)
    assert rl.roofline("npu1", "bf16", convention="each way").ridge("memtile") == pytest.approx(42.7, rel=2e-3)


def test_the_clock_cancels_on_the_chip_and_not_at_ddr() -> None:
    slow, fast = (rl.roofline(device("npu1").with_options(clock_hz=hz)) for hz in (1e9, 1.8e9))
    assert slow.ridge("memtile") == fast.ridge("memtile") and slow.ridge("l1") == fast.ridge("l1")
    assert slow.ridge("ddr") != fast.ridge("ddr")


def test_attainable_is_the_lower_of_slope_and_ceiling() -> None:
    roof = rl.roofline("npu2")
    for level in LEVELS:
        ridge = roof.ridge(level)
        assert roof.attainable(level, ridge / 2) == pytest.approx(roof.ceiling / 2)
        assert roof.attainable(level, ridge * 2) == roof.ceiling


def test_a_part_of_the_device() -> None:
    roof = rl.roofline("npu2", tiles=1, channels={"ddr": (2, 1)}, flops_per_cycle_and_tile=32)
    assert roof.ceiling == 32 and roof.bandwidth["ddr"] == (8, 4, 12)
    assert roof.bandwidth["l1"] == (8, 8, 16)


def test_the_roofline_of_what_a_design_uses() -> None:
    roof = rl.used_by(machines.saxpy_report(), flops_per_cycle_and_tile=32)
    assert roof.tiles == 1 and roof.bandwidth["ddr"].total == 12 and roof.bandwidth["l1"] == (4, 8, 12)
    assert roof.bandwidth["memtile"].total == 192  # not used: as much as there is


def test_refusals() -> None:
    with pytest.raises(ValueError, match="bfp16"):
        rl.roofline("npu1", "bfp16")
    with pytest.raises(ValueError, match="convention"):
        rl.roofline("npu1", convention="sideways")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="unknown level l2"):
        rl.predict(1, {"l2": 4}, "npu1")  # type: ignore[dict-item]
    with pytest.raises(ValueError, match=r"\(read, written\)"):
        rl.predict(1, {"ddr": 4}, "npu1", convention="each way")


SAXPY = {"ddr": (65536, 32768), "l1": Traffic(32768, 65536)}


def test_what_limits_is_what_takes_longest() -> None:
    roof = rl.used_by(machines.saxpy_report(), flops_per_cycle_and_tile=32)
    p = rl.predict(32768, SAXPY, roof)
    assert dict(p.bounds) == {"compute": 1024, "ddr": 8192, "l1": 8192}
    assert p.limit == "ddr" and p.cycles == 8192 and p.seconds == pytest.approx(8.192e-6)
    assert p.flops_per_cycle == 4 and p.intensity("ddr") == pytest.approx(1 / 3) and p.intensity("memtile") is None
    assert rl.predict(1e9, SAXPY, roof).limit == "compute"


def test_each_way_the_busier_direction_counts() -> None:
    roof = rl.used_by(machines.saxpy_report(), flops_per_cycle_and_tile=32, convention="each way")
    p = rl.predict(32768, {"ddr": (65536, 65536)}, roof)
    assert p.bounds["ddr"] == 65536 / 4 and p.bytes["ddr"] == 65536  # one channel out, two in


def test_the_convention_can_be_chosen_at_the_prediction() -> None:
    both = rl.predict(1, {"ddr": (10, 30)}, "npu1")
    each = rl.predict(1, {"ddr": (10, 30)}, "npu1", convention="each way")
    assert (both.bytes["ddr"], each.bytes["ddr"]) == (40, 30)
    assert each.roofline.convention == "each way" and "each way" in str(each)


def test_by_level_each_level_is_counted_as_it_is_wired() -> None:
    """Reading and writing share DDR; on the chip each direction has channels of its own."""
    roof = rl.roofline("npu1", convention="by level")
    assert roof.ridge("ddr") == rl.roofline("npu1").ridge("ddr")
    assert roof.ridge("l1") == rl.roofline("npu1", convention="each way").ridge("l1")
    p = rl.predict(1, {"ddr": (10, 30), "l1": (10, 30)}, roof)
    assert (p.bytes["ddr"], p.bytes["l1"]) == (40, 30)
    assert p.bounds["ddr"] == max(40 / roof.bandwidth["ddr"].total, 30 / roof.bandwidth["ddr"].written)
    assert rl.predict(1, {"ddr": (0, 40)}, roof).cycles == pytest.approx(40 / 28.1), "one direction alone has half of DDR"
    assert "both ways at DDR, each way on the chip" in str(roof) and "both ways at DDR" in str(p)


def test_a_ceiling_of_the_callers_has_the_callers_source() -> None:
    roof = rl.roofline("npu1", flops_per_cycle_and_tile=100, ceiling_source="counted by hand")
    assert roof.ceiling == 1600 and "counted by hand" in str(roof)


def test_a_prediction_is_a_lower_bound_and_says_so() -> None:
    report = machines.saxpy_report()
    run = Run.of_report(report, flops=32768, name="saxpy")
    p = rl.predict(32768, dict(report.traffic), rl.used_by(report, flops_per_cycle_and_tile=32))
    words = p.compare(run)
    assert (
        "predicted at least 8.192 µs (limited by DDR (shim DMA))" in words and "simulated 18.13 µs: 2.21 times" in words
    )
    assert "<- the limit" in str(p) and "predicted" in p._repr_html_()


def test_rooflines_name_their_convention_and_their_sources() -> None:
    words = str(rl.roofline("npu2"))
    assert "counted both ways" in words and "confidence M" in words and "ridge point" in words


# ---- the picture


def picture(**how: object):
    report = machines.saxpy_report()
    roof = rl.used_by(report, flops_per_cycle_and_tile=32)
    prediction = rl.predict(32768, dict(report.traffic), roof, name="saxpy bound")
    paper = published("someone, 2026", 2e9, {"ddr": 0.5}, 1e9)
    return rl.plot(prediction, Run.of_report(report, flops=32768, name="saxpy"), paper, **how)  # type: ignore[arg-type]


def words(shown: object) -> list[str]:
    return ["".join(e.itertext()) for e in tree(shown).iter("{http://www.w3.org/2000/svg}text")]  # type: ignore[arg-type]


def test_the_legend_says_of_each_point_how_it_was_come_by() -> None:
    text = " | ".join(words(picture()))
    assert "saxpy bound: predicted 4 FLOP/cycle" in text
    assert "saxpy: simulated 1.807 FLOP/cycle" in text
    assert "someone, 2026: published 2 FLOP/cycle" in text


def test_roofs_ridges_ceiling_and_convention_are_in_the_picture() -> None:
    text = " | ".join(words(picture()))
    assert "DDR (shim DMA): 12 B/cycle, ridge 2.67 FLOP/B" in text
    assert "MemTile DMA: 192 B/cycle" in text and "compute-tile DMA: 12 B/cycle" in text
    assert "compute ceiling 32 FLOP/cycle (bf16, 1 tile)" in text
    assert "bytes counted both ways" in text


def test_the_unit_can_be_seconds() -> None:
    text = " | ".join(words(picture(unit="second")))
    assert "compute ceiling 32 GFLOP/s" in text and "DDR (shim DMA): 12 GB/s" in text


def test_the_alternative_gives_all_numbers() -> None:
    alt = picture().alt
    assert "saxpy, simulated: 1.807 FLOP/cycle; 0.333 FLOP/B at DDR (shim DMA)" in alt
    assert rl.alt(picture()) == alt


def test_colours_are_the_pages_and_nothing_leaks() -> None:
    svg = picture().svg
    assert "currentColor" in svg and "#010203" not in svg
    assert "var(--npu-blue,#1f6fb4)" in svg and svg.count("<style") == 1
    body = svg.replace("var(--npu-blue,#1f6fb4)", "")
    assert ": #1f6fb4" not in body
    assert "*{" not in svg


def test_two_plots_share_no_id() -> None:
    ids = [{e.get("id") for e in ET.fromstring(picture().svg).iter() if e.get("id")} for _ in range(2)]
    assert ids[0].isdisjoint(ids[1])


def test_references_point_into_the_picture() -> None:
    root = ET.fromstring(picture().svg)
    ids = {e.get("id") for e in root.iter()}
    for e in root.iter():
        for name, value in e.attrib.items():
            if name.endswith("href"):
                assert value[1:] in ids
            if "url(#" in value:
                assert value.split("url(#")[1].split(")")[0] in ids


def test_the_figure_is_matplotlibs() -> None:
    assert picture().figure.axes[0].get_xscale() == "log"


def test_a_measured_run_is_placed_by_its_seconds() -> None:
    traffic = {"ddr": Traffic(50, 50), "memtile": Traffic(), "l1": Traffic()}
    run = Run("measured", device("npu1"), 1e-6, flops=2000, traffic=traffic, name="chip")  # type: ignore[arg-type]
    text = " | ".join(words(rl.plot(run, roof=rl.roofline("npu1"))))
    assert "chip: measured 2 FLOP/cycle" in text


def test_what_cannot_be_plotted_is_refused() -> None:
    run = Run.of_report(machines.saxpy_report())
    with pytest.raises(ValueError, match="no flops"):
        rl.plot(run, roof=rl.roofline("npu1"))
    with pytest.raises(ValueError, match="no roofline"):
        rl.plot(run)
    with pytest.raises(TypeError, match="int"):
        rl.plot(3, roof=rl.roofline("npu1"))


def test_points_may_be_made_by_hand() -> None:
    shown = rl.plot(Point("guess", "predicted", 10.0, {"l1": 4.0}), roof=rl.roofline("npu1"))
    assert "guess, predicted: 10 FLOP/cycle; 4 FLOP/B at compute-tile DMA" in shown.alt


def test_adopt_keeps_texts_and_drops_the_rest() -> None:
    svg = '<?xml?><svg id="a"><metadata>m</metadata><defs><style type="text/css">*{}</style></defs><text style="font: 9px X; fill: #010203" id="t">1</text></svg>'
    text = adopt(svg)
    assert "metadata" not in text and "<style" not in text and 'id="ID_t"' in text and ">1</text>" in text

"""The panels: each level's own roof, and the points on it."""

from __future__ import annotations

from typing import Any

import pytest

from npulab import roofline as rl
from npulab.record import Run
from npulab.roofpanels import levels
from npulab.roofplot import published
from tests.npulab import machines
from tests.npulab.draw.pictures import tree


def points() -> tuple[Any, Any]:
    report = machines.saxpy_report()
    roof = rl.used_by(report, flops_per_cycle_and_tile=32, convention="by level")
    prediction = rl.predict(32768, dict(report.traffic), roof, name="saxpy")
    return prediction, Run.of_report(report, flops=32768, name="saxpy")


def words(shown: Any) -> list[str]:
    return ["".join(e.itertext()) for e in tree(shown).iter("{http://www.w3.org/2000/svg}text")]


def test_each_level_says_its_bandwidth_and_how_bytes_are_counted() -> None:
    alt = levels(*points()).alt
    assert "DDR (shim DMA), 12 B/cycle counted both ways, ridge point 2.67 FLOP/B: saxpy predicted 4 at 0.333" in alt
    assert "compute-tile DMA, 8 B/cycle counted each way, ridge point 4 FLOP/B: saxpy predicted 4 at 0.5" in alt
    assert "MemTile DMA, 96 B/cycle counted each way, ridge point 0.333 FLOP/B: no points" in alt


def test_a_name_stands_beside_each_run_once_a_level() -> None:
    assert words(levels(*points())).count("saxpy") == 2  # not at the MemTile, and not again beside the prediction


def test_a_prediction_without_a_run_bears_its_name() -> None:
    assert words(levels(points()[0])).count("saxpy") == 2


def test_the_legend_tells_the_kinds_and_the_further_ceilings() -> None:
    paper = published("paper", 2e9, {"ddr": 0.5}, 1e9)
    text = words(levels(*points(), paper, ceilings={"matrix peak": 512}))
    assert {"predicted", "simulated", "published", "matrix peak 512"} <= set(text)
    assert any("ceiling 32 FLOP/cycle" in t for t in text)


def test_names_of_points_at_one_place_do_not_lie_on_each_other() -> None:
    prediction, run = points()
    figure = levels(prediction, run.having(name="one"), run.having(name="two"), run.having(name="three")).figure
    for axes in figure.axes:
        boxes = [t.get_window_extent() for t in axes.texts if t.get_text() in ("one", "two", "three")]
        assert not any(a.overlaps(b) for i, a in enumerate(boxes) for b in boxes[:i])


def test_runs_that_are_no_steps_of_one_way_are_not_joined() -> None:
    _, run = points()
    runs = run, run.having(name="other")

    def joined(shown: Any) -> int:
        return sum(line.get_linestyle() == ":" for axes in shown.figure.axes for line in axes.lines)

    roof = points()[0].roofline
    assert joined(levels(*runs, roof=roof)) == 3 and joined(levels(*runs, roof=roof, joined=False)) == 0


def test_unit_of_seconds() -> None:
    assert "GFLOP/s" in words(levels(*points(), unit="second"))


def test_without_a_roofline_nothing_can_be_drawn() -> None:
    with pytest.raises(ValueError, match="no roofline"):
        levels(points()[1])


def test_the_roof_is_that_of_the_direction_that_limits() -> None:
    """Two channels bring data to the tile and one takes it away; what mostly leaves has the smaller roof."""
    roof = rl.used_by(machines.saxpy_report(), flops_per_cycle_and_tile=32, convention="by level")
    comes, leaves = (rl.predict(1000, {"l1": moved}, roof, name="p") for moved in ((100, 2000), (2000, 100)))
    assert "compute-tile DMA, 8 B/cycle" in levels(comes).alt
    assert "compute-tile DMA, 4 B/cycle" in levels(leaves).alt

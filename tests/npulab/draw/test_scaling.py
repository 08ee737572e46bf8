"""What more tiles bring."""

from __future__ import annotations

import pytest

from npulab import draw, roofline
from npulab.record import Run
from npusim.devices import device
from tests.npulab.draw.pictures import tree

NPU2 = device("npu2")
RUNS = {"one column": {n: Run("simulated", NPU2, s) for n, s in ((1, 8e-6), (4, 4e-6), (2, 5e-6))}}
BOUNDS = {"one column": {n: roofline.predict(1e9, {"ddr": 60_000}, NPU2, tiles=n) for n in (1, 2, 4)}}


def test_speed_up_over_a_run() -> None:
    picture = draw.scaling(RUNS, BOUNDS, base=RUNS["one column"][1], title="GELU")
    assert picture.title == "GELU, simulated"
    assert "times as fast as one over compute tiles. one column, simulated: 1 at 1, 1.6 at 2, 2 at 4; predicted at most" in picture.alt
    points, bound, proportional = picture.figure.axes[0].lines
    assert list(points.get_xdata()) == [1, 2, 4] and list(points.get_ydata()) == pytest.approx([1, 1.6, 2])
    assert list(bound.get_ydata()) == pytest.approx([8e-6 / p.seconds for p in BOUNDS["one column"].values()])
    assert list(proportional.get_ydata()) == [0, 4]
    tree(picture)  # well-formed


def test_any_value_beside_published_ones() -> None:
    picture = draw.scaling(
        RUNS, published={"someone 2026": {1: 7.0, 8: 50.0}}, value=lambda run: 80e-6 / run.seconds, x="columns", y="GB/s"
    )
    assert picture.title == "Scaling, published and simulated"
    assert "GB/s over columns. one column, simulated: 10 at 1, 16 at 2, 20 at 4. someone 2026, published: 7 at 1, 50 at 8." in picture.alt
    words = [t.get_text() for t in picture.figure.legends[0].get_texts()]
    assert words == ["one column: simulated", "someone 2026: published"]
    assert [t.get_text() for t in picture.figure.axes[0].get_xticklabels()] == ["1", "2", "4", "8"]


def test_nothing_to_draw() -> None:
    with pytest.raises(ValueError, match="either base"):
        draw.scaling(RUNS)
    with pytest.raises(ValueError, match="'four' has no runs"):
        draw.scaling({"four": {}}, base=RUNS["one column"][1])

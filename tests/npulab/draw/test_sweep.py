"""Time over size."""

from __future__ import annotations

import pytest

from npulab import draw, roofline
from npulab.record import Run
from npusim.devices import device
from tests.npulab.draw.pictures import tree

SIZES = [1024, 4096, 1048576]
NPU1, NPU2 = device("npu1"), device("npu2")
RUNS = {
    "npu1": [Run("simulated", NPU1, seconds) for seconds in (5e-6, 6e-6, 500e-6)],
    "npu2": [Run("measured", NPU2, seconds) for seconds in (4e-6, 5e-6, 300e-6)],
}
BOUNDS = {"npu1": [roofline.predict(2.0 * n, {"ddr": 6 * n}, NPU1) for n in SIZES]}


def test_says_what_it_shows() -> None:
    picture = draw.sweep(SIZES, RUNS, BOUNDS, title="SAXPY")
    assert picture.title == "SAXPY, measured and simulated"
    assert "from 1,024 to 1,048,576" in picture.alt
    ratio = 5e-6 / BOUNDS["npu1"][0].seconds
    assert f"npu1, simulated: 5 µs to 500 µs, {ratio:.3g} times the predicted least time at the left" in picture.alt
    assert "npu2, measured: 4 µs to 300 µs." in picture.alt


def test_legend_and_axes() -> None:
    picture = draw.sweep(SIZES, RUNS, BOUNDS)
    words = [t.get_text() for t in picture.figure.legends[0].get_texts()]
    assert words == ["npu1: simulated", "npu1: predicted from the roofline", "npu2: measured"]
    axes = picture.figure.axes[0]
    assert [t.get_text() for t in axes.get_xticklabels()] == ["1,024", "4,096", "1,048,576"]
    assert list(axes.lines[0].get_ydata()) == pytest.approx([5, 6, 500])
    assert (axes.get_xscale(), axes.get_yscale()) == ("log", "log")


def test_takes_the_colours_of_the_page() -> None:
    picture = draw.sweep(SIZES, RUNS)
    assert "#010203" not in picture.svg and "currentColor" in picture.svg
    tree(picture)  # well-formed


@pytest.mark.parametrize("runs", [{"npu1": RUNS["npu1"][:2]}, {"npu1": []}])
def test_one_run_a_size(runs: dict[str, list[Run]]) -> None:
    with pytest.raises(ValueError, match=r"'npu1' has . entries for 3 sizes"):
        draw.sweep(SIZES, runs)
    with pytest.raises(ValueError, match=r"'npu1' has . entries for 3 sizes"):
        draw.sweep(SIZES, RUNS, {"npu1": BOUNDS["npu1"][:1]})

"""The plain chart: what it says, and that it is legible."""

from __future__ import annotations

from typing import Any

import pytest

from npulab import draw
from tests.npulab.draw.pictures import tree

SERIES = {"exact": ([1, 10, 100], [1.0, 0.5, 0.25]), "rounded": ([1, 10, 100], [1.0, 2.0, 0.125])}


def words(shown: Any) -> list[str]:
    return ["".join(e.itertext()) for e in tree(shown).iter("{http://www.w3.org/2000/svg}text")]


def test_title_axes_and_names_are_in_the_picture() -> None:
    text = words(draw.chart(SERIES, x="length (tokens)", y="error", title="Errors, simulated", logx=True, ticks=[1, 10, 100]))
    assert {"Errors, simulated", "length (tokens)", "error", "exact", "rounded", "100"} <= set(text)


def test_the_alternative_gives_ends_and_extremes() -> None:
    alt = draw.chart(SERIES, x="length", y="error", title="Errors", logx=True, logy=True).alt
    assert alt.startswith("error over length, both axes logarithmic.")
    assert "exact: 1 at 1, 0.25 at 100." in alt
    assert "rounded: 1 at 1, 0.125 at 100; highest 2 at 10." in alt


def test_series_differ_in_more_than_colour() -> None:
    many = {f"s{i}": ([0, 1], [i, i + 1]) for i in range(7)}
    lines = draw.chart(many, x="x", y="y", title="t").figure.axes[0].lines
    looks = {(line.get_marker(), str(line.get_linestyle()), line.get_dash_capstyle()) for line in lines}
    assert len({look[0] for look in looks}) == 7


def test_colours_follow_the_page() -> None:
    svg = draw.chart(SERIES, x="x", y="y", title="t", markers=False).svg
    assert "currentColor" in svg and "var(--npu-blue,#1f6fb4)" in svg and "#010203" not in svg


@pytest.mark.parametrize("series", [([1, 2], [1.0]), ([], [])])
def test_a_series_must_have_a_value_for_each_place(series: Any) -> None:
    with pytest.raises(ValueError, match="'odd' has"):
        draw.chart({"odd": series}, x="x", y="y", title="t")


def test_published_values_are_stars_outlined_like_their_series() -> None:
    shown = draw.chart(SERIES, x="length", y="error", title="Errors", published={"rounded": ([10, 100], [1.5, 0.25])})
    assert "rounded, published" in words(shown)
    series, stars = shown.figure.axes[0].lines[1:]
    assert stars.get_marker() == "*" and stars.get_linestyle() == "None"
    assert stars.get_markeredgecolor() == series.get_color() != stars.get_markerfacecolor()
    assert shown.alt.endswith("rounded, published: 1.5 at 10, 0.25 at 100.")
    with pytest.raises(ValueError, match="'paper' has 1 x and 0 y values"):
        draw.chart(SERIES, x="x", y="y", title="t", published={"paper": ([1], [])})


def test_a_published_range_is_a_band_and_no_points() -> None:
    band = {"a review": ([1, 10, 100], [0.5, 0.5, 0.5], [0.75, 0.75, 0.75])}
    shown = draw.chart(SERIES, x="length", y="error", title="Errors", logx=True, published_ranges=band)
    assert "a review, published" in words(shown)
    axes = shown.figure.axes[0]
    assert len(axes.lines) == len(SERIES), "no further line and no star"
    (filled,) = axes.collections
    (path,) = filled.get_paths()
    assert {tuple(map(float, corner)) for corner in path.vertices} == {(x, y) for x in (1, 10, 100) for y in (0.5, 0.75)}
    assert shown.alt.endswith("a review, published: 0.5 to 0.75 from 1 to 100.")


def test_a_range_that_varies_is_told_at_each_place() -> None:
    band = {"a review": ([1, 100], [0.5, 0.25], [0.75, 0.5])}
    alt = draw.chart(SERIES, x="length", y="error", title="Errors", published_ranges=band).alt
    assert alt.endswith("a review, published: 0.5 to 0.75 at 1, 0.25 to 0.5 at 100.")


@pytest.mark.parametrize(
    ("band", "words"),
    [
        (([1, 2], [0.5], [1, 1]), "'odd' has 2 x and 1 y"),
        (([1, 2], [0.5, 0.5], [1]), "'odd' has 2 x and 1 y"),
        (([], [], []), "'odd' has 0 x"),
        (([1, 2], [0.5, 0.5], [1, 0.25]), "'odd': its least value is more"),
    ],
)
def test_a_range_has_two_edges(band: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        draw.chart(SERIES, x="x", y="y", title="t", published_ranges={"odd": band})

"""Bars: lengths in proportion, words that stay apart."""

from __future__ import annotations

import pytest

from npulab import draw
from tests.npulab.draw.pictures import collisions, outside, texts, tree

VALUES = {"as it is": 277.0, "with equal stages": 184.89, "and more tiles": 92.0}
SVG = "{http://www.w3.org/2000/svg}"


def test_lengths_are_in_proportion_and_start_at_zero() -> None:
    shown = draw.bars(VALUES, unit="ms", title="Time, simulated")
    rects = list(tree(shown).iter(f"{SVG}rect"))
    widths = [float(e.get("width", 0)) for e in rects]
    assert len({e.get("x") for e in rects}) == 1
    assert [w / widths[0] for w in widths] == pytest.approx([v / 277 for v in VALUES.values()], rel=0.01)
    assert collisions(shown) == [] and outside(shown) == []


def test_names_values_and_what_is_said_of_them() -> None:
    shown = draw.bars(VALUES, unit="ms", title="Time, simulated", marked={"and more tiles": "computed"})
    assert {"Time, simulated", "as it is", "277 ms", "185 ms", "92 ms, computed"} <= set(texts(shown))
    assert shown.alt == "as it is: 277 ms; with equal stages: 185 ms; and more tiles: 92 ms, computed."
    hollow = [e for e in tree(shown).iter(f"{SVG}rect") if e.get("fill") == "none"]
    assert len(hollow) == 1


@pytest.mark.parametrize("values", [{}, {"a": -1.0}])
def test_what_cannot_be_drawn(values: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="bars need values"):
        draw.bars(values, unit="ms", title="t")


def test_a_mark_needs_a_bar() -> None:
    with pytest.raises(ValueError, match="'b' is marked"):
        draw.bars({"a": 1.0}, unit="ms", title="t", marked={"b": "computed"})

"""The picture of errors: squares where they belong, full or empty, and the same in words."""

from __future__ import annotations

import re

import pytest

from npulab.draw import Deviation, errors

POINTS = [Deviation("first", 0.02), Deviation("second", -0.31), Deviation("third", 0.0, fitted=True)]


def squares(svg: str) -> list[tuple[float, bool]]:
    """Left edge of each square, and whether it is empty."""
    found = re.findall(r'<rect class="([^"]*)" x="([\d.]+)"[^>]*?( fill="none")?/>', svg)
    return [(float(x), bool(empty)) for _, x, empty in found]


def test_squares_stand_in_the_order_of_their_errors() -> None:
    (first, _), (second, _), (third, empty) = squares(errors(POINTS).svg)
    assert second < third < first
    assert empty
    assert (third - second) / (first - third) == pytest.approx(31 / 2, rel=0.01)


def test_words_leave_out_what_was_put_in() -> None:
    assert errors(POINTS).alt == (
        "1 of 2 figures that test the model are within ten per cent. The farthest is second, -31 per cent."
    )


def test_nothing_to_draw() -> None:
    with pytest.raises(ValueError, match="nothing"):
        errors([])

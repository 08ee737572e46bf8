"""Where herds and segment instances lie, as mlir-air places them."""

from __future__ import annotations

import pytest

from npusim.air.layout import layout
from npusim.air.project import Visit
from npusim.devices import DEVICES
from npusim.errors import CapacityError
from npusim.ir import Op


def places(device, *herds, instances=((0, ()),), attrs=None):
    """(name, instance) -> first tile, for herds (name, columns, rows) in every instance."""
    op = Op("air.herd", attrs=attrs or {})
    visits = [Visit(op, s, i, name, (c, r)) for s, i in instances for name, c, r in herds]
    parts = layout(DEVICES[device], instances, visits)
    return {(herd.name, herd.instance): tuple(herd.at) for part in parts for herd in part.herds}


def test_the_largest_first_row_by_row():
    assert places("npu1", ("small", 1, 1), ("large", 2, 4)) == {("large", ()): (0, 2), ("small", ()): (2, 2)}
    assert places("npu1", ("a", 4, 2), ("b", 4, 2)) == {("a", ()): (0, 2), ("b", ()): (0, 4)}


def test_instances_lie_side_by_side():
    two = ((0, (0, 0)), (0, (1, 0)))
    assert places("npu2", ("h", 4, 4), instances=two) == {("h", (0, 0)): (0, 2), ("h", (1, 0)): (4, 2)}


def test_a_herd_can_be_pinned():
    assert places("npu2", ("h", 1, 1), attrs={"x_loc": 3, "y_loc": 4}) == {("h", ()): (3, 4)}


@pytest.mark.parametrize(
    ("herds", "words"),
    [
        ([("h", 5, 1)], "5 x 1"),
        ([("h", 1, 5)], "1 x 5"),
        ([("a", 4, 4), ("b", 1, 1)], "herd 'b' of 1 x 1 tiles finds no free place"),
    ],
)
def test_what_does_not_fit_is_refused(herds, words):
    with pytest.raises(CapacityError, match=words):
        places("npu1", *herds)


def test_more_instances_than_columns_are_refused():
    with pytest.raises(CapacityError, match="5 segment instances"):
        places("npu1", ("h", 1, 1), instances=tuple((0, (i,)) for i in range(5)))

"""The exercises of the array chapter teach: its solutions pass, and each mistake that people make gets a hint that fits."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from npulab.check import CheckFailed
from npusim.frontends import finder
from tests.book.chapter import Chapter, fails

PREPARED = """
import numpy as np
from designs.gelu import reference
x, bias, y = reference.inputs(1)
"""
DOORS = ("doors-fifos", "doors-design")
CELLS: dict[str, tuple[str, ...]] = {"inputs": (), "parts": ("parts-walk",), "fewest": (), "doors": DOORS}


@pytest.fixture(scope="module")
def chapter() -> Iterator[Chapter]:
    yield Chapter("array", "use", "array-column", "checks", "doors-setup", prepared=PREPARED)
    finder.deactivate()


@pytest.mark.parametrize("exercise", CELLS)
def test_solutions_pass(chapter: Chapter, exercise: str, capsys: pytest.CaptureFixture[str]) -> None:
    chapter.attempt(exercise, *CELLS[exercise])
    assert "ok: " in capsys.readouterr().out


@pytest.mark.parametrize("exercise", CELLS)
def test_untouched_exercises_say_so(chapter: Chapter, exercise: str) -> None:
    with pytest.raises(CheckFailed, match="empty"):
        chapter.untouched(exercise, *CELLS[exercise])


# ---- 1: by hand

RIGHT = {"most_rows": "2", "column_rate": "12", "full_columns": "37 / 12"}


@pytest.mark.parametrize(
    ("name", "wrong", "hint"),
    [
        ("most_rows", "3", "z goes from the MemTile to the shim tile"),
        ("most_rows", "4", "count what leaves the MemTile"),
        ("most_rows", "5", "each tile needs two parts"),
        ("column_rate", "8", "x, y and z each have a channel"),
        ("column_rate", "16", "four channels, of which this uses three"),
        ("column_rate", "20", "five channels lead out of the MemTile"),
        ("column_rate", "96", "count the shim tile's channels"),
        ("full_columns", "37 / 8", "that is GELU's"),
        ("full_columns", "66.6 / 12", "divide by the clock"),
        ("full_columns", "12 / 37", "the other way round"),
        ("full_columns", "3", "as it is divided"),
        ("full_columns", "4", "a little more than three"),
    ],
)
def test_two_inputs(chapter: Chapter, name: str, wrong: str, hint: str) -> None:
    answers = {**RIGHT, name: wrong}
    with fails(hint):
        chapter.attempt("inputs", inputs="\n".join(f"{key} = {value}" for key, value in answers.items()))


# ---- 2: a walk


@pytest.mark.parametrize(
    ("old", "new", "hint"),
    [
        ("[4 * FEATURES, 1]", "[FEATURES, 1]", "like cards"),
        ("(16 * column + row) * FEATURES", "(16 * column + 4 * row) * FEATURES", "the first row of this tile is row 1"),
        ("(16 * column + row) * FEATURES", "16 * column + row", "an offset counts elements"),
        ("(16 * column + row) * FEATURES", "(4 * column + row) * FEATURES", "column 1 begins with row 16"),
        ("[4, FEATURES]", "[4, 1]", "4 rows of FEATURES elements each, and its pattern touches 4 elements"),
        ("[4 * FEATURES, 1]", "[2 * FEATURES, 1]", "as far apart as there are tiles"),
        ("return TensorAccessPattern((32, FEATURES), offset, sizes, strides)", "return sizes, strides", "return a TensorAccessPattern"),
    ],
)
def test_which_rows(chapter: Chapter, old: str, new: str, hint: str) -> None:
    with fails(hint):
        chapter.attempt("parts", "parts-walk", parts_walk=chapter.changed("parts-walk", old, new))


# ---- 3: the fewest tiles


@pytest.mark.parametrize(
    ("part", "hint"),
    [
        ("4, 1", "the doors are the limit"),
        ("4, 4", "the doors are the limit"),
        ("5, 2", "how many tiles of a column"),
        ("8, 4", "how many tiles of a column"),
        ("8, 1", "how many columns does DDR"),
    ],
)
def test_fewest(chapter: Chapter, part: str, hint: str) -> None:
    with fails(hint):
        chapter.attempt("fewest", fewest=f"columns, rows = {part}")


def test_a_part_that_does_not_exist(chapter: Chapter) -> None:
    with pytest.raises((CheckFailed, ValueError), match="columns = 10: the device has 8"):
        chapter.attempt("fewest", fewest="columns, rows = 10, 1")


# ---- 4: two streams


@pytest.mark.parametrize(
    ("old", "new", "hint"),
    [
        ("Tile(column, 2 + 2 * pair), Tile(column, 3 + 2 * pair)", "Tile(column, 2), Tile(column, 3)", "pair 0 has the tiles in rows 2 and 3"),
        ('name=f"x{name}"', 'name="x"', "a name of its own"),
        ("return (x.prod(), y.cons()), list(zip(places, x_parts, y_parts))", "return x.prod(), y.cons(), x_parts, y_parts", "return what column_fifos returns"),
        ("[0, FEATURES]", "[0, FEATURES, 2 * FEATURES]", "two offsets and two object types"),
    ],
)  # fmt: skip
def test_two_doors(chapter: Chapter, old: str, new: str, hint: str) -> None:
    with fails(hint):
        chapter.attempt("doors", *DOORS, doors_fifos=chapter.changed("doors-fifos", old, new))


def test_one_door_is_not_two(chapter: Chapter) -> None:
    """A design with the same tiles and bytes, that has not been changed."""
    source = "from designs.gelu.design import column_fifos\nreturn column_fifos(column, 4)"
    with fails("rows 2 and 3|name of its own"):
        chapter.attempt("doors", *DOORS, doors_fifos=source)

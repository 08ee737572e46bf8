"""Tables as files: five digits, a row a line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from designs.attention import ablations, compare, tables


@pytest.mark.parametrize(("value", "kept"), [(0.123456789, 0.12346), (123456.0, 123460.0), (3.0, 3.0), (0.0, 0.0), (-1.000004, -1.0)])
def test_five_digits(value: float, kept: float) -> None:
    assert tables.digits(value) == kept


def test_a_row_a_line(tmp_path: Path) -> None:
    rows = [{"ms": 1.5, "of": {"a": 1}}, {"ms": 2.5, "of": {}}]
    tables.write(tmp_path / "x.json", rows)
    lines = (tmp_path / "x.json").read_text().splitlines()
    assert len(lines) == 2 + len(rows) and json.loads("\n".join(lines)) == rows


@pytest.mark.parametrize("path", [compare.DATA, ablations.DATA], ids=lambda path: path.name)
def test_the_book_s_tables_are_written_so(path: Path, tmp_path: Path) -> None:
    tables.write(tmp_path / "again.json", json.loads(path.read_text()))
    assert (tmp_path / "again.json").read_text() == path.read_text()

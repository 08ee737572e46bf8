"""Tables of runs as files: a row a line, figures of five digits."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any


def digits(value: float) -> float:
    """Five significant digits: more would only make files differ."""
    return float(f"{value:.5g}")


def write(path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    """A JSON list with a line for each row, so that a change shows row by row."""
    path.write_text("[\n" + ",\n".join(json.dumps(row) for row in rows) + "\n]\n")

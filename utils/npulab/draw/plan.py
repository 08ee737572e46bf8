"""Where the tiles stand and the streams run on the picture of the array, in px."""

from __future__ import annotations

from npulab.draw.contents import TileContents
from npusim.machine import Coord

LANE = 4.5
TARGET = 800.0  # px, the width of a page's text on a large screen
SMALL = 46.0  # px, width of a column without a tile in use


class Plan:
    """Where things are, in px. Column and row 0 are at the lower left; what the design leaves unused is drawn small."""

    def __init__(self, tiles: dict[Coord, TileContents], columns: range, lanes: tuple[int, int], timed: bool) -> None:
        used = [t for t in tiles.values() if t.used and t.at.col in columns]
        self.columns = columns
        self.lane = LANE if lanes[0] <= 7 else 3.6
        self.corridor_x = max(20.0, lanes[0] * self.lane + 12)
        self.corridor_y = max(18.0, lanes[1] * self.lane + 12)
        busy = {t.at.col for t in used} or set(columns)
        free = TARGET - len(columns) * self.corridor_x - (len(columns) - len(busy)) * SMALL
        self.box = min(240.0, max(68.0, free / len(busy)))
        self.wide = self.box >= 120
        self.widths = {c: self.box if c in busy else SMALL for c in columns}
        heights = {0: 38.0, 1: 66.0}
        core = 58.0 + (9 if timed else 0) + (44 if self.wide else 0)
        rows = {t.at.row for t in used}
        self.heights = {t.row: heights.get(t.row, core) if t.row in rows else 24.0 for t in tiles}
        self.lefts = _sums([self.corridor_x + self.widths[c] for c in columns], 0.0)
        self.tops = _sums([self.heights[r] + self.corridor_y for r in sorted(self.heights, reverse=True)], 44.0)
        self.width, self.bottom = self.lefts[-1] + 12, self.tops[-1]

    def height(self, row: int) -> float:
        """Height of the boxes of a row."""
        return self.heights[row]

    def x(self, col: int) -> float:
        """Left edge of the boxes of a column."""
        return self.lefts[col - self.columns.start] + self.corridor_x

    def y(self, row: int) -> float:
        """Top edge of the boxes of a row."""
        return self.tops[len(self.heights) - 1 - row]

    def lane_x(self, col: int, lane: int) -> float:
        return self.x(col) - 8 - lane * self.lane

    def lane_y(self, row: int, lane: int) -> float:
        return self.y(row) + self.heights[row] + 6 + lane * self.lane


def _sums(steps: list[float], start: float) -> list[float]:
    """Start, start plus the first step, and so on."""
    found = [start]
    for step in steps:
        found.append(found[-1] + step)
    return found

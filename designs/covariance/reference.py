"""What the design must compute, and what it must move: closed formulas, exact to the byte.

A level's bytes are (read, written) by the DMA channels of its tiles, as the simulator's report counts them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from npusim.report import Level

FEATURES, SAMPLES, ELEMENT = 128, 256, 2  # rows and columns of a window; bytes of a bf16
WINDOW = FEATURES * SAMPLES * ELEMENT
"""Bytes of a window of X."""
SQUARE = FEATURES * FEATURES * ELEMENT
"""Bytes of its C."""


def covariance(x: Any) -> Any:
    """X Xᵀ in float64; shapes (windows, FEATURES, SAMPLES) to (windows, FEATURES, FEATURES)."""
    wide = np.asarray(x).astype(np.float64)
    return wide @ wide.swapaxes(-1, -2)


def flops(windows: int) -> int:
    """Multiplications and additions, all of C (that it is symmetric is not made use of)."""
    return windows * 2 * FEATURES * FEATURES * SAMPLES


@dataclass(frozen=True)
class Dials:
    """A choice of the three dials of design.py."""

    rows: int
    share: int
    keep: int

    @property
    def rounds(self) -> int:
        """How often X is read from DDR."""
        return FEATURES // (self.rows * self.share * self.keep)

    def traffic(self, windows: int) -> Mapping[Level, tuple[int, int]]:
        """(bytes read, bytes written) at each level."""
        from_ddr, to_tiles = self.rounds * WINDOW, self.rounds * self.keep * WINDOW
        staged = SQUARE if self.share > 1 else 0  # bands of C that meet in the MemTile
        bytes_of_a_window: dict[Level, tuple[int, int]] = {
            "ddr": (from_ddr, SQUARE),
            "memtile": (to_tiles + staged, from_ddr + staged),
            "l1": (SQUARE, to_tiles * self.share),
        }
        return {level: (windows * read, windows * written) for level, (read, written) in bytes_of_a_window.items()}

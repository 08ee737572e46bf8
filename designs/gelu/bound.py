"""The least time of bias and GELU on a part of the array, from what it moves and what its kernel takes."""

from __future__ import annotations

from collections.abc import Mapping

from designs.gelu import models, reference
from npulab import roofline
from npusim.devices import device as device_named
from npusim.report import Level
from npusim.types import MemRefType


def kernel_cycles(device: str) -> int:
    """Core cycles that the kernel takes for one row."""
    row = MemRefType((reference.FEATURES,), "bf16")
    return models.cycles(row, row, row, device=device_named(device))


def prediction(tokens: int, columns: int, rows: int, device: str) -> roofline.Prediction:
    """The least time: the kernel on every tile without a pause, and each level's bytes over the channels in use. The bias, a
    row of its own on a channel of its own, is left out."""
    elements, tiles = tokens * reference.FEATURES, columns * rows
    through = columns + tiles  # a MemTile's channels of one direction: one on the host's side, one for each tile
    used: Mapping[Level, tuple[int, int]] = {
        "ddr": (columns, columns),
        "memtile": (through, through),
        "l1": (tiles, tiles),
    }
    speed = reference.FLOP_PER_ELEMENT * reference.FEATURES / kernel_cycles(device)
    roof = roofline.roofline(device, tiles=tiles, channels=used, flops_per_cycle_and_tile=speed, convention="both ways")
    moved = reference.BYTES_PER_ELEMENT * elements
    levels: Mapping[Level, int] = {"ddr": moved, "memtile": 2 * moved, "l1": moved}
    return roofline.predict(reference.FLOP_PER_ELEMENT * elements, levels, roof, name="bias and GELU")

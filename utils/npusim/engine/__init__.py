"""Runs a machine: event loop, core programs, DMA channels and streams, cascade, DDR, host sequence."""

from __future__ import annotations

from npusim.engine.simulator import Simulator

__all__ = ["Simulator"]

"""What the loops of library kernels cost, from what one core can issue in a cycle.

A software-pipelined vector loop takes as many cycles an iteration as its busiest unit: the load units, the store unit or
the vector unit. Around it come the function's and the pipeline's start and end.
"""

from __future__ import annotations

from math import ceil

from npusim.devices import Device

GUIDE = "mlir-aie programming_guide section-4c (measured on XDNA 1 by trace)"

START_AND_END = 14
"""Cycles around a pipelined loop: scale of 1024 i16 takes 78 = 64 + 14 cycles (GUIDE, H; for other kernels M)."""

SCALAR_ELEMENT = 12
"""Cycles an element of a scalar loop of load, multiply and store: 1024 i32 take 12,297 cycles (GUIDE, H)."""

MATMUL_EFFICIENCY = 0.8
"""Of the multiply-accumulate slots that mm.cc fills: 2,535 cycles where 2,048 are ideal (GUIDE, i16, H; others M).
mlir-aie issue 2735 says "at most 80 %" of bf16 kernels, too."""


def pipelined(device: Device, elements: int, lanes: int, loaded: int, stored: int, vector_ops: float) -> int:
    """Cycles of a pipelined loop over ``elements``, ``lanes`` a turn, without what is around it.

    ``loaded`` and ``stored`` are bytes a turn, ``vector_ops`` the vector unit's operations a turn.
    """
    busiest = max(loaded / device.load_bytes.value, stored / device.store_bytes.value, vector_ops, 1)
    return ceil(ceil(elements / lanes) * busiest)


def scalar(elements: int, cycles_an_element: float = SCALAR_ELEMENT) -> int:
    """Cycles of a scalar loop."""
    return ceil(elements * cycles_an_element)

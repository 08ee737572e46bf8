"""Explains an AIR design that stands still: who waits for whom, with the places in the source."""

from __future__ import annotations

from typing import TYPE_CHECKING

from npusim.errors import DeadlockError

if TYPE_CHECKING:
    from npusim.air.simulator import AirSimulator


def explain(sim: AirSimulator) -> DeadlockError:
    """The error for a simulator whose loop ran dry."""
    return DeadlockError("deadlock")

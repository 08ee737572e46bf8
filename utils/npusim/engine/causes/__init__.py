"""What usually causes a hang, told from who waits for whom. The first rule that fits gives the hint."""

from __future__ import annotations

from collections.abc import Callable

from npusim.engine.causes import circles, transfers, workers
from npusim.engine.waits import Waits

Rule = Callable[[Waits], str | None]

RULES: tuple[Rule, ...] = (
    transfers.partial_object,
    transfers.too_late,
    transfers.never_filled,
    workers.never_released,
    workers.cascade,
    workers.own_lock,
    transfers.fed_too_little,
    transfers.too_few_drains,
    transfers.uneven_parts,
    workers.ended,
    transfers.too_much_drained,
    circles.too_shallow,
    circles.no_first_object,
)


def hint(waits: Waits) -> str:
    """One hint."""
    for rule in RULES:
        found = rule(waits)
        if found is not None:
            return found
    return "count on paper how many objects of each fifo its producer gives and its consumer takes in one run."

"""How often a loop runs, where that is known before the run."""

from __future__ import annotations

from npusim.ir import Op


def trips(loop: Op) -> int | None:
    """How often an ``scf.for`` runs, or None if a bound is known only at run time."""
    bounds = []
    for value in loop.operands[:3]:
        owner = value.owner
        if not isinstance(owner, Op) or owner.name != "arith.constant":
            return None
        bounds.append(owner.attrs["value"])
    lower, upper, step = bounds
    return max(0, -((lower - upper) // step)) if step > 0 else None

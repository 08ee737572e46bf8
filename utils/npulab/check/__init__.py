"""Checks of exercises: values, structure and cost. They raise :class:`CheckFailed` with a hint, or print one line.

What an untouched skeleton leaves (``...``, None, NotImplemented) is recognised and said so. A mistake that the author foresaw
is given as a pair (how to recognise it, hint); some, such as a transposed result, are recognised anyway.
"""

from __future__ import annotations

from npulab.check.designs import design, runs
from npulab.check.failure import CheckFailed, filled, is_placeholder
from npulab.check.structure import cost, memory_used, structure
from npulab.check.values import close, equal, number

__all__ = [
    "CheckFailed",
    "close",
    "equal",
    "number",
    "structure",
    "cost",
    "runs",
    "design",
    "filled",
    "is_placeholder",
    "memory_used",
]

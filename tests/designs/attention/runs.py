"""Runs that several tests look at, made once."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from designs.attention import run as running
from designs.attention.parameters import Parameters
from designs.attention.run import Outcome

DEVICES = ("npu1", "npu2")
NAMES = ("layerwise", "dato", "iron", "fused")
MASKED = ("layerwise", "iron", "fused")


@lru_cache(maxsize=64)
def outcome(name: str, device: str, *, data: bool = True, **given: Any) -> Outcome:
    """A run of a mapping with two heads unless said otherwise."""
    parameters = Parameters(**{"num_heads": 2, **given})
    return running.run(running.mapping(name), parameters, device, data=data)  # type: ignore[arg-type]

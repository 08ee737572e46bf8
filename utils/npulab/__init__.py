"""What the notebooks import: choice of backend, run records, pictures, rooflines and exercise checks.

    import npulab
    npulab.use()                                     # NPU or simulated NPU; prints which
    run = npulab.run(saxpy, [x, y], n=65536, flops=2 * 65536)
    npulab.draw.array(run); npulab.draw.timeline(run)

Modules are imported when they are first used, so that ``python -m npulab doctor`` works where something is missing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from npulab.backend import current, use
    from npulab.chains import chain
    from npulab.description import Description, Phase, Stage, Stream
    from npulab.execute import design, last, machine, run
    from npulab.loading import load
    from npulab.npu import clear_cache
    from npulab.prediction import predict
    from npulab.prose import numbers
    from npulab.record import Run
    from npulab.sources import source

_HOMES = {
    "use": "backend",
    "current": "backend",
    "load": "loading",
    "design": "execute",
    "machine": "execute",
    "run": "execute",
    "last": "execute",
    "chain": "chains",
    "clear_cache": "npu",
    "predict": "prediction",
    "Description": "description",
    "Phase": "description",
    "Stage": "description",
    "Stream": "description",
    "Run": "record",
    "source": "sources",
    "numbers": "prose",
}
_MODULES = ("check", "draw", "measure", "reference", "roofline", "served")

__all__ = [
    "use",
    "current",
    "load",
    "design",
    "machine",
    "run",
    "last",
    "chain",
    "clear_cache",
    "predict",
    "Description",
    "Phase",
    "Stage",
    "Stream",
    "Run",
    "source",
    "numbers",
    "check",
    "draw",
    "measure",
    "reference",
    "roofline",
    "served",
]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(importlib.import_module(f"npulab.{_HOMES[name]}"), name)
    if name in _MODULES:
        return importlib.import_module(f"npulab.{name}")
    raise AttributeError(f"module 'npulab' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)

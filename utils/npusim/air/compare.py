"""The timing of an AIR design, as idealised here, beside that of its compiled form (a module of the aie dialect)."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from npusim.errors import DesignError, DesignWarning
from npusim.graph import Design
from npusim.kernels import KernelModel
from npusim.machine import Machine
from npusim.report import LEVELS, Report
from npusim.run import simulate
from npusim.types import MemRefType


@dataclass
class Comparison:
    """Both runs, over the same arrays. ``agree``: whether they left the same in every array."""

    air: Report
    compiled: Report
    agree: bool

    @property
    def ratio(self) -> float:
        """Cycles of the compiled form over those of the design."""
        return self.compiled.cycles / self.air.cycles

    def __str__(self) -> str:
        rows = [("", "AIR, idealised", "compiled")]
        rows.append(("cycles", f"{self.air.cycles:,.1f}", f"{self.compiled.cycles:,.1f}"))
        rows.append(("us", f"{self.air.seconds * 1e6:,.2f}", f"{self.compiled.seconds * 1e6:,.2f}"))
        for level in LEVELS:
            a, c = self.air.traffic[level], self.compiled.traffic[level]
            rows.append((f"{level} read", f"{a.read:,}", f"{c.read:,}"))
            rows.append((f"{level} written", f"{a.written:,}", f"{c.written:,}"))
        rows.append(("cascade", f"{self.air.cascade_bytes:,}", f"{self.compiled.cascade_bytes:,}"))
        lines = [f"simulated {self.air.machine.device.name}"]
        lines += [f"{name:<18}{a:>18}{c:>18}" for name, a, c in rows]
        lines.append(f"compiled / idealised: {self.ratio:.2f}; data: {'the same' if self.agree else 'DIFFERENT'}")
        lines += [f"note: {text}" for text in self.air.notes]
        for name, report in (("AIR", self.air), ("compiled", self.compiled)):
            lines += [f"warning ({name}): {text}" for text in report.warnings]
        return "\n".join(lines)


def compare(
    design: Design,
    compiled: Machine,
    args: list[Any] | None = None,
    *,
    kernels: Mapping[str, KernelModel] | None = None,
) -> Comparison:
    """Run both over copies of ``args``, or of small random arrays. DesignError if their arrays are not the same."""
    if design.air is None:
        raise DesignError("the design is none of MLIR-AIR, so there is nothing to compare")
    wanted, have = _types(design.sequence.body if design.sequence else None), _types(compiled.sequence)
    if [(t.size, t.element) for t in wanted] != [(t.size, t.element) for t in have]:
        raise DesignError(
            f"the design's arrays ({', '.join(map(str, wanted))}) are not those of the module ({', '.join(map(str, have))})"
        )
    if args is None:
        rng = np.random.default_rng(0)
        args = [rng.integers(-8, 8, t.shape).astype(t.dtype) for t in wanted]
    mine = [np.array(a) for a in args]
    theirs = [np.array(a).reshape(t.shape) for a, t in zip(args, have, strict=True)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DesignWarning)  # they are in the reports
        reports = simulate(design, mine, kernels=kernels), simulate(compiled, theirs, kernels=kernels)
    agree = all(a.tobytes() == b.tobytes() for a, b in zip(mine, theirs, strict=True))
    return Comparison(*reports, agree)


def _types(region: Any) -> list[MemRefType]:
    return [v.type for v in region.entry.args if isinstance(v.type, MemRefType)] if region is not None else []

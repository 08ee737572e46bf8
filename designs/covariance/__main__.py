"""``python -m designs.covariance --device npu2 --rows 64``: run it, check it, and say what limits it at which level."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from ml_dtypes import bfloat16

import npulab
from designs.covariance import models, reference
from designs.covariance.reference import Dials
from npulab import roofline
from npulab.record import Run
from npusim.errors import NpuError

DESIGN = Path(__file__).with_name("design.py")
TOLERANCE = 2e-2
"""Of the largest value: C is summed up in bf16, block by block; on XDNA 2 the operands are BFP16 besides."""


def samples(windows: int, seed: int = 0) -> Any:
    """Windows of standard normal samples, bf16, shape (windows, FEATURES, SAMPLES)."""
    shape = (windows, reference.FEATURES, reference.SAMPLES)
    return np.random.default_rng(seed).standard_normal(shape).astype(bfloat16)


def execute(x: Any, dials: Dials, columns: int, device: str | None = None, **options: Any) -> Run:
    """Run the design over x (windows, FEATURES, SAMPLES)."""
    c = np.zeros((len(x), reference.FEATURES, reference.FEATURES), bfloat16)
    chosen = {"rows": dials.rows, "share": dials.share, "keep": dials.keep, "columns": columns, "windows": len(x)}
    flops = reference.flops(len(x))
    return npulab.run(
        DESIGN, [x.reshape(-1), c.reshape(-1)], device=device, flops=flops, name="covariance", **chosen, **options
    )


def prediction(windows: int, dials: Dials, run: Run) -> roofline.Prediction:
    """The least time: tiles and channels of the run, the compiled kernels' ceiling, each level as it is wired."""
    ceiling = models.ceilings(run.device, dials.rows)["compiled kernel"]
    words = "the compiled kernels, designs/kernels/cycles.py"
    roof = roofline.used_by(run, flops_per_cycle_and_tile=ceiling, ceiling_source=words, convention="by level")
    return roofline.predict(reference.flops(windows), dials.traffic(windows), roof, name="covariance")


def parser() -> argparse.ArgumentParser:
    """The command line."""
    options = argparse.ArgumentParser(prog="python -m designs.covariance", description=__doc__)
    options.add_argument("--device", choices=("npu1", "npu2"), help="default: the NPU found, else a simulated npu2")
    options.add_argument("--windows", type=int, default=128, help="windows of 128 x 256 samples (default 128)")
    options.add_argument("--columns", type=int, default=4, help="columns of the array (default 4)")
    options.add_argument(
        "--rows", type=int, default=64, help="rows of C for each arrival at a tile: 16, 32, 64 (default)"
    )
    options.add_argument("--share", type=int, default=2, help="tiles that a block is broadcast to: 1, 2 (default), 4")
    options.add_argument("--keep", type=int, default=1, help="times a MemTile sends a window (default 1)")
    return options


def main(argv: Sequence[str] | None = None) -> int:
    """Print result, time, bytes and what limits; 1 if the design was refused or the result is wrong."""
    options = parser().parse_args(argv)
    x, dials = samples(max(options.windows, 0)), Dials(options.rows, options.share, options.keep)
    try:
        npulab.use(device=options.device)
        run = execute(x, dials, options.columns)
    except (NpuError, ValueError) as refused:
        print(f"{type(refused).__name__}: {refused}", file=sys.stderr)
        return 1
    want = reference.covariance(x)
    error = float(np.abs(run.output.astype(np.float64).reshape(want.shape) - want).max() / np.abs(want).max())
    print(f"result: {'right' if error <= TOLERANCE else 'WRONG'}; largest error {error:.2%} of the largest value")
    print(run)
    if run.machine is not None:
        print(prediction(len(x), dials, run))
        print(prediction(len(x), dials, run).compare(run))
    return 0 if error <= TOLERANCE else 1


if __name__ == "__main__":
    sys.exit(main())

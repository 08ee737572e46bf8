"""``python -m designs.softmax --device npu2 --rows 512 --cols 1024``: run it, check it, and say what limits it.

Rows of up to 2048 columns stay in a compute tile's memory; longer ones stream by in pieces, in ``--passes`` passes.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from ml_dtypes import bfloat16

import npulab
from designs.kernels.models import KERNELS
from designs.softmax import reference
from npulab import roofline
from npulab.record import Run
from npusim.errors import NpuError

HERE = Path(__file__).parent
LONGEST = 2048
"""Columns of a row that stays in a compute tile (design.py, BLOCK)."""


def scores(rows: int, cols: int, seed: int = 0) -> Any:
    """Normal scores of standard deviation 3, bf16, shape (rows, cols)."""
    return (3 * np.random.default_rng(seed).standard_normal((rows, cols))).astype(bfloat16)


def execute(s: Any, *, passes: int | None = None, device: str | None = None, **options: Any) -> Run:
    """Run over s (rows, cols): in one piece a row, or streaming if ``passes`` is given. ``options`` go to the design and
    to npulab.run."""
    rows, cols = s.shape
    flops = reference.FLOP_PER_ELEMENT * rows * cols
    design = HERE / ("design.py" if passes is None else "streaming.py")
    more = options if passes is None else {"passes": passes, **options}
    arrays = [s.reshape(-1), np.zeros(s.size, bfloat16)]
    return npulab.run(design, arrays, device=device, rows=rows, cols=cols, flops=flops, name="softmax", **more)


def prediction(s: Any, run: Run, passes: int | None = None) -> roofline.Prediction:
    """The least time by the channels that the run used and, for rows in one piece, the compiled kernel's speed."""
    rows, cols = s.shape
    flops = reference.FLOP_PER_ELEMENT * rows * cols
    per_row = KERNELS["softmax_rows"].cost({"ROWS": 1, "COLS": cols}, run.device).calibrated
    ceiling = reference.FLOP_PER_ELEMENT * cols / per_row
    words = "the compiled kernel, designs/kernels/cycles.py"
    roof = roofline.used_by(run, flops_per_cycle_and_tile=ceiling, ceiling_source=words, convention="by level")
    return roofline.predict(flops, reference.traffic(rows, cols, passes or 1), roof, name="softmax")


def error(s: Any, run: Run, d: int = 1) -> tuple[float, float]:
    """(largest error relative to the value, values over a millionth; largest deviation of a row's sum from 1)."""
    want, got = reference.softmax(s, d), run.output.astype(np.float64).reshape(s.shape)
    counts = want > 1e-6
    return float((np.abs(got - want)[counts] / want[counts]).max()), float(np.abs(got.sum(axis=-1) - 1).max())


def parser() -> argparse.ArgumentParser:
    """The command line."""
    options = argparse.ArgumentParser(prog="python -m designs.softmax", description=__doc__)
    options.add_argument("--device", choices=("npu1", "npu2"), help="default: the NPU found, else a simulated npu2")
    options.add_argument("--rows", type=int, default=512, help="rows (default 512)")
    options.add_argument("--cols", type=int, default=1024, help="columns, the length of a softmax (default 1024)")
    options.add_argument("--d", type=int, default=1, help="scores are divided by its square root (default 1)")
    options.add_argument(
        "--passes", type=int, choices=(2, 3), help="stream, in so many passes (default for long rows: 2)"
    )
    return options


def main(argv: Sequence[str] | None = None) -> int:
    """Print result, time, bytes and what limits; 1 if the design was refused or the result is wrong."""
    options = parser().parse_args(argv)
    passes = options.passes or (2 if options.cols > LONGEST else None)
    s = scores(max(options.rows, 0), max(options.cols, 0))
    try:
        npulab.use(device=options.device)
        run = execute(s, passes=passes, d=options.d)
    except (NpuError, ValueError) as refused:
        print(f"{type(refused).__name__}: {refused}", file=sys.stderr)
        return 1
    relative, sums = error(s, run, options.d)
    allowed = reference.TOLERANCE[run.device.family] if passes is None else reference.STREAMING[run.device.family]
    right = relative <= allowed
    print(f"result: {'right' if right else 'WRONG'}; largest error {relative:.1%}, rows sum to 1 within {sums:.1%}")
    print(run)
    if run.machine is not None:
        bound = prediction(s, run, passes)
        print(bound)
        print(bound.compare(run))
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())

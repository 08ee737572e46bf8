"""``python -m designs.transpose --dtype bf16 --M 512 --N 512``: transpose a matrix, check it, and say where it stands."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

import npulab
from designs.transpose import reference
from designs.transpose.bound import prediction
from npulab.record import Run
from npusim.errors import NpuError

DESIGN = Path(__file__).with_name("design.py")


def exact(a: Any, got: Any, alpha: float) -> bool:
    """Whether every bit is right."""
    want = reference.transpose(a, alpha).astype(got.dtype)
    return bool(np.array_equal(got.view(f"u{got.itemsize}"), want.view(f"u{got.itemsize}")))


def parser() -> argparse.ArgumentParser:
    """The command line."""
    options = argparse.ArgumentParser(prog="python -m designs.transpose", description=__doc__)
    options.add_argument("--device", choices=("npu1", "npu2"), help="default: the NPU found, else a simulated npu2")
    options.add_argument("--dtype", choices=("bf16", "i32"), default="bf16", help="default bf16; i32 is moved by DMA alone")
    options.add_argument("--M", type=int, default=512, help="rows of a (default 512)")
    options.add_argument("--N", type=int, default=512, help="columns of a (default 512)")
    options.add_argument("-m", type=int, default=64, help="rows of a tile (default 64)")
    options.add_argument("-n", type=int, default=64, help="columns of a tile (default 64)")
    options.add_argument("--columns", type=int, default=1, help="columns of the array (default 1)")
    options.add_argument("--alpha", type=float, default=1.0, help="factor, bf16 only (default 1)")
    options.add_argument("--depth", type=int, default=2, help="objects that a core has of each fifo, bf16 only (default 2)")
    return options


def run(given: argparse.Namespace, a: Any, b: Any) -> Run:
    """The run that the options ask for."""
    sizes = {name: getattr(given, name) for name in ("M", "N", "m", "n", "columns")}
    flops = reference.flops(given.M, given.N, given.dtype) or None
    design = npulab.load(DESIGN)
    if given.dtype == "i32":
        return npulab.run(design.transpose_words, [a, b], flops=flops, **sizes)
    return npulab.run(design.transpose, [a, b], flops=flops, alpha=given.alpha, depth=given.depth, **sizes)


def main(argv: Sequence[str] | None = None) -> int:
    """Print result, time, bytes and place on the roofline; 1 if the design was refused or the result is wrong."""
    given = parser().parse_args(argv)
    alpha = given.alpha if given.dtype == "bf16" else 1.0
    a, b = reference.inputs(max(given.M, 0), max(given.N, 0), given.dtype)
    try:
        npulab.use(device=given.device)
        done = run(given, a, b)
    except (NpuError, ValueError) as refused:
        print(f"{type(refused).__name__}: {refused}", file=sys.stderr)
        return 1
    right = exact(a, done.output, alpha)
    print(f"result: {'every bit is right' if right else 'NOT right'}")
    print(done)
    print(prediction(given.M, given.N, given.m, given.n, given.columns, done.device.name, given.dtype).compare(done))
    busy = reference.ddr_busy(given.M, given.N, given.m, given.n, given.dtype)
    print(f"DDR is busy as if for {busy:,} B, since a piece in a row counts as whole bursts of {reference.BURST} B")
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())

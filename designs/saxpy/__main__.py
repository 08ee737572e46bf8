"""``python -m designs.saxpy --device npu1 --n 65536``: run SAXPY, check it, and say where it stands."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from ml_dtypes import bfloat16

import npulab
from designs.saxpy import models, reference
from npulab import roofline
from npusim.errors import NpuError
from npusim.report import Level

DESIGN = Path(__file__).with_name("design.py")


def arguments(n: int, seed: int = 0) -> tuple[Any, Any]:
    """x and y: n normally distributed bf16 elements each."""
    rng = np.random.default_rng(seed)
    x, y = rng.standard_normal((2, n)).astype(bfloat16)
    return x, y


def bit_exact(x: Any, y: Any, got: Any, a: float) -> bool:
    """Whether every bit is what the model of the kernel says."""
    want = np.empty_like(got)
    models.saxpy_bf16(x, y, want, np.float32(a))
    return bool(np.array_equal(got.view(np.uint16), want.view(np.uint16)))


def prediction(n: int, device: str) -> roofline.Prediction:
    """The least time, from the arithmetic of the design alone: its bytes at each level, one tile, its own channels."""
    moved = reference.BYTES_PER_ELEMENT * n
    used: Mapping[Level, tuple[int, int]] = {"ddr": (2, 1), "l1": (1, 2)}
    roof = roofline.roofline(device, tiles=1, channels=used, convention="both ways")
    return roofline.predict(reference.FLOP_PER_ELEMENT * n, {"ddr": moved, "l1": moved}, roof, name="SAXPY")


def parser() -> argparse.ArgumentParser:
    """The command line."""
    options = argparse.ArgumentParser(prog="python -m designs.saxpy", description=__doc__)
    options.add_argument("--device", choices=("npu1", "npu2"), help="default: the NPU found, else a simulated npu2")
    options.add_argument("--n", type=int, default=65536, help="elements, a multiple of 1024 (default 65536)")
    options.add_argument("--a", type=float, default=3.0, help="the factor (default 3)")
    return options


def main(argv: Sequence[str] | None = None) -> int:
    """Print result, time, bytes and place on the roofline; 1 if the design was refused or the result is wrong."""
    options = parser().parse_args(argv)
    x, y = arguments(max(options.n, 0))
    try:
        npulab.use(device=options.device)
        run = npulab.run(DESIGN, [x, y], n=options.n, a=options.a, flops=reference.FLOP_PER_ELEMENT * options.n)
    except (NpuError, ValueError) as refused:
        print(f"{type(refused).__name__}: {refused}", file=sys.stderr)
        return 1
    exact = bit_exact(x, y, run.output, options.a)
    error = np.max(np.abs(run.output.astype(np.float32) - reference.saxpy(x, y, options.a)))
    print(f"result: {'every bit as' if exact else 'NOT as'} the bf16 model says; largest error against fp32 {error:.3g}")
    print(run)
    print(prediction(options.n, run.device.name).compare(run))
    return 0 if exact else 1


if __name__ == "__main__":
    sys.exit(main())

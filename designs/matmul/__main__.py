"""``python -m designs.matmul --device npu1 --rows 4 --columns 4``: multiply, check it, and say where it stands."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from ml_dtypes import bfloat16

import npulab
from designs.matmul import reference
from npulab import roofline
from npulab.record import Run
from npusim.errors import NpuError

DESIGN = Path(__file__).with_name("design.py")
SIZES = {"M": 512, "K": 512, "N": 512, "m": 64, "k": 64, "n": 64, "rows": 4, "columns": 4}


def factors(M: int, K: int, N: int, seed: int = 0) -> tuple[Any, Any]:
    """Normally distributed bf16 matrices (M, K) and (K, N)."""
    rng = np.random.default_rng(seed)
    a, b = (rng.standard_normal(shape).astype(bfloat16) for shape in ((M, K), (K, N)))
    return a, b


def execute(a: Any, b: Any, device: str | None = None, **sizes: int) -> Run:
    """Multiply a (M, K) by b (K, N) with the tiles and the part of the array in ``sizes``."""
    (M, K), N = a.shape, b.shape[1]
    arguments = [a.reshape(-1), b.reshape(-1), np.zeros(M * N, np.float32)]
    flops = reference.flops(M, K, N)
    return npulab.run(DESIGN, arguments, device=device, flops=flops, name="matmul", M=M, K=K, N=N, **sizes)


def prediction(run: Run, sizes: dict[str, int]) -> roofline.Prediction:
    """The least time: bytes by the formula of the design, tiles and channels of the run."""
    M, K, N = (sizes[s] for s in "MKN")
    moved = reference.traffic(M, K, N, *(sizes[s] for s in ("m", "n", "rows", "columns")))
    return roofline.predict(reference.flops(M, K, N), moved, roofline.used_by(run), name="matmul")


def parser() -> argparse.ArgumentParser:
    """The command line: the sizes of the matrices, of a tile, and of the part of the array."""
    options = argparse.ArgumentParser(prog="python -m designs.matmul", description=__doc__)
    options.add_argument("--device", choices=("npu1", "npu2"), help="default: the NPU found, else a simulated npu2")
    for name, size in SIZES.items():
        options.add_argument(f"--{name}", type=int, default=size, help=f"default {size}")
    return options


def main(argv: Sequence[str] | None = None) -> int:
    """Print result, time, bytes and place on the roofline; 1 if the design was refused or the result is wrong."""
    options = vars(parser().parse_args(argv))
    device, sizes = options.pop("device"), options
    a, b = factors(*(max(sizes[s], 0) for s in "MKN"))
    try:
        npulab.use(device=device)
        run = execute(a, b, device, **{name: sizes[name] for name in SIZES if name not in "MKN"})
    except (NpuError, ValueError) as refused:
        print(f"{type(refused).__name__}: {refused}", file=sys.stderr)
        return 1
    want = reference.matmul(a, b)
    error = float(np.abs(run.output.reshape(want.shape) - want).max() / np.abs(want).max())
    right = error <= reference.TOLERANCE[run.device.family]
    print(f"result: {'right' if right else 'WRONG'}; largest error {error:.2g} of the largest element")
    print(run)
    if run.machine is not None:
        print(prediction(run, sizes).compare(run))
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())

"""``python -m designs.gelu --device npu1 --columns 4 --rows 4``: run bias and GELU, check it, and say where it stands."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from ml_dtypes import bfloat16

import npulab
from designs.gelu import models, reference
from npulab import roofline
from npusim.devices import device as device_named
from npusim.errors import NpuError
from npusim.report import Level
from npusim.types import MemRefType

DESIGN = Path(__file__).with_name("design.py")


def arguments(tokens: int, seed: int = 0) -> tuple[Any, Any, Any]:
    """x (tokens, FEATURES) and a bias (FEATURES,), normally distributed bf16, and room for y."""
    rng = np.random.default_rng(seed)
    x = (1.5 * rng.standard_normal((tokens, reference.FEATURES), np.float32)).astype(bfloat16)
    bias = (0.5 * rng.standard_normal(reference.FEATURES, np.float32)).astype(bfloat16)
    return x, bias, np.zeros_like(x)


def bit_exact(x: Any, bias: Any, got: Any) -> bool:
    """Whether every bit is what the model of the kernel says."""
    want = np.empty_like(got)
    models.bias_gelu_bf16(x, bias, want)
    return bool(np.array_equal(got.view(np.uint16), want.view(np.uint16)))


def kernel_cycles(device: str) -> int:
    """Core cycles that the kernel takes for one row."""
    row = MemRefType((reference.FEATURES,), "bf16")
    return models.cycles(row, row, row, device=device_named(device))


def prediction(tokens: int, columns: int, rows: int, device: str) -> roofline.Prediction:
    """The least time: the kernel on every tile without a pause, and each level's bytes over the channels in use. The bias, a
    row of its own on a channel of its own, is left out."""
    elements, tiles = tokens * reference.FEATURES, columns * rows
    through = columns + tiles  # a MemTile's channels of one direction: one on the host's side, one for each tile
    used: Mapping[Level, tuple[int, int]] = {
        "ddr": (columns, columns),
        "memtile": (through, through),
        "l1": (tiles, tiles),
    }
    speed = reference.FLOP_PER_ELEMENT * reference.FEATURES / kernel_cycles(device)
    roof = roofline.roofline(device, tiles=tiles, channels=used, flops_per_cycle_and_tile=speed, convention="both ways")
    moved = reference.BYTES_PER_ELEMENT * elements
    levels: Mapping[Level, int] = {"ddr": moved, "memtile": 2 * moved, "l1": moved}
    return roofline.predict(reference.FLOP_PER_ELEMENT * elements, levels, roof, name="bias and GELU")


def parser() -> argparse.ArgumentParser:
    """The command line."""
    options = argparse.ArgumentParser(prog="python -m designs.gelu", description=__doc__)
    options.add_argument("--device", choices=("npu1", "npu2"), help="default: the NPU found, else a simulated npu2")
    options.add_argument("--tokens", type=int, default=1024, help="rows, a multiple of columns x rows (default 1024)")
    options.add_argument("--columns", type=int, default=4, help="columns of the array (default 4)")
    options.add_argument("--rows", type=int, default=4, help="compute tiles in each of them (default 4)")
    return options


def main(argv: Sequence[str] | None = None) -> int:
    """Print result, time, bytes and place on the roofline; 1 if the design was refused or the result is wrong."""
    options = parser().parse_args(argv)
    tokens, columns, rows = options.tokens, options.columns, options.rows
    x, bias, y = arguments(max(tokens, 0))
    flops = reference.FLOP_PER_ELEMENT * x.size
    try:
        npulab.use(device=options.device)
        run = npulab.run(DESIGN, [x, bias, y], tokens=tokens, columns=columns, rows=rows, flops=flops)
    except (NpuError, ValueError) as refused:
        print(f"{type(refused).__name__}: {refused}", file=sys.stderr)
        return 1
    exact = bit_exact(x, bias, run.output)
    error = np.max(np.abs(run.output.astype(np.float64) - reference.bias_gelu(x, bias)))
    print(f"result: {'every bit as' if exact else 'NOT as'} the bf16 model says; largest error against GELU {error:.3g}")
    print(run)
    print(prediction(tokens, columns, rows, run.device.name).compare(run))
    return 0 if exact else 1


if __name__ == "__main__":
    sys.exit(main())

"""``python -m designs.gelu --device npu1 --columns 4 --rows 4``: run bias and GELU, check it, and say where it stands."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

import npulab
from designs.gelu import models, reference
from designs.gelu.bound import prediction
from npusim.errors import NpuError

DESIGN = Path(__file__).with_name("design.py")


def bit_exact(x: Any, bias: Any, got: Any) -> bool:
    """Whether every bit is what the model of the kernel says."""
    want = np.empty_like(got)
    models.bias_gelu_bf16(x, bias, want)
    return bool(np.array_equal(got.view(np.uint16), want.view(np.uint16)))


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
    x, bias, y = reference.inputs(max(tokens, 0))
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

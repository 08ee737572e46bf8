"""``python -m designs.walk --shape 8 12 --dims 12:1 8:12``: send an array through one walk, and show what comes out."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from ml_dtypes import bfloat16

import npulab
from designs.walk import reference
from npusim.errors import NpuError

DESIGN = Path(__file__).with_name("design.py")


def pair(text: str) -> tuple[int, int]:
    """``12:1`` as (12, 1)."""
    first, _, second = text.partition(":")
    return int(first), int(second)


def parser() -> argparse.ArgumentParser:
    """The command line."""
    options = argparse.ArgumentParser(prog="python -m designs.walk", description=__doc__)
    options.add_argument("--device", choices=("npu1", "npu2"), help="default: the NPU found, else a simulated npu2")
    options.add_argument("--shape", type=int, nargs="+", default=[8, 12], help="of the array (default 8 12)")
    options.add_argument("--dims", type=pair, nargs="*", default=[], metavar="SIZE:STRIDE", help="outermost first; none: as it lies")
    options.add_argument("--row", type=int, choices=(0, 1, 2), default=1, help="shim tile, MemTile (default) or compute tile")
    options.add_argument("--pad", type=pair, nargs="*", default=[], metavar="BEFORE:BEHIND", help="zeros, for each of the dims")
    options.add_argument("--repeat", type=int, default=1, help="how often a MemTile sends it (default 1)")
    options.add_argument("--dtype", choices=("i32", "bf16"), default="i32")
    return options


def array(shape: tuple[int, ...], dtype: str) -> Any:
    """0, 1, 2, ...; as far as bf16 can count, then again."""
    numbers = np.arange(int(np.prod(shape)), dtype=np.int32).reshape(shape)
    return numbers if dtype == "i32" else (numbers % 256).astype(bfloat16)


def main(argv: Sequence[str] | None = None) -> int:
    """Print what leaves the tile; 1 if the walk was refused or is not what numpy makes of it."""
    given = parser().parse_args(argv)
    shape = tuple(given.shape)
    options: dict[str, Any] = {"dims": tuple(given.dims), "pad": tuple(given.pad), "repeat": given.repeat}
    try:
        npulab.use(device=given.device)
        x = array(shape, given.dtype)
        want = reference.walk(x, **options)
        done = npulab.run(
            DESIGN, [x, np.zeros(want.size, x.dtype)], shape=shape, row=given.row, dtype=given.dtype, **options
        )
    except (NpuError, ValueError, IndexError) as refused:
        print(f"{type(refused).__name__}: {refused}", file=sys.stderr)
        return 1
    right = bool(np.array_equal(done.output.view(np.uint8), want.view(np.uint8)))
    print(f"result: {'as numpy says' if right else 'NOT what numpy says'}\n{done.output}\n{done}")
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())

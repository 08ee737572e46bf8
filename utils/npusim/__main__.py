"""``python -m npusim``: run or explain a design, print the accuracy table, measure the simulator's own speed."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

import numpy as np

from npusim.errors import NpuError
from npusim.graph import Design
from npusim.machine import Machine
from npusim.types import MemRefType, numpy_dtype


def main(argv: list[str] | None = None) -> int:
    """Entry point; gives the exit status (1 when the design was refused)."""
    options = _parser().parse_args(argv)
    try:
        options.run(options)
    except NpuError as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        return 1
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m npusim", description=__doc__)
    commands = parser.add_subparsers(required=True, metavar="command")
    run = commands.add_parser("run", help="run a design or a module on the simulated NPU")
    run.add_argument("--trace", metavar="FILE.json", help="write a Chrome / Perfetto trace")
    run.add_argument("--timing-only", action="store_true", help="no data: the same cycles, nothing computed")
    run.add_argument("--seed", type=int, default=0, help="of the random input arrays (default 0)")
    run.set_defaults(run=_run)
    explain = commands.add_parser("explain", help="where everything of a design lies: memory maps, channels, routes")
    explain.set_defaults(run=_explain)
    for command in (run, explain):
        command.add_argument("design", help="DESIGN.py with build(device), or a .mlir module in generic form")
        command.add_argument("--device", default="npu2", help="npu1 or npu2 (default npu2)")
    commands.add_parser("accuracy", help="published figures beside simulated ones").set_defaults(run=_accuracy)
    commands.add_parser("bench", help="speed of the simulator, beside SimPy").set_defaults(run=_bench)
    return parser


def _load(options: argparse.Namespace) -> Design | Machine:
    from npusim.load import is_compiled, load_design
    from npusim.mlir import read_low

    path = Path(options.design)
    if not path.exists():
        raise SystemExit(f"no file {path}")
    if path.suffix == ".mlir" and is_compiled(path.read_text()):
        return read_low(path.read_text())
    return load_design(path, options.device)


def _run(options: argparse.Namespace) -> None:
    from npusim.run import simulate
    from npusim.summary import summary
    from npusim.trace import write_chrome_trace

    design = _load(options)
    report = simulate(design, _random_args(design, options.seed), data=not options.timing_only)
    print(summary(report))
    if options.trace:
        write_chrome_trace(report, options.trace)
        print(f"\ntrace: {options.trace} (open it in ui.perfetto.dev)")


def _random_args(design: Design | Machine, seed: int) -> list[Any]:
    """Small random values for every argument of the host sequence."""
    if isinstance(design, Machine):
        region = design.sequence
    else:
        region = design.sequence.body if design.sequence else None
    rng = np.random.default_rng(seed)
    args: list[Any] = []
    for value in region.entry.args if region else ():
        if isinstance(value.type, MemRefType):
            args.append(rng.integers(-8, 8, value.type.shape).astype(value.type.dtype))
        else:
            args.append(numpy_dtype(str(value.type)).type(1))
    return args


def _explain(options: argparse.Namespace) -> None:
    from npusim.place import place
    from npusim.summary import explanation

    design = _load(options)
    print(explanation(design if isinstance(design, Machine) else place(design)))


def _accuracy(options: argparse.Namespace) -> None:
    from npusim.accuracy import main as accuracy

    accuracy()


def _bench(options: argparse.Namespace) -> None:
    from npusim.bench import main as bench

    bench()


if __name__ == "__main__":
    sys.exit(main())

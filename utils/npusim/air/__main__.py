"""``python -m npusim.air compare DESIGN.py LOW.mlir``: an AIR design's timing, idealised and in compiled form."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from npusim.errors import NpuError


def main(argv: list[str] | None = None) -> int:
    """Entry point; gives the exit status: 1 if something was refused or the data differ."""
    from npusim.air.compare import compare
    from npusim.load import load_design
    from npusim.mlir import read_low

    parser = argparse.ArgumentParser(prog="python -m npusim.air", description=__doc__)
    commands = parser.add_subparsers(required=True, metavar="command")
    command = commands.add_parser("compare", help="the timing of a design beside that of its compiled form")
    command.add_argument("design", help="DESIGN.py with build(device), or the module as generated (.mlir)")
    command.add_argument("compiled", help="what mlir-air and aiecc made of it: a .mlir module in generic form")
    command.add_argument("--device", help="npu1 or npu2 (default: that of the compiled module)")
    options = parser.parse_args(argv)
    try:
        machine = read_low(Path(options.compiled).read_text(), options.compiled)
        found = compare(load_design(options.design, options.device or machine.device.name), machine)
    except NpuError as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        return 1
    print(found)
    return 0 if found.agree else 1


if __name__ == "__main__":
    sys.exit(main())

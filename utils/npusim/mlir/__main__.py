"""Compares two designs: ``python -m npusim.mlir compare A B [--device npu2]``.

A and B are modules in generic form (``.mlir``) or Python files with ``build(device)``. Prints the first difference in words
and exits with 1; prints that they are the same graph and exits with 0; exits with 2 if one cannot be read.
``python -m npusim.mlir print A`` prints the module of a design.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from npusim.errors import NpuError
from npusim.graph import Design
from npusim.mlir import compare, print_design, read_high


def load(path: str, device: str) -> Design:
    """The design of a module (whatever ``device``) or of a Python file."""
    if path.endswith(".mlir"):
        return read_high(Path(path).read_text(), Path(path).name)
    from npusim.load import load_design  # the frontends know how to print modules, so they come later

    return load_design(path, device)


def main(arguments: list[str] | None = None) -> int:
    """Run the command; the result is the exit status."""
    parser = argparse.ArgumentParser(prog="npusim.mlir", description="compare or print designs")
    commands = parser.add_subparsers(dest="command", required=True)
    for name, paths, what in (
        ("compare", ("a", "b"), "say where two designs differ first"),
        ("print", ("a",), "print one"),
    ):
        command = commands.add_parser(name, help=what)
        for path in paths:
            command.add_argument(path, help="a .mlir file in generic form, or a .py file with build(device)")
        command.add_argument("--device", default="npu2", help="what .py files are built for (default: %(default)s)")
    chosen = parser.parse_args(arguments)
    try:
        if chosen.command == "print":
            print(print_design(load(chosen.a, chosen.device)), end="")
            return 0
        first, second = Path(chosen.a).name, Path(chosen.b).name
        sides = (chosen.a, chosen.b) if first == second else (first, second)
        difference = compare(load(chosen.a, chosen.device), load(chosen.b, chosen.device), sides)
    except (NpuError, OSError) as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        return 2
    print(difference or f"{chosen.a} and {chosen.b} are the same graph")
    return 1 if difference else 0


if __name__ == "__main__":
    sys.exit(main())

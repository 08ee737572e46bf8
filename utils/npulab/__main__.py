"""The command line: ``npulab student``, ``npulab book`` and ``npulab doctor`` (also ``python -m npulab ...``)."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from npulab import doctor


def parser() -> argparse.ArgumentParser:
    """The command line's parser, one sub-command a module."""
    from npulab import book, student  # here, so that the doctor can be asked where the book's packages are missing

    top = argparse.ArgumentParser(prog="npulab", description=__doc__)
    commands = top.add_subparsers(dest="command", required=True)
    for name, module, text in (
        ("student", student, "write the student version of a notebook or of a folder of notebooks"),
        ("book", book, "build the site into _build/html and check it"),
        ("doctor", doctor, "say what is missing to run designs on an NPU, and what works without"),
    ):
        command = commands.add_parser(name, help=text, description=module.__doc__, formatter_class=_Raw)
        module.add_arguments(command)
        command.set_defaults(run=module.run)
    return top


class _Raw(argparse.RawDescriptionHelpFormatter):
    """Keeps the modules' docstrings as they are laid out."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit code."""
    words = sys.argv[1:] if argv is None else list(argv)
    if words[:1] == ["doctor"]:
        return doctor.main(words[1:])
    arguments = parser().parse_args(words)
    code: int = arguments.run(arguments)
    return code


if __name__ == "__main__":
    sys.exit(main())

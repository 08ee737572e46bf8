"""The design being resolved: what MLIR's current module is for the real classes."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager

from npusim import graph
from npusim.errors import DesignError, DesignWarning

_designs: list[graph.Design] = []


@contextmanager
def resolving(design: graph.Design) -> Iterator[graph.Design]:
    """Within the block, objects write themselves into ``design``."""
    _designs.append(design)
    try:
        yield design
    finally:
        _designs.pop()


def design(what: str) -> graph.Design:
    """The design being resolved; a DesignError names ``what`` if there is none."""
    if not _designs:
        raise DesignError(f"{what} is written down only while Program.resolve_program() runs")
    return _designs[-1]


def warn(text: str) -> None:
    """Note something that the real tools accept silently and that is probably a mistake, and emit a DesignWarning."""
    if _designs and text not in _designs[-1].warnings:
        _designs[-1].warnings.append(text)
        warnings.warn(text, DesignWarning, stacklevel=2)

"""Ten broken designs, for the messages that they cause. They are wrong on purpose; none of them is to be copied."""

from __future__ import annotations

import textwrap
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from npusim.errors import DesignWarning, NpuError
from npusim.graph import Design
from npusim.load import load_design
from npusim.run import simulate

NAMES = (
    "memory",
    "channels",
    "descriptors",
    "granularity",
    "cascade",
    "python_if",
    "release",
    "once",
    "half",
    "depth",
)
"""In the order of the page that shows them."""


def listing(name: str) -> str:
    """The design of that name after its imports, lines numbered as messages count them."""
    lines = _path(name).read_text(encoding="utf-8").splitlines()
    first = max(i for i, line in enumerate(lines) if line.startswith(("from ", "import "))) + 1
    while not lines[first]:
        first += 1
    return "\n".join(f"{number:3}  {line}".rstrip() for number, line in enumerate(lines[first:], first + 1))


def message(name: str, device: str = "npu2", *, width: int = 0) -> str:
    """What a run of the design says: its warnings, and the error that ends it. Lines over ``width`` are broken (0: none)."""
    said: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            design = load_design(_path(name), device)
            simulate(design, _zeros(design))
        except NpuError as error:
            said.append(f"{type(error).__name__}: {error}")
    found = [f"DesignWarning: {w.message}" for w in caught if issubclass(w.category, DesignWarning)]
    text = "\n\n".join(dict.fromkeys([*found, *said]))
    return "\n".join(_broken(line, width) for line in text.splitlines()) if width else text


def _path(name: str) -> Path:
    return Path(__file__).with_name(f"{name}.py")


def _zeros(design: Design) -> list[Any]:
    assert design.sequence is not None
    return [np.zeros(value.type.shape, value.type.dtype) for value in design.sequence.body.entry.args]  # type: ignore[union-attr]


def _broken(line: str, width: int) -> str:
    indent = " " * (len(line) - len(line.lstrip()) + 4)
    return textwrap.fill(line, width, subsequent_indent=indent, drop_whitespace=True, break_long_words=False) or line

"""The interface that the simulated NPU serves, as tables made from the frontends' own: what is there, and what raises."""

from __future__ import annotations

import enum
import importlib
import inspect
import re
import types
from collections.abc import Iterator, Mapping
from typing import Any

from npulab.tables import Table
from npusim.frontends.iron.tensor import NpuTensor

FRONTENDS = {"aie": "npusim.frontends.iron.served", "air": "npusim.frontends.air.served"}


def _frontend(root: str) -> Any:
    return importlib.import_module(FRONTENDS[root])


def names(module: str) -> Mapping[str, Any]:
    """What the embedded ``module`` holds; LookupError if it is not served."""
    held: Mapping[str, Any] | None = _frontend(module.partition(".")[0]).names(module)
    if held is None:
        raise LookupError(f"the simulated NPU serves no module {module}")
    return held


def module(name: str) -> Table:
    """The names of one module, each with a line about it."""
    rows = [[f"`{key}`", about(value)] for key, value in sorted(names(name).items(), key=lambda item: item[0].lower())]
    return Table(
        ("Name", "What it is"), [row for row in rows if not row[1].startswith("Not served")], f"Served from `{name}`"
    )


def about(value: Any) -> str:
    """The first sentence of a value's documentation, or what kind of thing it is."""
    if inspect.isclass(value) and issubclass(value, enum.Enum):
        return "One of " + ", ".join(f"`{member.name}`" for member in value) + "."
    if not (inspect.isclass(value) or inspect.isroutine(value)) or isinstance(value, types.GenericAlias):
        own = type(value).__module__.startswith("npusim") and type(value).__doc__
        return (
            _sentence(own) if own else f"`{value!r}`" if isinstance(value, types.GenericAlias) else "A type annotation."
        )
    text = _sentence(inspect.getdoc(value) or "")
    method = re.fullmatch(r"See :meth:`NpuTensor\.(\w+)`\.", text)
    return _sentence(inspect.getdoc(getattr(NpuTensor, method[1])) or "") if method else text


def _sentence(text: str) -> str:
    paragraph = " ".join(text.partition("\n\n")[0].split())
    return re.split(r"(?<=[a-z`)]\.)\s", paragraph, maxsplit=1)[0]


def modules(root: str) -> Table:
    """Every module under ``root`` with its names."""
    rows = []
    for name in _frontend(root).TABLE:
        held = names(name)
        if held:
            rows.append([f"`{name}`", ", ".join(f"`{key}`" for key in sorted(held, key=str.lower))])
    return Table(("Module", "Names"), rows, f"Every module that is served under `{root}`")


def reasons(root: str = "aie") -> Table:
    """Names that are asked for, are not served, and why."""
    table: Mapping[str, str] = _frontend(root).REASONS
    grouped: dict[str, list[str]] = {}
    for name, why in table.items():
        grouped.setdefault(why, []).append(f"`{name}`")
    rows = [[", ".join(those), f"{why[:1].upper()}{why[1:]}."] for why, those in grouped.items()]
    return Table(("Not served", "Why, and what there is instead"), rows, "What the simulated NPU does not serve")


def refused_kernels() -> Table:
    """Kernel factories that exist by name and raise."""
    rows = [[", ".join(f"`{name}`" for name in sorted(_refused()))]]
    return Table(
        ("Named by IRON, without a model here",), rows, "Factories of `aie.iron.kernels` that raise UnsupportedError"
    )


def _refused() -> Iterator[str]:
    for name, value in names("aie.iron.kernels").items():
        if about(value).startswith("Not served"):
            yield name

"""Every name that the embedded ``aie`` serves has the signature that the real package was recorded with.

Parameter names, kinds and defaults must agree; annotations need not. What the real classes have and ours do not is listed
in ``NOT_SERVED`` and must raise.
"""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Iterator
from enum import Enum
from pathlib import Path
from typing import Any

import pytest

from npusim.errors import UnsupportedError
from npusim.frontends.iron import served

RECORDED = json.loads((Path(__file__).parents[2] / "data" / "api" / "aie_iron.json").read_text())
Parameter = tuple[str, str, str | None]
"""Name, kind (``/`` positional only does not occur; ``pos``, ``kw``, ``*``, ``**``) and default."""

NOT_SERVED = {
    # Running compiled files, and reading the hardware's traces: the simulated NPU has neither.
    "HostRuntime": {
        "extract_trace_from_args",
        "prepare_args_for_trace",
        "process_trace",
        "read_insts",
        "read_insts_binary",
    }
    | {"verify_results"},
}
PLAIN_ATTRIBUTES = {"NPUKernel"}  # properties there, attributes here


def entries() -> Iterator[tuple[str, str, dict[str, Any]]]:
    for module in served.TABLE:
        names = served.names(module)
        assert names is not None
        for name, recorded in RECORDED.get(module, {"entries": {}})["entries"].items():
            if name in names:
                yield module, name, recorded


ENTRIES = list(entries())
CALLABLE = [(m, n, r) for m, n, r in ENTRIES if "signature" in r and r["kind"] in ("class", "function")]


def thing(module: str, name: str) -> Any:
    names = served.names(module)
    assert names is not None
    return names[name]


def split(text: str) -> list[str]:
    """Parts of an argument list at its top-level commas."""
    parts, depth, quote, current = [], 0, "", ""
    for i, char in enumerate(text):
        if quote:
            quote = "" if char == quote else quote
        elif char in "'\"":
            quote = char
        elif char in "([{<":
            depth += 1
        elif char in ")]}" or (char == ">" and text[i - 1] != "-"):
            depth -= 1
        if char == "," and depth == 0 and not quote:
            parts.append(current)
            current = ""
        else:
            current += char
    return [p.strip() for p in [*parts, current] if p.strip()]


def top_level(text: str, mark: str) -> int:
    """Index of a mark outside of brackets and quotes, or -1."""
    depth, quote = 0, ""
    for i, char in enumerate(text):
        if quote:
            quote = "" if char == quote else quote
        elif char in "'\"":
            quote = char
        elif char in "([{<":
            depth += 1
        elif char in ")]}>":
            depth -= 1
        elif char == mark and depth == 0:
            return i
    return -1


def arguments(signature: str) -> str:
    """What stands between the outer parentheses."""
    depth = 0
    for i, char in enumerate(signature):
        depth += (char == "(") - (char == ")")
        if depth == 0:
            return signature[1:i]
    raise AssertionError(signature)


def default_text(text: str) -> str:
    """A default without addresses and modules."""
    text = re.sub(r" at 0x[0-9a-f]+", "", text)
    return re.sub(r"<(?:[\w.]+\.)?(\w+) object>", r"<\1>", text).replace('"', "'")


def recorded_parameters(signature: str) -> list[Parameter]:
    kind, found = "pos", []
    for part in split(arguments(signature)):
        if part in ("*", "/"):
            kind = "kw" if part == "*" else kind
            continue
        stars = len(part) - len(part.lstrip("*"))
        equals = top_level(part, "=")
        default = None if equals < 0 else default_text(part[equals + 1 :].strip())
        name = re.split(r"[:=]", part[stars:])[0].strip()
        found.append((name, "*" * stars or kind, default))
        kind = "kw" if stars == 1 else kind
    return found


def our_parameters(of: Any) -> list[Parameter]:
    kinds = {
        inspect.Parameter.POSITIONAL_OR_KEYWORD: "pos",
        inspect.Parameter.KEYWORD_ONLY: "kw",
        inspect.Parameter.VAR_POSITIONAL: "*",
        inspect.Parameter.VAR_KEYWORD: "**",
    }
    return [
        (p.name, kinds[p.kind], None if p.default is inspect.Parameter.empty else default_text(repr(p.default)))
        for p in inspect.signature(of).parameters.values()
    ]


def test_the_recorded_text_is_understood() -> None:
    text = "(self, a: 'int | None' = None, *, b: Tile = <x.Tile object>, c: dict[str, int] = {}, d='a, b', **e) -> 'X | None'"
    assert recorded_parameters(text) == [
        ("self", "pos", None),
        ("a", "pos", "None"),
        ("b", "kw", "<Tile>"),
        ("c", "kw", "{}"),
        ("d", "kw", "'a, b'"),
        ("e", "**", None),
    ]


@pytest.mark.parametrize(("module", "name", "recorded"), CALLABLE, ids=lambda x: x if isinstance(x, str) else "")
def test_signature(module: str, name: str, recorded: dict[str, Any]) -> None:
    ours = our_parameters(thing(module, name))
    if module == "aie.iron.kernels" and ours == [("args", "*", None), ("kwargs", "**", None)]:
        with pytest.raises(UnsupportedError, match=name):
            thing(module, name)()
        return
    assert ours == recorded_parameters(recorded["signature"])


@pytest.mark.parametrize(
    ("module", "name", "recorded"),
    [e for e in ENTRIES if "methods" in e[2]],
    ids=lambda x: x if isinstance(x, str) else "",
)
def test_methods(module: str, name: str, recorded: dict[str, Any]) -> None:
    cls = thing(module, name)
    for method, how in recorded["methods"].items():
        if method in NOT_SERVED.get(name, ()):
            assert not hasattr(cls, method)
            continue
        ours = inspect.getattr_static(cls, method, None)
        if ours is None:
            raise AssertionError(f"{name} has no {method}")
        if how.get("how"):
            assert isinstance(ours, staticmethod if how["how"] == "static" else classmethod)
            ours = ours.__func__
        wanted = recorded_parameters(how["signature"])
        assert [p[1:] for p in our_parameters(ours)] == [p[1:] for p in wanted], method
        if not method.startswith("__"):
            assert our_parameters(ours) == wanted, method


@pytest.mark.parametrize(
    ("module", "name", "recorded"),
    [e for e in ENTRIES if "properties" in e[2] and e[1] not in PLAIN_ATTRIBUTES],
    ids=lambda x: x if isinstance(x, str) else "",
)
def test_properties(module: str, name: str, recorded: dict[str, Any]) -> None:
    cls = thing(module, name)
    for prop, settable in recorded["properties"].items():
        ours = inspect.getattr_static(cls, prop, None)
        assert isinstance(ours, property), f"{name}.{prop}"
        assert (ours.fset is not None) == settable, f"{name}.{prop}"


@pytest.mark.parametrize(
    ("module", "name", "recorded"),
    [e for e in ENTRIES if "members" in e[2]],
    ids=lambda x: x if isinstance(x, str) else "",
)
def test_enumerations(module: str, name: str, recorded: dict[str, Any]) -> None:
    cls = thing(module, name)
    assert issubclass(cls, Enum)
    assert {m.name: m.value for m in cls} == recorded["members"]
    assert [str(m) for m in cls] == [m.name for m in cls]


@pytest.mark.parametrize(
    "module", [m for m in served.TABLE if RECORDED.get(m, {}).get("all") and m != "aie.utils.trace"]
)
def test_all_of_a_package_is_served(module: str) -> None:
    names = served.names(module)
    assert names is not None
    missing = [n for n in RECORDED[module]["all"] if n not in names and f"{module}.{n}" not in served.TABLE]
    assert missing == []

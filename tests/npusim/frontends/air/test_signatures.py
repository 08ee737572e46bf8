"""Every name that the embedded ``air`` serves has the signature that the real package was recorded with."""

from __future__ import annotations

import inspect
import json
from collections.abc import Iterator
from enum import Enum
from pathlib import Path
from typing import Any

import pytest

from npusim.errors import UnsupportedError
from npusim.frontends.air import served
from npusim.frontends.air.values import OpView
from tests.npusim.frontends.test_signatures import our_parameters, recorded_parameters

RECORDED = json.loads((Path(__file__).parents[3] / "data" / "api" / "air.json").read_text())
NOT_SERVED = {"FuncOp": {"add_entry_block"}, "HerdContext": {"register_buffer", "require_object"}}


def entries() -> Iterator[tuple[str, str, dict[str, Any]]]:
    for module in served.TABLE:
        names = served.names(module)
        assert names is not None
        for name, recorded in RECORDED.get(module, {"entries": {}})["entries"].items():
            if name in names:
                yield module, name, recorded


ENTRIES = list(entries())


def thing(module: str, name: str) -> Any:
    names = served.names(module)
    assert names is not None
    return names[name]


def test_the_recording_covers_what_designs_use() -> None:
    covered = {(module, name) for module, name, _ in ENTRIES}
    for name in ("launch", "segment", "herd", "Channel", "ChannelPut", "ChannelGet", "dma_memcpy_nd", "module_builder"):
        assert ("air.dialects.air", name) in covered
    assert len(ENTRIES) > 150


@pytest.mark.parametrize(
    ("module", "name", "recorded"),
    [e for e in ENTRIES if e[2].get("signature") and e[2]["kind"] in ("class", "function")],
    ids=lambda x: x if isinstance(x, str) else "",
)
def test_signature(module: str, name: str, recorded: dict[str, Any]) -> None:
    assert our_parameters(thing(module, name)) == recorded_parameters(recorded["signature"])


@pytest.mark.parametrize(
    ("module", "name", "recorded"),
    [
        e
        for e in ENTRIES
        if any(m.get("signature") for m in e[2].get("methods", {}).values()) and e[2]["kind"] != "enum"
    ],
    ids=lambda x: x if isinstance(x, str) else "",
)
def test_methods(module: str, name: str, recorded: dict[str, Any]) -> None:
    cls = thing(module, name)
    for method, how in recorded["methods"].items():
        if not how.get("signature"):
            continue
        ours = inspect.getattr_static(cls, method, None)
        if method in NOT_SERVED.get(name, ()):
            assert ours is None
            continue
        if isinstance(ours, (staticmethod, classmethod)):
            ours = ours.__func__
        assert ours is not None, f"{name} has no {method}"
        skipped = 1 if how.get("how") != "static" and "static" not in how else 0
        assert our_parameters(ours)[skipped:] == recorded_parameters(how["signature"])[skipped:], method


@pytest.mark.parametrize(
    ("module", "name", "recorded"),
    [e for e in ENTRIES if "members" in e[2]],
    ids=lambda x: x if isinstance(x, str) else "",
)
def test_enumerations(module: str, name: str, recorded: dict[str, Any]) -> None:
    cls = thing(module, name)
    assert issubclass(cls, Enum)
    assert {m.name: m.value for m in cls} == recorded["members"]


def test_a_property_that_is_not_served_says_so() -> None:
    view = OpView.__new__(OpView)
    with pytest.raises(UnsupportedError, match=r"OpView\.chan_name is not served"):
        _ = view.chan_name
    assert not hasattr(view, "chan_name")

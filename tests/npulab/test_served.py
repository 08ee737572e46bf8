"""The interface tables list what an import gives, and only that."""

from __future__ import annotations

import importlib

import pytest

from npulab import served
from npusim.errors import UnsupportedError
from npusim.frontends.finder import simulated


@pytest.mark.parametrize("module", ["aie.iron", "aie.iron.kernels", "aie.helpers.taplib", "aie.dialects.aiex"])
def test_what_a_table_lists_can_be_imported(module: str) -> None:
    listed = [row[0].strip("`") for row in served.module(module).rows]
    with simulated():
        real = importlib.import_module(module)
        assert listed
        assert all(hasattr(real, name) for name in listed)


def test_every_listed_name_says_what_it_is() -> None:
    for module in ("aie.iron", "aie.iron.kernels", "aie.iron.device", "aie.helpers.taplib", "aie.dialects.aie"):
        assert [row for row in served.module(module).rows if len(row[1]) < 10] == []


def test_refused_kernels_are_not_listed_as_served_and_raise() -> None:
    refused = [name.strip("`") for name in served.refused_kernels().rows[0][0].split(", ")]
    listed = {row[0].strip("`") for row in served.module("aie.iron.kernels").rows}
    assert refused and not listed & set(refused)
    with simulated():
        kernels = importlib.import_module("aie.iron.kernels")
        with pytest.raises(UnsupportedError, match=refused[0]):
            getattr(kernels, refused[0])()


def test_all_modules_and_reasons() -> None:
    modules = [row[0].strip("`") for row in served.modules("aie").rows]
    assert "aie.iron" in modules and "aie" not in modules  # those without names are left out
    assert "air.dialects.air" in [row[0].strip("`") for row in served.modules("air").rows]
    asked = [name for row in served.reasons().rows for name in row[0].split(", ")]
    assert "`aie.ir`" in asked


def test_an_unknown_module_is_a_lookup_error() -> None:
    with pytest.raises(LookupError, match=r"aie\.nothing"):
        served.names("aie.nothing")

"""Every AIR reference design, traced here, prints as the text that the real package generated; so does what is read back."""

from __future__ import annotations

from pathlib import Path

import pytest

from npusim.air.text import print_air, read_air
from npusim.load import load_design

DATA = Path(__file__).parents[3] / "data" / "reference"
DESIGNS = sorted(path.stem for path in (DATA / "designs").glob("air_*.py"))
DEVICES = ["npu1", "npu2"]


def recorded(name: str, device: str) -> str:
    return (DATA / "mlir" / f"{name}.{device}.high.mlir").read_text().strip()


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", DESIGNS)
def test_prints_as_recorded(name: str, device: str) -> None:
    assert print_air(load_design(DATA / "designs" / f"{name}.py", device)).strip() == recorded(name, device)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", DESIGNS)
def test_reads_back(name: str, device: str) -> None:
    assert print_air(read_air(recorded(name, device), device)).strip() == recorded(name, device)


def test_there_are_designs() -> None:
    assert len(DESIGNS) == 6


def test_everything_says_where_it_was_written() -> None:
    path = DATA / "designs" / "air_segment_l2.py"
    design = load_design(path)
    assert design.air is not None
    lines = path.read_text().splitlines()
    assert all("Channel(" in lines[c.loc.line - 1] for c in design.air.channels.values())
    assert {c.loc.file for c in design.air.channels.values()} == {str(path)}

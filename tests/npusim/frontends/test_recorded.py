"""Every reference design, traced here, is the graph that the real package generated; so is the text printed from it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from npusim.graph import Design
from npusim.load import load_design
from npusim.mlir import compare, print_design, read_high

DATA = Path(__file__).parents[2] / "data" / "reference"
DESIGNS = sorted(path.stem for path in (DATA / "designs").glob("iron_*.py"))


def with_our_digests(text: str, ours: Design) -> str:
    """Recorded text with our eight digits in the names of library kernels: the real ones hash where IRON is installed."""
    for kernel in ours.kernels:
        if digest := re.match(r"([0-9a-f]{8})_(.+)", kernel.name):
            theirs = re.search(rf"([0-9a-f]{{8}})_{digest.group(2)}\b", text)
            assert theirs is not None
            text = text.replace(theirs.group(1), digest.group(1))
    return text


@pytest.mark.parametrize("device", ["npu1", "npu2"])
@pytest.mark.parametrize("name", DESIGNS)
def test_same_graph_as_recorded(name: str, device: str) -> None:
    traced = load_design(DATA / "designs" / f"{name}.py", device)
    recorded = read_high(with_our_digests((DATA / "mlir" / f"{name}.{device}.high.mlir").read_text(), traced))
    assert compare(traced, recorded) is None
    assert [f.name for f in traced.fifos] == [f.name for f in recorded.fifos]
    assert [(t.kind, t.col, t.row) for t in traced.tiles] == [(t.kind, t.col, t.row) for t in recorded.tiles]
    assert [k.name for k in traced.kernels] == [k.name for k in recorded.kernels]


@pytest.mark.parametrize("name", DESIGNS)
def test_printed_text_reads_back(name: str) -> None:
    traced = load_design(DATA / "designs" / f"{name}.py")
    assert compare(read_high(print_design(traced)), traced) is None


def test_there_are_designs() -> None:
    assert len(DESIGNS) == 20


def test_everything_says_where_it_was_written() -> None:
    path = DATA / "designs" / "iron_matmul_2x2.py"
    design = load_design(path)
    things = [*design.fifos, *design.links, *design.kernels, *design.cores]
    assert things
    assert {thing.loc.file for thing in things} == {str(path)}
    lines = path.read_text().splitlines()
    assert all(
        "ObjectFifo(" in lines[f.loc.line - 1]
        or "forward(" in lines[f.loc.line - 1]
        or "join(" in lines[f.loc.line - 1]
        for f in design.fifos
    )

"""The table of limits: what each tile uses of what it has."""

from __future__ import annotations

import subprocess
import sys

import pytest

from npusim.graph import LogicalTile
from npusim.limits import limits_table
from npusim.load import load_design
from npusim.mlir import read_high, read_low
from npusim.place import place
from npusim.summary import explanation
from tests.npusim.place.build import Maker, memref, one_core
from tests.npusim.test_levels import DATA, NAMES


def cells(machine) -> dict[str, dict[str, str]]:
    """The table as rows by tile, columns by name."""
    head, *rows = limits_table(machine)
    names = ["memory", "BDs", "locks", "S2MM", "MM2S", *(f"{side} {way}" for way in ("out", "in") for side in "NSWE")]
    assert head.split() == ["tile", *" ".join(names).split()]
    table = {}
    for row in rows:
        tile, *values = row.rsplit(maxsplit=len(names))
        table[tile.strip()] = dict(zip(names, values, strict=True))
    return table


def test_one_core_by_hand():
    """x and y of 64 bytes, two buffers each, beside 1 KiB of stack; one stream up and one down the column."""
    table = cells(place(one_core(tile=LogicalTile("core", 1, 3))[0].design()))
    assert table["compute (1,3)"] == {
        "memory": "1,280/65,536", "BDs": "4/16", "locks": "4/16", "S2MM": "1/2", "MM2S": "1/2",
        "N out": "0/6", "S out": "1/4", "W out": "0/4", "E out": "0/4", "N in": "0/4", "S in": "1/6", "W in": "0/4", "E in": "0/4",
    }  # fmt: skip
    assert table["MemTile (1,1)"] == {
        "memory": "0/524,288", "BDs": "0/48", "locks": "0/64", "S2MM": "0/6", "MM2S": "0/6",
        "N out": "1/6", "S out": "1/4", "W out": "-", "E out": "-", "N in": "1/4", "S in": "1/6", "W in": "-", "E in": "-",
    }  # fmt: skip
    shim = table["shim (1,0)"]
    assert (shim["memory"], shim["BDs"], shim["S2MM"], shim["MM2S"]) == ("-", "2/16", "1/2", "1/2")
    assert (shim["N out"], shim["S out"], shim["N in"]) == ("1/6", "-", "1/4")
    assert set(table) == {"compute (1,3)", "compute (1,2)", "MemTile (1,1)", "shim (1,0)"}


def test_a_broadcast_takes_one_port_of_a_boundary():
    maker, tiles = Maker(), [LogicalTile("core", 0, row) for row in (2, 3)]
    x = maker.fifo("x", None, tiles)
    for i, tile in enumerate(tiles):
        maker.worker(tile, [x], [maker.fifo(f"y{i}", tile)])
    table = cells(place(maker.design()))
    assert table["shim (0,0)"]["N out"] == "1/6" and table["shim (0,0)"]["N in"] == "2/4"
    assert table["compute (0,2)"]["N out"] == "1/6" and table["compute (0,2)"]["S in"] == "1/6"


def test_descriptors_of_transfers_that_were_waited_for_are_counted_once():
    maker, x, y = one_core()
    for _ in range(3):
        task = maker.transfer(x)
        maker.drain(y)
        maker.then("free", task)
    assert cells(place(maker.design()))["shim (0,0)"]["BDs"] == "2/16"


@pytest.mark.parametrize("form", ["high", "low"])
@pytest.mark.parametrize("name", NAMES)
def test_no_reference_design_is_over_a_limit(name, form):
    text = (DATA / "mlir" / f"{name}.npu1.{form}.mlir").read_text()
    machine = place(read_high(text)) if form == "high" else read_low(text)
    for row in cells(machine).values():
        for cell in row.values():
            used, _, available = cell.replace(",", "").partition("/")
            assert cell == "-" or used == "?" or int(used) <= int(available)


def test_both_forms_of_a_design_use_as_much_of_each_tile():
    """But for the ports, since routes may differ, and the host's descriptors, of which a compiled module does not tell."""
    text = {form: (DATA / "mlir" / f"iron_matmul_2x2.npu1.{form}.mlir").read_text() for form in ("high", "low")}
    high, low = cells(place(read_high(text["high"]))), cells(read_low(text["low"]))
    for tile, row in high.items():
        for column in ("memory", "locks", "S2MM", "MM2S"):
            assert low.get(tile, row)[column] == row[column], (tile, column)
    assert low["shim (0,0)"]["BDs"] == "?/16"


def test_a_full_array_fits_on_a_line_a_tile():
    maker = Maker("npu2")
    for col in range(8):
        mem = LogicalTile("mem", col, 1)
        whole = maker.fifo(f"x{col}", None, mem, memref(64))
        parts = []
        for row in range(2, 6):
            tile = LogicalTile("core", col, row)
            parts.append(maker.fifo(f"p{col}{row}", mem, tile))
            maker.worker(tile, [parts[-1]], [])
        maker.link([whole], parts, (0, 16, 32, 48))
    lines = limits_table(place(maker.design()))
    assert len(lines) == 1 + 32 + 8 + 8
    assert max(map(len, lines)) <= 120


def test_explain_prints_table_maps_and_routes():
    text = explanation(place(load_design(DATA / "designs" / "iron_split_join4.py", "npu1")))
    order = [
        "used/available of every tile in use",
        "tile ",
        "\n\nshim tile (0,0)",
        "\n\nMemTile (0,1)",
        "bank 0: 0x00000-0x0ffff",
        "routes",
    ]
    places = [text.find(words) for words in order]
    assert -1 not in places and places == sorted(places)
    assert "BDs: even channels" in text


def test_the_command_prints_it(root):
    design = DATA / "designs" / "iron_scale_one_core.py"
    done = subprocess.run(
        [sys.executable, "-m", "npusim", "explain", str(design), "--device", "npu1"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert "npu1, 4 columns: used/available of every tile in use" in done.stdout

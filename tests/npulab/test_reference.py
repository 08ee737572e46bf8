"""The reference tables follow what the simulator uses, and leave nothing of it out."""

from __future__ import annotations

from dataclasses import fields, replace

import pytest

from designs.kernels.calibration import POINTS
from npulab import reference
from npusim.accuracy import Point, Result
from npusim.costs import SCALAR, Costs
from npusim.devices import NPU1, NPU2, Device, Fact, TileLimits, facts


def test_every_fact_of_a_device_has_a_row() -> None:
    names = {name for name, _ in facts(NPU2)}
    tiles = {f"{kind}: {name}" for kind in ("compute tile", "MemTile", "shim tile") for name in reference.TILE_ROWS}
    assert names == set(reference.DEVICE_ROWS) | tiles
    assert len(reference.devices().rows) == 2 + len(reference.DEVICE_ROWS)
    assert len(reference.tiles().rows) == len(fields(TileLimits))


def test_devices_carry_value_confidence_and_source(monkeypatch: pytest.MonkeyPatch) -> None:
    other: Device = replace(NPU1, clock=Fact(2.5e9, "Hz", "a new source", "L"))
    monkeypatch.setattr(reference, "NPU1", other)
    table = reference.devices()
    (row,) = [row for row in table.rows if row[0] == "Clock"]
    assert row[1].startswith("2.5 GHz (low) [")
    assert "a new source" in table.notes


@pytest.mark.parametrize(
    ("fact", "text"),
    [
        (Fact(65536, "B", "", "H"), "64 KiB"),
        (Fact(0, "B", "", "H"), "none"),
        (Fact(1, "cycles", "", "H"), "1 cycle"),
        (Fact(1024, "words", "", "H"), "1,024 words"),
        (Fact({"i8": 4, "bf16": 2}, "MAC/cycle/tile", "", "H"), "int8 4, bf16 2 MAC/cycle"),
        (Fact({"North": (6, 4)}, "ports", "", "H"), "North 6 / 4"),
    ],
)
def test_quantities(fact: Fact[object], text: str) -> None:
    assert reference.quantity(fact) == text


def test_arithmetic_of_bandwidths_and_peaks() -> None:
    assert next(row[1:] for row in reference.bandwidths().rows) == [
        "32 B/cycle, 32.0 GB/s at 1 GHz",
        "64 B/cycle, 115.2 GB/s at 1.8 GHz",
    ]
    peaks = {row[0]: row[1:] for row in reference.peaks().rows}
    assert peaks["bf16"] == ["4,096 a cycle, 4.1 T/s", "16,384 a cycle, 29.5 T/s"]
    assert peaks["BFP16"][0] == "none"


def test_every_constant_of_time_has_a_row_with_its_source() -> None:
    table = reference.costs()
    assert [row[0].strip("`") for row in table.rows] == [name for name, _ in Costs().facts()]
    assert all(fact.source in row[3] for row, (_, fact) in zip(table.rows, Costs().facts(), strict=True))
    assert len(reference.scalar_costs().rows) == len(SCALAR)


def test_accuracy_names_what_was_put_in() -> None:
    given = Point("a", 100.0, "GB/s", "somewhere", lambda: 0.0, "gave ddr_total")
    tested = Point("b", 100.0, "GB/s", "elsewhere", lambda: 0.0, "tiles are ours")
    found = [Result(given, 101.0, 0.01), Result(tested, 90.0, -0.1)]
    table = reference.accuracy(found)
    assert table.rows[1][:5] == ["b", "100", "90", "GB/s", "-10.0 %"]
    assert "no test: the constant `ddr_total` was taken from this measurement" in table.notes
    assert [reference.deviation(result).fitted for result in found] == [True, False]


def test_calibration_has_every_point() -> None:
    rows = reference.calibration().rows
    assert len(rows) == len(POINTS)
    assert [row[4] for row in rows].count("fitted to it") == sum(point.use == "calibrated" for point in POINTS)
    assert reference.kernel_costs().rows

"""The reference pages of the book, as tables made from what the simulator itself uses: devices, costs, accuracy, interface.

Nothing here is typed twice: a fact that changes in :mod:`npusim.devices` or :mod:`npusim.costs`, or a name that a frontend
serves, is on the page at the next build.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from npulab.draw.errors import Deviation
from npulab.tables import Notes, Table
from npusim.costs import SCALAR, Costs
from npusim.devices import NPU1, NPU2, Device, Fact, TileLimits

if TYPE_CHECKING:
    from npusim.accuracy import Result

SURE = {"H": "high", "M": "medium", "L": "low"}
"""How sure a fact is: read in code or a manual, or measured by a named source; one secondary source; a reconstruction."""
DEVICE_ROWS = {
    "clock": "Clock",
    "stream": "One stream, one DMA channel",
    "macs": "Peak of a compute tile",
    "load_bytes": "A core loads",
    "store_bytes": "A core stores",
    "cascade_bytes": "Cascade",
    "ddr_read": "DDR, reading",
    "ddr_write": "DDR, writing",
    "ddr_total": "DDR, both together",
}
TILE_ROWS = {
    "memory": "Data memory",
    "banks": "Banks",
    "locks": "Locks",
    "lock_max": "Largest value of a lock",
    "s2mm": "DMA channels in (S2MM)",
    "mm2s": "DMA channels out (MM2S)",
    "bds": "Buffer descriptors",
    "bds_per_channel": "of these, within reach of a channel",
    "dims": "Dimensions of a descriptor",
    "size_max": "Largest size of a dimension",
    "stride_max": "Largest stride",
    "length_max": "Longest transfer",
    "iteration_max": "Most iterations",
    "ports": "Stream switch, out and in",
}
ELEMENT = {"i8": "int8", "i16": "int16", "bf16": "bf16", "bfp16": "BFP16"}


def quantity(fact: Fact[Any]) -> str:
    """A fact's value in a unit that reads well."""
    value, unit = fact.value, fact.unit
    if unit == "Hz":
        return f"{value / 1e9:g} GHz"
    if unit == "B/s":
        return f"{value / 1e9:g} GB/s"
    if unit == "ports":
        return ", ".join(f"{side} {out} / {into}" for side, (out, into) in value.items())
    if isinstance(value, dict):
        return ", ".join(f"{ELEMENT[kind]} {n}" for kind, n in value.items()) + f" {unit.removesuffix('/tile')}"
    if unit == "B":
        return f"{value // 1024} KiB" if value else "none"
    words = unit if unit in ("B/cycle", "words", "elements", "cycles", "ns") else ""
    words = words.removesuffix("s") if value == 1 and words != "ns" else words
    return f"{value:,} {words}".strip() if value else "none"


def _cell(fact: Fact[Any], notes: Notes) -> str:
    text = fact.source + (f". {fact.note[:1].upper()}{fact.note[1:]}" if fact.note else "")
    return f"{quantity(fact)} ({SURE[fact.confidence]}) {notes.mark(text)}"


def devices() -> Table:
    """Both NPUs side by side: shape, rates and peaks."""
    notes = Notes()
    both = (NPU1, NPU2)
    shape = notes.mark("Counted in MLIR-AIE's target model")
    rows = [
        ["Compute tiles", *(f"{d.compute_tiles}, in {d.columns} columns of {d.rows - 2} (high) {shape}" for d in both)],
        ["MemTiles, shim tiles", *(f"{d.columns} and {d.columns} (high) {shape}" for d in both)],
    ]
    rows += [[text, *(_cell(getattr(d, name), notes) for d in both)] for name, text in DEVICE_ROWS.items()]
    header = ("", "XDNA 1 (`npu1`)", "XDNA 2 (`npu2`)")
    return Table(header, rows, "The two devices, with the confidence of each value", notes.texts)


def tiles() -> Table:
    """What each kind of tile has; the same on both devices."""
    notes = Notes()
    kinds: tuple[TileLimits, ...] = (NPU2.core, NPU2.mem, NPU2.shim)
    rows = [[text, *(_cell(getattr(kind, name), notes) for kind in kinds)] for name, text in TILE_ROWS.items()]
    return Table(
        ("", "Compute tile", "MemTile", "Shim tile"), rows, "One tile of each kind, on both devices", notes.texts
    )


def bandwidths() -> Table:
    """The sums over all channels of a level, one way, by arithmetic."""
    rows = []
    for level, row in (("Shim DMA", 0), ("MemTile DMA", 1), ("Compute-tile DMA", 2)):
        rows.append([level, *(_bandwidth(device, row) for device in (NPU1, NPU2))])
    return Table(("", "XDNA 1 (`npu1`)", "XDNA 2 (`npu2`)"), rows, "All DMA channels of a level together, one way")


def _bandwidth(device: Device, row: int) -> str:
    count = device.columns * (device.rows - 2 if row > 1 else 1)
    rate = count * device.limits(row).mm2s.value * device.stream_bytes_per_cycle
    return f"{rate:,} B/cycle, {rate * device.clock_hz / 1e9:.1f} GB/s at {device.clock_hz / 1e9:g} GHz"


def peaks() -> Table:
    """The compute ceilings: what all multipliers could do if nothing else took time."""
    rows = []
    for kind, text in ELEMENT.items():
        rows.append([text, *(_peak(device, kind) for device in (NPU1, NPU2))])
    return Table(
        ("", "XDNA 1 (`npu1`)", "XDNA 2 (`npu2`)"), rows, "Compute ceilings of the whole array, two operations a MAC"
    )


def _peak(device: Device, kind: str) -> str:
    macs = device.macs.value.get(kind)
    if macs is None:
        return "none"
    each = 2 * macs * device.compute_tiles
    return f"{each:,} a cycle, {each * device.clock_hz / 1e12:.1f} T/s"


# ---- costs and accuracy


def costs() -> Table:
    """Every constant of the time model, with where it comes from."""
    return _constants(Costs().facts(), "Constants of the time model")


def scalar_costs() -> Table:
    """Cycles of a scalar operation of a core."""
    return _constants(SCALAR.items(), "Scalar operations of a core")


def _constants(facts: Any, caption: str) -> Table:
    rows = [
        [f"`{name}`", quantity(fact), SURE[fact.confidence], fact.source + (f" ({fact.note})" if fact.note else "")]
        for name, fact in facts
    ]
    return Table(("Constant", "Value", "Confidence", "Source"), rows, caption, right=(1,))


def accuracy(found: Sequence[Result]) -> Table:
    """Published measurements beside simulated ones (:func:`npusim.accuracy.results`)."""
    notes = Notes()
    rows = []
    for point, simulated, error in found:
        marks = notes.mark(point.source) + (f" {notes.mark(_origin(point.note))}" if point.note else "")
        rows.append(
            [point.name, f"{point.published:.4g}", f"{simulated:.4g}", point.unit, f"{100 * error:+.1f} %", marks]
        )
    header = ("", "★ published", "■ simulated", "unit", "error", "notes")
    return Table(header, rows, "Published measurements, and the same designs simulated", notes.texts, right=(1, 2, 4))


def _origin(note: str) -> str:
    given = note.removeprefix("gave ")
    return note if given == note else f"no test: the constant `{given}` was taken from this measurement"


DESIGNS = {
    "fused": "npu2: attention, fused (AIR)",
    "iron": "npu2: attention, pipelines (IRON)",
    "hand_npu1": "npu1 at 1.8 GHz: matrix kernel, estimate",
    "hand_npu2": "npu2: matrix kernel, estimate",
}
USES = {"calibrated": "fitted to it", "set aside": "not used", "compare": "compared only"}


def calibration() -> Table:
    """What is left over at each point that the cycle models of our kernels were fitted to or are compared with."""
    from designs.kernels.calibration import residuals

    notes = Notes()
    rows = []
    for point in residuals():
        times = [f"{float(str(point[key])):.4g}" for key in ("published_ms", "estimated_ms")]
        error = f"{round(float(str(point['error_percent'])), 1) + 0:+.1f} %"
        rows.append([_name(point), *times, error, USES[str(point["use"])], notes.mark(str(point["source"]))])
    header = ("", "★ published (ms)", "estimated (ms)", "error", "use", "source")
    return Table(header, rows, "The kernels' cycle models against published times", notes.texts, right=(1, 2, 3))


def kernel_costs() -> Table:
    """The constants behind the cycle models of our attention kernels."""
    from designs.kernels.cycles import table

    rows = [
        [f"`{row['name']}`", f"{row['value']:.4g} {row['unit']}", SURE[str(row["confidence"])], str(row["source"])]
        for row in table()
    ]
    return Table(("Constant", "Value", "Confidence", "Source"), rows, "Constants of the kernels' cycle models")


def deviation(result: Result) -> Deviation:
    """A point of :func:`accuracy` for the picture of errors."""
    return Deviation(result.point.name, result.error, result.point.note.startswith("gave "))


def deviation_of(point: Mapping[str, object]) -> Deviation:
    """A point of :func:`calibration` for the picture of errors."""
    error = float(str(point["error_percent"])) / 100
    return Deviation(_name(point), error, point["use"] == "calibrated")


def _name(point: Mapping[str, object]) -> str:
    kind = DESIGNS[str(point["design"])]
    return f"{kind}, {point['length']:,} tokens, {point['heads']} heads" if point["heads"] else kind

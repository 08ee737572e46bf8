"""The mappings side by side for GPT-2 Small's heads (12, d = 64): simulated times, bytes, stages; beside them what is published.

``python -m designs.attention.compare`` prints the table, ``--write`` makes ``comparison.json``, which the book reads. Timing only;
nothing in it is measured on a device but what is marked published.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import npulab
from designs.attention import report, tables
from designs.attention import run as running
from designs.attention.parameters import NAMES, TILES, Name, Parameters
from designs.kernels.calibration import POINTS
from npusim.costs import Costs
from npusim.report import LEVELS

DATA = Path(__file__).with_name("comparison.json")
LENGTHS = (256, 512, 1024, 2048, 4096, 8192, 16384, 32768)
HEADS = 12
NO_HOST = Costs().having(task_push=0, task_push_first=0)
"""Transfers that the host starts in no time: what the array alone would do."""


def simulated(name: Name, device: str, length: int, **options: Any) -> dict[str, Any]:
    """A row: milliseconds, GFLOP/s (full count), bytes and FLOP/B a level, busy share of every stage, the limiting one; what was
    predicted from the description; and where the array waits for the host, milliseconds if its tasks cost no time.

    ``options`` go to :func:`designs.attention.run.run`.
    """
    done = running.run(running.mapping(name), Parameters(lq=length, num_heads=HEADS), device, data=False, **options)
    assert done.run.traffic is not None and done.run.cycles is not None
    slowest, before = running.limiting(done.run), report.predicted(done)
    row = {
        "mapping": name,
        "device": device,
        "length": length,
        "kind": "simulated",
        "clock_hz": done.run.device.clock_hz,
        "tiles": before.description.tiles,
        "ms": tables.digits(done.run.seconds * 1e3),
        "gflops": tables.digits((done.run.flops_per_second or 0) / 1e9),
        "bytes": {level: [done.run.traffic[level].read, done.run.traffic[level].written] for level in LEVELS},
        "intensity": {level: tables.digits(done.run.intensity(level) or 0) for level in LEVELS},
        "stages": {use.name: {"busy": tables.digits(use.busy), "share": tables.digits(use.share)} for use in running.stages(done.run)},
        "limiting": slowest.name,
        "predicted": {
            "ms": tables.digits(before.seconds * 1e3),
            "slowest": before.slowest,
            "balance": tables.digits(before.balance),
            "most_gflops": tables.digits(before.most_flops_per_second / 1e9),
            "limit": before.limit,
            "ridges": {level: tables.digits(before.ridge(level)) for level in LEVELS},
        },
    }
    if any(phase.tasks for phase in before.description.phases):
        free = running.run(done.mapping, Parameters(lq=length, num_heads=HEADS), device, data=False, **{**options, "costs": NO_HOST})
        row["ms_without_host"] = tables.digits(free.run.seconds * 1e3)
    return row


def published() -> list[dict[str, Any]]:
    """Measurements on XDNA 2 by others, with their source; whether they were used to calibrate the kernels is said."""
    rows = []
    for point in POINTS:
        if point.design in ("fused", "iron"):
            flops = 4 * point.heads * point.length**2 * 64
            rows.append(
                {
                    "mapping": point.design,
                    "device": "npu2",
                    "length": point.length,
                    "heads": point.heads,
                    "kind": "published",
                    "ms": tables.digits(point.seconds * 1e3),
                    "gflops": tables.digits(flops / point.seconds / 1e9),
                    "use": point.use,
                    "source": point.source,
                }
            )
    return rows


def curve(rows: Iterable[Mapping[str, Any]], name: Name, device: str, kind: str = "simulated") -> tuple[list[int], list[float]]:
    """(lengths, TFLOP/s) of a mapping on a device, from rows of one kind."""
    mine = [r for r in rows if (r["mapping"], r["device"], r["kind"]) == (name, device, kind)]
    return [r["length"] for r in mine], [r["gflops"] / 1e3 for r in mine]


# ---- fused over streaming


@dataclass(frozen=True)
class Gain:
    """How many times faster the fused mapping is than the IRON one: as simulated, if the host's tasks cost no time, and what is
    published (least, most); ``tiles`` is how many times more compute tiles it uses."""

    device: str
    length: int
    simulated: float
    without_host: float
    tiles: float
    published: tuple[float, float] | None

    @property
    def per_tile(self) -> float:
        """The simulated gain of a tile."""
        return self.simulated / self.tiles


PUBLISHED_GAINS = {256: (3.91, 3.91), **dict.fromkeys((1024, 2048, 4096, 8192, 16384, 32768), (1.95, 2.01))}
"""On XDNA 2, by length, from a published review of the case study (arXiv 2026), which gives 3.91 and a range."""


def gains(rows: Iterable[Mapping[str, Any]]) -> list[Gain]:
    """Of every device and length in a table of :func:`simulated` rows."""
    of = {(r["mapping"], r["device"], r["length"]): r for r in rows if r["kind"] == "simulated"}
    found = []
    for name, device, length in of:
        if name == "fused":
            fused, iron = of[name, device, length], of["iron", device, length]
            ms, free = iron["ms"] / fused["ms"], iron["ms_without_host"] / fused["ms_without_host"]
            published = PUBLISHED_GAINS.get(length) if device == "npu2" else None
            found.append(Gain(device, length, ms, free, fused["tiles"] / iron["tiles"], published))
    return found


def published_range(found: Iterable[Gain]) -> tuple[list[int], list[float], list[float]]:
    """(lengths, least, most) of the gains of which only a range is published, the same for all of them: no measurement of
    any one length."""
    known = [(gain.length, *gain.published) for gain in found if gain.published and gain.published[0] < gain.published[1]]
    return [n for n, _, _ in known], [low for _, low, _ in known], [high for _, _, high in known]


def table(names: Iterable[Name], devices: Sequence[str] = ("npu1", "npu2"), lengths: Sequence[int] = LENGTHS) -> list[dict[str, Any]]:
    """All simulated rows."""
    return [
        simulated(name, device, length) for name in names for device in devices if device in TILES[name] for length in lengths
    ]


def main(argv: Sequence[str] | None = None) -> None:
    """Print or write the table."""
    options = argparse.ArgumentParser(prog="python -m designs.attention.compare", description="Compare the mappings (simulated).")
    options.add_argument("--write", action="store_true", help=f"write {DATA.name}")
    options.add_argument("--longest", type=int, default=LENGTHS[-1], help="leave out longer sequences")
    given = options.parse_args(argv)
    npulab.use("sim", quiet=True)
    rows = [*table(NAMES, lengths=[n for n in LENGTHS if n <= given.longest]), *published()]
    if given.write:
        tables.write(DATA, rows)
        return
    for row in rows:
        last = row.get("limiting") or row["source"]
        print(f"{row['mapping']:10} {row['device']} {row['length']:6} {row['ms']:10.4g} ms {row['gflops']:7.4g} GFLOP/s  {row['kind']}  {last}")
    for gain in gains(rows):
        said = f", published {gain.published[0]} to {gain.published[1]}" if gain.published else ""
        print(
            f"fused over IRON {gain.device} {gain.length:6} {gain.simulated:.2f} simulated ({gain.per_tile:.2f} a tile), "
            f"{gain.without_host:.2f} without the host's time{said}"
        )


if __name__ == "__main__":
    main()

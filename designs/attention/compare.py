"""The mappings side by side for GPT-2 Small's heads (12, d = 64): simulated times, bytes, stages; beside them what is published.

``python -m designs.attention.compare`` prints the table, ``--write`` makes ``comparison.json``, which the book reads. Timing only;
nothing in it is measured on a device but what is marked published.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import npulab
from designs.attention import report
from designs.attention import run as running
from designs.attention.parameters import NAMES, TILES, Name, Parameters
from designs.kernels.calibration import POINTS
from npusim.report import LEVELS

DATA = Path(__file__).with_name("comparison.json")
LENGTHS = (256, 512, 1024, 2048, 4096, 8192, 16384, 32768)
HEADS = 12


def simulated(name: Name, device: str, length: int, **options: Any) -> dict[str, Any]:
    """A row: milliseconds, GFLOP/s (full count), bytes and FLOP/B a level, busy share of every stage, the limiting one; and what
    was predicted from the description.

    ``options`` go to :func:`designs.attention.run.run`.
    """
    done = running.run(running.mapping(name), Parameters(lq=length, num_heads=HEADS), device, data=False, **options)
    assert done.run.traffic is not None and done.run.cycles is not None
    slowest, before = running.limiting(done.run), report.predicted(done)
    return {
        "mapping": name,
        "device": device,
        "length": length,
        "kind": "simulated",
        "clock_hz": done.run.device.clock_hz,
        "tiles": before.description.tiles,
        "ms": _digits(done.run.seconds * 1e3),
        "gflops": _digits((done.run.flops_per_second or 0) / 1e9),
        "bytes": {level: [done.run.traffic[level].read, done.run.traffic[level].written] for level in LEVELS},
        "intensity": {level: _digits(done.run.intensity(level) or 0) for level in LEVELS},
        "stages": {use.name: {"busy": _digits(use.busy), "share": _digits(use.share)} for use in running.stages(done.run)},
        "limiting": slowest.name,
        "predicted": {
            "ms": _digits(before.seconds * 1e3),
            "slowest": before.slowest,
            "balance": _digits(before.balance),
            "most_gflops": _digits(before.most_flops_per_second / 1e9),
            "limit": before.limit,
            "ridges": {level: _digits(before.ridge(level)) for level in LEVELS},
        },
    }


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
                    "ms": _digits(point.seconds * 1e3),
                    "gflops": _digits(flops / point.seconds / 1e9),
                    "use": point.use,
                    "source": point.source,
                }
            )
    return rows


def _digits(value: float) -> float:
    return float(f"{value:.5g}")


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
        DATA.write_text("[\n" + ",\n".join(json.dumps(row) for row in rows) + "\n]\n")
        return
    for row in rows:
        last = row.get("limiting") or row["source"]
        print(f"{row['mapping']:10} {row['device']} {row['length']:6} {row['ms']:10.4g} ms {row['gflops']:7.4g} GFLOP/s  {row['kind']}  {last}")


if __name__ == "__main__":
    main()

"""The checks of the chapter's exercises: what is wanted, and a hint for each mistake that people make.

Here and not in the notebook, so that nobody reads an answer or a hint before having tried.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import redirect_stdout
from io import StringIO
from typing import Any

import numpy as np
from ml_dtypes import bfloat16

import npulab
from designs.covariance import models, reference
from designs.covariance.reference import FEATURES, SAMPLES, SQUARE, WINDOW, Dials
from npulab import check, roofline
from npulab.record import Run
from npusim.devices import NPU1

COLUMNS, SLOW, FAST = 4, 1.0e9, 1.8e9
BEST = Dials(64, 2, 1)


def faster(ridge_tile: Any, ridge_slow: Any, ridge_fast: Any, speedup: Any) -> None:
    """Exercise 1: mapping D on all of XDNA 1 at 1.0 and at 1.8 GHz, bytes counted each way."""
    tile = models.ceilings(NPU1)["compiled kernel"]
    ceiling, ddr = tile * NPU1.compute_tiles, NPU1.ddr_read.value
    slow, fast = ceiling * SLOW / ddr, ceiling * FAST / ddr
    upside_down = "a ridge point is a ceiling over a bandwidth, FLOP per byte"
    at_tile = [
        (tile / 8, "X comes by one channel of 4 B/cycle; the other one that is in use carries C away"),
        (ceiling / 4, "that is the ceiling of 16 tiles over the channel of one"),
        (4 / tile, upside_down),
    ]
    check.number(ridge_tile, tile / 4, unit="FLOP/B", name="ridge_tile", mistakes=at_tile)
    at_ddr = [
        (slow / 2, "each way: what DDR delivers in one direction, 28.1 GB/s"),
        (slow / NPU1.compute_tiles, "all 16 tiles draw on the same DDR"),
        (1 / slow, upside_down),
        (ceiling / 28.1e9, "put both into the same unit: FLOP/s over B/s, or FLOP/cycle over B/cycle"),
    ]
    check.number(ridge_slow, slow, unit="FLOP/B", name="ridge_slow", mistakes=at_ddr)
    clock = [
        (slow, "DDR's bytes a second know nothing of the NPU's clock, but the ceiling in FLOP/s grows with it"),
        (slow / 1.8, "a faster clock lifts the ceiling, so the ridge moves to the right"),
        (fast / 2, "each way: what DDR delivers in one direction, 28.1 GB/s"),
    ]
    check.number(ridge_fast, fast, unit="FLOP/B", name="ridge_fast", mistakes=clock)
    intensity = reference.flops(1) / BEST.traffic(1)["ddr"][0]
    limit = [
        (1.8, "that is what the cores could do; is D still to the right of DDR's ridge?"),
        (1.0, "at 1.0 GHz DDR has room left, so a faster clock does help"),
        (intensity / fast, "that is what is left of the ceiling at 1.8 GHz; compare it with the ceiling at 1.0 GHz"),
    ]
    check.number(speedup, min(1.8, 1.8 * intensity / fast), name="speedup", rtol=0.02, mistakes=limit)
    windows = 512
    runs = [_run(BEST, COLUMNS, windows, device="npu1", clock_hz=hz) for hz in (SLOW, FAST)]
    for run in runs:
        print(f"{run.device.clock_hz / 1e9} GHz:", _bound(run, windows, BEST).compare(run))
    print(f"The run at 1.8 GHz: {runs[0].seconds / runs[1].seconds:.2f} times as fast (simulated).")
    print("That is more than the bounds give, since the run at 1.0 GHz is further from its own.")


def _run(dials: Dials, columns: int, windows: int, **options: Any) -> Run:
    """A run of the design for its time alone."""
    arrays = [np.zeros(windows * n // 2, bfloat16) for n in (WINDOW, SQUARE)]
    how = {"rows": dials.rows, "share": dials.share, "keep": dials.keep, "columns": columns, "windows": windows}
    return npulab.run(
        "designs.covariance.design", arrays, flops=reference.flops(windows), data=False, trace=False, **how, **options
    )


def wanted(dials: Dials) -> dict[str, float]:
    """FLOP/B: both ways at DDR, what a MemTile reads, what arrives at the tiles."""
    moved, flops = dials.traffic(1), reference.flops(1)
    return {"ddr": flops / sum(moved["ddr"]), "memtile": flops / moved["memtile"][0], "l1": flops / moved["l1"][1]}


def intensities(answer: Callable[[int, int, int], Mapping[str, Any]]) -> None:
    """Exercise 2: a function of (rows, share, keep) to FLOP/B at each level."""
    check.filled(answer, "intensities")
    cases = [(16, 1, 1), (16, 4, 2), (32, 2, 2), (64, 2, 1), (16, 2, 4)]
    with redirect_stdout(StringIO()):  # a line for each number would be too many
        for rows, share, keep in cases:
            given = check.filled(answer(rows, share, keep), "intensities(...)")
            want = wanted(Dials(rows, share, keep))
            for level, mistakes in _intensity_mistakes(rows, share, keep).items():
                name = f"intensities({rows}, {share}, {keep})[{level!r}]"
                check.number(given.get(level), want[level], unit="FLOP/B", name=name, rtol=0.001, mistakes=mistakes)
    print(f"ok: all three levels are right, for {len(cases)} settings of the dials")


def _intensity_mistakes(rows: int, share: int, keep: int) -> dict[str, list[tuple[float, str]]]:
    flops, once = reference.flops(1), FEATURES // rows
    sent, read = once // share, once // share // keep
    staged = SQUARE if share > 1 else 0
    return {
        "l1": [
            (flops / (once * WINDOW + SQUARE), "what arrives at the tiles is X alone; C leaves by other channels"),
            (rows * share, "a broadcast is read once, but it arrives `share` times, and each arrival counts here"),
            (flops / WINDOW, "X arrives once for every band of `rows` rows, 128 / rows times in all"),
        ],
        "memtile": [
            (flops / (sent * WINDOW), "C passes through the MemTile too, if bands from several tiles meet there"),
            (flops / (sent * WINDOW + SQUARE), "with share = 1 there is nothing to put side by side: C goes past the MemTile"),
            (flops / (once * WINDOW + staged), "one broadcast serves `share` tiles, and the MemTile reads it once"),
            (flops / (read * WINDOW + staged), "a kept window is sent `keep` times, and read from the MemTile each time"),
            (flops / (sent * WINDOW + read * WINDOW + 2 * staged), "one way: what the MemTile's channels read"),
        ],
        "ddr": [
            (flops / (read * WINDOW), "C is written to DDR, and here both ways count"),
            (flops / (sent * WINDOW + SQUARE), "what the MemTile keeps is not read from DDR again"),
            (flops / (once * WINDOW + SQUARE), "what is shared or kept is not read from DDR again"),
            (flops / (WINDOW + SQUARE), "unless everything is shared and kept, X comes from DDR several times"),
        ],
    }  # fmt: skip


# ---- 3: both of a tile's channels


def program(halves: Any, c_host: Any, workers: Any, windows: int) -> Any:
    """The host's side of exercise 3: the left half of every window to the first stage, the right half to the second."""
    import aie.iron as iron
    from aie.helpers.taplib import TensorAccessPattern
    from aie.iron import Program, Runtime

    from designs.covariance.design import host_types, sequence, walks

    size, half = FEATURES * SAMPLES, SAMPLES // 2
    steps = [1, windows, FEATURES, half], [0, size, SAMPLES, 1]
    into = [TensorAccessPattern([windows * size], i * half, *steps) for i in range(len(halves))]
    ends = [[host.prod() for host, _ in halves], [c_host.cons()]]
    runtime = Runtime(sequence, [*host_types(windows), *ends, into, walks(1, windows, 1)[1]])
    return Program(iron.get_current_device(), runtime, workers=workers).resolve_program()


def both(design: Any, windows: int = 16) -> Run:
    """Exercise 3: rows = 16, share = 4, keep = 2 on one column, each tile fed by both of its channels. Returns the run."""
    x = np.random.default_rng(5).standard_normal((windows, FEATURES, SAMPLES)).astype(bfloat16)
    x[:, 64:, 128:] *= 2  # so that the quarters of a window differ in size
    args = [x.reshape(-1), np.zeros(windows * SQUARE // 2, bfloat16)]
    one = npulab.run("designs.covariance.design", args, rows=16, share=4, keep=2, windows=windows)
    run = check.runs(
        design, args, windows=windows, keep=2, flops=reference.flops(windows), name="both channels", errors=_BOTH_ERRORS
    )
    want = reference.covariance(x)
    atol = 0.02 * float(np.abs(want).max())
    rule = "each stage is for windows of SAMPLES // 2 samples; each block is taken, multiplied and released once"
    check.close(run.output.reshape(want.shape), want, atol=atol, mistakes=_both_mistakes(x, atol), hint=rule)
    missing = "each tile takes a stream from either stage (both in column 0) and sends one out"
    check.structure(run, tiles=4, dma_channels=12, memtiles=1, hint=missing)
    assert one.cycles is not None
    check.cost(
        run,
        level="ddr",
        bytes=windows * (WINDOW + SQUARE),
        cycles=(0.512 * one.cycles, 0.6 * one.cycles),
        hint="take a block from one stream, then one from the other: whoever waits for one alone holds up both",
    )
    print(f"one channel {one.cycles:,.0f} cycles, both {run.cycles:,.0f} (simulated)")
    print(_bound(run, windows, Dials(16, 4, 2)).compare(run))
    return run


def _bound(run: Run, windows: int, dials: Dials) -> roofline.Prediction:
    ceiling = models.ceilings(run.device, dials.rows)["compiled kernel"]
    roof = roofline.used_by(run, flops_per_cycle_and_tile=ceiling, convention="by level")
    return roofline.predict(reference.flops(windows), dials.traffic(windows), roof)


_BOTH_ERRORS = [
    (
        "never acquires|never (filled|given|produced)|nobody consumes",
        "take blocks from both streams: half of a window's come on each",
    ),
    (
        "waits for a full buffer|waits for a free buffer",
        "either stream brings 4 blocks a window (SAMPLES // BLOCK // 2), `keep` times: that takes two stages, both told of "
        "`keep`, and every block released",
    ),
    (
        "values to unpack|object of NoneType|is not iterable",
        "halves holds two pairs: what stage_in returns for the left halves, and for the right ones",
    ),
    ("takes .* arguments|missing .* argument", "the body's parameters and Worker's list must agree, item by item"),
    ("two ObjectFifos are named", "the two stages need names of their own"),
]


def _both_mistakes(x: Any, atol: float) -> list[tuple[Any, str]]:
    """Results that tell what went wrong."""
    half = SAMPLES // 2
    left, right = (reference.covariance(part) for part in (x[..., :half], x[..., half:]))
    left_first, right_first = (reference.covariance(x[0, :, at : at + models.BLOCK]) for at in (0, half))

    def like(value: Any) -> Callable[[Any, Any], bool]:
        return lambda got, want: bool(np.allclose(got, value, atol=atol))

    return [
        (lambda got, want: not got.any(), "everything is 0: take_rows, then multiply, for each block"),
        (like(left), "that is the covariance of the left halves alone: the blocks of the second stream are missing"),
        (like(right), "that is the covariance of the right halves alone: the blocks of the first stream are missing"),
        (like(2 * left), "the left halves are counted twice, the right ones not at all"),
        (like(2 * right), "the right halves are counted twice, the left ones not at all"),
        (like(left + 4 * right_first), "the right halves' first block is used again and again: release each block"),
        (like(right + 4 * left_first), "the left halves' first block is used again and again: release each block"),
        (_bands_alike, "all bands are alike: which band a tile makes depends on `kept` and `mine`"),
    ]


def _bands_alike(got: Any, want: Any) -> bool:
    bands = np.asarray(got).reshape(len(got), -1, 16, FEATURES)
    return any(np.array_equal(bands[:, i], bands[:, j]) for i in range(bands.shape[1]) for j in range(i))

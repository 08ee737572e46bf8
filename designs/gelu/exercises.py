"""The checks of the chapter's exercises: what is wanted, and a hint for each mistake that people make.

Here and not in the notebook, so that nobody reads an answer or a hint before having tried.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

import npulab
from designs.gelu import models, reference
from designs.gelu.bound import kernel_cycles
from npulab import check
from npulab.check.failure import fail, ok
from npulab.record import Run
from npusim.devices import NPU2

FEATURES = reference.FEATURES
DDR = NPU2.ddr_total.value / NPU2.clock_hz  # B/cycle, both directions together


def two_inputs(most_rows: Any, column_rate: Any, full_columns: Any) -> None:
    """Exercise 1: z = x + y by hand, x and y split and z joined by the MemTile of each column."""
    check.number(
        most_rows,
        2,
        unit="rows",
        name="most_rows",
        mistakes=[
            (3, "two parts to each tile make six; but z goes from the MemTile to the shim tile as well"),
            (4, "count what leaves the MemTile: a part of x and a part of y for each tile, and z"),
            (5, "each tile needs two parts now"),
        ],
    )
    check.number(
        column_rate,
        12,
        unit="B/cycle",
        name="column_rate",
        mistakes=[
            (8, "x, y and z each have a channel of the shim tile"),
            (16, "a shim tile has four channels, of which this uses three"),
            (4, "that is one channel"),
            (20, "five channels lead out of the MemTile, but asked is what comes from DDR and goes there"),
            (96, "count the shim tile's channels: what passes a MemTile has come through them, or will go"),
        ],
    )
    check.number(
        full_columns,
        DDR / 12,
        unit="columns",
        rtol=0.02,
        name="full_columns",
        mistakes=[
            (DDR / 8, "that is GELU's: a column moves more now"),
            (66.6 / 12, "GB/s and B/cycle are different units: divide by the clock"),
            (12 / DDR, "the other way round"),
            (3, "three leave a little of DDR unused; give the number as it is divided, not rounded"),
            (4, "3.1 means: a little more than three; give the number as it is divided"),
        ],
    )


def owner(token: int, tokens: int, columns: int, rows: int) -> tuple[int, int]:
    """(column, row) of the tile that computes a token's row, rows from 0 for the lowest."""
    share = tokens // columns
    return token // share, token % share % rows


def parts(part: Any, tokens: int = 32, columns: int = 2, rows: int = 4) -> list[Any]:
    """Exercise 2: the rows of x that each tile computes, as access patterns in the order of the tiles. Returns them."""
    check.filled(part, "part")
    made = [_pattern(part, column, row) for column in range(columns) for row in range(rows)]
    for (column, row), pattern in zip(((c, r) for c in range(columns) for r in range(rows)), made):
        mine = [t for t in range(tokens) if owner(t, tokens, columns, rows) == (column, row)]
        _check_part(pattern, mine, f"part({column}, {row})", tokens, columns, rows)
    ok(f"each of the {columns * rows} tiles has its {tokens // columns // rows} rows, in order, and no row has two tiles")
    return made


def _pattern(part: Callable[[int, int], Any], column: int, row: int) -> Any:
    got = check.filled(part(column, row), f"part({column}, {row})")
    if not hasattr(got, "sizes"):
        fail(f"part({column}, {row}) is a {type(got).__name__}", hint="return a TensorAccessPattern")
    return got


def _check_part(pattern: Any, mine: list[int], name: str, tokens: int, columns: int, rows: int) -> None:
    got = np.array(list(pattern.access_generator()))
    want = (np.array(mine)[:, None] * FEATURES + np.arange(FEATURES)).ravel()
    if np.array_equal(got, want):
        return
    share, each = tokens // columns, tokens // columns // rows
    start = got[0] // FEATURES if got.size else -1
    hint = "the rows of a tile are as far apart as there are tiles in its column"
    if got.size != want.size:
        hint = f"a tile has {each} rows of FEATURES elements each, and its pattern touches {got.size:,} elements"
    elif got[0] % FEATURES:
        hint = "an offset counts elements: a row has FEATURES of them"
    elif start == mine[0] and np.array_equal(np.unique(got // FEATURES), np.arange(start, start + each)):
        hint = "those are rows next to each other; the MemTile deals the rows out one by one, like cards"
    elif start < share <= mine[0]:
        hint = f"column 1 begins with row {share}: each column has a share in one piece"
    elif start != mine[0]:
        hint = f"the first row of this tile is row {mine[0]}"
    fail(f"{name} is not what that tile computes", f"its first row should be {mine[0]}, then {mine[1]}", hint=hint)


def fast_kernel() -> dict[str, Any]:
    """The kernel in half the cycles."""
    slow = models.MODELS["bias_gelu_bf16"]
    return {"bias_gelu_bf16": replace(slow, cycles=lambda *rows, device: slow.cycles(*rows, device=device) // 2)}


def timed(columns: Any, rows: Any, tokens: int) -> Run:
    """The time of a part of the array with the fast kernel; no data is computed."""
    x, bias, _ = reference.inputs(1)
    matrix = np.broadcast_to(x, (tokens, FEATURES))
    part = {"tokens": tokens, "columns": columns, "rows": rows}
    how: dict[str, Any] = {"data": False, "trace": False, "kernels": fast_kernel(), "name": f"{columns} x {rows} tiles"}
    return check.runs("designs.gelu.design", [matrix, bias, matrix], **how, **part)


def fewest(columns: Any, rows: Any, tokens: int = 10_080) -> Run:
    """Exercise 3: the smallest part of the array that is as fast, to two per cent, as all of it, when the kernel takes half the
    cycles. Returns its run."""
    check.filled(columns, "columns")
    check.filled(rows, "rows")
    run, best = timed(columns, rows, tokens), timed(8, 4, tokens)
    if (times := run.seconds / best.seconds) > 1.02:
        what = f"{columns} x {rows} tiles take {times:.2f} times as long as all 32 tiles (simulated)"
        fail(what, hint=_why(columns, rows))
    if (tiles := columns * rows) > 5:
        better = "how many tiles of a column can its channel keep busy, with this kernel?"
        fail(f"fast enough, but {tiles} tiles are more than it takes", hint=better if rows > 1 else "how many columns does DDR keep busy?")
    ok(f"{columns} x {rows} tiles are as fast as all 32 tiles, and no fewer are")
    return run


def _why(columns: int, rows: int) -> str:
    """What holds up a part of the array with the fast kernel: its tiles or its shim channels."""
    tiles, channels = kernel_cycles("npu2") / 2 / (columns * rows), 2 * FEATURES / 4 / columns
    if tiles > channels:
        return "the tiles are the limit here: each needs its time for a row, and there are too few of them"
    return "the doors are the limit here: more columns would help, more rows do not"


def two_doors(design: Any, tokens: int = 256) -> Run:
    """Exercise 4: two streams in and two out for a column of four tiles. Returns the run."""
    x, bias, y = reference.inputs(tokens, seed=4)
    plain = npulab.run("designs.gelu.design", [x, bias, y], tokens=tokens, columns=1, rows=4, data=False, trace=False)
    errors = [
        ("_names|obj_types|offsets", "two parts: two offsets and two object types for each split and join"),
        ("cannot unpack|not enough values|too many values|not iterable", "return what column_fifos returns: the two ends for the host, and a list of (place, fifo, fifo)"),
        ("same tile|two workers|already", "pair 0 has the tiles in rows 2 and 3, pair 1 those in rows 4 and 5"),
        ("exists|same name|named|twice|duplicate", "each fifo needs a name of its own: let the pair be part of it"),
    ]
    run = check.runs(
        design, [x, bias, y], tokens=tokens, columns=1, errors=errors, flops=reference.FLOP_PER_ELEMENT * x.size, name="two doors"
    )
    check.close(run, reference.bias_gelu(x, bias), reference.RTOL, reference.ATOL)
    one = "each pair of tiles needs a fifo from the host and one to it, with a split and a join of two"
    check.structure(run, tiles=4, memtiles=1, shim_channels=5, memtile_channels=12, hint=one)
    assert plain.cycles is not None
    check.cost(run, level="ddr", bytes=sum(t.total for k, t in reference.traffic(tokens, 1, 4).items() if k == "ddr"))
    check.cost(run, cycles=0.6 * plain.cycles, hint="both streams must be able to run at the same time")
    return run

"""The checks of the chapter's exercises: what is wanted, and a hint for each mistake that people make.

Here and not in the notebook, so that nobody reads an answer or a hint before having tried.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

import npulab
from designs.matmul import reference
from designs.matmul.__main__ import execute, factors
from npulab import check, roofline
from npulab.check.failure import fail, ok
from npulab.draw.pattern import walk
from npulab.record import Run

DEVICE = "npu2"
SIZES = {"m": 32, "k": 64, "n": 128, "rows": 4, "columns": 8}
"""Of exercise 1, with M, K, N = 512, 512, 2048."""
STACK = 1024
"""Bytes of a core's stack."""


def tall(l1_bytes: Any, tile_intensity: Any, ddr_bytes: Any, limit: Any) -> Run:
    """Exercise 1: memory, intensities and limit of a 32x64 by 64x128 tile on 4 x 8 compute tiles. Returns the run."""
    M, K, N = 512, 512, 2048
    m, k, n, rows, columns = SIZES.values()
    a, b, c = 2 * m * k, 2 * k * n, 4 * m * n
    check.number(
        l1_bytes,
        2 * a + 2 * b + c,
        unit="B",
        name="l1_bytes",
        mistakes=[
            (a + b + c, "A and B have two buffers each, so that the next tile comes while this one is multiplied"),
            (a + 2 * b + c, "A has two buffers as well as B"),
            (2 * a + 2 * b, "A and B have two buffers each, and C one; its sums are in the tile, too"),
            (2 * a + 2 * b + c + STACK, "the buffers alone are asked for, without the stack"),
            (2 * (a + b + c), "there is only one tile of C: nobody else needs it while it is summed up"),
            (2 * a + 2 * b + c // 2, "the sums in C are float32, 4 bytes each"),
        ],
    )
    check.number(
        tile_intensity,
        m * n / (m + n),
        unit="FLOP/B",
        name="tile_intensity",
        mistakes=[
            (m * n / (m + n) / 2, "a multiplication and an addition are two operations"),
            (2 * m * n / (m + n), "a bf16 number has 2 bytes"),
            ((m + n) / (m * n), "operations over bytes, not the other way round"),
            (2 * m * k * n / (a + b + c), "without C: it leaves after all K/k steps, not after each"),
        ],
    )
    passes, blocks = N // (n * columns), M // (m * rows)
    moved = reference.traffic(M, K, N, m, n, rows, columns)
    check.number(
        ddr_bytes,
        sum(moved["ddr"]),
        unit="B",
        name="ddr_bytes",
        mistakes=[
            (2 * M * K + 2 * K * N + 4 * M * N, "each matrix once is the least; how often do A and B pass here?"),
            (2 * M * K * passes + 2 * K * N * blocks, "C has to get out: M N float32 numbers"),
            (2 * M * K * blocks + 2 * K * N * passes + 4 * M * N, "the other way round: A passes once for every 8 n columns of C, B once for every 4 m rows"),
            (2 * M * K * (N // n) + 2 * K * N * (M // m) + 4 * M * N, "that is what one compute tile alone would need: a tile of A goes to eight of them, one of B to four"),
            (2 * M * K * passes + 2 * K * N * blocks + 2 * M * N, "the sums in C are float32, 4 bytes each"),
        ],
    )
    check.equal(
        limit,
        "ddr",
        name="limit",
        mistakes=[
            ("compute", f"at the peak the cores take {2 * M * K * N / 16384:,.0f} cycles; compare what DDR takes"),
            ("memtile", "twice the bytes of DDR pass the MemTiles, over 256 B/cycle"),
            ("l1", "divide the bytes by the 384 B/cycle of 96 channels, and compare with DDR"),
        ],
        hint='one of "ddr", "memtile", "l1", "compute": the one that takes most cycles',
    )
    run = execute(*factors(M, K, N), DEVICE, **SIZES)
    print(roofline.predict(reference.flops(M, K, N), moved, roofline.used_by(run)).compare(run))
    return run


Dims = list[tuple[int, int]]


def _down(rows: int, cols: int, r: int, c: int) -> np.ndarray[Any, Any]:
    """The element indices that exercise 2 asks for, in order."""
    index = np.arange(rows * cols).reshape(rows // r, r, cols // c, c)
    return index.transpose(2, 0, 1, 3).ravel()


def _layouts(rows: int, cols: int, r: int, c: int) -> list[tuple[np.ndarray[Any, Any], str]]:
    """What common mistakes give, each with its hint."""
    index = np.arange(rows * cols).reshape(rows // r, r, cols // c, c)
    return [
        (index.transpose(0, 2, 1, 3).ravel(), "that goes to the right first; here the next block is the one below"),
        (index.transpose(2, 0, 3, 1).ravel(), "the elements within a block go row by row: its last dimension is c long, with stride 1"),
        (index.transpose(0, 2, 3, 1).ravel(), "both orders are the other way round: blocks go down, elements within a block row by row"),
        (index.ravel(), "that is the matrix row by row, as it lies"),
    ]


def downwards(by_columns: Callable[[int, int, int, int], Dims]) -> Any:
    """Exercise 2: the walk that gives micro tiles block column by block column. Returns its picture."""
    check.filled(by_columns, "by_columns")
    for rows, cols, r, c in ((64, 64, 8, 8), (64, 32, 4, 8), (48, 96, 8, 4)):
        dims = check.filled(by_columns(rows, cols, r, c), "the list of by_columns")
        _walk(dims, rows, cols, r, c)
    dims = by_columns(64, 32, 4, 8)
    ok("the blocks come column by column, for three sizes of tile and block")
    least = " (as good as the best known)" if len(dims) == 3 else "; 3 are possible"
    ok(f"{len(dims)} dimensions, of the 4 that a MemTile's descriptor has{least}")
    return npulab.draw.pattern(by_columns(16, 32, 4, 8), (16, 32), title="4 by 8 blocks, downwards")


def _walk(dims: Any, rows: int, cols: int, r: int, c: int) -> None:
    """CheckFailed unless the walk is the wanted one, and one that a descriptor can say."""
    case = f"by_columns({rows}, {cols}, {r}, {c}) gives {dims}"
    try:
        dims = [(int(size), int(stride)) for size, stride in dims]
    except (TypeError, ValueError):
        fail("by_columns gives no walk", case, hint="a list of pairs (size, stride), the outermost first, as blocked gives")
    if len(dims) > 4:
        fail("too many dimensions", case, hint="a MemTile's buffer descriptor has four of them")
    got, want = walk(dims), _down(rows, cols, r, c)
    if len(got) != len(want):
        hint = "the product of the sizes must be the number of elements: how many blocks are there each way, and how large is one?"
        fail(f"the walk has {len(got):,} steps for {rows * cols:,} elements", case, hint=hint)
    if np.array_equal(got, want):
        return
    step = int(np.argmax(got != want))
    known = next((hint for order, hint in _layouts(rows, cols, r, c) if np.array_equal(order, got)), "")
    if not known:
        known = "strides are in elements of the whole tile: the next row is cols away, the next block to the right c, the next below r * cols"
    fail("the order is not right", case, f"first difference at step {step}: element {got[step]}, wanted {want[step]}", hint=known)


def once(stage_a: Any, M: int = 256, K: int = 512, N: int = 2048) -> tuple[Run, Run]:
    """Exercise 3: A passes DDR once; a MemTile sends each strip ``passes`` times. Returns the runs before and after."""
    from designs.matmul.strips import design_with

    a, b = factors(M, K, N)
    before = execute(a, b, DEVICE, columns=8)
    steps, passes = K // 64, N // (64 * 8)
    arguments = [a.reshape(-1), b.reshape(-1), np.zeros(M * N, np.float32)]
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        run = check.runs(
            design_with(check.filled(stage_a, "stage_a")),
            arguments,
            device=DEVICE,
            flops=reference.flops(M, K, N),
            name="A once",
            errors=_once_errors(),
            M=M,
            K=K,
            N=N,
        )
    mistakes = _once_mistakes(before.output, a, b, steps, passes)
    check.close(run, before.output, atol=1e-3, mistakes=mistakes)
    if short := next((str(w.message).splitlines()[0] for w in said if "dims_to_stream" in str(w.message)), ""):
        fail("the result is right, but by luck", short, hint=_SHORT)
    stays = "one fifo from the host and one to the tiles for each of the four rows; the other matrices are as they were"
    check.structure(run, tiles=32, fifos=4 + 4 + 8 + 8 + 8 + 32, shim_channels=4 + 8 + 8, hint=stays)
    least = 2 * M * K + 2 * K * N + 4 * M * N
    again = "some tiles of A still come from DDR more than once"
    assert before.cycles is not None
    check.cost(run, level="ddr", bytes=(least, least), cycles=0.97 * before.cycles, hint=again)
    return before, run


_SHORT = (
    "dims_to_stream walks through one tile, and goes on beyond its outermost size, which happens to be right here; "
    "walk through the strip, steps * m by k"
)


def _once_errors() -> list[tuple[str, str]]:
    """(what the error says, hint)."""
    return [
        ("index out of range|never used|no fifo", "host and parts must hold one fifo for each of the four rows"),
        (r"argument \d of kernel", "the fifo from the host has strips as its objects, the one to the compute tiles has tiles: obj_type"),
        ("reaches element", "the MemTile has to hold a whole strip, steps * m by k: what is one object of the fifo from the host?"),
        ("reach only", "each time that a strip is sent takes a buffer descriptor: it has to be sent `passes` times, not more"),
        ("DMA channels", "a MemTile has six channels each way: each row's strip goes through the MemTile of another column"),
        ("deadlock", "the tiles of a row ask for every strip `passes` times; how often does its MemTile send it?"),
        ("dims_to_stream|descriptor|dimension", "dims_to_stream walks through all that the MemTile holds: a strip is a matrix of steps * m by k"),
        ("KiB|data memory", "only a MemTile has room for a strip; the compute tiles get it tile by tile"),
    ]


def _once_mistakes(right: Any, a: Any, b: Any, steps: int, passes: int) -> list[Any]:
    """Foreseen wrong results: no blocks on the way to the tiles, or each tile repeated instead of each strip."""
    k = a.shape[1] // steps
    order = [i // passes for i in range(steps * passes)]

    def repeated(got: Any, want: Any) -> bool:
        """In pass 0 the tiles of A are the first steps/passes, each ``passes`` times."""
        wide = np.zeros((a.shape[0], 64))
        for step in range(steps):
            part = slice(order[step] * k, order[step] * k + k)
            wide += a[:, part].astype(np.float64) @ b[step * k : step * k + k, :64].astype(np.float64)
        left = got.reshape(right.reshape(a.shape[0], -1).shape)[:, :64]
        return bool(np.abs(left - wide).max() < 0.03 * np.abs(wide).max())

    def unblocked(got: Any, want: Any) -> bool:
        return bool(np.corrcoef(got.ravel(), want.ravel())[0, 1] < 0.9)

    return [
        (repeated, "each tile is sent `passes` times in a row; it is the strip that has to be repeated: what is one object of the fifo from the host?"),
        (unblocked, "the multiplication gets its numbers in the wrong order: a strip is one tile below the other; in which blocks does the kernel want it, and who puts it into them?"),
    ]

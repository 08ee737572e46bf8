"""The checks of the chapter's exercises: what is wanted, and a hint for each mistake that people make.

Here and not in the notebook, so that nobody reads an answer or a hint before having tried.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from ml_dtypes import bfloat16

import npulab
from designs.transpose.bound import kernel_cycles
from designs.walk import reference as walks
from npulab import check
from npulab.check.failure import fail, ok
from npulab.record import Run
from npusim.errors import NpuError

WALK = "designs.walk.design"

# ---- 1: three walks


def three_walks(by_columns: Any, bricks: Any, diagonal: Any, side: int = 16) -> list[Any]:
    """Exercise 1: (sizes, strides) of three walks over a square matrix; each is run on the simulated NPU. Returns the patterns."""
    square = np.arange(side * side).reshape(side, side)
    wanted = {
        "by_columns": (by_columns, square.T.ravel()),
        "bricks": (bricks, square.reshape(4, 4, 2, 8).transpose(0, 2, 1, 3).ravel()),
        "diagonal": (diagonal, np.diag(square)),
    }
    return [_walk(name, got, want, square) for name, (got, want) in wanted.items()]


def _walk(name: str, got: Any, want: Any, square: Any) -> Any:
    from aie.helpers.taplib import TensorAccessPattern

    check.filled(got, name)
    try:
        sizes, strides = ([int(value) for value in part] for part in got)
    except (TypeError, ValueError):
        fail(f"{name} is not a pair of lists", hint="two lists of the same length: sizes, strides, the outermost first")
    if len(sizes) != len(strides):
        fail(f"{name} has {len(sizes)} sizes and {len(strides)} strides", hint="each size needs its stride")
    order = walks.indices(list(zip(sizes, strides)))
    if order.max(initial=0) >= square.size or order.min(initial=0) < 0:
        fail(f"{name} walks out of the matrix, to element {order.max()}", hint=_overrun(sizes, strides, square.size))
    if not np.array_equal(order, want):
        first = next((i for i, (a, b) in enumerate(zip(order, want)) if a != b), min(len(order), len(want)))
        seen = f"it visits {len(order)} elements, wanted {len(want)}; the first difference is visit {first}"
        fail(f"{name} is another walk", seen, hint=_other_walk(name, order, want, square))
    x = square.astype(np.int32)
    run = npulab.run(WALK, [x, np.zeros(want.size, np.int32)], shape=x.shape, dims=tuple(zip(sizes, strides)), row=0)
    check.close(run, want, name=f"what the DMA makes of {name}")
    return TensorAccessPattern(square.shape, 0, sizes, strides)


def _overrun(sizes: list[int], strides: list[int], elements: int) -> str:
    if np.prod(sizes) > elements:
        return f"the sizes multiply to {np.prod(sizes)}, and the matrix has {elements} elements"
    return "the last element is at the sum of (size - 1) * stride"


def _other_walk(name: str, order: Any, want: Any, square: Any) -> str:
    side = len(square)
    if np.array_equal(order, square.ravel()):
        return "that is row by row, as the matrix lies in memory"
    if len(order) < len(want):
        return "the sizes multiply to fewer elements than wanted"
    if len(np.unique(order)) < len(order):
        return "some elements come more than once: a stride is too small, or two dimensions overlap; draw the pattern and look at the count"
    if name == "diagonal":
        return f"from one element of the diagonal to the next it is one row down, {side} elements, and one to the right"
    if name == "bricks" and sorted(map(tuple, order.reshape(-1, 32))) == sorted(map(tuple, want.reshape(-1, 32))):
        return "each brick is right, but which comes next? Row by row: the next brick is the one to the right"
    if name == "bricks" and np.array_equal(np.sort(order.reshape(-1, 32)), np.sort(want.reshape(-1, 32))):
        return "the bricks come in the right order, but a brick is read row by row"
    if name == "bricks":
        return "four loops: over rows of bricks, over bricks in such a row, over rows within a brick, over elements within that row"
    return "the inner loop goes down a column: its stride is the length of a row"


# ---- 2: what a descriptor can say


def _i32(*shape: int) -> Any:
    return np.arange(np.prod(shape), dtype=np.int32).reshape(shape)


def _bf16(*shape: int) -> Any:
    return np.arange(np.prod(shape)).reshape(shape).astype(bfloat16)


MICRO = ((8, 256), (8, 8), (4, 64), (8, 1))
"""Row by row. (Column by column, three loops do: ``(8, 8), (32, 64), (8, 1)``.)"""
CASES: dict[str, tuple[Any, dict[str, Any]]] = {
    "transpose_words": (_i32(64, 64), {"dims": ((64, 1), (64, 64))}),
    "transpose_halves": (_bf16(64, 64), {"dims": ((64, 1), (64, 64)), "dtype": "bf16"}),
    "transpose_pairs": (_bf16(64, 128), {"dims": ((64, 2), (64, 128), (2, 1)), "dtype": "bf16"}),
    "micro_tiles": (_i32(32, 64), {"dims": MICRO}),
    "micro_tiles_on_a_core": (_i32(32, 64), {"dims": MICRO, "row": 2}),
    "backwards": (_i32(64), {"dims": ((64, -1),)}),
    "a_border": (_bf16(30, 30), {"dims": ((30, 30), (30, 1)), "pad": ((1, 1), (1, 1)), "dtype": "bf16"}),
}
HINTS = {
    "transpose_words": "the inner loop goes down a column, the outer one to the next: that is two dimensions",
    "transpose_halves": "a DMA moves words of four bytes, and an element has two",
    "transpose_pairs": "a pair has four bytes; three dimensions are enough",
    "micro_tiles": "count the loops, and what a MemTile's descriptor has",
    "micro_tiles_on_a_core": "count the loops, and what a compute tile's descriptor has; row by row, no two of them are one",
    "backwards": "strides are not negative",
    "a_border": "what is one zero, in bytes?",
}


def verdict(name: str) -> str:
    """Empty if the simulated NPU can do it, else why not (one line)."""
    x, options = CASES[name]
    pads = options.get("pad", ((0, 0),) * x.ndim)
    size = int(np.prod([n + sum(pad) for n, pad in zip(x.shape, pads)]))
    try:
        run = npulab.run(WALK, [x, np.zeros(size, x.dtype)], shape=x.shape, **options)
    except NpuError as refused:
        return str(refused).splitlines()[0]
    want = walks.walk(x, options["dims"], options.get("pad", ()))
    assert np.array_equal(run.output.view(np.uint8), want.view(np.uint8)), name
    return ""


def sayable(answers: Mapping[str, Any]) -> None:
    """Exercise 2: for each case whether one descriptor can say it; each is tried on the simulated NPU."""
    for name in CASES:
        answer = check.filled(answers.get(name), f"answers[{name!r}]")
        if not isinstance(answer, bool):
            fail(f"answers[{name!r}] is {answer!r}", hint="True or False")
        why = verdict(name)
        if answer != (not why):
            fail(f"{name} {'cannot' if why else 'can'} be done", why, hint=HINTS[name])
        print(f"{name}: {'no' if why else 'yes'}{f' ({why})' if why else ''}")
    ok(f"all {len(CASES)} are as the simulated NPU has them")


# ---- 3: one buffer or two


def buffers(one: Any, two: Any, worst: Any, m: int = 64, n: int = 96) -> None:
    """Exercise 3: cycles a tile of m x n with one buffer and with two, and the kernel for which it matters most."""
    channel, kernel, micro = 2 * m * n // 4, kernel_cycles(m, n, "npu2"), m * n // 64
    each = f"that is for one micro tile, and a tile has {micro}"
    check.number(
        one,
        channel + kernel,
        unit="cycles",
        rtol=0.03,
        name="one_buffer",
        mistakes=[
            (2 * channel + kernel, "while a result leaves, the next tile can come: two channels, two buffers of which each has its own"),
            (max(channel, kernel), "with one buffer, the core cannot work on an object while the channel is filling it"),
            (channel / 2 + kernel, "a channel moves 4 bytes a cycle, two numbers"),
            ((channel + kernel) / 2, "each number of a tile comes on the one channel: 2 bytes of it, 4 a cycle"),
            ((channel + kernel) / micro, each),
        ],
    )
    check.number(
        two,
        max(channel, kernel),
        unit="cycles",
        rtol=0.03,
        name="two_buffers",
        mistakes=[
            (channel + kernel, "that is one buffer: with two, channel and core work at the same time"),
            (channel / 2, "a channel moves 4 bytes a cycle, two numbers"),
            (kernel, "the slower of the two decides"),
            (max(channel, kernel) / micro, each),
        ],
    )
    check.number(
        worst,
        channel,
        unit="cycles",
        rtol=0.03,
        name="worst",
        mistakes=[
            (kernel, "that is the kernel as it is"),
            (channel / micro, each),
            (0, "then both take the channel's time: there is nothing to gain"),
            (2 * channel, "one buffer takes channel + kernel, two the larger of them: when is the ratio 2?"),
        ],
    )
    for depth, label in ((1, "one buffer"), (2, "two buffers")):
        print(f"{label}: {_each(m, n, depth):,.0f} cycles a tile (simulated)")


def _each(m: int, n: int, depth: int) -> float:
    """Simulated cycles a tile, without the start: the difference of two lengths."""
    cycles = []
    for tiles in (4, 12):
        a, b = np.zeros((tiles * m, n), bfloat16), np.zeros((n, tiles * m), bfloat16)
        sizes: dict[str, Any] = {"M": tiles * m, "N": n, "m": m, "n": n, "depth": depth}
        design = npulab.load("designs.transpose.design").transpose
        cycles.append(npulab.run(design, [a, b], data=False, trace=False, **sizes).cycles or 0.0)
    return (cycles[1] - cycles[0]) / 8


# ---- 4: complex numbers


def complex_transpose(design: Any, M: int = 128, N: int = 96) -> Run:
    """Exercise 4: the transpose of complex numbers, each a pair of bf16, by DMA alone. Returns the run."""
    rng = np.random.default_rng(4)
    a = rng.standard_normal((M, N, 2)).astype(bfloat16)
    want = a.transpose(1, 0, 2)

    def like(other: Any) -> Any:
        return lambda got, _: np.array_equal(got.ravel(), np.asarray(other, np.float64).ravel())

    tiles = a.reshape(M // 32, 32, N // 32, 32, 2).transpose(2, 0, 1, 3, 4)
    mistakes = [
        (
            lambda got, _: np.count_nonzero(got) < 0.6 * got.size,
            "half of b has never been written: in bf16 numbers, b is N x 2M in tiles of n x 2m",
        ),
        (like(a), "nothing has been transposed"),
        (like(want[..., ::-1]), "real and imaginary parts are exchanged"),
        (
            lambda got, _: np.array_equal(np.sort(got, None), np.sort(want.astype(np.float64), None))
            and np.array_equal(got.reshape(N, M, 2)[:32, :32], tiles[0, 0].astype(np.float64)),
            "each tile is in its place, but has not been transposed itself: that is what the MemTile's walk is for",
        ),
    ]
    errors = [
        ("4-byte words", "the inner dimension must be a pair: size 2, stride 1"),
        ("covers|elements, but|product", "the sizes must multiply to the bf16 numbers of a tile, 2 * m * n"),
        ("Tensor dimension|not divisible|does not divide", "in bf16 numbers, a is M x 2N in tiles of m x 2n, and b is N x 2M in tiles of n x 2m"),
        ("values to unpack", "complex_walks returns three things: by_column, a_walk, b_walk"),
        ("TensorAccessSequence", "group_tiler gives a list of patterns, here of one: take its first, [0]"),
        ("waits", "a's walk and b's walk must move the same number of tiles"),
    ]  # fmt: skip
    args = [a.reshape(M, 2 * N), np.zeros((N, 2 * M), bfloat16)]
    run = check.runs(design, args, M=M, N=N, errors=errors, name="complex transpose")
    check.close(run.output.reshape(want.shape), want, mistakes=mistakes, name="b")
    check.structure(run, tiles=0, memtiles=1, shim_channels=2, hint="no core is needed: pairs have four bytes")
    check.cost(run, level="ddr", bytes=8 * M * N)
    return run

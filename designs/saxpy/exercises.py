"""The checks of the chapter's exercises: what is wanted, and a hint for each mistake that people make.

Here and not in the notebook, so that nobody reads an answer or a hint before having tried.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from ml_dtypes import bfloat16

import npulab
from designs.saxpy import reference
from npulab import check, roofline
from npulab.record import Run

TILE = 1024
CHANNELS = 3  # x in, y in, the result out; 4 B/cycle each


def scale(bytes_moved: Any, intensity: Any, least_cycles: Any, n: int = 65536) -> None:
    """Exercise 1: y = a*x by hand, for n bf16 elements with one fifo in and one out."""
    check.number(
        bytes_moved,
        4 * n,
        unit="B",
        name="bytes_moved",
        mistakes=[
            (6 * n, "this y is only written; nobody reads it"),
            (2 * n, "count both vectors, the one that is read and the one that is written"),
            (4, "that is one element; the vectors have n"),
            (8 * n, "a bf16 number has 2 bytes"),
        ],
    )
    check.number(
        intensity,
        1 / 4,
        unit="FLOP/B",
        name="intensity",
        mistakes=[
            (4.0, "operations over bytes, not the other way round"),
            (1 / 2, "one operation an element: there is no addition"),
            (1 / 3, "that is SAXPY: here are fewer operations and fewer bytes"),
        ],
    )
    check.number(
        least_cycles,
        n / 2,
        unit="cycles",
        name="least_cycles",
        mistakes=[
            (n / 3, "12 B/cycle is what three channels move together; how many does this design use?"),
            (n, "each vector has a channel of its own, and both work at the same time"),
            (n / 2 / 1.8e3, "cycles are asked for, not microseconds"),
            (n / 4, "how many bytes does one channel move in a cycle?"),
        ],
    )
    print(f"SAXPY takes at least {6 * n / (4 * CHANNELS):,.0f} cycles.")


def add(design: Any, n: int = 8192) -> Run:
    """Exercise 2: y = x + y for int32, computed by the core itself. Returns the run."""
    x, y = np.random.default_rng(2).integers(-999, 999, (2, n), dtype=np.int32)

    def first(vector: Any) -> Any:
        """The vector that a core sees that never releases."""
        return np.tile(vector[:TILE], n // TILE)

    mistakes = [
        (lambda got, want: np.array_equal(got, y), "y came back as it was: is the sum stored into the output object?"),
        (lambda got, want: np.array_equal(got, x * y), "the sum is wanted, not the product"),
        (
            lambda got, want: any(np.array_equal(got, stuck) for stuck in (first(x) + y, x + first(y), first(x) + first(y))),
            "from the second object on, the first one is used again: release both inputs in every turn",
        ),
        (
            lambda got, want: np.array_equal(got[::TILE], want[::TILE]) and not got[1:TILE].any(),
            "only the first element of each object is right: loop over all TILE of them",
        ),
    ]
    errors = [
        ("never acquires", "the body is still empty, or leaves a fifo out: acquire one object of each"),
        ("unsupported operand|not an? (array|number)", "objects are not arrays: add one element at a time, in a loop of range_(TILE)"),
        ("waits for a full buffer|waits for a free buffer", "an object moves on when it is released: one release for each acquire, in every turn"),
        ("index|out of", "an object has TILE elements, numbered from 0"),
    ]
    run = check.runs(design, [x, y], n=n, flops=n, name="y = x + y", errors=errors)
    check.close(run, x + y, mistakes=mistakes)
    unrolled = "range makes a copy of its body for each turn, and a core has 16 KiB for its program: use range_"
    check.structure(run, tiles=1, fifos=3, loops=2, hint=unrolled)
    idle = "take one object of each fifo in every turn of the outer loop, and add each pair of elements once"
    check.cost(run, cycles=20 * n, hint=idle)
    roof = roofline.used_by(run)
    moved = 3 * 4 * n
    print(roofline.predict(n, {"ddr": moved, "l1": moved}, roof, name="y = x + y").compare(run))
    return run


def relu(design: Any, n: int = 65536) -> Run:
    """Exercise 3: y = max(0, a*x + y) in bf16, with two kernels on one tile. Returns the run."""
    x, y = np.random.default_rng(3).standard_normal((2, n)).astype(bfloat16)
    saxpy = npulab.run("designs.saxpy.design", [x, y], n=n, flops=reference.FLOP_PER_ELEMENT * n)
    plain = saxpy.output.astype(np.float32)
    first = np.float32(3) * np.maximum(x.astype(np.float32), 0) + y.astype(np.float32)
    mistakes = [
        (lambda got, want: np.array_equal(got, plain), "negative numbers are left: relu has not been at the result"),
        (
            lambda got, want: np.allclose(got, first, rtol=2.0**-7),
            "relu comes after the addition: give it what saxpy_bf16 has computed",
        ),
        (lambda got, want: not got.any(), "everything is 0: what does relu read, and who writes that?"),
        (
            lambda got, want: np.array_equal(got, np.maximum(y.astype(np.float32), 0)),
            "that is relu of y alone: where does saxpy_bf16 write to?",
        ),
    ]
    errors = [
        ("never acquires|never (filled|given|produced)", "the body is still empty, or leaves a fifo out: acquire one object of each"),
        ("takes .* arguments|missing .* argument", "relu_body and the list given to Worker must agree, item by item"),
        ("waits for a full buffer|waits for a free buffer", "an object moves on when it is released: one release for each acquire, in every turn"),
    ]
    run = check.runs(design, [x, y], n=n, flops=3 * n, name="SAXPY and ReLU", errors=errors)
    check.close(run, np.maximum(plain, 0), mistakes=mistakes)
    inside = "both kernels run on the same tile, and what passes between them stays there: no further worker, no further fifo"
    check.structure(run, tiles=1, fifos=3, kernels=["saxpy_bf16", "bf16_relu"], hint=inside)
    assert saxpy.cycles is not None
    check.cost(
        run,
        level="ddr",
        bytes=reference.BYTES_PER_ELEMENT * n,
        l1_bytes=15 * 1024,
        cycles=(saxpy.cycles, 1.01 * saxpy.cycles),
        hint="one buffer of TILE elements is enough to hold what saxpy_bf16 hands to relu",
    )
    return run

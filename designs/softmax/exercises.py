"""The checks of the chapter's exercises: what is wanted, and a hint for each mistake that people make.

Here and not in the notebook, so that nobody reads an answer or a hint before having tried.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import redirect_stdout
from io import StringIO
from typing import Any

import numpy as np
from ml_dtypes import bfloat16

from designs.kernels.arithmetic import LOWEST
from designs.kernels.models import KERNELS
from designs.softmax import reference
from npulab import check
from npulab.check.failure import fail, ok
from npulab.record import Run

LOW = float(LOWEST)
"""Where a running maximum starts."""
Pair = tuple[Any, Any]


# ---- 1: two halves of a row

_PARTS = [  # (m1, l1, m2, l2)
    (1.0, 3.0, 2.0, 5.0),
    (2.0, 5.0, -1.0, 4.0),
    (1000.0, 2.0, 1001.0, 7.0),
    (-2000.0, 3.0, -2001.0, 1.5),
    (LOW, 0.0, 0.5, 2.0),
    (LOW, 0.0, LOW, 0.0),
]


def _merged(m1: float, l1: float, m2: float, l2: float) -> tuple[float, float]:
    m = max(m1, m2)
    return m, l1 * float(np.exp(m1 - m)) + l2 * float(np.exp(m2 - m))


def merge(answer: Callable[..., Pair]) -> None:
    """Exercise 1: merge(m1, l1, m2, l2) to (m, l) of a row whose two halves have these maxima and sums."""
    check.filled(answer, "merge")
    with redirect_stdout(StringIO()):  # a line for each number would be too many
        for part in _PARTS:
            _check_merge(answer, *part)
    ok(f"maximum and sum are right, for {len(_PARTS)} pairs of halves")


def _check_merge(answer: Callable[..., Pair], m1: float, l1: float, m2: float, l2: float) -> None:
    name = f"merge({m1:g}, {l1:g}, {m2:g}, {l2:g})"
    with np.errstate(all="ignore"):
        m, l = _pair(answer(m1, l1, m2, l2), name)
    want_m, want_l = _merged(m1, l1, m2, l2)
    if not np.isfinite([m, l]).all():
        hint = "an exponential has overflowed: subtract the larger maximum first, so that no exponent is above 0"
        fail(f"{name} gives {m:g}, {l:g}", hint=hint)
    low = [(min(m1, m2), "the maximum of the whole row is the larger of the two")]
    check.number(m, want_m, name=f"the maximum of {name}", mistakes=low)
    if want_l == 0:
        return check.close(l, 0.0, name=f"the sum of {name}", hint="two halves without a key have the sum 0")
    first, second = np.exp(m1 - want_m), np.exp(m2 - want_m)
    mistakes = [
        (l1 + l2, "each sum was taken under its own maximum: bring both to the common one before adding"),
        (float(first + second), "what is corrected is the sums l1 and l2"),
        (float(l1 / first + l2 / second) if first * second else -1.0, "the other way round: exp(old - new), at most 1"),
        (l1 * float(second) + l2 * float(first), "each sum is corrected by its own maximum's difference"),
    ]
    check.number(l, want_l, name=f"the sum of {name}", mistakes=mistakes)


def _pair(given: Any, name: str) -> tuple[float, float]:
    check.filled(given, name)
    try:
        m, l = given
    except (TypeError, ValueError):
        fail(f"{name} gives {given!r}", hint="return both, the maximum and the sum: return m, l")
    return float(check.filled(m, "m")), float(check.filled(l, "l"))


# ---- 2: online


class _Once:
    """Pieces of a matrix that can be looked at once, one after the other."""

    def __init__(self, s: Any, width: int) -> None:
        self.s, self.width, self.started = s, width, 0

    def __iter__(self) -> Iterator[Any]:
        self.started += 1
        if self.started > 1:
            fail(
                "the pieces are asked for a second time",
                hint="they pass once: bring m and l up to date with each piece",
            )
        for at in range(0, self.s.shape[1], self.width):
            yield self.s[:, at : at + self.width].copy()


def _rows() -> dict[str, Any]:
    """Score matrices by what is special about them."""
    rng = np.random.default_rng(6)
    s = 3 * rng.standard_normal((4, 256))
    growing = np.sort(s, axis=1)
    masked_first, nothing = s.copy(), s.copy()
    masked_first[:, :64] = -np.inf
    nothing[2] = -np.inf
    return {"scores": s, "growing scores": growing, "large scores": 300 * s, "keys masked at first": masked_first, "a row without keys": nothing}  # fmt: skip


def online(answer: Callable[[Any, Any], Pair]) -> None:
    """Exercise 2: online(pieces, rows) to (m, l), each of shape (rows,), from pieces that pass once."""
    check.filled(answer, "online")
    cases = _rows()
    for name, s in cases.items():
        with np.errstate(all="ignore"):
            given = check.filled(answer(_Once(s, 32), len(s)), "online(...)")
            if not (isinstance(given, tuple) and len(given) == 2):
                fail("online(...) does not give two arrays", hint="return m, l")
            m, l = (np.asarray(check.filled(x, "online(...)"), dtype=np.float64) for x in given)
        with redirect_stdout(StringIO()):
            _check_online(name, s, m, l)
    ok(f"m and l are right, for {', '.join(cases)}")


def _check_online(name: str, s: Any, m: Any, l: Any) -> None:
    want_m = np.maximum(s.max(axis=1), LOW)
    want_l = np.exp(s - want_m[:, None]).sum(axis=1)
    if np.isnan(l).any() or np.isnan(m).any():
        masked = (
            "minus infinity less minus infinity is no number: start the maximum at LOWEST, and never let it go below"
        )
        large = "infinity times 0, or infinity over infinity: subtract the maximum before you raise"
        fail(f"{name}: there are NaN values", hint=masked if np.isneginf(s).any() else large)
    check.close(m, want_m, name=f"{name}: m", mistakes=_wrong_maxima(s))
    check.close(l, want_l, rtol=1e-9, atol=1e-12, name=f"{name}: l", mistakes=_wrong_sums(s, want_m))


def _wrong_maxima(s: Any) -> list[tuple[Any, str]]:
    pieces = [s[:, at : at + 32].max(axis=1) for at in range(0, s.shape[1], 32)]
    return [
        (np.full(len(s), LOW), "m is still where it began: keep the larger maximum at the end of each turn"),
        (pieces[-1], "that is the last piece's maximum: the running one is the larger of the old one and the piece's"),
        (np.maximum(pieces[-1], LOW), "that is the last piece's maximum: the running one is the larger of both"),
        (np.maximum(s.max(axis=1), 0), "a maximum that starts at 0 hides negative scores: start at LOWEST"),
        (s.max(axis=1), "a row without keys keeps LOWEST: take the larger of the old maximum and the piece's"),
    ]


def _wrong_sums(s: Any, m: Any) -> list[tuple[Any, str]]:
    """Sums that tell which line is wrong."""
    plain, last, late, inverse = (np.zeros(len(s)) for _ in range(4))
    running = np.full(len(s), LOW)
    with np.errstate(all="ignore"):
        for at in range(0, s.shape[1], 32):
            piece = s[:, at : at + 32]
            new = np.maximum(running, piece.max(axis=1))
            powers, r = np.exp(piece - new[:, None]).sum(axis=1), np.exp(running - new)
            plain, last, late, inverse = plain + powers, powers, (late + powers) * r, inverse / r + powers
            running = new
    return [
        (plain, "l was summed up under smaller maxima: correct it by exp(old - new) when the maximum grows"),
        (last, "that is the last piece alone: add to what l was"),
        (late, "the correction is for what was there before, not for the new piece: first correct, then add"),
        (inverse, "the other way round: the correction is exp(old - new), at most 1"),
    ]


# ---- 3: a weighted sum, without ever storing P

BLOCK = D = 64


def weighted(design: Any, rows: int = 128, keys: int = 1024) -> Run:
    """Exercise 3: O = softmax(S / sqrt(D)) V. Returns the run."""
    s, v = _scores_and_values(rows, keys)
    args = [s.reshape(-1), v.reshape(-1), np.zeros(rows * D, bfloat16)]
    flops = 2 * rows * keys * D
    run = check.runs(design, args, rows=rows, keys=keys, flops=flops, name="softmax(S) V", errors=_WEIGHTED_ERRORS)
    want = reference.softmax(s, D) @ v.astype(np.float64)
    got = run.outputs[-1].reshape(want.shape)
    order = "bring P, m, l and r up to date, correct O, add P V, and release both; after the last block divide by l"
    check.close(got, want, rtol=1.6e-2, atol=0.1, mistakes=_weighted_mistakes(s, v), hint=order)
    check.structure(run, tiles=1, fifos=3)
    best = 1.045 * _least_cycles(run, rows, keys)
    moved = 2 * (rows * keys + rows // BLOCK * keys * D + rows * D)
    check.cost(run, level="ddr", bytes=moved, cycles=(best, 1.1 * best))
    sums = got[:, -1].astype(np.float64)
    print(f"the weights of a row add up to {sums.mean():.3f} on average, between {sums.min():.3f} and {sums.max():.3f}")
    unfused = moved + 2 * 3 * rows * keys
    print(f"{moved:,} B moved; two passes for P, and a third to use it, would move {unfused:,} B")
    return run


def weights(design: Any, device: str, rows: int = 128, keys: int = 1024) -> Any:
    """What each row's weights add up to, shape (rows,), when exercise 3's design runs on a device."""
    s, v = _scores_and_values(rows, keys)
    args = [s.reshape(-1), v.reshape(-1), np.zeros(rows * D, bfloat16)]
    run = check.runs(design, args, rows=rows, keys=keys, device=device, trace=False)
    return run.outputs[-1].reshape(rows, D)[:, -1].astype(np.float64)


def _scores_and_values(rows: int, keys: int) -> tuple[Any, Any]:
    """S and V; V's last column is 1, so that the last column of O is what a row's weights add up to."""
    rng = np.random.default_rng(8)
    s = (16 * rng.standard_normal((rows, keys))).astype(bfloat16)
    v = rng.standard_normal((keys, D)).astype(bfloat16)
    v[:, -1] = 1
    return s, v


def _least_cycles(run: Run, rows: int, keys: int) -> float:
    """Of the kernels that the loop must call, by their cycle models."""
    dims = dict.fromkeys(("BQ", "BK", "DK", "DV"), BLOCK)
    needed = ("online_softmax", "rescale_output", "matmul_pv")
    return rows // BLOCK * (keys // BLOCK) * sum(KERNELS[n].cost(dims, run.device).calibrated for n in needed)


_WEIGHTED_ERRORS = [
    ("releases .* but acquires", "acquire what you release: each turn takes a block of S and a block of V"),
    ("never acquires|never (filled|given|produced)", "the loop is still empty: each turn takes a block of S and a block of V"),
    ("waits for a full buffer|waits for a free buffer", "release a block of S and a block of V in every turn, and one of O a group"),
    ("takes .* arguments|missing .* argument|is .*, declared|argument", "step(s, p, m, l, r, scale), rescale(r, o), multiply(p, v, o), divide(l, o)"),
]  # fmt: skip


def _weighted_mistakes(s: Any, v: Any) -> list[tuple[Any, str]]:
    """Outputs that tell what went wrong."""
    results = {
        name: _loop(s, v, name)
        for name in ("no division", "no correction", "late", "divided", "first v", "first s", "no sum")
    }
    hints = {
        "no division": "O is not divided by l yet: divide(l, o) after the last block",
        "no correction": "what O holds was weighted under smaller maxima: rescale(r, o) before each product is added",
        "late": "rescale(r, o) corrects what was there before: call it before multiply(p, v, o)",
        "divided": "divide once, after the last block: l is not complete before",
        "first v": "the first block of V is used for all: release it in every turn",
        "first s": "the first block of S is used for all: release it in every turn",
        "no sum": "O holds the last block alone",
    }

    def like(value: Any) -> Callable[[Any, Any], bool]:
        size = float(np.abs(value).max())
        return lambda got, want: bool(np.allclose(got, value, rtol=0.1, atol=0.06 * max(size, 1.0)))

    return [
        (lambda got, want: not got.any(), "everything is 0: is P V added to O?"),
        *((like(results[name]), hint) for name, hint in hints.items()),
    ]


def _loop(s: Any, v: Any, wrong: str) -> Any:
    """The loop of the solution in float64, with one thing wrong."""
    wide, values = s.astype(np.float64) / D**0.5, v.astype(np.float64)
    m, l, o = np.full(len(s), LOW), np.zeros(len(s)), np.zeros((len(s), D))
    for at in range(0, s.shape[1], BLOCK):
        first = np.tile(wide[:BLOCK, :BLOCK], (len(s) // BLOCK, 1))
        piece = first if wrong == "first s" else wide[:, at : at + BLOCK]
        new = np.maximum(m, piece.max(axis=1))
        p, r = np.exp(piece - new[:, None]), np.exp(m - new)
        m, l = new, l * r + p.sum(axis=1)
        product = p @ (values[:BLOCK] if wrong == "first v" else values[at : at + BLOCK])
        if wrong == "no correction":
            o = o + product
        elif wrong == "late":
            o = (o + product) * r[:, None]
        else:
            o = product if wrong == "no sum" else o * r[:, None] + product
        if wrong == "divided":
            o = o / l[:, None]
    return o if wrong in ("no division", "divided") else o / l[:, None]

"""How far each arithmetic is from exact attention, and which step costs what.

One attention, seven arithmetics, from float32 throughout to what the two generations do, each step of the way changing one
thing; five kinds of input; the error against float64. ``python -m designs.kernels.numerics --write`` makes
``numerics.json``, which the book reads.

What it shows for Gaussian inputs: of the 4 to 5 % that mlir-air reports for fused attention on XDNA 2, storing everything
in bf16 makes about 0.7, BFP16 products bring it to 1.6, and the hardware's linear exponential to 4.5.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from designs.kernels.arithmetic import LOWEST, exp2_exact, exp2_hardware, exp2_tables, reciprocal, to_bf16
from npusim.kernel_models.rounding import bf16, bfp16

Array = np.ndarray[Any, np.dtype[Any]]
F32 = np.float32
DATA = Path(__file__).with_name("numerics.json")
LENGTHS = (128, 256, 512, 1024, 2048, 4096, 8192, 16384)
ROWS = 128  # queries a point of the study is averaged over


@dataclass(frozen=True)
class Variant:
    """An arithmetic. ``scores`` and ``state`` say whether S and P, and m, l and O are kept in bf16 (else float32);
    ``blocks`` whether products are BFP16; ``exp2`` gives bf16 (None: exact in float32)."""

    name: str
    meaning: str
    scores: bool
    state: bool
    blocks: bool
    exp2: Callable[[Array], Array] | None


VARIANTS = (
    Variant("fp32", "bf16 inputs and output, everything between in fp32 (what a GPU kernel does)", False, False, False, None),
    Variant("bf16-scores", "scores and probabilities stored in bf16", True, False, False, exp2_exact),
    Variant("bf16", "running maximum, sum and output in bf16, too", True, True, False, exp2_exact),
    Variant("bf16-tables", "XDNA 1: exponentials from two tables", True, True, False, exp2_tables),
    Variant("bfp16", "bf16 storage, products in BFP16", True, True, True, exp2_exact),
    Variant("bf16-linear", "XDNA 2 without BFP16: the hardware's linear exp2", True, True, False, exp2_hardware),
    Variant("bfp16-linear", "XDNA 2: BFP16 products and the hardware's linear exp2", True, True, True, exp2_hardware),
)


def variant(name: str) -> Variant:
    """A variant by its name."""
    return next(v for v in VARIANTS if v.name == name)


# ---- attention in a given arithmetic


def attention(v: Variant, q: Array, k: Array, val: Array, *, first: int | None = None, stages: int = 4, block: int = 64) -> Array:
    """O (rows, d) of one head: q (rows, d), k and val (keys, d), values of bf16 in float32.

    Keys are cut into ``stages`` ranges, each gone through ``block`` at a time with a running maximum and sum; the partial
    results are merged from the last to the first, as the fused mapping does. ``first`` is the number of the first query if
    the attention is causal.
    """
    keys = len(k)
    stages = stages if keys % (stages * block) == 0 else 1
    scale = 1 / math.sqrt(q.shape[1]) * math.log2(math.e)
    factor = F32(bf16(F32(scale))) if v.exp2 else F32(scale)
    part = keys // stages
    query = bfp16(q) if v.blocks else q
    partial = [
        _stage(v, factor, query, k[i : i + part], val[i : i + part], None if first is None else first - i, block)
        for i in range(0, keys, part)
    ]
    out, m, l = partial.pop()
    while partial:
        out, m, l = _merge(v, factor, partial.pop(), (out, m, l))
    if v.state:
        return bf16(out * reciprocal(to_bf16(l)).astype(F32)[:, None])
    return bf16(out / l[:, None])


State = tuple[Array, Array, Array]


def _stage(v: Variant, factor: Any, q: Array, k: Array, val: Array, first: int | None, block: int) -> State:
    rows = len(q)
    m, l = np.full(rows, LOWEST, F32), np.zeros(rows, F32)
    out = np.zeros((rows, val.shape[1]), F32)
    for j in range(0, len(k), min(block, len(k))):
        s = _scores(v, q, k[j : j + block])
        if first is not None:
            s[np.arange(j, j + s.shape[1])[None, :] > np.arange(first, first + rows)[:, None]] = -np.inf
        u = np.maximum(np.maximum(m, s.max(axis=1)), F32(LOWEST))
        p, r = _exp(v, s, u[:, None], factor), _exp(v, m, u, factor)
        t = p.sum(axis=1, dtype=F32)
        out = _keep(v, _keep(v, out * r[:, None]) + _product(v, p, val[j : j + block]))
        l, m = _keep(v, l * r + _keep(v, t)), u
    return out, m, l


def _merge(v: Variant, factor: Any, mine: State, theirs: State) -> State:
    (o1, m1, l1), (o2, m2, l2) = mine, theirs
    u = np.maximum(m1, m2)
    a, b = _exp(v, m1, u, factor), _exp(v, m2, u, factor)
    return _keep(v, o1 * a[:, None] + o2 * b[:, None]), u, _keep(v, l1 * a + l2 * b)


def _keep(v: Variant, x: Array) -> Array:
    return bf16(x) if v.state else x


def _scores(v: Variant, q: Array, k: Array) -> Array:
    s: Array = q @ (bfp16(k) if v.blocks else k).T
    return bf16(s) if v.scores else s


def _product(v: Variant, p: Array, val: Array) -> Array:
    if not v.blocks:
        return np.asarray(p @ val)
    return np.asarray(bfp16(p) @ bfp16(np.ascontiguousarray(val.T)).T)


def _exp(v: Variant, x: Array, u: Array, factor: Any) -> Array:
    with np.errstate(over="ignore"):
        difference = x - u
    if v.exp2 is None:
        return np.exp2(np.maximum(difference, F32(LOWEST)) * factor).astype(F32)
    return v.exp2(np.maximum(bf16(difference), F32(LOWEST)) * factor).astype(F32)


def exact(q: Array, k: Array, val: Array, first: int | None = None) -> Array:
    """Attention in float64."""
    s = q.astype(np.float64) @ k.T.astype(np.float64) / math.sqrt(q.shape[1])
    if first is not None:
        s[np.arange(len(k))[None, :] > np.arange(first, first + len(q))[:, None]] = -np.inf
    p = np.exp(s - s.max(axis=1, keepdims=True))
    return np.asarray(p / p.sum(axis=1, keepdims=True) @ val.astype(np.float64))


# ---- inputs


def gaussian(rng: np.random.Generator, rows: int, keys: int, d: int) -> tuple[Array, Array, Array]:
    """Standard normal, as in every published validation."""
    return rng.standard_normal((rows, d)), rng.standard_normal((keys, d)), rng.standard_normal((keys, d))


def outliers(rng: np.random.Generator, rows: int, keys: int, d: int) -> tuple[Array, Array, Array]:
    """Four channels of K and two of V are twelve times the others, with an offset; Q is small where K is large."""
    q, k, v = gaussian(rng, rows, keys, d)
    channels = rng.permutation(d)[:4]
    k[:, channels] = 12 * k[:, channels] + 12
    q[:, channels] /= 6
    v[:, channels[:2]] *= 12
    return q, k, v


def tails(rng: np.random.Generator, rows: int, keys: int, d: int) -> tuple[Array, Array, Array]:
    """Student's t with three degrees of freedom, brought to unit variance."""
    q, k, v = (rng.standard_t(3, shape) / math.sqrt(3) for shape in ((rows, d), (keys, d), (keys, d)))
    return q, k, v


def sinks(rng: np.random.Generator, rows: int, keys: int, d: int) -> tuple[Array, Array, Array]:
    """The first key draws most of every query's attention and carries a small value."""
    q, k, v = gaussian(rng, rows, keys, d)
    direction = rng.standard_normal(d)
    direction /= np.linalg.norm(direction)
    q += 4 * direction
    k[0] = direction * (2 * math.log(keys) * math.sqrt(d) / 4)
    v[0] *= 0.05
    return q, k, v


def large(rng: np.random.Generator, rows: int, keys: int, d: int) -> tuple[Array, Array, Array]:
    """Logits of standard deviation eight: nearly one key a query counts."""
    q, k, v = gaussian(rng, rows, keys, d)
    return 8 * q, k, v


INPUTS: dict[str, Callable[..., tuple[Array, Array, Array]]] = {
    "gaussian": gaussian,
    "outliers": outliers,
    "tails": tails,
    "sinks": sinks,
    "large-logits": large,
}


# ---- the study


def point(name: str, inputs: str, length: int, rows: int = ROWS, d: int = 64, seed: int = 0) -> dict[str, Any]:
    """One point: relative L1 (mean error over mean magnitude), largest error, and the share of values that miss the
    published tolerance (rtol 1.6e-2, atol 1e-1), over ``rows`` queries of one head."""
    rng = np.random.default_rng([seed, length, list(INPUTS).index(inputs)])
    q, k, v = (bf16(x) for x in INPUTS[inputs](rng, rows, length, d))
    got, truth = attention(variant(name), q, k, v).astype(np.float64), exact(q, k, v)
    error = np.abs(got - truth)
    return {
        "variant": name,
        "inputs": inputs,
        "length": length,
        "relative_l1": float(f"{error.mean() / np.abs(truth).mean():.4e}"),
        "max_abs": float(f"{error.max():.4e}"),
        "missed": float(f"{(error > 1e-1 + 1.6e-2 * np.abs(truth)).mean():.4e}"),
    }


def study() -> list[dict[str, Any]]:
    """All points."""
    return [point(v.name, inputs, length) for inputs in INPUTS for length in LENGTHS for v in VARIANTS]


def published_inputs(heads: int, kv_heads: int, length: int, d: int = 64) -> tuple[Array, Array, Array]:
    """The inputs of mlir-air's own check of its fused attention: Q, K, V of [heads, length, d], seed 42."""
    rng = np.random.default_rng(42)
    shapes = [(heads, length, d), (kv_heads, length, d), (kv_heads, length, d)]
    q, k, v = (bf16(rng.standard_normal(shape)) for shape in shapes)
    return q, k, v


def published_error(heads: int, kv_heads: int, length: int, *, causal: bool = False, rows: int | None = None) -> tuple[float, float]:
    """(mean relative L1, largest error) of XDNA 2's arithmetic on those inputs, against float32 results rounded to bf16.

    ``rows`` limits how many queries of each head are looked at (all if None).
    """
    q, k, v = published_inputs(heads, kv_heads, length)
    error, magnitude, worst = 0.0, 0.0, 0.0
    for head in range(heads):
        own = head // (heads // kv_heads)
        queries, first = q[head][:rows], 0 if causal else None
        got = attention(variant("bfp16-linear"), queries, k[own], v[own], first=first)
        truth = bf16(exact(queries, k[own], v[own], first))
        difference = np.abs(got - truth)
        error, magnitude = error + float(difference.sum()), magnitude + float(np.abs(truth).sum())
        worst = max(worst, float(difference.max()))
    return error / magnitude, worst


def main() -> None:
    """Command line: print the study as a table, or write the data file."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--write", action="store_true", help=f"write {DATA.name} beside this file")
    given = parser.parse_args()
    points = study()
    if given.write:
        DATA.write_text(
            "[\n" + ",\n".join(json.dumps(p) for p in points) + "\n]\n",
        )
        return
    for p in points:
        print(f"{p['inputs']:13} {p['length']:6} {p['variant']:13} {p['relative_l1']:.2e} {p['max_abs']:.2e} {p['missed']:.1e}")


if __name__ == "__main__":
    main()

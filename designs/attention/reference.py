"""The truth that every mapping is held against, in fp32, and how far from it a result may be."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from ml_dtypes import bfloat16

from designs.attention.parameters import Parameters

Array = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True)
class Tolerance:
    """``|got - want| <= atol + rtol |want|`` for all but a share of ``missed`` of the elements."""

    rtol: float
    atol: float
    missed: float
    source: str


TOLERANCES = {
    "npu1": Tolerance(0.04, 0.15, 0.005, "mlir-air attn_npu1.py; our arithmetic of XDNA 1 stays far below"),
    "npu2": Tolerance(1.6e-2, 1e-1, 0.0, "mlir-air attn_npu2.py, for normally distributed inputs"),
}


def inputs(p: Parameters, seed: int = 0) -> tuple[Array, Array, Array]:
    """Normally distributed bf16: q (num_heads, lq, dk), k (num_kv_heads, lk, dk), v (num_kv_heads, lk, dv)."""
    if seed < 0:
        raise ValueError(f"seed = {seed}: it must be at least 0")
    rng = np.random.default_rng(seed)
    q, k, v = (rng.standard_normal(shape, np.float32).astype(bfloat16) for shape in shapes(p).values())
    return q, k, v


def shapes(p: Parameters) -> dict[str, tuple[int, int, int]]:
    """Of the inputs, by name."""
    return {"q": (p.num_heads, p.lq, p.dk), "k": (p.kv_heads, p.keys, p.dk), "v": (p.kv_heads, p.keys, p.width)}


def attention(q: Array, k: Array, v: Array, *, causal: bool = False, window: int | None = None) -> Array:
    """softmax(Q Kᵀ / sqrt(dk)) V in fp32; shapes as :func:`inputs` gives them, the result (num_heads, lq, dv).

    ``causal`` hides the keys after a query, ``window`` those that are so many or more before it, too.
    """
    shared = len(q) // len(k)
    out = np.empty((len(q), q.shape[1], v.shape[2]), np.float32)
    masked = _mask(q.shape[1], k.shape[1], window) if causal else None
    for head, queries in enumerate(q):
        keys, values = (x[head // shared].astype(np.float32) for x in (k, v))
        s = queries.astype(np.float32) @ keys.T / np.float32(math.sqrt(q.shape[2]))
        if masked is not None:
            s += masked
        p = np.exp(s - s.max(axis=1, keepdims=True))
        out[head] = p @ values / p.sum(axis=1, keepdims=True)
    return out


def _mask(queries: int, keys: int, window: int | None) -> Array:
    """0 where a query sees a key, minus infinity elsewhere."""
    i, j = np.ogrid[:queries, :keys]
    hidden = (j > i) | (j <= i - window) if window else j > i
    return np.where(hidden, np.float32(-np.inf), np.float32(0))


@dataclass(frozen=True)
class Error:
    """How far a result is from the truth: mean error over mean magnitude, largest error, share beyond the tolerance."""

    relative_l1: float
    largest: float
    missed: float
    tolerance: Tolerance

    @property
    def within(self) -> bool:
        """Never with a result, or a truth, that is no number or infinite somewhere."""
        return self.missed <= self.tolerance.missed and math.isfinite(self.largest)

    def __str__(self) -> str:
        t = self.tolerance
        allowed = "all elements" if not t.missed else f"{100 * (1 - t.missed):g} % of the elements"
        verdict = "within" if self.within else "NOT within"
        return (
            f"relative L1 error {self.relative_l1:.2e}, largest {self.largest:.2e}: {verdict} rtol {t.rtol:g}, atol {t.atol:g} for "
            f"{allowed} ({100 * self.missed:.3g} % beyond)"
        )


def error(got: Array, want: Array, device: str) -> Error:
    """Compare a result with the truth under the tolerance of a device (``npu1``, ``npu2``)."""
    tolerance = TOLERANCES[device]
    difference, size = np.abs(got.astype(np.float32) - want), np.abs(want)
    beyond = ~(difference <= tolerance.atol + tolerance.rtol * size)  # what is no number counts, too
    off, whole = float(difference.mean()), float(size.mean())
    return Error(off / whole if whole else math.inf if off else 0.0, float(difference.max()), float(beyond.mean()), tolerance)

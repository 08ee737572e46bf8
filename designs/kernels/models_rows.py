"""Softmax of whole rows and of blocks of a stream, and elementwise loops: kernels on data that lies row by row."""

from __future__ import annotations

from typing import Any

import numpy as np

from designs.kernels import cycles as cost
from designs.kernels.arithmetic import LOWEST, TINY, Arithmetic, reciprocal, to_bf16
from designs.kernels.models_softmax import accumulate_sums, difference, exp_correction
from designs.kernels.spec import Dims, Kernel, prototype
from npusim.devices import Device

Array = np.ndarray[Any, np.dtype[Any]]
F32 = np.float32


def _sums(x: Array) -> Any:
    """Float32 sum of each row (the cores add 32 columns at a time; the order changes the last bit only)."""
    return x.astype(F32).sum(axis=-1, dtype=F32)


def softmax_rows(a: Arithmetic, s: Array, p: Array, scale: Any) -> None:
    """P = softmax(S * scale / log2(e)) along each row, three passes; rows that are all masked give 0."""
    c = to_bf16(F32(scale))
    m = np.maximum(s.max(axis=-1), LOWEST)
    e = a.exp(difference(s, m[:, None]), c)
    inverse = reciprocal(np.maximum(to_bf16(_sums(e)), TINY))
    p[...] = to_bf16(e.astype(F32) * inverse.astype(F32)[:, None])


def softmax_stats(a: Arithmetic, s: Array, m: Array, l: Array, scale: Any) -> None:
    """First of two passes over rows too long for memory: fold a piece of each row into its maximum and sum."""
    c = to_bf16(F32(scale))
    u = np.maximum(m, np.maximum(s.max(axis=-1), LOWEST))
    sums = _sums(a.exp(difference(s, u[:, None]), c))
    l[...] = to_bf16(l.astype(F32) * a.exp(difference(m, u), c).astype(F32) + sums)
    m[...] = u


def softmax_apply(a: Arithmetic, s: Array, m: Array, l: Array, p: Array, scale: Any) -> None:
    """Second pass: P of a piece of each row, given the whole row's maximum and sum."""
    e = a.exp(difference(s, m[:, None]), to_bf16(F32(scale)))
    inverse = reciprocal(np.maximum(l, TINY))
    p[...] = to_bf16(e.astype(F32) * inverse.astype(F32)[:, None])


def online_softmax_rows(a: Arithmetic, s: Array, p: Array, m: Array, l: Array, r: Array, scale: Any) -> None:
    """One block of a stream, as :func:`designs.kernels.models_softmax.online_softmax`, but S and P lie row by row; the sums
    are formed in float32, 32 columns after 32, then neighbouring lanes to one."""
    c = to_bf16(F32(scale))
    u = np.maximum(m, np.maximum(s.max(axis=-1), LOWEST))
    exp_correction(a, m, u, r, scale)
    p[...] = a.exp(difference(s, u[:, None]), c)
    m[...] = u
    lanes = np.add.reduce(p.reshape(len(p), -1, cost.LANES).astype(F32), axis=1)
    while lanes.shape[1] > 1:
        lanes = lanes[:, 0::2] + lanes[:, 1::2]
    accumulate_sums(a, to_bf16(lanes[:, 0]), r, l)


def add_bf16(a: Arithmetic, x: Array, y: Array, z: Array) -> None:
    """z = x + y."""
    z[...] = to_bf16(x.astype(F32) + y.astype(F32))


def mul_bf16(a: Arithmetic, x: Array, y: Array, z: Array) -> None:
    """z = x * y."""
    z[...] = to_bf16(x.astype(F32) * y.astype(F32))


def relu_bf16(a: Arithmetic, x: Array, z: Array) -> None:
    """z = max(x, 0)."""
    np.maximum(x, x.dtype.type(0), out=z)


def scale_bf16(a: Arithmetic, x: Array, z: Array, factor: Any) -> None:
    """z = x * factor; the factor is rounded to bf16."""
    rounded: Any = F32(to_bf16(F32(factor)))
    z[...] = to_bf16(x.astype(F32) * rounded)


def passthrough_bf16(a: Arithmetic, x: Array, z: Array) -> None:
    """z = x."""
    z[...] = x


def _cost_rows(*passes: cost.Pass) -> Any:
    def of(d: Dims, device: Device) -> cost.Cost:
        parts = [p.over(d["ROWS"] * d["COLS"], device) for p in passes]
        return cost.call(device, *parts, cost.rows("row", d["ROWS"]))

    return of


def _cost_online(d: Dims, device: Device) -> cost.Cost:
    """A pass for the maxima and one for the exponentials and their sums; folding (rounds of two filters and one operation:
    9 for the maxima of eight rows, 18 for their sums) and spreading are for 32 lanes a row instead of eight."""
    return cost.call(
        device,
        cost.MAX.over(d["BQ"] * d["BK"], device),
        cost.EXP_SUM.over(d["BQ"] * d["BK"], device),
        cost.MAX.over(d["BQ"], device),
        cost.EXP.over(d["BQ"], device),
        cost.MERGE.over(d["BQ"], device),
        cost.rows("fold", (3 + 6) * d["BQ"]),
        cost.rows("broadcast", d["BQ"]),
    )


def _cost_loop(loads: int, operations: int = 1) -> Any:
    def of(d: Dims, device: Device) -> cost.Cost:
        return cost.elementwise(d["COUNT"], loads, 1, device, operations=operations)

    return of


KERNELS = [
    Kernel(
        "softmax_rows",
        "softmax.cc",
        prototype("s[ROWS,COLS] p[ROWS,COLS] scale:f32"),
        softmax_rows,
        _cost_rows(cost.MAX, cost.EXP, cost.SCALE),
    ),
    Kernel(
        "softmax_stats",
        "softmax.cc",
        prototype("s[ROWS,COLS] m[ROWS] l[ROWS] scale:f32"),
        softmax_stats,
        _cost_rows(cost.MAX, cost.EXP),
    ),
    Kernel(
        "softmax_apply",
        "softmax.cc",
        prototype("s[ROWS,COLS] m[ROWS] l[ROWS] p[ROWS,COLS] scale:f32"),
        softmax_apply,
        _cost_rows(cost.EXP),
    ),
    Kernel(
        "online_softmax_rows",
        "online_softmax_rows.cc",
        prototype("s[BQ,BK] p[BQ,BK] m[BQ] l[BQ] r[BQ] scale:f32"),
        online_softmax_rows,
        _cost_online,
    ),
    Kernel("add_bf16", "elementwise.cc", prototype("x[COUNT] y[COUNT] z[COUNT]"), add_bf16, _cost_loop(2)),
    Kernel("mul_bf16", "elementwise.cc", prototype("x[COUNT] y[COUNT] z[COUNT]"), mul_bf16, _cost_loop(2)),
    Kernel("relu_bf16", "elementwise.cc", prototype("x[COUNT] z[COUNT]"), relu_bf16, _cost_loop(1)),
    Kernel("scale_bf16", "elementwise.cc", prototype("x[COUNT] z[COUNT] factor:f32"), scale_bf16, _cost_loop(1)),
    Kernel("passthrough_bf16", "elementwise.cc", prototype("x[COUNT] z[COUNT]"), passthrough_bf16, _cost_loop(1, 0)),
]

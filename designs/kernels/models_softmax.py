"""The steps of online softmax on tiles in panels, one row maximum and sum a query.

Scores stay unscaled until the exponential, whose base and scale are one factor: ``scale`` = log2(e) / sqrt(d), rounded to
bf16. Probabilities are 2**((s - m) * scale), the difference rounded to bf16 as the vector unit does.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from designs.kernels import cycles as cost
from designs.kernels.arithmetic import LOWEST, TINY, Arithmetic, reciprocal, to_bf16
from designs.kernels.layout import panels
from designs.kernels.spec import Dims, Kernel, prototype
from npusim.devices import Device

Array = np.ndarray[Any, np.dtype[Any]]
F32 = np.float32


def difference(x: Array, y: Array) -> Array:
    """x - y in bf16, no lower than LOWEST: minus infinity minus LOWEST would else be out of bounds for the exponential."""
    with np.errstate(over="ignore"):  # LOWEST minus a large number is minus infinity, and then LOWEST
        return np.maximum(to_bf16(x.astype(F32) - y.astype(F32)), LOWEST)


def fold_sum(x: Array) -> Array:
    """Sum of the eight last-axis values of float32, in the order of the cores: neighbours, then pairs, then fours."""
    for _ in range(3):
        x = x[..., 0::2] + x[..., 1::2]
    return x[..., 0]


def row_max(a: Arithmetic, s: Array, u: Array) -> None:
    """u = largest of each row, LOWEST where all are minus infinity."""
    folded = panels(s).max(axis=0)
    for width in (4, 2, 1):
        folded = np.maximum(folded[:, :width], folded[:, width:])
    u[...] = np.maximum(folded[:, 0], LOWEST)


def max_with(a: Arithmetic, m: Array, u: Array) -> None:
    """u = max(m, u)."""
    np.maximum(m, u, out=u)


def exp_scores(a: Arithmetic, u: Array, s: Array, scale: Any) -> None:
    """S becomes P = 2**((S - u) * scale), in place."""
    view = panels(s)
    view[...] = a.exp(difference(view, u[:, None]), to_bf16(F32(scale)))


def exp_correction(a: Arithmetic, m: Array, u: Array, r: Array, scale: Any) -> None:
    """r = 2**((m - u) * scale): what the old maximum's results are worth under the new one."""
    r[...] = a.exp(difference(m, u), to_bf16(F32(scale)))


def row_sum(a: Arithmetic, p: Array, t: Array) -> None:
    """t = sum of each row, in float32: panel after panel, then eight to one."""
    t[...] = to_bf16(fold_sum(np.add.reduce(panels(p).astype(F32), axis=0)))


def accumulate_sums(a: Arithmetic, t: Array, r: Array, l: Array) -> None:
    """l = l * r + t."""
    l[...] = to_bf16(l.astype(F32) * r.astype(F32) + t.astype(F32))


def rescale_output(a: Arithmetic, r: Array, o: Array) -> None:
    """O = O * r, row by row."""
    view = panels(o)
    view[...] = to_bf16(view.astype(F32) * r.astype(F32)[:, None])


def accumulate_output(a: Arithmetic, t: Array, r: Array, o: Array) -> None:
    """O = O * r + T: rescale and add a block's P V in one pass, with one rounding."""
    view = panels(o)
    view[...] = to_bf16(view.astype(F32) * r.astype(F32)[:, None] + panels(t).astype(F32))


def divide_output(a: Arithmetic, l: Array, o: Array) -> None:
    """O = O / l by way of the reciprocal; rows that saw no key (l = 0, O = 0) stay 0."""
    rescale_output(a, reciprocal(np.maximum(l, TINY)), o)


def softmax_step(a: Arithmetic, s: Array, m: Array, t: Array, r: Array, scale: Any) -> None:
    """One block of scores, in place: S becomes P; m the new maximum, t the row sums of P, r the correction."""
    row_max(a, s, t)
    max_with(a, m, t)
    exp_correction(a, m, t, r, scale)
    exp_scores(a, t, s, scale)
    m[...] = t
    row_sum(a, s, t)


def online_softmax(a: Arithmetic, s: Array, p: Array, m: Array, l: Array, r: Array, scale: Any) -> None:
    """The same for streams: P goes to another tile, l is updated, r is handed on with P."""
    p[...] = s
    t = np.empty_like(l)
    softmax_step(a, p, m, t, r, scale)
    accumulate_sums(a, t, r, l)


# ---- costs: passes over the BQ x BK scores or the BQ x DV output, and short ones over a value a row


def _rows(p: cost.Pass) -> Any:
    return lambda d, device: cost.call(device, p.over(d["BQ"], device))


def _reduce(p: cost.Pass) -> Any:
    return lambda d, device: cost.call(device, p.over(d["BQ"] * d["BK"], device), cost.rows("fold", d["BQ"]))


def _spread(p: cost.Pass, columns: str) -> Any:
    return lambda d, device: cost.call(device, p.over(d["BQ"] * d[columns], device), cost.rows("spread", d["BQ"]))


def _cost_step(d: Dims, device: Device) -> cost.Cost:
    return cost.call(
        device,
        cost.MAX.over(d["BQ"] * d["BK"], device),
        cost.EXP.over(d["BQ"] * d["BK"], device),
        cost.SUM.over(d["BQ"] * d["BK"], device),
        cost.MAX.over(d["BQ"], device),
        cost.EXP.over(d["BQ"], device),
        cost.rows("fold", 2 * d["BQ"]),
        cost.rows("spread", d["BQ"]),
    )


def _cost_online(d: Dims, device: Device) -> cost.Cost:
    return _cost_step(d, device) + cost.MERGE.over(d["BQ"], device)


def _cost_divide(d: Dims, device: Device) -> cost.Cost:
    vectors = -(-d["BQ"] // cost.LANES)
    reciprocals = cost.Cost(6 * vectors, int(vectors * cost.constant("reciprocal")))
    return _spread(cost.SCALE, "DV")(d, device) + reciprocals


_SOURCE = "online_softmax.cc"
KERNELS = [
    Kernel("row_max", _SOURCE, prototype("s[BQ,BK] u[BQ]"), row_max, _reduce(cost.MAX)),
    Kernel("max_with", _SOURCE, prototype("m[BQ] u[BQ]"), max_with, _rows(cost.MAX)),
    Kernel("exp_scores", _SOURCE, prototype("u[BQ] s[BQ,BK] scale:f32"), exp_scores, _spread(cost.EXP, "BK")),
    Kernel("exp_correction", _SOURCE, prototype("m[BQ] u[BQ] r[BQ] scale:f32"), exp_correction, _rows(cost.EXP)),
    Kernel("row_sum", _SOURCE, prototype("p[BQ,BK] t[BQ]"), row_sum, _reduce(cost.SUM)),
    Kernel("accumulate_sums", _SOURCE, prototype("t[BQ] r[BQ] l[BQ]"), accumulate_sums, _rows(cost.MERGE)),
    Kernel("rescale_output", _SOURCE, prototype("r[BQ] o[BQ,DV]"), rescale_output, _spread(cost.SCALE, "DV")),
    Kernel(
        "accumulate_output", _SOURCE, prototype("t[BQ,DV] r[BQ] o[BQ,DV]"), accumulate_output, _spread(cost.MERGE, "DV")
    ),
    Kernel("divide_output", _SOURCE, prototype("l[BQ] o[BQ,DV]"), divide_output, _cost_divide),
    Kernel("softmax_step", _SOURCE, prototype("s[BQ,BK] m[BQ] t[BQ] r[BQ] scale:f32"), softmax_step, _cost_step),
    Kernel(
        "online_softmax",
        _SOURCE,
        prototype("s[BQ,BK] p[BQ,BK] m[BQ] l[BQ] r[BQ] scale:f32"),
        online_softmax,
        _cost_online,
    ),
]

"""Merging partial results of attention over disjoint keys, and the cascade that carries them.

A partial result is (O, m, l): unnormalised output, maximum and sum. Two of them merge under their common maximum; the merge
is associative up to rounding, and a partial result that saw no key (O = 0, m = LOWEST, l = 0) changes nothing.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from ml_dtypes import bfloat16

from designs.kernels import cycles as cost
from designs.kernels.arithmetic import Arithmetic, to_bf16
from designs.kernels.layout import WIDTH, panels
from designs.kernels.models_softmax import difference
from designs.kernels.spec import Dims, Kernel, prototype
from npusim.devices import Device

Array = np.ndarray[Any, np.dtype[Any]]
F32 = np.float32


def merge_partials(
    a: Arithmetic, o_in: Array, m_in: Array, l_in: Array, o: Array, m: Array, l: Array, scale: Any
) -> None:
    """(O, m, l) becomes the merge of itself and (O_in, m_in, l_in); each value is rounded once."""
    c = to_bf16(F32(scale))
    u = np.maximum(m, m_in)
    theirs, ours = a.exp(difference(m_in, u), c).astype(F32), a.exp(difference(m, u), c).astype(F32)
    view = panels(o)
    view[...] = to_bf16(panels(o_in).astype(F32) * theirs[:, None] + view.astype(F32) * ours[:, None])
    l[...] = to_bf16(l_in.astype(F32) * theirs + l.astype(F32) * ours)
    m[...] = u


# ---- the cascade: 64-byte words of 32 bf16


def _by_groups(o: Array) -> Array:
    """A tile in the order that partial results travel: eight rows of every panel, then the next eight. A view."""
    view = panels(o)
    return view.reshape(view.shape[0], -1, WIDTH * WIDTH).swapaxes(0, 1)


def cascade_put_output(a: Arithmetic, o: Array, *, cascade: Any) -> None:
    """Send a tile down the cascade, in the order of memory."""
    cascade.put(o)


def cascade_get_output(a: Arithmetic, o: Array, *, cascade: Any) -> None:
    """Take a tile off the cascade."""
    o[...] = cascade.get(o.shape, bfloat16)


def cascade_put_rows(a: Arithmetic, v: Array, *, cascade: Any) -> None:
    """Send one value a row."""
    cascade.put(v)


def cascade_get_rows(a: Arithmetic, v: Array, *, cascade: Any) -> None:
    """Take one value a row."""
    v[...] = cascade.get(v.shape, bfloat16)


def cascade_put_partial(a: Arithmetic, o: Array, m: Array, l: Array, *, cascade: Any) -> None:
    """Send a partial result: m, l, then O by groups of eight rows."""
    for part in (m, l, _by_groups(o)):
        cascade.put(part)


def cascade_merge_partial(a: Arithmetic, o: Array, m: Array, l: Array, scale: Any, *, cascade: Any) -> None:
    """Take a partial result off the cascade and merge it in as it arrives: no second tile is needed."""
    m_in, l_in = cascade.get(m.shape, bfloat16), cascade.get(l.shape, bfloat16)
    o_in = np.empty_like(o)
    _by_groups(o_in)[...] = cascade.get(_by_groups(o).shape, bfloat16)
    merge_partials(a, o_in, m_in, l_in, o, m, l, scale)


# ---- costs; the words' own cycles on the cascade are counted by the engine


def _cost_merge(d: Dims, device: Device) -> cost.Cost:
    vectors = 3  # two exponentials and the sums, a value a row
    short = cost.Cost(0, 0)
    for _ in range(vectors):
        short = short + cost.EXP.over(d["BQ"], device)
    return cost.call(device, cost.MERGE.over(d["BQ"] * d["DV"], device), short, cost.rows("spread", 2 * d["BQ"]))


def _moved(tiles: int, vectors: int, got: bool) -> Any:
    def of(d: Dims) -> tuple[int, int]:
        nbytes = 2 * d["BQ"] * (tiles * d.get("DV", 0) + vectors)
        return (nbytes, 0) if got else (0, nbytes)

    return of


def _cost_words(tiles: int, vectors: int) -> Any:
    def of(d: Dims, device: Device) -> cost.Cost:
        return cost.call(device, cost.COPY.over(d["BQ"] * (tiles * d.get("DV", 0) + vectors), device))

    return of


_SOURCE = "cascade.cc"
KERNELS = [
    Kernel(
        "merge_partials",
        "merge.cc",
        prototype("o_in[BQ,DV] m_in[BQ] l_in[BQ] o[BQ,DV] m[BQ] l[BQ] scale:f32"),
        merge_partials,
        _cost_merge,
    ),
    Kernel("cascade_put_output", _SOURCE, prototype("o[BQ,DV]"), cascade_put_output, _cost_words(1, 0), _moved(1, 0, False)),
    Kernel("cascade_get_output", _SOURCE, prototype("o[BQ,DV]"), cascade_get_output, _cost_words(1, 0), _moved(1, 0, True)),
    Kernel("cascade_put_rows", _SOURCE, prototype("v[BQ]"), cascade_put_rows, _cost_words(0, 1), _moved(0, 1, False)),
    Kernel("cascade_get_rows", _SOURCE, prototype("v[BQ]"), cascade_get_rows, _cost_words(0, 1), _moved(0, 1, True)),
    Kernel(
        "cascade_put_partial",
        _SOURCE,
        prototype("o[BQ,DV] m[BQ] l[BQ]"),
        cascade_put_partial,
        _cost_words(1, 2),
        _moved(1, 2, False),
    ),
    Kernel(
        "cascade_merge_partial",
        _SOURCE,
        prototype("o[BQ,DV] m[BQ] l[BQ] scale:f32"),
        cascade_merge_partial,
        _cost_merge,
        _moved(1, 2, True),
    ),
]

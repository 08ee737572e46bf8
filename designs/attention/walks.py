"""The host's walks through its arrays for attention as three programs: which pieces of DDR each column gets, and in which rounds.

Apart from the design because they are only this: a shim tile's descriptor counts no more than 64 passes with a fixed step
between them, and K and V go on to the next head where the rows of Q do. As in ``iron.py``, the backend's own names are imported
when they are used.
"""

from itertools import zip_longest

from designs.attention.iron import piece

TILES, B = 4, 64  # compute tiles of a column; rows and columns of a block
UNIT = TILES * B  # rows that a column works on at a time
LONGEST = 4096  # elements of a row that softmax can hold


def runs(column, columns, heads, kv_heads, lq, lk):
    """The units of a column, every ``columns``-th, in runs that one transfer
    can walk: (first unit, how many, its head of K, heads of K from one to the
    next)."""
    units = range(column, heads * lq // UNIT, columns)
    own = [unit * UNIT // lq * kv_heads // heads for unit in units]
    most = 64 if columns * UNIT * lk <= 2**21 else 1  # passes; elements between them
    at = 0
    while at < len(units):
        apart, end = own[min(at + 1, len(own) - 1)] - own[at], at + 1
        while end < len(units) and end - at < most and own[end] - own[end - 1] == apart:
            end += 1
        yield units[at], end - at, own[at], apart
        at = end


def product_walks(columns, heads, kv_heads, lq, lk, d):
    """For each round the walks of every column: through Q or O, through K or
    V, through S or P."""
    from aie.helpers.taplib import TensorAccessPattern

    rows, step = heads * lq, columns * UNIT

    def of(unit, times, own, apart):
        sizes, strides = [times, lk // B, UNIT, B], [step * lk, B, lk, 1]
        return (
            piece(rows * d, unit * UNIT * d, UNIT * d, times, step * d),
            piece(kv_heads * lk * d, own * lk * d, lk * d, times, apart * lk * d),
            TensorAccessPattern((rows * lk,), unit * UNIT * lk, sizes, strides),
        )

    every = [
        [of(*run) for run in runs(column, columns, heads, kv_heads, lq, lk)]
        for column in range(min(columns, rows // UNIT))
    ]
    for walks in zip_longest(*every, fillvalue=(None, None, None)):
        yield tuple(zip(*walks))


def softmax_walks(halves, rows, lk, piece_rows):
    """For each round the walks of every half of a column, through S and P."""
    from aie.helpers.taplib import TensorAccessPattern

    if lk <= LONGEST:  # all rows of a half at once
        share = rows // halves * lk
        walks = [piece(rows * lk, i * share, share) for i in range(halves)]
        yield walks, walks
        return
    wide = LONGEST // piece_rows

    def walk(at, times):
        sizes, strides = [times, lk // wide, 2 * piece_rows, wide], [0, wide, lk, 1]
        return TensorAccessPattern((rows * lk,), at, sizes, strides)

    for row in range(0, rows // halves, 2 * piece_rows):
        starts = [(i * (rows // halves) + row) * lk for i in range(halves)]
        yield [walk(at, 2) for at in starts], [walk(at, 1) for at in starts]

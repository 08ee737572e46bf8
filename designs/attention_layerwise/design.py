"""Attention as three programs, one after the other: S = Q Kᵀ, softmax, O = P V.

Each fills the whole array; S and P go to DDR and back in between. For the
products a column makes a unit of 256 rows of a head at a time, 64 on each
of its four compute tiles. Its MemTile splits what differs from tile to
tile, sends to all what they share (K or V), joins what they make, and
changes layouts on the way: rows in DDR, panels of eight columns in L1.
"""

import aie.iron as iron
from aie.helpers.dialects.scf import if_
from aie.iron import Buffer, CompileTime, In, Out, Program, Runtime, Worker
from aie.iron.controlflow import range_
from aie.iron.device import Tile

from designs.attention.iron import array, as_it_lies, broadcast, join, kernels, row_kernels, run_in_turn, split
from designs.attention.walks import LONGEST, TILES, UNIT, B, product_walks, softmax_walks


def score(q_in, k_in, s_out, units, blocks, number, zero, multiply, mask):
    """S = Q Kᵀ of some units: all of a column if later keys are masked, then
    ``number`` gives the number of the block of queries in its head."""
    for unit in range_(units):
        q = q_in.acquire(1)
        for block in range_(blocks):
            s = s_out.acquire(1)
            zero(s)
            multiply(q, k_in.acquire(1), s)
            if number:
                with if_(block >= number(unit), hasElse=False):
                    mask(s, number(unit), block)
            k_in.release(1)
            s_out.release(1)
        q_in.release(1)


def softmax_rows(s_in, p_out, scale, softmax):
    """Whole rows, some at a time."""
    softmax(s_in.acquire(1), p_out.acquire(1), scale)
    s_in.release(1)
    p_out.release(1)


def softmax_pieces(s_in, p_out, scale, m, l, pieces, *functions):
    """Rows in pieces, which come twice: for maximum and sum, and for P."""
    lowest, zero, stats, apply = functions
    lowest(m)
    zero(l)
    for _ in range_(pieces):
        stats(s_in.acquire(1), m, l, scale)
        s_in.release(1)
    for _ in range_(pieces):
        apply(s_in.acquire(1), m, l, p_out.acquire(1), scale)
        s_in.release(1)
        p_out.release(1)


def weighted_sum(p_in, v_in, o_out, blocks, zero, multiply):
    """O = P V."""
    o = o_out.acquire(1)
    zero(o)
    for _ in range_(blocks):
        multiply(p_in.acquire(1), v_in.acquire(1), o)
        p_in.release(1)
        v_in.release(1)
    o_out.release(1)


def product_sequence(a, b, c, a_ends, b_ends, c_ends, rounds):
    """S = Q Kᵀ or O = P V."""
    fills = [(a, end) for end in a_ends] + [(b, end) for end in b_ends]
    run_in_turn(rounds, fills, [(c, end) for end in c_ends])


def softmax_sequence(s, p, s_ends, p_ends, rounds):
    """P = softmax(S)."""
    run_in_turn(rounds, [(s, end) for end in s_ends], [(p, end) for end in p_ends])


def program(sequence, arrays, ends, rounds, workers):
    """The program of a device; ``ends`` are the host's, those of each array."""
    runtime = Runtime(sequence, [*arrays, *map(list, ends), list(rounds)])
    return Program(iron.get_current_device(), runtime, workers=workers).resolve_program()


@iron.jit
def scores(
    q: In, k: In, s: Out, *, heads: CompileTime[int], kv_heads: CompileTime[int],
    lq: CompileTime[int], lk: CompileTime[int], d: CompileTime[int] = 64,
    causal: CompileTime[bool] = False,
):  # fmt: skip
    """q (heads, lq, d), k (kv_heads, lk, d), s (heads, lq, lk): S = Q Kᵀ, unscaled."""
    columns, workers, host = iron.get_current_device().cols, [], []
    calls = kernels(B, B, d)("zero_scores", "matmul_qk", "mask_causal")
    for c in range(min(columns, heads * lq // UNIT)):
        q_end, q_in = split(f"q{c}", c, TILES, B, d)
        k_end, k_in = broadcast(f"k{c}", c, B, d)
        s_end, s_out = join(f"s{c}", c, TILES, B, B)
        host.append((q_end, k_end, s_end))
        units = len(range(c, heads * lq // UNIT, columns)) if causal else 1
        for i in range(TILES):

            def number(unit, column=c, tile=i):
                return (unit * columns + column) % (lq // UNIT) * TILES + tile

            given = [units, lk // B, number if causal else None]
            ends = [q_in[i].cons(), k_in.cons(), s_out[i].prod()]
            workers.append(Worker(score, [*ends, *given, *calls], Tile(c, 2 + i)))
    arrays = [array(heads * lq * d), array(kv_heads * lk * d), array(heads * lq * lk)]
    walks = product_walks(columns, heads, kv_heads, lq, lk, d)
    rounds = [([*q, *k], s) for q, k, s in walks]
    return program(product_sequence, arrays, zip(*host), rounds, workers)


@iron.jit
def softmax(
    s: In, p: Out, *, rows: CompileTime[int], lk: CompileTime[int], scale: CompileTime[float],
):  # fmt: skip
    """s and p (rows, lk): P = 2^(scale S) of each row, divided by its sum."""
    columns, workers, host = iron.get_current_device().cols, [], []
    share = rows // (2 * columns)  # rows of two tiles
    if lk <= LONGEST:
        r = max(n for n in (1, 2, 4, 8, 16, 32) if n * lk <= LONGEST and share % (2 * n) == 0)
    else:
        r = 32
    shape = (r, min(lk, LONGEST // r))
    whole, stats, apply = row_kernels(*shape)
    lowest, zero = kernels(r, r, r)("lowest_maxima", "zero_sums")
    for half in range(2 * columns):
        c, upper = half // 2, half % 2
        s_end, s_in = split(f"s{half}", c, 2, *shape, as_it_lies)
        p_end, p_out = join(f"p{half}", c, 2, *shape, as_it_lies)
        host.append((s_end, p_end))
        for i in range(2):
            ends, tile = [s_in[i].cons(), p_out[i].prod(), scale], Tile(c, 2 + 2 * upper + i)
            if lk <= LONGEST:
                workers.append(Worker(softmax_rows, [*ends, whole], tile))
            else:
                state = [Buffer(array(r), name=f"{n}{half}_{i}") for n in "ml"]
                calls = [lk // shape[1], lowest, zero, stats, apply]
                workers.append(Worker(softmax_pieces, [*ends, *state, *calls], tile))
    rounds = softmax_walks(2 * columns, rows, lk, r)
    return program(softmax_sequence, [array(rows * lk)] * 2, zip(*host), rounds, workers)


@iron.jit
def output(
    p: In, v: In, o: Out, *, heads: CompileTime[int], kv_heads: CompileTime[int],
    lq: CompileTime[int], lk: CompileTime[int], d: CompileTime[int] = 64,
):  # fmt: skip
    """p (heads, lq, lk), v (kv_heads, lk, d), o (heads, lq, d): O = P V."""
    columns, workers, host = iron.get_current_device().cols, [], []
    calls = kernels(B, B, d)("zero_output", "matmul_pv")
    for c in range(min(columns, heads * lq // UNIT)):
        p_end, p_in = split(f"p{c}", c, TILES, B, B)
        v_end, v_in = broadcast(f"v{c}", c, B, d)
        o_end, o_out = join(f"o{c}", c, TILES, B, d)
        host.append((p_end, v_end, o_end))
        for i in range(TILES):
            ends = [p_in[i].cons(), v_in.cons(), o_out[i].prod()]
            workers.append(Worker(weighted_sum, [*ends, lk // B, *calls], Tile(c, 2 + i)))
    arrays = [array(heads * lq * lk), array(kv_heads * lk * d), array(heads * lq * d)]
    walks = product_walks(columns, heads, kv_heads, lq, lk, d)
    rounds = [([*p, *v], o) for o, v, p in walks]
    return program(product_sequence, arrays, zip(*host), rounds, workers)

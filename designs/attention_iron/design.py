"""Attention as pipelines of three compute tiles: Q Kᵀ, online softmax, P V.

Each pipeline has bq queries of its own; K and V come through one MemTile
each and go to all pipelines at once. Scores and probabilities each pass
through a MemTile on their way, whose DMA changes their layout: the matrix
kernels want panels of eight columns, softmax wants rows. After each block
of keys the softmax tile hands on by how much what was summed so far is to
be corrected, and after the last one the sums to divide by. Lengths are
run-time parameters.
"""

from contextlib import nullcontext

import aie.iron as iron
import numpy as np
from aie.helpers.dialects.scf import if_
from aie.iron import Buffer, CompileTime, In, ObjectFifo, Out, Program, Runtime, Worker, WorkerRuntimeBarrier
from aie.iron.controlflow import range_
from aie.iron.device import Tile

from designs.attention.iron import (
    array,
    broadcast,
    from_panels,
    join,
    kernels,
    piece,
    run_in_turn,
    split,
    through,
    to_panels,
)

# Columns of the MemTiles for each pipeline's scores and probabilities, for
# the parts of Q, for K, for V and for the parts of O: no more than six
# streams go up from a MemTile, and four down to it.
PLACES = {
    4: {"own": (1, 1, 2, 3), "q": (0,), "k": 2, "v": 3, "o": (0,)},
    8: {"own": (1, 1, 2, 3, 4, 5, 6, 6), "q": (2, 5), "k": 3, "v": 4, "o": (0, 7)},
}


def blocks_of_queries(numbers, ready, pipeline, pipelines, causal):
    """Goes through blocks of queries: all of a head, in order, if there is
    a causal mask, else one, whichever it is. The worker comes back for more.

    Gives the block's number, the number of blocks of keys, and of keys; the
    host has set these when it opens the barrier.
    """
    ready.wait_for_value(1)
    groups, blocks, keys = (numbers[i] for i in range(3))
    if causal:
        for group in range_(groups):
            yield group * pipelines + pipeline, blocks, keys
    else:
        yield None, blocks, keys


def seen(block, own, causal):
    """For a block of keys that a query sees. The others are skipped, but
    come all the same: what is sent goes to all pipelines."""
    return if_(block <= own, hasElse=False) if causal else nullcontext()


def scores(q_in, k_in, s_out, loops, causal, bk, *functions):
    """S = Q Kᵀ, minus infinity for keys after the query or beyond the last."""
    zero, multiply, after, beyond = functions
    for own, blocks, keys in blocks_of_queries(*loops):
        q = q_in.acquire(1)
        for block in range_(blocks):
            k = k_in.acquire(1)
            with seen(block, own, causal):
                s = s_out.acquire(1)
                zero(s)
                multiply(q, k, s)
                if causal:
                    with if_(block == own, hasElse=False):
                        after(s, own, block)
                else:
                    with if_((block + 1) * bk > keys, hasElse=False):
                        beyond(s, block, keys)
                s_out.release(1)
            k_in.release(1)
        q_in.release(1)


def softmax(s_in, p_out, r_out, loops, causal, scale, m, l, *functions):
    """P = exp(S - m), with a running maximum m and sum l; r corrects what
    was summed under an older maximum. After the last block r is l."""
    lowest, zero, step, copy = functions
    for own, blocks, _ in blocks_of_queries(*loops):
        lowest(m)
        zero(l)
        for _ in range_(own + 1 if causal else blocks):
            s, p, r = s_in.acquire(1), p_out.acquire(1), r_out.acquire(1)
            step(s, p, m, l, r, scale)
            s_in.release(1)
            p_out.release(1)
            r_out.release(1)
        copy(l, r_out.acquire(1))
        r_out.release(1)


def output(p_in, v_in, r_in, o_out, loops, causal, *functions):
    """O = r O + P V, in the end divided by l."""
    zero, rescale, multiply, divide = functions
    for own, blocks, _ in blocks_of_queries(*loops):
        o = o_out.acquire(1)
        zero(o)
        for block in range_(blocks):
            v = v_in.acquire(1)
            with seen(block, own, causal):
                rescale(r_in.acquire(1), o)
                multiply(p_in.acquire(1), v, o)
                r_in.release(1)
                p_in.release(1)
            v_in.release(1)
        divide(r_in.acquire(1), o)
        r_in.release(1)
        o_out.release(1)


def pipeline(i, column, loops, bq, bk, causal, scale, q, k, v, o, of, depths):
    """The workers of pipeline i; its scores pass the MemTile of a column."""
    s, p = (ObjectFifo(array(bq, bk), name=f"{name}{i}") for name in "sp")
    (s_made, s_between, s_taken), (p_made, p_between, p_taken) = depths
    s_out, p_out = s.prod(s_made), p.prod(p_made)
    s_in = through(s, f"s{i}_rows", column, from_panels(bq, bk), s_between).cons(s_taken)
    p_in = through(p, f"p{i}_panels", column, to_panels(bq, bk), p_between).cons(p_taken)
    r = ObjectFifo(array(bq), name=f"r{i}")
    m, l = (Buffer(array(bq), name=f"{name}{i}") for name in "ml")
    first = of("zero_scores", "matmul_qk", "mask_causal", "mask_keys")
    second = of("lowest_maxima", "zero_sums", "online_softmax_rows", "copy_rows")
    third = of("zero_output", "rescale_output", "matmul_pv", "divide_output")
    state, a, b, c = [scale, m, l], *loops
    ends = [
        [q.cons(), k.cons(), s_out, a, causal, bk, *first],
        [s_in, p_out, r.prod(), b, causal, *state, *second],
        [p_in, v.cons(), r.cons(), o.prod(), c, causal, *third],
    ]
    stages = zip((scores, softmax, output), ends, (2, 3, 4))
    return [Worker(stage, e, tile=Tile(i, row)) for stage, e, row in stages]


def sequence(q, k, v, o, q_ends, k_end, v_end, o_ends, parameters, rounds):
    """Sets the run-time parameters, then moves a group of queries after the
    other: its parts of Q, all K and V of the head, its parts of O."""
    buffers, ready, numbers = parameters
    for buffer in buffers:
        for i, number in enumerate(numbers):
            buffer[i] = number
    ready.set(1)
    fills = [*((q, end) for end in q_ends), (k, k_end), (v, v_end)]
    run_in_turn(rounds, fills, [(o, end) for end in o_ends], ahead=0)


def walks(lq, lk, d, heads, kv_heads, part, parts):
    """The rounds: ``parts`` parts of Q, and K and V of the head; O."""
    size = heads * lq * d
    for start in range(0, size, parts * part):
        own = start // (lq * d) * kv_heads // heads
        q = [piece(size, start + i * part, part) for i in range(parts)]
        kv = piece(kv_heads * lk * d, own * lk * d, lk * d)
        yield [*q, kv, kv], q


@iron.jit
def attention(
    q: In, k: In, v: In, o: Out, *, lq: CompileTime[int], lk: CompileTime[int], keys: CompileTime[int],
    num_heads: CompileTime[int], num_kv_heads: CompileTime[int], scale: CompileTime[float],
    causal: CompileTime[bool] = False, pipelines: CompileTime[int] = 8, bq: CompileTime[int] = 64,
    bk: CompileTime[int] = 64, d: CompileTime[int] = 64,
    s_depths: CompileTime[tuple] = (2, 2, 2), p_depths: CompileTime[tuple] = (2, 2, 2),
):  # fmt: skip
    """q, o: (num_heads, lq, d); k, v: (num_kv_heads, lk, d), of which the
    first ``keys`` keys count; scale = log2(e) / sqrt(d). How many blocks of
    scores and of P there is room for: in the tile that makes them, in the
    MemTile, in the tile that takes them."""
    if lq % (bq * pipelines) or lk % bk:
        raise ValueError(f"pad lq = {lq} to {bq * pipelines} and lk = {lk} to {bk}")
    places, ready, of = PLACES[pipelines], WorkerRuntimeBarrier(), kernels(bq, bk, d)
    q_ways = [split(f"q{i}", c, 4, bq, d) for i, c in enumerate(places["q"])]
    o_ways = [join(f"o{i}", c, 4, bq, d) for i, c in enumerate(places["o"])]
    (k_end, k_all), (v_end, v_all) = (broadcast(n, places[n], bk, d) for n in "kv")
    workers, buffers = [], []
    for i, column in enumerate(places["own"]):
        own = [
            Buffer(array(3, dtype=np.int32), name=f"numbers{i}_{j}", use_write_rtp=True)
            for j in range(3)
        ]
        loops = [[numbers, ready, i, pipelines, causal] for numbers in own]
        ends = (q_ways[i // 4][1][i % 4], k_all, v_all, o_ways[i // 4][1][i % 4])
        workers += pipeline(i, column, loops, bq, bk, causal, scale, *ends, of, (s_depths, p_depths))
        buffers += own
    numbers = [lq // (bq * pipelines), lk // bk, keys]
    rounds = list(walks(lq, lk, d, num_heads, num_kv_heads, 4 * bq * d, pipelines // 4))
    queries, others = array(num_heads * lq * d), array(num_kv_heads * lk * d)
    host = [[end for end, _ in q_ways], k_end, v_end, [end for end, _ in o_ways]]
    arrays, parameters = [queries, others, others, queries], [buffers, ready, numbers]
    runtime = Runtime(sequence, [*arrays, *host, parameters, rounds])
    return Program(iron.get_current_device(), runtime, workers=workers).resolve_program()

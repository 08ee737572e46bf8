"""Attention as five tasks that stream to each other, in the manner of DATO.

Send Q, score, softmax, weighted sum and accumulate; a pipeline is a
column of four compute tiles, the first two tasks share one. Blocks of
scores, probabilities and partial outputs go from tile to tile, two deep,
through the memory that neighbours share; only the corrections of softmax
go to a tile two further, by DMA. No MemTile sees a score. Some pipelines
share a stream of K and one of V; each has bq queries of its own.
"""

import aie.iron as iron
from aie.iron import Buffer, CompileTime, In, ObjectFifo, Out, Program, Runtime, Worker
from aie.iron.controlflow import range_
from aie.iron.device import Tile

from designs.attention.iron import array, broadcast, join, kernels, piece, run_in_turn, split


def send_and_score(q_in, k_in, s_out, blocks, zero, multiply):
    """Q for all blocks of keys, and S = Q Kᵀ of each."""
    q = q_in.acquire(1)
    for _ in range_(blocks):
        s = s_out.acquire(1)
        zero(s)
        multiply(q, k_in.acquire(1), s)
        k_in.release(1)
        s_out.release(1)
    q_in.release(1)


def softmax(s_in, p_out, r_out, blocks, scale, m, l, *functions):
    """P = exp(S - m), with a running maximum m and sum l; r corrects what
    was summed under an older maximum. After the last block r is l."""
    lowest, zero, step, copy = functions
    lowest(m)
    zero(l)
    for _ in range_(blocks):
        s, p, r = s_in.acquire(1), p_out.acquire(1), r_out.acquire(1)
        step(s, p, m, l, r, scale)
        s_in.release(1)
        p_out.release(1)
        r_out.release(1)
    copy(l, r_out.acquire(1))
    r_out.release(1)


def weighted_sum(p_in, v_in, t_out, zero, multiply):
    """T = P V, one block after the other."""
    t = t_out.acquire(1)
    zero(t)
    multiply(p_in.acquire(1), v_in.acquire(1), t)
    p_in.release(1)
    v_in.release(1)
    t_out.release(1)


def accumulate(t_in, r_in, o_out, blocks, zero, add, divide):
    """O = r O + T, in the end divided by l."""
    o = o_out.acquire(1)
    zero(o)
    for _ in range_(blocks):
        add(t_in.acquire(1), r_in.acquire(1), o)
        t_in.release(1)
        r_in.release(1)
    divide(r_in.acquire(1), o)
    r_in.release(1)
    o_out.release(1)


def pipeline(i, bq, bk, d, blocks, scale, q, k, v, o, of):
    """The four workers of the pipeline in column i."""
    s, p = (ObjectFifo(array(bq, bk), name=f"{name}{i}") for name in "sp")
    t = ObjectFifo(array(bq, d), name=f"t{i}")
    r = ObjectFifo(array(bq), name=f"r{i}")
    m, l = (Buffer(array(bq), name=f"{name}{i}") for name in "ml")
    first = of("zero_scores", "matmul_qk")
    second = of("lowest_maxima", "zero_sums", "online_softmax", "copy_rows")
    third = of("zero_output", "matmul_pv")
    fourth = of("zero_output", "accumulate_output", "divide_output")
    ends = [
        [q.cons(), k.cons(), s.prod(), blocks, *first],
        [s.cons(), p.prod(), r.prod(), blocks, scale, m, l, *second],
        [p.cons(), v.cons(), t.prod(), *third],
        [t.cons(), r.cons(), o.prod(), blocks, *fourth],
    ]
    tasks = (send_and_score, softmax, weighted_sum, accumulate)
    return [
        Worker(task, given, tile=Tile(i, row))
        for task, given, row in zip(tasks, ends, (2, 3, 4, 5))
    ]


def sequence(q, k, v, o, q_ends, k_ends, v_ends, o_ends, rounds):
    """A head after the other, the next one begun while one is made."""
    ends = (q, q_ends), (k, k_ends), (v, v_ends)
    fills = [(data, end) for data, own in ends for end in own]
    run_in_turn(rounds, fills, [(o, end) for end in o_ends])


def walks(lq, lk, heads, kv_heads, pipelines, sharing, bq, d):
    """The rounds, each for up to 64 groups of queries of a head: Q of each
    set of pipelines, group after group, K and V for each group; O."""
    size, group, part = heads * lq * d, pipelines * bq * d, sharing * bq * d
    groups = lq // (pipelines * bq)
    for head in range(heads):
        own = head * kv_heads // heads * lk * d
        for first in range(0, groups, 64):
            start, times = head * lq * d + first * group, min(64, groups - first)
            starts = range(start, start + group, part)
            q = [piece(size, at, part, times, group) for at in starts]
            kv = piece(kv_heads * lk * d, own, lk * d, times)
            yield [*q, *[kv] * (2 * len(q))], q


@iron.jit
def attention(
    q: In, k: In, v: In, o: Out, *, lq: CompileTime[int], lk: CompileTime[int], num_heads: CompileTime[int],
    num_kv_heads: CompileTime[int], scale: CompileTime[float], pipelines: CompileTime[int] = 8,
    sharing: CompileTime[int] = 4, bq: CompileTime[int] = 32, bk: CompileTime[int] = 32, d: CompileTime[int] = 64,
):  # fmt: skip
    """q, o: (num_heads, lq, d); k, v: (num_kv_heads, lk, d); the scores are
    multiplied with scale = log2(e) / sqrt(d)."""
    if lq % (bq * pipelines) or lk % bk:
        multiples = f"multiples of {bq * pipelines} and {bk}"
        raise ValueError(f"lq = {lq} and lk = {lk} must be {multiples}")
    workers, ways, of = [], [], kernels(bq, bk, d)
    for first in range(0, pipelines, sharing):
        # Each way leads through the MemTile of another column.
        columns = [first + i * sharing // 4 for i in range(4)]
        q_way = split(f"q{first}", columns[0], sharing, bq, d)
        k_way = broadcast(f"k{first}", columns[1], bk, d)
        v_way = broadcast(f"v{first}", columns[2], bk, d)
        o_way = join(f"o{first}", columns[3], sharing, bq, d)
        ways.append([end for end, _ in (q_way, k_way, v_way, o_way)])
        for i in range(sharing):
            ends = (q_way[1][i], k_way[1], v_way[1], o_way[1][i])
            workers += pipeline(first + i, bq, bk, d, lk // bk, scale, *ends, of)
    host = [list(ends) for ends in zip(*ways)]
    queries, others = array(num_heads * lq * d), array(num_kv_heads * lk * d)
    rounds = list(walks(lq, lk, num_heads, num_kv_heads, pipelines, sharing, bq, d))
    runtime = Runtime(sequence, [queries, others, others, queries, *host, rounds])
    return Program(iron.get_current_device(), runtime, workers=workers).resolve_program()

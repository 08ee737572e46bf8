"""Bytes that DMA moves at each memory level, and FLOP per byte, in closed form for every mapping.

Shim DMA counts as DDR, MemTile DMA as MemTile, compute-tile DMA as L1; ``read`` is what leaves a level, ``written`` what enters
it. A stream that is sent to many tiles leaves a MemTile once and enters L1 many times. What neighbours hand over in shared
memory, or over the cascade, is no DMA. The formulas hold to the byte; the tests compare them with simulated runs.

H heads, Lq queries, Lk keys, dk and dv wide; G = Lq/lqp groups of queries a head, n = num_q_tiles, Bq = lqp/n, B = Lk/lkp
blocks of keys; bf16 of 2 bytes. The asymptotic forms and their sources are in each function's text; those of the fused and the
IRON mapping reproduce what is published of the paper's operational intensities.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from designs.attention.parameters import Name, Parameters
from npusim.report import LEVELS, Level, Traffic

BF16 = 2
"""Bytes of an element."""

Bytes = dict[Level, Traffic]


def _bytes(ddr: tuple[int, int], memtile: tuple[int, int], l1: tuple[int, int]) -> Bytes:
    """From elements (read, written) a level."""
    elements: dict[Level, tuple[int, int]] = {"ddr": ddr, "memtile": memtile, "l1": l1}
    return {level: Traffic(read=BF16 * read, written=BF16 * written) for level, (read, written) in elements.items()}


def total(parts: Iterable[Bytes]) -> Bytes:
    """The traffic of several runs."""
    sums = {level: Traffic() for level in LEVELS}
    for part in parts:
        for level, traffic in part.items():
            sums[level].read += traffic.read
            sums[level].written += traffic.written
    return sums


# ---- layer by layer


def layerwise_programs(p: Parameters) -> dict[str, Bytes]:
    """Each program by name. S and P cross DDR four times: d/2 FLOP/B at most (2 bytes an element, 4 d FLOP a score); K and V
    are read once for 256 queries, and rows of more than 4096 keys twice by softmax, which makes it less."""
    rows, scores = p.num_heads * p.lq, p.num_heads * p.lq * p.keys
    q, o = rows * p.dk, rows * p.width
    units = rows // p.tile("lqp")
    k, v = units * p.keys * p.dk, units * p.keys * p.width
    tiles, times = p.tile("num_q_tiles"), 1 if p.keys <= 4096 else 2
    return {
        "scores": _bytes((q + k, scores), (q + k + scores,) * 2, (scores, q + tiles * k)),
        "softmax": _bytes((times * scores, scores), ((times + 1) * scores,) * 2, (scores, times * scores)),
        "output": _bytes((scores + v, o), (scores + v + o,) * 2, (o, scores + tiles * v)),
    }


def layerwise(p: Parameters) -> Bytes:
    """All three programs together."""
    return total(layerwise_programs(p).values())


# ---- DATO


def dato(p: Parameters) -> Bytes:
    """At DDR K and V pass once for Bq queries of each pipeline that shares the stream: Bq x sharing FLOP/B, half of it at the
    MemTile, in and out together. No scores, which go from neighbour to neighbour; at L1 only the softmax tile's corrections
    (a value a query and block, and the sums after the last block) go by DMA."""
    group, tiles = p.tile("lqp"), p.tile("num_q_tiles")
    groups = p.num_heads * p.lq // group
    q, o = groups * group * p.dk, groups * group * p.width
    kv = groups * p.keys * (p.dk + p.width)  # of one stream of K and one of V
    streams = tiles // p.tile("kv_sharing")
    corrections = groups * group * (p.keys // p.tile("lkp") + 1)
    through = q + streams * kv + o
    return _bytes((q + streams * kv, o), (through, through), (o + corrections, q + tiles * kv + corrections))


# ---- IRON


def iron(p: Parameters) -> Bytes:
    """At DDR all pipelines share one pass of K and V: n x Bq FLOP/B asymptotically (512 on XDNA 2). Scores and probabilities go
    into a MemTile and out again: d/2 there, in and out together (28.4 with K and V for eight pipelines); at L1 21.3.

    Lengths are padded (:meth:`Parameters.padded`). Blocks that a causal mask skips make no scores, but their K and V are sent.
    """
    padded = p.padded()
    group, tiles, block = p.tile("lqp"), p.tile("num_q_tiles"), p.tile("lkp")
    groups, blocks = padded.lq // group, padded.keys // block
    q, o = p.num_heads * padded.lq * p.dk, p.num_heads * padded.lq * p.width
    kv = p.num_heads * groups * padded.keys * (p.dk + p.width)
    rows = groups * tiles  # blocks of queries a head; the last one sees all blocks of keys
    made = rows * (rows + 1) // 2 if p.causal else rows * blocks
    scores = p.num_heads * made * p.bq * block
    through = q + kv + 2 * scores + o
    return _bytes((q + kv, o), (through, through), (2 * scores + o, q + tiles * kv + 2 * scores))


# ---- fused


def fused(p: Parameters) -> Bytes:
    """At DDR K and V pass once for lqp queries: lqp FLOP/B asymptotically; exactly 4 lqp L d / (2 d (2 L + (NS + 1) lqp)),
    since Q is sent to each of the NS stages. Twice that at the MemTile one way, since a stage's stream leaves it once for
    all its tiles; Bq = lqp/n at L1, where each tile gets all Q of its stage and keeps its own. Scores leave no tile.

    A value wider than 64 is made in pieces of 64, each in launches of its own that make the scores again.
    """
    pieces = -(-p.width // 64)
    group, tiles, stages = p.tile("lqp"), p.tile("num_q_tiles"), p.tile("num_cascade_stages")
    launches = p.num_heads * p.lq // group * pieces
    q, k = launches * stages * group * p.dk, launches * p.keys * p.dk
    v, o = launches * p.keys * p.width // pieces, launches * group * p.width // pieces
    return _bytes((q + k + v, o), (q + k + v + o,) * 2, (o, tiles * (q + k + v)))


FORMULAS: Mapping[Name, Callable[[Parameters], Bytes]] = {
    "layerwise": layerwise,
    "dato": dato,
    "iron": iron,
    "fused": fused,
}


def traffic(mapping: Name, p: Parameters) -> Bytes:
    """Bytes of a mapping at each level; ``p`` from :meth:`Parameters.of_mapping`."""
    return FORMULAS[mapping](p)


def intensity(mapping: Name, p: Parameters, level: Level) -> float:
    """FLOP (full count) per byte, in and out together."""
    return p.flops / traffic(mapping, p)[level].total

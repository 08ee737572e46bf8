"""The DMA streams of every mapping in closed form: bytes at each memory level, and FLOP per byte.

Shim DMA counts as DDR, MemTile DMA as MemTile, compute-tile DMA as L1; ``read`` is what leaves a level, ``written`` what enters
it. A stream that is sent to many tiles leaves a MemTile once and enters L1 many times. What neighbours hand over in shared
memory, or over the cascade, is no DMA. The formulas hold to the byte, channel by channel; the tests compare them with runs.

H heads, Lq queries, Lk keys, dk and dv wide; G = Lq/lqp groups of queries a head, n = num_q_tiles, Bq = lqp/n, B = Lk/lkp
blocks of keys; bf16 of 2 bytes. The asymptotic forms and their sources are in each function's text; those of the fused and the
IRON mapping reproduce what is published of the paper's operational intensities.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from designs.attention.parameters import Name, Parameters
from npulab.description import Phase, Stream
from npusim.devices import device as device_named
from npusim.report import Level, Traffic

BF16 = 2
"""Bytes of an element."""

Bytes = dict[Level, Traffic]
Programs = dict[str, tuple[Stream, ...]]
"""The streams of each program, by its name: one for all mappings but layer by layer."""


def inwards(name: str, elements: int, host: int, tiles: int, receivers: int = 1, uneven: float = 1) -> tuple[Stream, ...]:
    """From DDR over ``host`` channels to MemTiles, and over ``tiles`` channels on to ``receivers`` compute tiles each;
    ``uneven`` times an even share goes over the busiest one."""
    size = BF16 * elements
    return (
        Stream(name, "ddr", "memtile", size, host, busiest=uneven * size / host),
        Stream(name, "memtile", "l1", size, tiles, receivers, busiest=uneven * size / tiles),
    )


def outwards(name: str, elements: int, tiles: int, host: int, uneven: float = 1) -> tuple[Stream, ...]:
    """From compute tiles over ``tiles`` channels to MemTiles, and over ``host`` channels on to DDR."""
    size = BF16 * elements
    return (
        Stream(name, "l1", "memtile", size, tiles, busiest=uneven * size / tiles),
        Stream(name, "memtile", "ddr", size, host, busiest=uneven * size / host),
    )


# ---- layer by layer


def layerwise(p: Parameters, device: str) -> Programs:
    """S and P cross DDR four times: d/2 FLOP/B at most (2 bytes an element, 4 d FLOP a score); K and V are read once for 256
    queries, and rows of more than 4096 keys twice by softmax, which makes it less.

    A column works on 256 queries at a time, so columns may differ by one such unit; each has four tiles.
    """
    rows, scores = p.num_heads * p.lq, p.num_heads * p.lq * p.keys
    units, tiles, all_columns = rows // p.tile("lqp"), p.tile("num_q_tiles"), device_named(device).columns
    columns, halves = min(all_columns, units), 2 * all_columns
    uneven, times = -(-units // columns) * columns / units, 1 if p.keys <= 4096 else 2
    products = {"host": columns, "tiles": columns * tiles, "uneven": uneven}
    shared = {"host": columns, "tiles": columns, "receivers": tiles, "uneven": uneven}
    return {
        "scores": (
            *inwards("q", rows * p.dk, **products),
            *inwards("k", units * p.keys * p.dk, **shared),
            *outwards("s", scores, **products),
        ),
        "softmax": (*inwards("s", times * scores, halves, 2 * halves), *outwards("p", scores, 2 * halves, halves)),
        "output": (
            *inwards("p", scores, **products),
            *inwards("v", units * p.keys * p.width, **shared),
            *outwards("o", rows * p.width, **products),
        ),
    }


# ---- DATO


def dato(p: Parameters, device: str) -> Programs:
    """At DDR K and V pass once for Bq queries of each pipeline that shares the stream: Bq x sharing FLOP/B, half of it at the
    MemTile, in and out together. No scores, which go from neighbour to neighbour; at L1 only the softmax tile's corrections
    (a value a query and block, and the sums after the last block) go by DMA."""
    rows, tiles, sharing = p.num_heads * p.lq, p.tile("num_q_tiles"), p.tile("kv_sharing")
    streams = tiles // sharing
    passes = rows // p.tile("lqp") * streams * p.keys  # rows of K, and of V
    corrections = BF16 * rows * (p.keys // p.tile("lkp") + 1)
    return {
        "attention": (
            *inwards("q", rows * p.dk, streams, tiles),
            *inwards("k", passes * p.dk, streams, streams, sharing),
            *inwards("v", passes * p.width, streams, streams, sharing),
            Stream("r", "l1", "l1", corrections, tiles),
            *outwards("o", rows * p.width, tiles, streams),
        )
    }


# ---- IRON


def iron_blocks(p: Parameters) -> tuple[int, int]:
    """Blocks of scores: of all pipelines, and of the busiest one. Lengths are padded (:meth:`Parameters.padded`); under a causal
    mask a block of queries has as many blocks of keys as its number, counted from one, and the last pipeline the most."""
    padded, pipelines = p.padded(), p.tile("num_q_tiles")
    rows, groups = padded.lq // p.bq, padded.lq // p.tile("lqp")
    if not p.causal:
        each = p.num_heads * groups * (padded.keys // p.tile("lkp"))
        return pipelines * each, each
    return p.num_heads * rows * (rows + 1) // 2, p.num_heads * pipelines * groups * (groups + 1) // 2


def iron(p: Parameters, device: str) -> Programs:
    """At DDR all pipelines share one pass of K and V: n x Bq FLOP/B asymptotically (512 on XDNA 2). Scores and probabilities go
    into a MemTile and out again: d/2 there, in and out together (28.4 with K and V for eight pipelines); at L1 21.3.

    Blocks that a causal mask skips make no scores, but their K and V are sent.
    """
    padded, tiles, ways = p.padded(), p.tile("num_q_tiles"), p.tile("num_q_tiles") // 4
    rows, (scores, most) = p.num_heads * padded.lq, (BF16 * n * p.bq * p.tile("lkp") for n in iron_blocks(p))
    passes = rows // p.tile("lqp") * padded.keys  # rows of K, and of V
    return {
        "attention": (
            *inwards("q", rows * p.dk, ways, tiles),
            *inwards("k", passes * p.dk, 1, 1, tiles),
            *inwards("v", passes * p.width, 1, 1, tiles),
            *(Stream(x, *way, scores, tiles, busiest=most) for x in "sp" for way in (("l1", "memtile"), ("memtile", "l1"))),
            *outwards("o", rows * p.width, tiles, ways),
        )
    }


# ---- fused


def fused(p: Parameters, device: str) -> Programs:
    """At DDR K and V pass once for lqp queries: lqp FLOP/B asymptotically; exactly 4 lqp L d / (2 d (2 L + (NS + 1) lqp)),
    since Q is sent to each of the NS stages. Twice that at the MemTile one way, since a stage's stream leaves it once for
    all its tiles; Bq = lqp/n at L1, where each tile gets all Q of its stage and keeps its own. Scores leave no tile.

    A value wider than 64 is made in pieces of 64, each in launches of its own that make the scores again. Q travels with K;
    the output of each query tile leaves through a MemTile of its own, as AIR's compiler spreads it for herds of more than four tiles.
    """
    pieces = -(-p.width // 64)
    group, tiles, stages = p.tile("lqp"), p.tile("num_q_tiles"), p.tile("num_cascade_stages")
    heads = p.tile("num_heads_per_unroll")
    ways, ends = stages * heads, tiles * heads
    out = ends if tiles * stages > 4 else heads
    launches = p.num_heads * p.lq // group * pieces
    return {
        "attention": (
            *inwards("qk", launches * (stages * group + p.keys) * p.dk, ways, ways, tiles),
            *inwards("v", launches * p.keys * (p.width // pieces), ways, ways, tiles),
            *outwards("o", launches * group * (p.width // pieces), ends, out),
        )
    }


PROGRAMS: Mapping[Name, Callable[[Parameters, str], Programs]] = {
    "layerwise": layerwise,
    "dato": dato,
    "iron": iron,
    "fused": fused,
}


def streams(mapping: Name, p: Parameters, device: str = "npu2") -> Programs:
    """The streams of each program of a mapping; ``p`` from :meth:`Parameters.of_mapping` for the device."""
    return PROGRAMS[mapping](p, device)


def moved(by: Iterable[Stream]) -> Bytes:
    """Bytes that leave and enter each level."""
    return Phase("streams", tuple(by), ()).traffic


def traffic(mapping: Name, p: Parameters) -> Bytes:
    """Bytes of a mapping at each level, the same on both devices; ``p`` from :meth:`Parameters.of_mapping`."""
    return moved(stream for own in streams(mapping, p).values() for stream in own)


def intensity(mapping: Name, p: Parameters, level: Level) -> float:
    """FLOP (full count) per byte, in and out together."""
    return p.flops / traffic(mapping, p)[level].total

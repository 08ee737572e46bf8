"""Attention operator by operator: Q Kᵀ, softmax and P V as three programs, scores and probabilities in DDR between them.

``python -m designs.attention_layerwise --help``.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

import npulab
from designs.attention import parameters
from designs.attention import run as running
from designs.attention.parameters import Parameters
from designs.attention.run import Array, Launched, MappingOfAttention, Outcome, kernel_cycles
from npulab.description import Stage
from npulab.record import Run
from npusim.devices import device as device_named

DESIGN = Path(__file__).with_name("design.py")
LARGEST = parameters.LARGEST
"""Bytes of the scores of one chain."""


def heads_at_once(p: Parameters) -> int:
    """Heads whose scores are in DDR at the same time: as many as fit, whole groups that share keys or parts of one."""
    shared = p.num_heads // p.kv_heads
    fitting = [
        n
        for n in range(1, p.num_heads + 1)
        if p.num_heads % n == 0 and (n % shared == 0 or shared % n == 0) and 2 * n * p.lq * p.keys <= LARGEST
    ]
    if not fitting:
        raise ValueError(f"attention_layerwise: the scores of one head, {2 * p.lq * p.keys:,} bytes, are over {LARGEST:,}")
    return max(fitting)


def stages(p: Parameters, device: str) -> tuple[Stage, ...]:
    """The tiles of all columns at each product, all tiles at softmax; in blocks of 64 queries by 64 keys."""
    of, tiles = device_named(device), p.tile("num_q_tiles")
    blocks, units = running.blocks(p), p.num_heads * p.lq // p.tile("lqp")
    columns = min(of.columns, units)
    product = {"tiles": columns * tiles, "blocks": blocks, "most": -(-units // columns) * (p.keys // p.tile("lkp"))}
    return (
        Stage("scores", cycles=kernel_cycles(p, device, "zero_scores", "matmul_qk"), **product),
        Stage("softmax", of.compute_tiles, _softmax_cycles(p, device), blocks),
        Stage("output", cycles=kernel_cycles(p, device, "matmul_pv"), **product),
    )


def _softmax_cycles(p: Parameters, device: str) -> float:
    """Of a block: whole rows, or pieces of long rows twice."""
    block = p.bq * p.tile("lkp")
    if p.keys > 4096:
        return kernel_cycles(p, device, "softmax_stats", "softmax_apply", ROWS=32, COLS=128) * block / 4096
    rows = 4096 // p.keys or 1
    return kernel_cycles(p, device, "softmax_rows", ROWS=rows, COLS=p.keys) * block / (rows * p.keys)


def launch(p: Parameters, device: str, q: Array, k: Array, v: Array, how: dict[str, Any]) -> Launched:
    """The three programs for some heads after the other; without data the first ones stand for all."""
    heads = heads_at_once(p)
    kv_heads = max(heads * p.kv_heads // p.num_heads, 1)
    starts = range(0, p.num_heads, heads)
    if not how["data"]:
        runs, _ = _three(p, device, heads, kv_heads, q[:heads], k[:kv_heads], v[:kv_heads], how)
        return Launched(npulab.chain([(done, len(starts)) for done in runs]), None)
    chained, outputs = [], []
    for start in starts:
        own = start * p.kv_heads // p.num_heads
        parts = (q[start : start + heads], k[own : own + kv_heads], v[own : own + kv_heads])
        runs, output = _three(p, device, heads, kv_heads, *parts, how)
        chained += runs
        outputs.append(output)
    return Launched(npulab.chain(chained), np.concatenate(outputs))


def _three(
    p: Parameters, device: str, heads: int, kv_heads: int, q: Array, k: Array, v: Array, how: dict[str, Any]
) -> tuple[list[Run], Array]:
    """Scores, softmax and output of some heads; each program's result is the next one's argument."""
    programs, data = npulab.load(DESIGN), how["data"]
    q, k, v = (x.reshape(-1) if data else running.empty(x.size, data) for x in (q, k, v))
    scores, o = running.empty(heads * p.lq * p.keys, data), running.empty(heads * p.lq * p.width, data)
    shape: dict[str, Any] = {"heads": heads, "kv_heads": kv_heads, "lq": p.lq, "lk": p.keys, "d": p.dk}
    first = npulab.run(
        programs.scores, [q, k, scores], device=device, causal=p.causal, flops=2 * heads * p.lq * p.keys * p.dk, **shape, **how
    )
    second = npulab.run(
        programs.softmax, [first.output, scores], device=device, rows=heads * p.lq, lk=p.keys, scale=p.scale, flops=0, **how
    )
    third = npulab.run(
        programs.output, [second.output, v, o], device=device, flops=2 * heads * p.lq * p.keys * p.width, **shape, **how
    )
    return [first, second, third], third.output.reshape(heads, p.lq, p.width)


MAPPING = MappingOfAttention("layerwise", "Layer by layer: scores and probabilities in DDR", stages, launch, in_turn=True)


def run(parameters: Parameters, device: str = "npu2", **how: Any) -> Outcome:
    """See :func:`designs.attention.run.run`."""
    return running.run(MAPPING, parameters, device, **how)

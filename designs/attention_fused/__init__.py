"""FlashAttention fused into herds of cores, with the cascade merging ranges of keys: the fourth mapping of the book.

Structure after mlir-air programming_examples/flash_attention/kernel_fusion_based (attn_npu2.py, attn_npu1.py); the grid of tiles
is free here, and the kernels are our own. ``python -m designs.attention_fused --help``.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import npulab
from designs.attention import run as running
from designs.attention.parameters import Parameters
from designs.attention.run import Array, Launched, MappingOfAttention, Outcome, Waits, kernel_cycles
from designs.kernels.models import MODELS
from npulab.description import Stage
from npusim.devices import Device

DESIGN = Path(__file__).with_name("design.py")
SLICE = 64
"""Columns of a tile of Q, K, V and O: wider heads are cut into slices, and scores made again for each slice of V."""


def stages(p: Parameters, device: str) -> tuple[Stage, ...]:
    """The rows of the herds, all at the same time, each with a range of keys of its own; with ``causal_skip`` some of their
    blocks are left out. A launch ends with its busiest tile, in whichever row: so much counts for every row."""
    heads, slices = p.tile("num_heads_per_unroll"), p.width // SLICE
    tiles, cycles, most = p.tile("num_q_tiles") * heads, _block_cycles(p, device), p.num_heads // heads * slices * sum(_longest(p))
    made = []
    for row in range(p.tile("num_cascade_stages")):
        blocks = p.num_heads * slices * sum(map(sum, _seen(p, row)))
        made.append(Stage(f"attention, row {row}", tiles, cycles, blocks, most))
    return tuple(made)


def _longest(p: Parameters) -> list[int]:
    """For each launch of a head, the blocks of keys of its busiest tile."""
    rows = (_seen(p, row) for row in range(p.tile("num_cascade_stages")))
    return [max(map(max, launch)) for launch in zip(*rows)]


def _seen(p: Parameters, row: int) -> Iterator[list[int]]:
    """For each launch of a head, how many blocks of keys of a row each column works on."""
    columns, size = p.tile("num_q_tiles"), p.tile("lkp")
    chunks = p.keys // size // p.tile("num_cascade_stages")
    if not p.causal_skip:
        yield from [[chunks] * columns] * (p.lq // p.tile("lqp"))
        return
    back = p.keys if p.window is None else p.window
    for first in range(0, p.lq // size, columns):
        ranges = ((max(row * chunks, own - back // size), min((row + 1) * chunks, own + 1)) for own in range(first, first + columns))
        yield [max(0, end - start) for start, end in ranges]


def _block_cycles(p: Parameters, device: str) -> int:
    """Core cycles of a block of keys."""
    mask = [] if not p.causal else ["mask_causal"] if p.window is None else ["mask_window"]
    names = ["zero_scores", *["matmul_qk"] * (p.dk // SLICE), *mask, "softmax_step", "rescale_output", "matmul_pv", "accumulate_sums"]
    return kernel_cycles(p, device, *names, DK=SLICE, DV=SLICE)


def waits(p: Parameters, on: Device) -> Waits:
    """A launch after the other: the host starts its transfers, queries come in before keys, partial results are merged down
    the cascade, O goes out."""
    heads, rows, columns = p.tile("num_heads_per_unroll"), p.tile("num_cascade_stages"), p.tile("num_q_tiles")
    launches = p.num_heads // heads * (p.lq // p.tile("lqp")) * (p.width // SLICE)
    tile = 2 * p.bq * SLICE / on.stream_bytes_per_cycle  # cycles of one on a stream
    size = {"DK": SLICE, "DV": SLICE}
    turns = launches * p.keys // p.tile("lkp") // rows
    merges = (rows - 1) * kernel_cycles(p, on.name, "merge_partials", **size) + kernel_cycles(p, on.name, "divide_output", **size)
    alone = {
        "queries and first keys coming in": launches * (columns * (p.dk // SLICE) + 2) * tile,
        "merging down the cascade": launches * merges,
        "output going out": launches * 2 * tile,
    }
    if p.dk > SLICE:  # a core has room for one slice of K: the next one comes when it is through
        alone["other slices of K coming in"] = turns * (p.dk // SLICE - 1) * tile
    if p.causal_skip:  # into the one buffer of a MemTile, and out again
        hidden = turns - p.num_heads // heads * (p.width // SLICE) * sum(_longest(p))
        alone["hidden keys coming by"] = hidden * 2 * tile
    return alone, launches * heads * 3 * rows


def launch(p: Parameters, device: str, q: Array, k: Array, v: Array, how: dict[str, Any]) -> Launched:
    """Runs all launches; V and O go through DDR in slices of columns."""
    slices, data = p.width // SLICE, how["data"]
    out = running.empty(p.num_heads * p.lq * p.width, data).reshape(p.num_heads * slices, p.lq, SLICE)
    done = npulab.run(
        DESIGN,
        [q, k, in_slices(v) if data else running.empty(v.size, data), out],
        device=device,
        outputs=[3],
        lq=p.lq,
        lk=p.keys,
        dk=p.dk,
        dv=p.width,
        num_heads=p.num_heads,
        num_kv_heads=p.kv_heads,
        causal=p.causal,
        causal_skip=p.causal_skip,
        window=p.window,
        lqp=p.tile("lqp"),
        lkp=p.tile("lkp"),
        num_q_tiles=p.tile("num_q_tiles"),
        num_cascade_stages=p.tile("num_cascade_stages"),
        num_heads_per_unroll=p.tile("num_heads_per_unroll"),
        **{**how, "kernels": how.get("kernels") or MODELS},  # AIR names object files, not the sources beside which models lie
    )
    return Launched(done, whole(done.output, p.num_heads) if data else None)


def in_slices(x: Array) -> Array:
    """x (heads, length, d) as (heads * d/64, length, 64): each head's slices of columns one after the other."""
    heads, length, d = x.shape
    if d == SLICE:
        return x
    return np.ascontiguousarray(x.reshape(heads, length, d // SLICE, SLICE).swapaxes(1, 2)).reshape(-1, length, SLICE)


def whole(x: Array, heads: int) -> Array:
    """The reverse of :func:`in_slices`."""
    count, length, _ = x.shape
    return x.reshape(heads, count // heads, length, SLICE).swapaxes(1, 2).reshape(heads, length, -1)


MAPPING = MappingOfAttention("fused", "Fused: scores stay in a tile, the cascade merges ranges of keys", stages, launch, waits=waits)


def run(parameters: Parameters, device: str = "npu2", **how: Any) -> Outcome:
    """See :func:`designs.attention.run.run`."""
    return running.run(MAPPING, parameters, device, **how)

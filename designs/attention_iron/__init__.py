"""Attention as pipelines of three compute tiles, scores through MemTiles: the mapping of AMD's IRON operator, on both devices.

Structure after amd/IRON operators/mha (XDNA 2, always causal); XDNA 1, attention without a mask, masks of padded keys and our
own kernels are added. ``python -m designs.attention_iron --help``.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import npulab
from designs.attention import formulas
from designs.attention import run as running
from designs.attention.parameters import Parameters
from designs.attention.run import Array, Launched, MappingOfAttention, Outcome, Waits, kernel_cycles
from npulab.description import Stage
from npusim.devices import Device

DESIGN = Path(__file__).with_name("design.py")


KERNELS = {
    "scores": ("zero_scores", "matmul_qk"),
    "softmax": ("online_softmax_rows",),
    "output": ("rescale_output", "matmul_pv"),
}
"""What each stage calls for a block."""


def stages(p: Parameters, device: str) -> tuple[Stage, ...]:
    """A tile each in every pipeline, all at the same time; blocks that a causal mask hides altogether are skipped."""
    tiles, (blocks, most) = p.tile("num_q_tiles"), formulas.iron_blocks(p)
    return tuple(Stage(name, tiles, kernel_cycles(p, device, *called), blocks, most) for name, called in KERNELS.items())


def waits(p: Parameters, on: Device) -> Waits:
    """A group of queries after the other: the host starts its transfers and waits, the pipelines fill and run empty; keys that
    a mask hides from all of the group come by at the pace of their stream."""
    padded, tiles = p.padded(), p.tile("num_q_tiles")
    groups = p.num_heads * padded.lq // p.tile("lqp")
    cycles = [stage.cycles for stage in stages(p, on.name)]
    hop = 2 * p.bq * max(p.dk, p.tile("lkp")) / on.stream_bytes_per_cycle
    # Q, S, P and O each come through a MemTile: in and out. While the host starts the transfer of O, the array works.
    filling = sum(cycles) - max(cycles) + 8 * hop + kernel_cycles(p, on.name, "divide_output")
    _, seen = formulas.iron_blocks(p)
    hidden = groups * (padded.keys // p.tile("lkp")) - seen
    alone = {"filling and emptying the pipelines": groups * filling}
    if hidden:
        alone["hidden keys coming by"] = hidden * 2 * p.tile("lkp") * p.dk / on.stream_bytes_per_cycle
    return alone, groups * (tiles // 4 + 2)


def launch(p: Parameters, device: str, q: Array, k: Array, v: Array, how: dict[str, Any]) -> Launched:
    """Pads, runs the program once for all heads, and cuts the padding off."""
    full, data = p.padded(), how["data"]
    size = p.num_heads * full.lq * p.dk
    arrays = [running.padded(q, full.lq, data), *(running.padded(x, full.keys, data) for x in (k, v)), running.empty(size, data)]
    done = npulab.run(
        DESIGN,
        arrays,
        device=device,
        lq=full.lq,
        lk=full.keys,
        keys=p.keys,
        num_heads=p.num_heads,
        num_kv_heads=p.kv_heads,
        scale=p.scale,
        causal=p.causal,
        pipelines=p.tile("num_q_tiles"),
        bq=p.bq,
        bk=p.tile("lkp"),
        d=p.dk,
        **how,
    )
    output = done.output.reshape(p.num_heads, full.lq, p.width)[:, : p.lq] if data else None
    return Launched(done, output)


MAPPING = MappingOfAttention(
    "iron",
    "IRON: pipelines of three tiles, scores through MemTiles",
    stages,
    launch,
    KERNELS,
    waits=waits,
    options=("s_depths", "p_depths"),
)


def run(parameters: Parameters, device: str = "npu2", **how: Any) -> Outcome:
    """See :func:`designs.attention.run.run`."""
    return running.run(MAPPING, parameters, device, **how)

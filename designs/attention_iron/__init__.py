"""Attention as pipelines of three compute tiles, scores through MemTiles: the mapping of AMD's IRON operator, on both devices.

Structure after amd/IRON operators/mha (XDNA 2, always causal); XDNA 1, attention without a mask, masks of padded keys and our
own kernels are added. ``python -m designs.attention_iron --help``.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import npulab
from designs.attention import run as running
from designs.attention.parameters import Parameters
from designs.attention.run import Array, Launched, MappingOfAttention, Outcome, Stage, kernel_cycles

DESIGN = Path(__file__).with_name("design.py")


def stages(p: Parameters, device: str) -> tuple[Stage, ...]:
    """A tile each in every pipeline, all at the same time."""
    tiles = p.tile("num_q_tiles")
    return (
        Stage("scores", tiles, kernel_cycles(p, device, "zero_scores", "matmul_qk")),
        Stage("softmax", tiles, kernel_cycles(p, device, "online_softmax_rows")),
        Stage("output", tiles, kernel_cycles(p, device, "rescale_output", "matmul_pv")),
    )


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


MAPPING = MappingOfAttention("iron", "IRON: pipelines of three tiles, scores through MemTiles", stages, launch)


def run(parameters: Parameters, device: str = "npu2", **how: Any) -> Outcome:
    """See :func:`designs.attention.run.run`."""
    return running.run(MAPPING, parameters, device, **how)

"""Attention as tasks that stream to each other, in the manner of DATO, on both devices.

Structure after the library design of cornell-zhang/allo (allo/library/aie/modules/flash_attn.py, XDNA 1, one head); XDNA 2 with
eight pipelines, several heads and heads that share keys are added. ``python -m designs.attention_dato --help``.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import npulab
from designs.attention import run as running
from designs.attention.parameters import Parameters
from designs.attention.run import Array, Launched, MappingOfAttention, Outcome, kernel_cycles
from npulab.description import Stage

DESIGN = Path(__file__).with_name("design.py")


KERNELS = {
    "send_and_score": ("zero_scores", "matmul_qk"),
    "softmax": ("online_softmax",),
    "weighted_sum": ("zero_output", "matmul_pv"),
    "accumulate": ("accumulate_output",),
}
"""What each stage calls for a block."""


def stages(p: Parameters, device: str) -> tuple[Stage, ...]:
    """A tile each in every pipeline, all at the same time; Q is sent by the tile that makes the scores."""
    tiles, blocks = p.tile("num_q_tiles"), running.blocks(p)
    return tuple(Stage(name, tiles, kernel_cycles(p, device, *called), blocks) for name, called in KERNELS.items())


def launch(p: Parameters, device: str, q: Array, k: Array, v: Array, how: dict[str, Any]) -> Launched:
    """Runs the program once for all heads."""
    data = how["data"]
    arrays = [q.reshape(-1), k.reshape(-1), v.reshape(-1)] if data else [running.empty(x.size, data) for x in (q, k, v)]
    done = npulab.run(
        DESIGN,
        [*arrays, running.empty(p.num_heads * p.lq * p.width, data)],
        device=device,
        lq=p.lq,
        lk=p.keys,
        num_heads=p.num_heads,
        num_kv_heads=p.kv_heads,
        scale=p.scale,
        pipelines=p.tile("num_q_tiles"),
        sharing=p.tile("kv_sharing"),
        bq=p.bq,
        bk=p.tile("lkp"),
        d=p.dk,
        **how,
    )
    return Launched(done, done.output.reshape(p.num_heads, p.lq, p.width) if data else None)


MAPPING = MappingOfAttention("dato", "DATO: tasks that stream to each other, scores between neighbours", stages, launch, KERNELS)


def run(parameters: Parameters, device: str = "npu2", **how: Any) -> Outcome:
    """See :func:`designs.attention.run.run`."""
    return running.run(MAPPING, parameters, device, **how)

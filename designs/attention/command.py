"""The command line that every mapping has: ``python -m designs.attention_X --device npu2 --lq 1024 --causal``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import fields

import npulab
from designs.attention import report, run
from designs.attention.parameters import TILES, Name, Parameters
from npusim.errors import NpuError

LARGEST = 12 * 1024 * 1024
"""Scores (heads x queries x keys) up to which data is computed unless asked otherwise: some seconds."""

_HELP = {
    "lq": "queries of a head (tokens)",
    "lk": "keys of a head (default: as many as queries)",
    "dk": "width of a head of Q and K",
    "dv": "width of a head of V and O (default: dk)",
    "num_heads": "heads of Q",
    "num_kv_heads": "heads of K and V (default: as many as of Q)",
    "window": "keys that a query looks back to (default: all)",
    "lqp": "queries worked on at a time",
    "lkp": "keys worked on at a time",
    "num_q_tiles": "compute tiles that share lqp",
    "num_cascade_stages": "ranges of keys that are worked on at the same time",
    "num_heads_per_unroll": "heads worked on at the same time",
    "kv_sharing": "pipelines that share a stream of K and V",
}


def parser(name: Name) -> argparse.ArgumentParser:
    """The options are the fields of Parameters that the mapping knows."""
    options = argparse.ArgumentParser(
        prog=f"python -m designs.attention_{name}", description="Run attention in one mapping, check it, and say where it stands."
    )
    options.add_argument("--device", choices=sorted(TILES[name]), default="npu2", help="default npu2")
    known = {key for tiles in TILES[name].values() for key in tiles}
    for f in fields(Parameters):
        flag = "--" + f.name.replace("_", "-")
        if f.name in ("causal", "causal_skip"):
            text = "mask the keys after each query" if f.name == "causal" else "skip blocks that are masked altogether"
            options.add_argument(flag, action="store_true", help=text)
        elif f.default is not None or f.name in ("lk", "dv", "num_kv_heads") or f.name in known:
            shown = f" (default {f.default})" if f.default else ""
            options.add_argument(flag, type=int, default=f.default, help=_HELP[f.name] + shown)
    options.add_argument("--timing-only", action="store_true", help="simulate the time, compute nothing (long sequences)")
    options.add_argument("--seed", type=int, default=0, help="of the inputs (default 0)")
    return options


def main(name: Name, argv: Sequence[str] | None = None) -> int:
    """Print the table; 1 if something was refused, the result is wrong, or bytes are not where the formulas say."""
    given = vars(parser(name).parse_args(argv))
    device, timing, seed = given.pop("device"), given.pop("timing_only"), given.pop("seed")
    try:
        parameters = Parameters(**given)
        data = not timing and parameters.num_heads * parameters.lq * parameters.keys <= LARGEST
        if not data and not timing:
            print(f"more than {LARGEST:,} scores: timing only")
        npulab.use(device=device)
        outcome = run.run(run.mapping(name), parameters, device, data=data, seed=seed)
    except (NpuError, ValueError) as refused:
        print(f"{type(refused).__name__}: {refused}", file=sys.stderr)
        return 1
    print(report.table(outcome))
    wrong = outcome.error is not None and not outcome.error.within
    return 1 if wrong or (outcome.run.traffic is not None and not run.exact(outcome)) else 0

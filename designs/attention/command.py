"""The command line that every mapping has: ``python -m designs.attention_X --device npu2 --lq 1024 --causal``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import fields

import npulab
from designs.attention import report, run
from designs.attention.parameters import OF_A_MAPPING, TILES, Name, Parameters
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
    "causal": "mask the keys after each query",
    "causal_skip": "skip blocks that are masked altogether",
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
    options.add_argument("--device", choices=sorted(TILES[name]), help="default: NPULAB_DEVICE, else the NPU found, else a simulated npu2")
    foreign = {field for field in OF_A_MAPPING if not any(field in tiles for tiles in TILES[name].values())}
    if name != "fused":
        foreign |= {"window", "causal_skip"}
    for f in fields(Parameters):
        flag = "--" + f.name.replace("_", "-")
        if f.name in foreign:
            continue
        if isinstance(f.default, bool):
            options.add_argument(flag, action="store_true", help=_HELP[f.name])
        else:
            options.add_argument(flag, type=int, default=f.default, help=_HELP[f.name] + _default(name, f.name, f.default))
    options.add_argument("--timing-only", action="store_true", help="simulate the time, compute nothing (long sequences)")
    options.add_argument("--seed", type=int, default=0, help="of the inputs (default 0)")
    return options


def _default(name: Name, field: str, default: int | None) -> str:
    """What a field is if nothing is said: the same everywhere, or the mapping's choice for each device."""
    if default is not None:
        return f" (default {default})"
    own = {device: tiles[field] for device, tiles in TILES[name].items() if field in tiles}
    if not own:
        return ""
    each = ", ".join(f"{size} on {device}" for device, size in own.items())
    return f" (default {each if len(set(own.values())) > 1 else next(iter(own.values()))})"


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
        outcome = run.run(run.mapping(name), parameters, npulab.current().device.name, data=data, seed=seed)
    except (NpuError, ValueError) as refused:
        print(f"{type(refused).__name__}: {refused}", file=sys.stderr)
        return 1
    print(report.table(outcome))
    wrong = outcome.error is not None and not outcome.error.within
    return 1 if wrong or (outcome.run.traffic is not None and not run.exact(outcome)) else 0

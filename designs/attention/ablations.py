"""Why the fused mapping wins: the mappings again, each time with one thing changed (simulated).

``python -m designs.attention.ablations`` prints the table and how the gain of fusing splits up, ``--write`` makes
``ablations.json``, which the book reads. Timing only. Lengths are such that a herd of three rows divides them, too.

What is changed is either in the design (tiles, depths of fifos) or in the simulated machine: equal stages scale the cycles of
the kernels of each stage, so that all stages of a pipeline take the mean; streams of 8 B a cycle double what every DMA channel
of the array carries, MemTiles' included, while DDR stays as it is; without host time the transfers that the host starts cost
nothing.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import npulab
from designs.attention import compare, tables
from designs.attention import run as running
from designs.attention.parameters import Name, Parameters
from designs.kernels.models import MODELS
from npulab.description import Stage
from npusim.kernel_models.timing import MATMUL_EFFICIENCY
from npusim.kernels import KernelModel

DATA = Path(__file__).with_name("ablations.json")
LENGTHS = (1536, 12288)
DEVICES = ("npu1", "npu2")

Options = Callable[[Parameters, str], Mapping[str, Any]]
"""Options of :func:`designs.attention.run.run`, from complete parameters and the device."""


# ---- equal stages


def scaled(model: KernelModel, factor: float) -> KernelModel:
    """A kernel that computes the same in ``factor`` times the cycles."""
    bind = model.bind

    def cycles(*args: Any, **more: Any) -> int:
        return round(factor * model.cycles(*args, **more))

    return replace(model, cycles=cycles, bind=bind and (lambda decl, device: scaled(bind(decl, device), factor)))


def kernels_of(stages: Sequence[Stage], kernels: Mapping[str, Sequence[str]]) -> dict[str, KernelModel]:
    """Models with which every stage takes as long as the mean of all, from the names of each stage's kernels."""
    mean = sum(stage.cycles for stage in stages) / len(stages)
    return {
        name: scaled(MODELS[name], mean / stage.cycles) for stage in stages for name in kernels[stage.name]
    }


def equal_stages(name: Name) -> Options:
    """The options for a mapping."""

    def options(p: Parameters, device: str) -> Mapping[str, Any]:
        of = running.mapping(name)
        return {"kernels": kernels_of(of.stages(p, device), of.kernels)}

    return options


# ---- what is changed


@dataclass(frozen=True)
class Ablation:
    """A mapping with something changed: ``given`` are fields of Parameters by device, ``options`` those of a run."""

    mapping: Name
    change: str
    given: Mapping[str, Any] = field(default_factory=dict)
    options: tuple[Options, ...] = ()
    devices: tuple[str, ...] = DEVICES


def _fixed(**options: Any) -> Options:
    return lambda p, device: options


WIDE = _fixed(stream_bytes_per_cycle=8)
NO_HOST = _fixed(costs=compare.NO_HOST)
ROWS = {"num_cascade_stages": 3}
BASE, EQUAL, WIDER, BOTH, HOST, FEWER = (
    "as it is",
    "equal stages",
    "streams of 8 B/cycle",
    "equal stages, streams of 8 B/cycle",
    "no host time",
    "three rows of four",
)
SLOW = "products of a quarter of the slots"
DEPTHS = ((2, 2, 1), (1, 2, 2), (2, 1, 2), (2, 2, 4), (2, 4, 2))
"""Blocks that there is room for: in the tile that makes them, in the MemTile, in the tile that takes them. Where both ends of
a fifo have the same depth, IRON gives each end only as many as it acquires and one more, so they are never all 4."""


def depths(which: str, three: tuple[int, int, int]) -> str:
    """What the table calls it: ``scores 2, 2, 1 deep``."""
    return f"{which} {', '.join(map(str, three))} deep"


def _of_depths() -> list[Ablation]:
    """Scores and P of the IRON mapping; four blocks of P do not fit into the tile that takes them."""
    named = (("scores", "s_depths"), ("P", "p_depths"))
    return [
        Ablation("iron", depths(which, three), options=(_fixed(**{option: three}),))
        for which, option in named
        for three in DEPTHS
        if not (which == "P" and three[2] == 4)
    ]


def slow_products(p: Parameters, device: str) -> Mapping[str, Any]:
    """Matrix products that fill a quarter of the issue slots, as the ones fitted on XDNA 2 do, in place of the share that the
    model of XDNA 1 takes over from i16 for want of anything published."""
    slower = MATMUL_EFFICIENCY / 0.25
    return {"kernels": {**MODELS, **{name: scaled(MODELS[name], slower) for name in ("matmul_qk", "matmul_pv")}}}


ABLATIONS = (
    Ablation("iron", BASE),
    Ablation("iron", EQUAL, options=(equal_stages("iron"),)),
    Ablation("iron", WIDER, options=(WIDE,)),
    Ablation("iron", BOTH, options=(equal_stages("iron"), WIDE)),
    Ablation("iron", HOST, options=(NO_HOST,)),
    *_of_depths(),
    Ablation("dato", BASE),
    Ablation("dato", EQUAL, options=(equal_stages("dato"),)),
    Ablation("dato", WIDER, options=(WIDE,)),
    Ablation("fused", BASE),
    Ablation("fused", FEWER, given=ROWS),
    Ablation("fused", WIDER, options=(WIDE,)),
    Ablation("fused", HOST, options=(NO_HOST,)),
    Ablation("iron", SLOW, options=(slow_products,), devices=("npu1",)),
    Ablation("fused", SLOW, options=(slow_products,), devices=("npu1",)),
)


def simulated(ablation: Ablation, device: str, length: int) -> dict[str, Any]:
    """A row: tiles, milliseconds, GFLOP/s, FLOP/B at the MemTile, busy share of every stage."""
    given = Parameters(lq=length, num_heads=compare.HEADS, **ablation.given)
    p = given.of_mapping(ablation.mapping, device)
    options = {name: value for each in ablation.options for name, value in each(p, device).items()}
    done = running.run(running.mapping(ablation.mapping), given, device, data=False, **options)
    return {
        "mapping": ablation.mapping,
        "device": device,
        "length": length,
        "change": ablation.change,
        "kind": "simulated",
        "tiles": sum(use.tiles for use in running.stages(done.run)),
        "ms": tables.digits(done.run.seconds * 1e3),
        "gflops": tables.digits((done.run.flops_per_second or 0) / 1e9),
        "memtile_intensity": tables.digits(done.run.intensity("memtile") or 0),
        "busy": {use.name: tables.digits(use.busy) for use in running.stages(done.run)},
    }


def table(lengths: Sequence[int] = LENGTHS) -> list[dict[str, Any]]:
    """All rows."""
    return [simulated(a, device, length) for device in DEVICES for length in lengths for a in ABLATIONS if device in a.devices]


# ---- how the gain splits up


@dataclass(frozen=True)
class Split:
    """Time of the IRON mapping over that of the fused one, and the factors it is made of: tiles in use, stages that wait for
    the slowest, MemTiles (streams twice as wide, once no stage is slower than another), the host's time of both (under 1: the
    fused mapping's host starts more transfers), and what is left over: filling, merging, other kernels."""

    total: float
    tiles: float
    balance: float
    memtiles: float
    host: float

    @property
    def rest(self) -> float:
        """Near 1 if the others are all there is."""
        return self.total / (self.tiles * self.balance * self.memtiles * self.host)

    def __str__(self) -> str:
        factors = {"tiles": self.tiles, "balance": self.balance, "MemTiles": self.memtiles, "host": self.host, "rest": self.rest}
        return f"{self.total:.2f} = " + " x ".join(f"{value:.2f} ({name})" for name, value in factors.items())


def split(rows: Sequence[Mapping[str, Any]], device: str, length: int) -> Split:
    """From the rows of :func:`table`; tiles count as their numbers say."""

    of = {(r["mapping"], r["change"]): r for r in rows if (r["device"], r["length"]) == (device, length)}
    ms = {key: r["ms"] for key, r in of.items()}
    iron, fused, even = ms["iron", BASE], ms["fused", BASE], ms["iron", EQUAL]
    return Split(
        total=iron / fused,
        tiles=of["fused", BASE]["tiles"] / of["iron", BASE]["tiles"],
        balance=iron / even,
        memtiles=even / ms["iron", BOTH],
        host=iron / ms["iron", HOST] * ms["fused", HOST] / fused,
    )


def main(argv: Sequence[str] | None = None) -> None:
    """Print or write the table."""
    options = argparse.ArgumentParser(prog="python -m designs.attention.ablations", description="One thing changed at a time (simulated).")
    options.add_argument("--write", action="store_true", help=f"write {DATA.name}")
    given = options.parse_args(argv)
    npulab.use("sim", quiet=True)
    rows = table()
    if given.write:
        tables.write(DATA, rows)
    for row in rows:
        busy = ", ".join(f"{stage} {share:.0%}" for stage, share in row["busy"].items())
        print(f"{row['device']} {row['length']:6} {row['mapping']:6} {row['change']:34} {row['ms']:9.4g} ms  {busy}")
    for device in DEVICES:
        for length in LENGTHS:
            print(f"{device} {length:6} IRON over fused: {split(rows, device, length)}")


if __name__ == "__main__":
    main()

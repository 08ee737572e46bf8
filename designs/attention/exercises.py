"""The checks of the exercises of the chapter on the four mappings: what is wanted, and a hint for each mistake that people make.

Here and not in the notebook, so that nobody reads an answer or a hint before having tried.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from contextlib import redirect_stdout
from dataclasses import replace
from io import StringIO
from typing import Any

import numpy as np

from designs.attention import ablations
from designs.attention import run as running
from designs.attention.ablations import BASE, EQUAL, HOST
from designs.attention.parameters import Name, Parameters
from designs.kernels.models import MODELS
from npulab import check
from npulab.check.failure import fail, ok
from npulab.description import Description, Phase, Stage, Stream
from npulab.prediction import Prediction, predict

DEVICE, LENGTH = "npu2", 32768
LINKS = {"s": (8, 16), "p": (16, 8)}
"""Channels of exercise 1, into the MemTiles and out of them."""


def _described(name: Name, length: int) -> Description:
    of = running.mapping(name)
    return of.describe(Parameters(lq=length).of_mapping(name, DEVICE), DEVICE)


# ---- 1: a second softmax tile


def second_softmax(stages: Any, streams: Any, slowest: Any, gain: Any) -> Prediction:
    """Exercise 1: the IRON mapping with pipelines of four tiles, two of them for softmax. Returns what is predicted of it."""
    (base,) = _described("iron", LENGTH).phases
    own = {stage.name: stage for stage in _all(stages, Stage, "stages")}
    names = [stage.name for stage in base.stages]
    if sorted(own) != sorted(names):
        fail(f"stages are named {sorted(own)}", hint=f"there are three stages, with the names {', '.join(names)}")
    for stage in base.stages:
        _stage(own[stage.name], stage)
    ok("stages: 32 tiles, and as much work as before")
    links = _all(streams, Stream, "streams")
    _streams(links, base)
    ok("streams: as many bytes as before, over the channels of 16 softmax tiles")
    guesses = [
        (lambda got, want: isinstance(got, Stage), "give the stage's name, a string"),
        ("softmax", "two tiles share its work: compare all three stages again"),
    ]
    check.equal(slowest, "output", name="slowest", mistakes=guesses)
    times = {stage.name: stage.longest for stage in base.stages}
    wrong = [
        (2.0, "softmax takes half as long, but then it is not the slowest stage any more"),
        (4 / 3, "that is the ratio of the tiles; compare the slowest stage with the slowest one before"),
        (times["output"] / times["softmax"], "the other way round: before over after"),
        (times["softmax"] / times["scores"], "that is the fastest stage; the slowest one counts"),
    ]
    check.number(gain, times["softmax"] / times["output"], name="gain", mistakes=wrong)
    found = _predicted(links, [own[name] for name in names])
    _beside(found, predict(_described("iron", LENGTH), DEVICE))
    return found


def two_softmax_tiles() -> Prediction:
    """What is predicted of the solution of exercise 1."""
    (base,) = _described("iron", LENGTH).phases
    links = [replace(s, channels=LINKS[s.name][s.source == "memtile"], busiest=None) for s in base.streams if s.name in LINKS]
    return _predicted(links, [replace(s, tiles=16, most=None) if s.name == "softmax" else s for s in base.stages])


def _predicted(links: Sequence[Stream], stages: Sequence[Stage]) -> Prediction:
    """Of the IRON mapping with these streams of scores and probabilities, and these stages."""
    before = _described("iron", LENGTH)
    (base,) = before.phases
    others = (stream for stream in base.streams if stream.name not in LINKS)
    phase = replace(base, streams=(*others, *links), stages=tuple(stages))
    return predict(Description("IRON with two softmax tiles", before.flops, (phase,)), DEVICE)


def _all(given: Any, kind: type, name: str) -> list[Any]:
    """A sequence of stages or streams, or a CheckFailed."""
    check.filled(given, name)
    found = list(given) if isinstance(given, Iterable) else [given]
    if wrong := [x for x in found if not isinstance(x, kind)]:
        fail(f"{name} holds a {type(wrong[0]).__name__}", hint=f"{name} are made by npulab.{kind.__name__}(...)")
    return found


def _stage(own: Stage, base: Stage) -> None:
    double = base.name == "softmax"
    hints = [
        (16 if double else 8, ""),
        (8, "there are two softmax tiles in each of the eight pipelines"),
        (24, "tiles are those of this stage alone, not of all three"),
        (2, "tiles are those of all pipelines together"),
    ]
    (want, _), *wrong = hints
    if own.tiles != want:
        fail(f"stage {own.name!r} has {own.tiles} tiles", hint=dict(wrong).get(own.tiles, "only softmax gets more tiles, one for each pipeline"))
    work = own.work / base.work
    if abs(work - 1) > 1e-6:
        hint = f"this stage does what it did, for {LENGTH:,} tokens and 12 heads"
        if double and abs(work - 0.5) < 1e-6:
            hint = f"16 tiles already get half as many blocks each: leave `{'cycles' if own.cycles < base.cycles else 'blocks'}` alone"
        elif double and abs(work - 2) < 1e-6:
            hint = "a tile does half of the rows of each block: if it meets every block, each takes half of the cycles"
        fail(f"stage {own.name!r} does {work:g} times the work of before", hint=hint)
    longest = base.longest / (2 if double else 1)
    if abs(own.longest / longest - 1) > 1e-6:
        hint = "`most` is what the busiest tile does, and that is no longer what it was: leave it out for an even share"
        fail(f"the busiest tile of stage {own.name!r} works for {own.longest:,.0f} cycles", hint=hint)


def _streams(own: Sequence[Stream], base: Phase) -> None:
    ways = {(stream.name, stream.source, stream.dest): stream for stream in own}
    of_before = {(stream.name, stream.source, stream.dest): stream for stream in base.streams if stream.name in LINKS}
    if len(ways) != len(own) or set(ways) != set(of_before):
        fail(
            f"streams go {', '.join(f'{name} {a} to {b}' for name, a, b in sorted(ways))}",
            hint='four streams: "s" and "p", each from "l1" to "memtile" and from "memtile" to "l1"',
        )
    for way, stream in ways.items():
        _stream(stream, of_before[way].bytes)


def _stream(own: Stream, size: int) -> None:
    if own.bytes != size:
        known = {2 * size: "each tile takes half of a block: all together carry what they did", size // 2: "all tiles together carry all of it"}
        known[size // 8] = known[size // 16] = "bytes are those of all channels together"
        fail(f"{own} carries {own.bytes:,} bytes", hint=known.get(own.bytes, "`size` bytes, as before"))
    into, out = LINKS[own.name]
    want = into if own.dest == "memtile" else out
    if own.receivers != 1:
        fail(f"{own} is a broadcast", hint="each softmax tile gets rows of its own: more channels, with one receiver each")
    if own.channels != want:
        made = f"{'scores' if own.name == 's' else 'softmax'} tile" if own.dest == "memtile" else f"{'softmax' if own.name == 's' else 'output'} tile"
        fail(f"{own} has {own.channels} channels", hint=f"one channel for each {made}")


def _beside(found: Prediction, before: Prediction) -> None:
    """What the change gains on paper, and with a stand-in for it in the simulation."""
    fused = predict(_described("fused", LENGTH), DEVICE)
    print(f"predicted: {before.seconds * 1e3:,.0f} ms become {found.seconds * 1e3:,.0f} ms (the fused mapping: {fused.seconds * 1e3:,.0f} ms)")
    on_paper, in_simulation = stand_in()
    print("a stand-in at 4,096 tokens, three tiles, softmax of half the cycles:")
    print(f"  predicted {on_paper:.2f} times as fast, simulated {in_simulation:.2f}")


def stand_in(length: int = 4096) -> tuple[float, float]:
    """How many times as fast the IRON mapping becomes with a softmax of half the cycles: predicted, and simulated."""
    plain, of, p = _described("iron", length), running.mapping("iron"), Parameters(lq=length)
    (base,) = plain.phases
    stages = tuple(replace(s, cycles=s.cycles / 2) if s.name == "softmax" else s for s in base.stages)
    short = replace(plain, phases=(replace(base, stages=stages),))
    halved = {**MODELS, **{name: ablations.scaled(MODELS[name], 0.5) for name in of.kernels["softmax"]}}
    with redirect_stdout(StringIO()):
        was, now = (running.run(of, p, DEVICE, data=False, **how).run.seconds for how in ({}, {"kernels": halved}))
    return predict(plain, DEVICE).seconds / predict(short, DEVICE).seconds, was / now


# ---- 2: intensity at the MemTiles


def _intensity(bq: int, bk: int, d: int, shared: int, *, blocks: float = 2, own: float = 1, flops: float = 4, ways: float = 2) -> float:
    """FLOP/B, or what a mistake makes of it: ``blocks`` of scores and ``own`` times K and V pass, in ``ways`` directions."""
    return flops * bq * bk * d / (ways * (blocks * 2 * bq * bk + own * 2 * 2 * bk * d / shared))


def at_memtile(answer: Callable[[int, int, int, int], Any]) -> None:
    """Exercise 2: a function of (bq, bk, d, shared) to FLOP/B."""
    check.filled(answer, "at_memtile")
    cases = [(64, 64, 64, 8), (32, 64, 64, 4), (64, 32, 128, 8), (128, 64, 32, 1), (64, 64, 256, 2)]
    with redirect_stdout(StringIO()):  # a line for each number would be too many
        for case in cases:
            name = f"at_memtile({', '.join(map(str, case))})"
            check.number(answer(*case), _intensity(*case), unit="FLOP/B", name=name, rtol=0.001, mistakes=_intensity_mistakes(*case))
    ok(f"at_memtile is right, for {len(cases)} sizes")


def clears(clears_kernels: Any, clears_units: Any, width: Any) -> None:
    """Exercise 2, then: which ridges the mapping clears as it is, and the width from which on it clears the other."""
    low, high = (predict(_described("iron", 4096), DEVICE, ceiling=c).ridge("memtile") for c in ("kernels", "matrix units"))
    here = _intensity(64, 64, 64, 8)
    for name, given, ridge in (("clears_kernels", clears_kernels, low), ("clears_units", clears_units, high)):
        if not isinstance(check.filled(given, name), bool | np.bool):
            fail(f"{name} is {given!r}", hint="True or False")
        hint = f"compare {here:.1f} FLOP/B with that ridge point: to the right of it is cleared"
        check.equal(bool(given), bool(here >= ridge), name=name, hint=hint)
    check.equal(width, next(d for d in range(16, 1024, 16) if _intensity(64, 64, d, 8) >= high), name="width", mistakes=_widths(high))


def _intensity_mistakes(bq: int, bk: int, d: int, shared: int) -> list[tuple[Any, str]]:
    case = bq, bk, d, shared
    flops, passing = 4 * bq * bk * d, 8 * bq * bk
    once = "Q and O pass once for all blocks of keys: leave them out, in a long sequence they hardly count"
    return [
        (_intensity(*case, ways=1), "both ways: what enters the MemTiles leaves them again"),
        (_intensity(*case, flops=2), "two products, and a multiplication and an addition in each: 4 bq bk d"),
        (d / 2, "K and V pass the MemTiles, too"),
        (_intensity(*case, own=shared**2), "a broadcast leaves a MemTile once: divide by `shared`, do not multiply"),
        (_intensity(*case, own=shared), f"one pass of K and V is for {shared} pipelines: each block of scores bears its share"),
        (flops / (passing + 4 * bk * d / shared + 4 * bk * d), "a broadcast leaves a MemTile once, however many receive it"),
        *((flops / (passing + 8 * bk * d / shared + n * 4 * bq * d), once) for n in (1, 2)),
        (_intensity(*case, own=0.5), "keys and values: two blocks of bk rows"),
        (_intensity(*case, blocks=1), "scores and probabilities: two blocks of bq times bk"),
        (_intensity(*case) * 2, "an element of bf16 has 2 bytes"),
    ]  # fmt: skip


def _widths(ridge: float) -> list[tuple[Any, str]]:
    """Wrong widths by what was forgotten."""
    forgotten = next(d for d in range(16, 1024, 16) if d / 2 >= ridge)
    exact = ridge / (0.5 - ridge / 512)
    alone = "there d/2 clears it, but K and V pass as well, and they grow with d; and it is to be a multiple of 16"
    return [
        (forgotten, "there d/2 clears it, but K and V pass as well, and they grow with d"),
        (lambda got, want: isinstance(got, (int, float)) and abs(got - 2 * ridge) <= 1, alone),
        (lambda got, want: isinstance(got, (int, float)) and abs(got - exact) <= 1, "a multiple of 16, from which on it is cleared"),
        (lambda got, want: isinstance(got, (int, float)) and got > want, "a smaller one clears it, too"),
        (lambda got, want: isinstance(got, (int, float)) and got < want, "there it is still left of the ridge point"),
    ]


# ---- 3: fused over DATO


def _times() -> dict[tuple[str, str], float]:
    """Milliseconds on XDNA 2 at 12,288 tokens by (mapping, change), from the table of ablations."""
    rows = json.loads(ablations.DATA.read_text())
    return {(r["mapping"], r["change"]): r["ms"] for r in rows if (r["device"], r["length"]) == (DEVICE, ablations.LENGTHS[-1])}


def dato_factors() -> dict[str, float]:
    """The factors of the gain of fused over DATO on XDNA 2 at 12,288 tokens."""
    ms = _times()
    total, balance = ms["dato", BASE] / ms["fused", BASE], ms["dato", BASE] / ms["dato", EQUAL]
    host = ms["fused", HOST] / ms["fused", BASE]
    fused, dato = (predict(_described(name, 4096), DEVICE).roofline.ceiling for name in ("fused", "dato"))
    return {"total": total, "balance": balance, "host": host, "rest": total / balance / host, "kernels": fused / dato}


def _split_mistakes() -> dict[str, list[tuple[Any, str]]]:
    want, ms, before = dato_factors(), _times(), predict(_described("dato", 4096), DEVICE)
    over, ours = "a gain is the time before over the time after", "those are IRON's times: this is about DATO"
    peak = predict(_described("fused", 4096), DEVICE, ceiling="matrix units").roofline.ceiling
    units = "the ceilings of the kernels, not of the matrix units: `before` has them for both"
    return {
        "total": [
            (1 / want["total"], over),
            (want["total"] / want["host"], "both as they are; the host's time is a factor of its own"),
            (ms["iron", BASE] / ms["fused", BASE], ours),
        ],
        "balance": [
            (1 / want["balance"], over),
            (want["total"] / want["balance"], "DATO beside DATO: what equal stages alone change"),
            (ms["iron", BASE] / ms["iron", EQUAL], ours),
            (before.balance, "not the share of the time that tiles work: what equal stages gain, from the times in `ms`"),
            (1 / before.balance, "that is what it would be on paper: what equal stages gain, from the times in `ms`"),
        ],
        "host": [
            (1 / want["host"], "it slows the fused mapping down, so as a factor of its gain it is under 1"),
            (1.0, 'DATO does not wait for its host, but the fused mapping does: `ms` has its time for "no host time"'),
        ],
        "rest": [
            (want["total"] / want["balance"], "the host is a factor, too: divide by all that are known"),
            (want["total"] / want["balance"] * want["host"], "divide by the host's factor as well; do not multiply"),
            (want["total"] - want["balance"] - want["host"], "factors multiply: what is left over is a quotient"),
            (want["balance"] * want["host"] / want["total"], "the other way round: total = balance x host x rest"),
        ],
        "kernels": [
            (1 / want["kernels"], "fused over DATO, as for the other factors"),
            *((x, units) for x in (1.0, peak / before.roofline.ceiling, want["kernels"] * before.roofline.ceiling / peak)),
            (want["rest"], "rest comes from the times; this is to explain it: the ceiling of one over that of the other"),
        ],
    }


def split_dato(total: Any, balance: Any, host: Any, rest: Any, kernels: Any) -> None:
    """Exercise 3: the factors of a gain, from rows of the table."""
    want, mistakes = dato_factors(), _split_mistakes()
    for name, given in {"total": total, "balance": balance, "host": host, "rest": rest, "kernels": kernels}.items():
        check.number(given, want[name], name=name, mistakes=mistakes[name])
    print(f"{want['total']:.2f} = {want['balance']:.2f} (balance) x {want['host']:.2f} (host) x {want['rest']:.2f} (rest), of which kernels {want['kernels']:.2f}")


__all__ = ["at_memtile", "clears", "dato_factors", "second_softmax", "split_dato", "stand_in", "two_softmax_tiles"]

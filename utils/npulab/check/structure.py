"""Checks of how a design is built and of what a run costs."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from npulab.check.failure import fail, filled, ok
from npulab.check.values import Mistakes, pairs
from npulab.record import LEVEL_NAMES, Run
from npusim.ir import walk
from npusim.machine import Coord, CoreProgram, Machine
from npusim.report import Level, Report

Limit = float | tuple[float, float]
"""At most so much, or (the best known, at most)."""


def _machine(of: Any) -> Machine:
    if isinstance(of, Machine):
        return of
    found = getattr(of, "machine", None)
    if not isinstance(found, Machine):
        raise TypeError(f"no structure to look at in {type(of).__name__}: pass a Machine, a Report or a simulated Run")
    return found


def _fifo_names(machine: Machine) -> set[str]:
    if machine.design is not None:
        return {fifo.name for fifo in machine.design.fifos}
    return {b.fifo for b in machine.buffers if b.fifo} | {c.fifo for c in machine.channels if c.fifo}


def _depth(machine: Machine, fifo: str) -> int:
    """The most buffers that one tile holds of a fifo."""
    tiles = [b.tile for b in machine.buffers if b.fifo == fifo]
    return max((tiles.count(tile) for tile in set(tiles)), default=0)


def memory_used(machine: Machine) -> tuple[int, Coord | None]:
    """Bytes (buffers and stack) on the fullest compute tile, and which that is."""
    used: dict[Coord, int] = {}
    for buffer in machine.buffers:
        if buffer.tile.row > 1:
            used[buffer.tile] = used.get(buffer.tile, 0) + buffer.type.nbytes
    for core in machine.cores:
        used[core.tile] = used.get(core.tile, 0) + core.stack_size
    if not used:
        return 0, None
    tile = max(used, key=lambda t: used[t])
    return used[tile], tile


def _loops(core: CoreProgram) -> int:
    """The loops that a worker's function makes (a Python ``range`` makes none); a worker's own endless one does not count."""
    return sum(op.name == "scf.for" for op in walk(core.body)) - 1


def _declares(machine: Machine, kernel: str) -> bool:
    """Whether a kernel is declared; those of ``iron.kernels`` may have eight hexadecimal digits in front of their name."""
    return any(re.fullmatch(rf"([0-9a-f]{{8}}_)?{re.escape(kernel)}", name) for name in machine.kernels)


_COUNTS: dict[str, tuple[str, Callable[[Machine], int]]] = {
    "tiles": ("compute tiles with a worker", lambda m: len(m.cores)),
    "memtiles": ("MemTiles in use", lambda m: len({c.tile for c in m.channels if m.device.kind(c.tile.row) == "mem"})),
    "columns": ("columns in use", lambda m: len({c.tile.col for c in m.channels} | {c.tile.col for c in m.cores})),
    "fifos": ("ObjectFifos", lambda m: len(_fifo_names(m))),
    "dma_channels": (
        "DMA channels on compute tiles",
        lambda m: sum(m.device.kind(c.tile.row) == "core" for c in m.channels),
    ),
    "shim_channels": ("shim DMA channels", lambda m: sum(m.device.kind(c.tile.row) == "shim" for c in m.channels)),
    "memtile_channels": ("MemTile DMA channels", lambda m: sum(m.device.kind(c.tile.row) == "mem" for c in m.channels)),
    "streams": ("streams", lambda m: len(m.routes)),
    "loops": ("loops in the cores' programs", lambda m: sum(_loops(core) for core in m.cores)),
    "cascades": ("cascade links", lambda m: len(m.cascades)),
}


def structure(
    of: Any,
    *,
    depth: Mapping[str, int] | None = None,
    kernels: Iterable[str] | None = None,
    hint: str = "",
    mistakes: Mistakes = (),
    **counts: int,
) -> None:
    """How a design is built: pass a Machine, a Report or a simulated Run.

    ``counts`` are exact: ``tiles``, ``memtiles``, ``columns``, ``fifos``, ``dma_channels`` (on compute tiles),
    ``shim_channels``, ``memtile_channels``, ``streams``, ``loops`` (made with range_), ``cascades``. ``depth`` gives a fifo's buffers on the tile that
    holds most of them; ``kernels`` must all be declared. A mistake's predicate gets (machine, counts).

    Raises:
        CheckFailed: with what is there and what is wanted.
        TypeError: for an unknown count, or for something without a machine.
    """
    machine = _machine(filled(of, "your design"))
    unknown = set(counts) - set(_COUNTS)
    if unknown:
        raise TypeError(f"unknown count {', '.join(sorted(unknown))}; known: {', '.join(_COUNTS)}")
    known = next((text for sign, text in pairs(mistakes) if callable(sign) and sign(machine, counts)), hint)
    done = []
    for what, want in counts.items():
        words, count = _COUNTS[what]
        if (got := count(machine)) != want:
            fail("the design is built differently", f"{words}: {got}, wanted {want}", hint=known)
        done.append(f"{want} {words}")
    for fifo, want in (depth or {}).items():
        if fifo not in _fifo_names(machine):
            fail(f"there is no fifo {fifo!r}", f"there are {', '.join(sorted(_fifo_names(machine)))}", hint=known)
        if (got := _depth(machine, fifo)) != want:
            fail(
                "the design is built differently",
                f"buffers of fifo {fifo!r} on a tile: {got}, wanted {want}",
                hint=known,
            )
        done.append(f"{fifo} {want} deep")
    missing = [kernel for kernel in kernels or () if not _declares(machine, kernel)]
    if missing:
        fail(
            f"the design does not declare {', '.join(missing)}",
            f"it declares {', '.join(machine.kernels) or 'no kernel'}",
            hint=known,
        )
    ok(", ".join(done) if done else "the design is built as wanted")


def _cost(got: float, limit: Limit, words: str, unit: str, hint: str) -> str:
    """A line about one cost; CheckFailed beyond the limit."""
    best, most = limit if isinstance(limit, tuple) else (None, limit)
    if got > most:
        fail(
            "right, but it costs too much", f"{words}: {got:,.0f} {unit}, at most {most:,.0f} {unit} wanted", hint=hint
        )
    if best is None:
        return f"{words} {got:,.0f} {unit} (at most {most:,.0f})"
    score = best / got if got else 1.0
    praise = "as good as the best known" if score >= 0.995 else f"score {score:.0%}: {best:,.0f} {unit} is possible"
    return f"{words} {got:,.0f} {unit} ({praise})"


def cost(
    of: Any,
    *,
    level: Level | None = None,
    bytes: Limit | None = None,
    l1_bytes: Limit | None = None,
    cycles: Limit | None = None,
    hint: str = "",
) -> None:
    """What a run costs: bytes that DMA moved at ``level``, memory of the fullest compute tile (``l1_bytes``, with stack), and
    cycles. Each limit is "at most", or a pair (best known, at most): then the line tells how far from the best it is, so
    that a right but wasteful answer is seen to be one.

    Raises:
        CheckFailed: beyond a limit.
        ValueError: if ``level`` and ``bytes`` are not given together, or the run does not know what is asked.
    """
    filled(of, "your run")
    if (level is None) != (bytes is None):
        raise ValueError("give level and bytes together")
    run = Run.of_report(of) if isinstance(of, Report) else of
    lines = []
    if level is not None and bytes is not None:
        if (moved := run.bytes(level)) is None:
            raise ValueError("this run does not know its bytes (it was measured)")
        lines.append(_cost(moved, bytes, f"{LEVEL_NAMES[level]} moved", "B", hint))
    if l1_bytes is not None:
        used, tile = memory_used(_machine(of))
        lines.append(_cost(used, l1_bytes, f"memory of the fullest compute tile {tile}", "B", hint))
    if cycles is not None:
        if run.cycles is None:
            raise ValueError("this run does not know its cycles (it was measured)")
        lines.append(_cost(run.cycles, cycles, "simulated time", "cycles", hint))
    ok("; ".join(lines))

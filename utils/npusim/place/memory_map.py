"""A tile's memory as text: who lies where, bank by bank, and what to do when it does not fit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from npusim.ir import UNKNOWN
from npusim.machine import Coord, MemBuffer
from npusim.messages import count, explain, size
from npusim.place.draft import label


class _Piece(NamedTuple):
    """Something in memory: where it starts and ends (bytes), and what it is."""

    start: int
    end: int
    what: str

    @property
    def name(self) -> str:
        return self.what.split(" ")[0]


def memory_map(stack: int, buffers: Sequence[MemBuffer], capacity: int, banks: int) -> list[str]:
    """Each bank with what lies in it, by address (bytes); what is free and what lies beyond the end comes last."""
    pieces = [_Piece(0, stack, "(stack)")] if stack else []
    for buffer in sorted(buffers, key=lambda b: b.address):
        fifo = f" fifo {buffer.fifo!r}" if buffer.fifo else ""
        pieces.append(_Piece(buffer.address, buffer.address + buffer.type.nbytes, f"{buffer.name}{fifo} {buffer.type}"))
    each = capacity // banks
    lines: list[str] = []
    free: list[str] = []
    for bank in range(banks):
        start, end = bank * each, (bank + 1) * each
        inside = [p for p in pieces if p.start < end and p.end > start]
        if not inside:
            free.append(str(bank))
        elif inside[0].start < start and inside[0].end >= end:
            lines.append(f"bank {bank}: all of it {inside[0].name}")
        else:
            lines += _part(f"bank {bank}", start, end, inside)
    if free:
        lines.append(f"free: {count(len(free), 'bank')} ({', '.join(free)}) of {each:,} bytes")
    top = max((piece.end for piece in pieces), default=0)
    if top > capacity:
        lines += _part("beyond the end", capacity, top, [p for p in pieces if p.end > capacity])
    return lines


def _part(name: str, start: int, end: int, inside: list[_Piece]) -> Iterator[str]:
    """What lies between two addresses."""
    used = sum(min(p.end, end) - max(p.start, start) for p in inside)
    yield f"{name}: {start:#07x}-{end - 1:#07x}, {used:,} of {end - start:,} bytes"
    for p in inside:
        if p.start < start:
            yield f"  ... {p.name}, up to {p.end - 1:#07x}"
        else:
            yield f"  {p.start:#07x}-{p.end - 1:#07x} {p.end - p.start:>7,} B  {p.what}"


def overflow(tile: Coord, stack: int, capacity: int, banks: int, buffers: Sequence[MemBuffer]) -> str:
    """The text for buffers that do not fit into a tile's memory."""
    need = stack + sum(b.type.nbytes for b in buffers)
    with_stack = f", {stack} of them stack" if stack else ""
    return explain(
        f"{label(tile)} needs {need} bytes of data memory{with_stack}, but has {size(capacity)}.",
        details=[
            *_by_fifo(buffers),
            f"memory map ({count(banks, 'bank')}):",
            *memory_map(stack, buffers, capacity, banks),
        ],
        phrase=(
            "'aie.tile' op allocated buffers exceeded available memory",
            "Bank-aware allocation failed, trying basic sequential allocation.",
        ),
        hint=_hint(tile, stack, capacity),
        loc=max(buffers, key=lambda b: b.type.nbytes).loc,
    )


def stack_too_large(tile: Coord, stack: int, capacity: int, buffers: Sequence[MemBuffer]) -> str:
    """The text for a stack that leaves no memory."""
    return explain(
        f"the stack of {label(tile)} is {size(stack)}; the tile has {size(capacity)} in all.",
        details=_by_fifo(buffers),
        phrase=f"stack_size {stack} leaves no local memory for this tile's buffers ({capacity} bytes total)",
        hint="stack_size is in bytes; the default is 1024.",
    )


def _by_fifo(buffers: Sequence[MemBuffer]) -> Iterator[str]:
    groups: dict[str, list[MemBuffer]] = {}
    for buffer in buffers:
        name = f"fifo {buffer.fifo!r}" if buffer.fifo else f"buffer {buffer.name!r}"
        groups.setdefault(name, []).append(buffer)
    for name, members in groups.items():
        each = members[0].type.nbytes
        total = sum(b.type.nbytes for b in members)
        where = "" if members[0].loc is UNKNOWN else f" ({members[0].loc})"
        yield f"{name}: {len(members)} x {each} bytes = {total} bytes{where}"


def _hint(tile: Coord, stack: int, capacity: int) -> str:
    if tile.row == 1:
        return "use smaller objects, a smaller depth, or a second MemTile."
    if stack * 4 > capacity:
        return "the stack takes much of the memory: give the worker a smaller stack_size, or use smaller objects."
    return "use smaller objects or depth=1 (no double buffering), or keep data on a MemTile and stream it in pieces."

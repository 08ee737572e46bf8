"""A tile's memory as text: who lies where, and what to do when it does not fit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from npusim.ir import UNKNOWN
from npusim.machine import Coord, MemBuffer
from npusim.place.draft import label
from npusim.place.messages import explain, size


def memory_map(stack: int, buffers: Sequence[MemBuffer]) -> list[str]:
    """One line for the stack and each buffer, by address (bytes)."""
    lines = [_line("(stack)", 0, stack, "")] if stack else []
    for buffer in sorted(buffers, key=lambda b: b.address):
        fifo = f" fifo {buffer.fifo!r}" if buffer.fifo else ""
        lines.append(_line(buffer.name, buffer.address, buffer.type.nbytes, f" {buffer.type}{fifo}"))
    return lines


def _line(name: str, address: int, nbytes: int, what: str) -> str:
    return f"{name:<20} {address:#07x}-{address + nbytes - 1:#07x} ({nbytes} bytes){what}"


def overflow(tile: Coord, stack: int, capacity: int, buffers: Sequence[MemBuffer]) -> str:
    """The text for buffers that do not fit into a tile's memory."""
    need = stack + sum(b.type.nbytes for b in buffers)
    with_stack = f", {stack} of them stack" if stack else ""
    return explain(
        f"{label(tile)} needs {need} bytes of data memory{with_stack}, but has {size(capacity)}.",
        details=[*_by_fifo(buffers), "memory map:", *memory_map(stack, buffers)],
        phrase="allocated buffers exceeded available memory",
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

"""The memory map of one tile: what lies where, against the tile's capacity and its banks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from npulab.draw.contents import fifo_hues, parts
from npulab.draw.svg import Canvas, Picture, fit, size_text, text_width
from npusim.machine import Coord, Machine, MemBuffer

LEFT, PLOT, ROW = 118.0, 620.0, 30.0


@dataclass
class _Span:
    """Bytes ``start`` to ``stop`` of the tile's memory."""

    name: str
    start: int
    stop: int
    cls: str

    @property
    def nbytes(self) -> int:
        return self.stop - self.start


def _spans(machine: Machine, tile: Coord) -> list[_Span]:
    hues = fifo_hues(machine)
    found = []
    for core in machine.cores:
        if core.tile == tile:
            found.append(_Span("stack", 0, core.stack_size, "grey"))
    for buffer in machine.buffers:
        if buffer.tile == tile:
            hue = hues.get(buffer.fifo or "")
            cls = f"t-{hue}" if hue else "box"
            found.append(_Span(buffer.name, buffer.address, buffer.address + buffer.type.nbytes, cls))
    return sorted(found, key=lambda s: s.start)


def overlaps(machine: Machine, tile: Coord) -> list[tuple[str, str]]:
    """Pairs of things (buffers, stack) that lie on the same bytes of a tile."""
    spans = _spans(machine, tile)
    return [(a.name, b.name) for i, a in enumerate(spans) for b in spans[i + 1 :] if b.start < a.stop]


def _describe(buffer: MemBuffer) -> str:
    return f"{buffer.name}: {buffer.type}, {size_text(buffer.type.nbytes)} at 0x{buffer.address:x}"


class _Map:
    """One drawing in progress; each bank is a row."""

    def __init__(self, machine: Machine, tile: Coord) -> None:
        limits = machine.device.limits(tile.row)
        self.machine, self.tile = machine, tile
        self.capacity, banks = limits.memory.value, limits.banks.value
        self.spans = _spans(machine, tile)
        self.bank = self.capacity // banks
        end = max([s.stop for s in self.spans], default=0)
        self.rows = max(banks, -(-end // self.bank))
        self.scale = PLOT / self.bank
        self.canvas = Canvas(LEFT + PLOT + 12, 0)
        self.keys: dict[str, _Span] = {}
        self.numbers: dict[str, int] = {}

    def row(self, n: int, y: float) -> None:
        over = n * self.bank >= self.capacity
        self.canvas.text(
            LEFT - 8, y + 13, "beyond the memory" if over else f"bank {n}", "small" + (" f-red" if over else ""), "end"
        )
        self.canvas.text(LEFT - 8, y + 24, f"0x{n * self.bank:05x}", "tiny faint mono", "end")
        self.canvas.rect(LEFT, y, PLOT, ROW - 6, "t-red" if over else "well")
        for span in self.spans:
            start, stop = max(span.start, n * self.bank), min(span.stop, (n + 1) * self.bank)
            if start < stop:
                self.piece(span, (start - n * self.bank) * self.scale, (stop - start) * self.scale, y)

    def piece(self, span: _Span, x: float, w: float, y: float) -> None:
        hint = f"{span.name}: {size_text(span.nbytes)} from 0x{span.start:x} to 0x{span.stop:x}"
        self.canvas.rect(LEFT + x, y, w, ROW - 6, span.cls, hint=hint)
        words = f"{span.name} · {size_text(span.nbytes)}"
        if text_width(words, 9.5) < w - 6:
            self.canvas.text(LEFT + x + w / 2, y + 15.5, words, "tiny", "middle")
            return
        self.keys.setdefault(span.name, span)
        if w > 70 and text_width(span.name, 9.5) < w - 6:
            self.canvas.text(LEFT + x + w / 2, y + 15.5, span.name, "tiny", "middle")
        elif w > 12:
            self.canvas.text(LEFT + x + w / 2, y + 15.5, self.number(span), "tiny bold", "middle")

    def number(self, span: _Span) -> str:
        """A number for a piece too narrow for its name."""
        return str(self.numbers.setdefault(span.name, len(self.numbers) + 1))

    def key(self, y: float) -> float:
        """Number, name, size and address of what is too narrow to say it itself. Returns the y below."""
        shown = list(self.keys.values())
        for i, span in enumerate(shown[:24]):
            x, at = LEFT + (i % 2) * PLOT / 2, y + 13 * (i // 2)
            self.canvas.rect(x, at - 8, 9, 9, span.cls)
            number = f"{self.numbers[span.name]}  " if span.name in self.numbers else ""
            words = f"{number}{span.name} · {size_text(span.nbytes)} at 0x{span.start:x}"
            self.canvas.text(x + 14, at, fit(words, PLOT / 2 - 18, 9.5), "tiny")
        if len(shown) > 24:
            self.canvas.text(LEFT, y + 13 * 12, f"and {len(shown) - 24} more", "tiny faint")
        return y + 13 * min(-(-len(shown) // 2), 13) + 6

    @property
    def used(self) -> int:
        return sum(s.nbytes for s in self.spans)

    def summary(self) -> str:
        words = f"{size_text(self.used)} of {size_text(self.capacity)} in use"
        end = max([s.stop for s in self.spans], default=0)
        if end > self.capacity:
            return f"{words}: {size_text(end - self.capacity)} too much"
        return f"{words}, {size_text(self.capacity - self.used)} free"


def memory(of: Any, tile: tuple[int, int], *, title: str | None = None) -> Picture:
    """The memory map of the tile (column, row): pass a Machine, a Report or a Run of the simulated NPU.

    One row a bank; the stack lies at address 0 of a compute tile. What is beyond the capacity is shown below it in red.

    Raises:
        ValueError: if the tile is not on the device or has no memory (a shim tile).
    """
    machine, _ = parts(of)
    at = Coord(*tile)
    if not machine.device.contains(*at):
        raise ValueError(f"{machine.device.name} has no tile {at}")
    if machine.device.kind(at.row) == "shim":
        raise ValueError(f"shim tile {at} has no data memory")
    kind = {"mem": "MemTile", "core": "compute tile"}[machine.device.kind(at.row)]
    drawing = _Map(machine, at)
    c = drawing.canvas
    c.text(8, 18, title or f"Memory of {kind} {at}", "head")
    c.text(8, 33, drawing.summary(), "small faint" if drawing.used <= drawing.capacity else "small f-red")
    for n in range(drawing.rows):
        drawing.row(n, 44 + n * ROW)
    y = 44 + drawing.rows * ROW
    c.text(LEFT, y + 6, f"each row: one bank of {size_text(drawing.bank)}, addresses from left to right", "tiny faint")
    c.height = drawing.key(y + 24)
    names = "; ".join(_describe(b) for b in machine.buffers if b.tile == at)
    stack = "".join(f" Stack {size_text(s.nbytes)} at 0." for s in drawing.spans if s.name == "stack")
    return c.picture(title or f"Memory of {kind} {at}", f"{drawing.summary()}.{stack} {names or 'No buffers'}.")

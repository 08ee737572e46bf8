"""What the picture of the array shows of one tile: name, memory, DMA channels, and how busy its core was."""

from __future__ import annotations

from npulab.draw.contents import TileContents, channel_names, fifo_hues
from npulab.draw.plan import Plan
from npulab.draw.svg import Canvas, fit, size_text, text_width
from npulab.draw.wires import channel_key
from npusim.machine import Coord, DmaChannel, Machine
from npusim.report import CoreUse, Report

TINY = 9.0  # px, size of the class "tiny"
PIP = 5.0  # px, width of the mark of a DMA channel


class Tiles:
    """Draws tiles onto a canvas, at the places of a plan."""

    def __init__(self, machine: Machine, report: Report | None, plan: Plan, canvas: Canvas) -> None:
        self.machine, self.report, self.device = machine, report, machine.device
        self.plan, self.canvas = plan, canvas
        self.hues, self.names = fifo_hues(machine), channel_names(machine)
        self.used = {channel_key(c): c for c in machine.channels}
        self.load = loads(report)

    def hue(self, channel: DmaChannel) -> str:
        """The hue of what a channel moves."""
        return self.hues.get(self.names.get(channel_key(channel), ""), "blue")

    def draw(self, tile: TileContents) -> None:
        x, y = self.plan.x(tile.at.col), self.plan.y(tile.at.row)
        w, h = self.plan.widths[tile.at.col], self.plan.height(tile.at.row)
        self.canvas.rect(x, y, w, h, "box" if tile.used else "unused", hint=self.tile_text(tile), rx=4)
        label = y + 14 if tile.at.row == 0 and tile.used else y + h - 5
        self.canvas.text(x + w - 4, label, f"{tile.at.col},{tile.at.row}", "tiny faint", "end")
        if not tile.used:
            return
        self.pips(tile, x)
        if self.device.kind(tile.at.row) == "shim":
            self.shim(tile, x, y)
        else:
            self.memory(tile, x, y)

    def pips(self, tile: TileContents, x: float) -> None:
        """One mark a DMA channel on the left edge: S2MM (into memory) above, MM2S (out of it) below."""
        for direction in ("S2MM", "MM2S"):
            for index in range(self.channel_count(tile.at.row, direction)):
                py = self.pip_y(tile.at, direction, index)
                channel = self.used.get((tile.at, direction, index))
                if channel is None:
                    self.canvas.rect(x - 2.5, py - 1.5, PIP, 3, "grey")
                else:
                    hue = self.hue(channel)
                    self.canvas.rect(x - 2.5, py - 2, PIP, 4, f"f-{hue}", hint=self.channel_text(channel))

    def channel_count(self, row: int, direction: str) -> int:
        limits = self.device.limits(row)
        return (limits.s2mm if direction == "S2MM" else limits.mm2s).value

    def pip_y(self, at: Coord, direction: str, index: int) -> float:
        ins = self.channel_count(at.row, "S2MM")
        n = index if direction == "S2MM" else ins + index
        pitch = (self.plan.height(at.row) - 8) / (ins + self.channel_count(at.row, "MM2S"))
        return self.plan.y(at.row) + 4 + pitch * (n + 0.5)

    def shim(self, tile: TileContents, x: float, y: float) -> None:
        out, into = (sum(c.direction == d for c in tile.channels) for d in ("MM2S", "S2MM"))
        self.canvas.text(x + 8, y + 14, "shim", "bold small")
        words = f"{out} of 2 out, {into} of 2 in" if self.plan.wide else f"{out} out, {into} in"
        self.canvas.text(x + 8, y + 28, words, "tiny")

    def memory(self, tile: TileContents, x: float, y: float) -> None:
        w = self.plan.box - 14
        kind = self.device.kind(tile.at.row)
        name = tile.core.name if tile.core else ("MemTile" if kind == "mem" else "memory only")
        size, cls = (10.5, "bold small") if self.plan.wide else (9.0, "bold tiny")
        self.canvas.text(x + 8, y + 14, fit(name, w, size), cls)
        capacity = self.device.limits(tile.at.row).memory.value
        self.fill_bar(tile, x + 8, y + 20, w, capacity)
        share = self.share_text(tile, capacity, w)
        over = tile.nbytes > capacity
        self.canvas.text(x + 8, y + 41, share + (" too much!" if over else ""), "tiny f-red" if over else "tiny")
        if tile.use is not None:
            self.busy_bar(tile.use, x + 8, y + 47, w)
        if self.plan.wide and kind == "core":
            self.fifo_lines(tile, x + 8, y + (66 if tile.use else 56), w - 22)

    def share_text(self, tile: TileContents, capacity: int, w: float) -> str:
        """Memory in use; in a narrow box without decimals where the core's share of time is beside it and would not fit."""
        if self.plan.wide:
            return f"{size_text(tile.nbytes)} of {size_text(capacity)}"
        beside = text_width(self.busy_text(tile.use), TINY) if tile.use else 0.0
        exact = size_text(tile.nbytes)
        return exact if text_width(exact, TINY) + beside + 2 <= w else f"{tile.nbytes / 1024:.0f} KiB"

    def busy_text(self, use: CoreUse) -> str:
        busy = use.busy / (max(self.report.ticks, 1) if self.report else 1)
        return f"{busy:.0%} busy" if self.plan.wide else f"{busy:.0%}"

    def fill_bar(self, tile: TileContents, x: float, y: float, w: float, capacity: int) -> None:
        """Memory in use, stack first, then the buffers by fifo."""
        self.canvas.rect(x, y, w, 8, "well", rx=2)
        scale = w / max(capacity, tile.nbytes)
        at = x
        if tile.stack:
            self.canvas.rect(at, y, tile.stack * scale, 8, "ink", hint=f"stack {size_text(tile.stack)}")
            at += tile.stack * scale
        for name, count, nbytes in tile.groups():
            hint = f"{name}: {count} x {size_text(nbytes / count)}"
            cls = f"f-{self.hues[name]}" if name in self.hues else "grey"
            self.canvas.rect(at, y, max(nbytes * scale - 0.4, 0.4), 8, cls, hint=hint)
            at += nbytes * scale

    def busy_bar(self, use: CoreUse, x: float, y: float, w: float) -> None:
        ticks = max(self.report.ticks, 1) if self.report else 1
        busy, stall = use.busy / ticks, use.stall / ticks
        self.canvas.text(x + w, y - 6, self.busy_text(use), "tiny", "end")
        self.canvas.rect(x, y, w, 5, "well", rx=1)
        self.canvas.rect(x, y, w * min(busy, 1), 5, "f-blue", hint=f"busy {busy:.1%}")
        at, rest = x + w * min(busy, 1), w * max(min(stall, 1 - busy), 0)
        self.canvas.rect(at, y, rest, 5, "t-red", hint=f"stalled {stall:.1%}")

    def fifo_lines(self, tile: TileContents, x: float, y: float, w: float) -> None:
        groups = tile.groups()
        shown = groups if len(groups) <= 4 else groups[:3]
        for i, (name, count, nbytes) in enumerate(shown):
            self.canvas.rect(x, y - 6 + 11 * i, 7, 7, f"f-{self.hues[name]}" if name in self.hues else "grey", rx=1)
            size = f"{count} × {size_text(nbytes / count)}"
            self.canvas.text(x + 11, y + 11 * i, f"{fit(name, w - 16 - text_width(size, 9), 9)} {size}", "tiny")
        if len(groups) > len(shown):
            self.canvas.text(x + 11, y + 11 * len(shown), f"and {len(groups) - len(shown)} more", "tiny faint")

    def channel_text(self, channel: DmaChannel) -> str:
        busy = self.load.get(channel_key(channel))
        words = f"{channel}: {self.names.get(channel_key(channel), 'no stream')}"
        return words if busy is None else f"{words}, {busy:.0%} of the time moving data"

    def tile_text(self, tile: TileContents) -> str:
        kind = {"shim": "shim tile", "mem": "MemTile", "core": "compute tile"}[self.device.kind(tile.at.row)]
        if not tile.used:
            return f"{kind} {tile.at}: not used"
        words = [f"{kind} {tile.at}" + (f" runs {tile.core.name}" if tile.core else "")]
        if tile.at.row:
            words.append(f"{tile.nbytes} of {self.device.limits(tile.at.row).memory.value} B")
        words += [f"{name}: {count} buffers, {nbytes} B" for name, count, nbytes in tile.groups()]
        if tile.use and self.report:
            words.append(f"busy {tile.use.busy / max(self.report.ticks, 1):.0%}")
        return "; ".join(words)


def loads(report: Report | None) -> dict[tuple[Coord, str, int], float]:
    """The share of the run in which each channel moved data."""
    if report is None or not report.ticks:
        return {}
    return {channel_key(use.channel): min(use.busy / report.ticks, 1.0) for use in report.channels}

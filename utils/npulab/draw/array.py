"""The tile array: who runs what, memory against capacity, DMA channels in use, streams and shared memory."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any

from npulab.draw import theme
from npulab.draw.svg import Canvas, Picture, fit, size_text, text_width
from npulab.draw.wires import Wire, busiest, channel_key, family, neighbours, wires
from npusim.machine import Coord, CoreProgram, DmaChannel, Machine, MemBuffer
from npusim.report import CoreUse, Report

LANE = 4.5
PIP = 5.0
TARGET = 888.0  # px, a little more than the width of a page's text
SMALL = 56.0  # px, width of a column without a tile in use


def parts(of: Any) -> tuple[Machine, Report | None]:
    """The machine and, if there is one, the report behind what a notebook has at hand (Machine, Report, Run).

    Raises:
        TypeError: if it is none of them.
    """
    if isinstance(of, Machine):
        return of, None
    report = of if isinstance(of, Report) else getattr(of, "report", None)
    if isinstance(report, Report):
        return report.machine, report
    if isinstance(machine := getattr(of, "machine", None), Machine):
        return machine, None
    raise TypeError(
        f"nothing to draw in {type(of).__name__}: pass a Machine, a Report or a Run of the simulated NPU "
        "(a measured run knows nothing about the tiles)"
    )


@dataclass
class _Tile:
    """What one tile of the machine holds."""

    at: Coord
    core: CoreProgram | None = None
    use: CoreUse | None = None
    buffers: list[MemBuffer] = field(default_factory=list)
    channels: list[DmaChannel] = field(default_factory=list)

    @property
    def stack(self) -> int:
        return self.core.stack_size if self.core else 0

    @property
    def nbytes(self) -> int:
        return self.stack + sum(b.type.nbytes for b in self.buffers)

    @property
    def used(self) -> bool:
        return bool(self.core or self.buffers or self.channels)

    def groups(self) -> list[tuple[str, int, int]]:
        """Buffers by fifo: (name, how many, bytes together)."""
        found: dict[str, list[int]] = defaultdict(list)
        for b in self.buffers:
            found[b.fifo or b.name].append(b.type.nbytes)
        return [(name, len(sizes), sum(sizes)) for name, sizes in found.items()]


def _tiles(machine: Machine, report: Report | None) -> dict[Coord, _Tile]:
    tiles = {Coord(c, r): _Tile(Coord(c, r)) for c in range(machine.device.columns) for r in range(machine.device.rows)}
    for core in machine.cores:
        tiles[core.tile].core = core
    for buffer in machine.buffers:
        tiles[buffer.tile].buffers.append(buffer)
    for channel in machine.channels:
        tiles[channel.tile].channels.append(channel)
    for use in report.cores if report else ():
        tiles[use.tile].use = use
    return tiles


def fifo_hues(machine: Machine) -> dict[str, str]:
    """The hue of every fifo: its own while there are few, else that of its family (``memA_0``, ``memA_1``, ...)."""
    names = dict.fromkeys(b.fifo for b in machine.buffers if b.fifo)
    names |= dict.fromkeys(r.name for r in machine.routes) | dict.fromkeys(c.fifo for c in machine.channels if c.fifo)
    for core in machine.cores:
        names |= dict.fromkeys(fifo for fifo, _ in core.ports)
    few = len(names) <= len(theme.FIFO_HUES)
    kinds = list(dict.fromkeys(name if few else family(name) for name in names))
    return {name: theme.hue(kinds.index(name if few else family(name))) for name in names}


def _legend_names(hues: dict[str, str]) -> list[tuple[str, str]]:
    few = len(hues) <= len(theme.FIFO_HUES)
    kinds: dict[str, list[str]] = defaultdict(list)
    for name in hues:
        kinds[name if few else family(name)].append(name)
    shown = [(f"f-{hues[v[0]]}", k if len(v) == 1 else f"{k} ({len(v)} fifos)") for k, v in kinds.items()]
    return shown if len(shown) <= 14 else [*shown[:13], ("grey", f"and {len(shown) - 13} more")]


class _Plan:
    """Where things are, in px. Column and row 0 are at the lower left; what the design leaves unused is drawn small."""

    def __init__(self, tiles: dict[Coord, _Tile], columns: range, lanes: tuple[int, int], timed: bool) -> None:
        used = [t for t in tiles.values() if t.used and t.at.col in columns]
        self.columns = columns
        self.lane = LANE if lanes[0] <= 7 else 3.6
        self.corridor_x = max(20.0, lanes[0] * self.lane + 12)
        self.corridor_y = max(18.0, lanes[1] * self.lane + 12)
        busy = {t.at.col for t in used} or set(columns)
        free = TARGET - len(columns) * self.corridor_x - (len(columns) - len(busy)) * SMALL
        self.box = min(240.0, max(68.0, free / len(busy)))
        self.wide = self.box >= 120
        self.widths = {c: self.box if c in busy else SMALL for c in columns}
        heights = {0: 38.0, 1: 66.0}
        core = 58.0 + (9 if timed else 0) + (44 if self.wide else 0)
        rows = {t.at.row for t in used}
        self.heights = {t.row: heights.get(t.row, core) if t.row in rows else 24.0 for t in tiles}
        self.lefts = _sums([self.corridor_x + self.widths[c] for c in columns], 0.0)
        self.tops = _sums([self.heights[r] + self.corridor_y for r in sorted(self.heights, reverse=True)], 44.0)
        self.width, self.bottom = self.lefts[-1] + 12, self.tops[-1]

    def x(self, col: int) -> float:
        """Left edge of the boxes of a column."""
        return self.lefts[col - self.columns.start] + self.corridor_x

    def y(self, row: int) -> float:
        """Top edge of the boxes of a row."""
        return self.tops[len(self.heights) - 1 - row]

    def lane_x(self, col: int, lane: int) -> float:
        return self.x(col) - 8 - lane * self.lane

    def lane_y(self, row: int, lane: int) -> float:
        return self.y(row) + self.heights[row] + 6 + lane * self.lane


def _sums(steps: list[float], start: float) -> list[float]:
    """Start, start plus the first step, and so on."""
    found = [start]
    for step in steps:
        found.append(found[-1] + step)
    return found


class _Array:
    """One drawing in progress."""

    def __init__(self, machine: Machine, report: Report | None, columns: range) -> None:
        self.machine, self.report, self.device = machine, report, machine.device
        self.tiles = _tiles(machine, report)
        self.hues = fifo_hues(machine)
        self.wires, lanes_x, lanes_y = wires(machine)
        self.plan = _Plan(self.tiles, columns, (lanes_x, lanes_y), report is not None)
        self.canvas = Canvas(max(self.plan.width, 640.0), self.plan.bottom + 60)
        self.used = {channel_key(c): c for c in machine.channels}
        self.load = _loads(report)

    def box_height(self, row: int) -> float:
        return self.plan.heights[row]

    # Tiles

    def tile(self, tile: _Tile) -> None:
        x, y = self.plan.x(tile.at.col), self.plan.y(tile.at.row)
        w, h = self.plan.widths[tile.at.col], self.box_height(tile.at.row)
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

    def pips(self, tile: _Tile, x: float) -> None:
        """One mark a DMA channel on the left edge: S2MM (into memory) above, MM2S (out of it) below."""
        for direction in ("S2MM", "MM2S"):
            for index in range(self.channel_count(tile.at.row, direction)):
                py = self.pip_y(tile.at, direction, index)
                channel = self.used.get((tile.at, direction, index))
                if channel is None:
                    self.canvas.rect(x - 2.5, py - 1.5, PIP, 3, "grey")
                else:
                    hue = self.hues.get(channel.fifo or "", "blue")
                    self.canvas.rect(x - 2.5, py - 2, PIP, 4, f"f-{hue}", hint=self.channel_text(channel))

    def channel_count(self, row: int, direction: str) -> int:
        limits = self.device.limits(row)
        return (limits.s2mm if direction == "S2MM" else limits.mm2s).value

    def pip_y(self, at: Coord, direction: str, index: int) -> float:
        ins = self.channel_count(at.row, "S2MM")
        n = index if direction == "S2MM" else ins + index
        pitch = (self.box_height(at.row) - 8) / (ins + self.channel_count(at.row, "MM2S"))
        return self.plan.y(at.row) + 4 + pitch * (n + 0.5)

    def shim(self, tile: _Tile, x: float, y: float) -> None:
        out, into = (sum(c.direction == d for c in tile.channels) for d in ("MM2S", "S2MM"))
        self.canvas.text(x + 8, y + 14, "shim", "bold small")
        words = f"{out} of 2 out, {into} of 2 in" if self.plan.wide else f"{out} out, {into} in"
        self.canvas.text(x + 8, y + 28, words, "tiny")

    def memory(self, tile: _Tile, x: float, y: float) -> None:
        w = self.plan.box - 14
        kind = self.device.kind(tile.at.row)
        name = tile.core.name if tile.core else ("MemTile" if kind == "mem" else "memory only")
        self.canvas.text(
            x + 8, y + 14, fit(name, w, 10.5 if self.plan.wide else 9), "bold small" if self.plan.wide else "bold tiny"
        )
        capacity = self.device.limits(tile.at.row).memory.value
        self.fill_bar(tile, x + 8, y + 20, w, capacity)
        share = (
            f"{size_text(tile.nbytes)} of {size_text(capacity)}" if self.plan.wide else f"{tile.nbytes / 1024:.3g} KiB"
        )
        over = tile.nbytes > capacity
        self.canvas.text(x + 8, y + 41, share + (" too much!" if over else ""), "tiny t-red" if over else "tiny")
        if tile.use is not None:
            self.busy_bar(tile.use, x + 8, y + 47, w)
        if self.plan.wide and kind == "core":
            self.fifo_lines(tile, x + 8, y + (66 if tile.use else 56), w - 22)

    def fill_bar(self, tile: _Tile, x: float, y: float, w: float, capacity: int) -> None:
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
        self.canvas.text(x + w, y - 6, f"{busy:.0%} busy" if self.plan.wide else f"{busy:.0%}", "tiny", "end")
        self.canvas.rect(x, y, w, 5, "well", rx=1)
        self.canvas.rect(x, y, w * min(busy, 1), 5, "f-blue", hint=f"busy {busy:.1%}")
        self.canvas.rect(
            x + w * min(busy, 1), y, w * max(min(stall, 1 - busy), 0), 5, "t-red", hint=f"stalled {stall:.1%}"
        )

    def fifo_lines(self, tile: _Tile, x: float, y: float, w: float) -> None:
        groups = tile.groups()
        shown = groups if len(groups) <= 4 else groups[:3]
        for i, (name, count, nbytes) in enumerate(shown):
            self.canvas.rect(x, y - 6 + 11 * i, 7, 7, f"f-{self.hues[name]}" if name in self.hues else "grey", rx=1)
            size = f"{count} × {size_text(nbytes / count)}"
            self.canvas.text(x + 11, y + 11 * i, f"{fit(name, w - 16 - text_width(size, 9), 9)} {size}", "tiny")
        if len(groups) > len(shown):
            self.canvas.text(x + 11, y + 11 * len(shown), f"and {len(groups) - len(shown)} more", "tiny faint")

    # Streams

    def wire(self, wire: Wire) -> None:
        if not any(t.col in self.plan.columns for t in wire.tiles):
            return
        hue = self.hues.get(wire.route.name, "blue")
        busy = self.load.get(channel_key(wire.route.source))
        width = 1.5 if busy is None else 1.0 + (self.plan.lane - 2) * busy
        self.canvas.path(self.wire_path(wire), f"wire s-{hue}", hint=self.wire_text(wire, busy), stroke_width=width)
        for dest in wire.route.dests:
            if dest.tile.col in self.plan.columns:
                y = self.pip_y(dest.tile, "S2MM", dest.index)
                self.canvas.arrow_head(self.plan.x(dest.tile.col) - 2, y, "right", f"f-{hue}", 2.6)

    def wire_path(self, wire: Wire) -> str:
        d: list[str] = []
        for row, runs in wire.across.items():
            y = self.row_lane(wire, row)
            d += [f"M{self.col_lane(wire, a):.1f} {y:.1f}H{self.col_lane(wire, b):.1f}" for a, b in runs]
        ends = self.stub_ends(wire)
        for col in wire.up:
            ys = ends[col]
            d.append(f"M{self.col_lane(wire, col):.1f} {min(ys):.1f}V{max(ys):.1f}")
        for channel in (wire.route.source, *wire.route.dests):
            y = self.pip_y(channel.tile, channel.direction, channel.index)
            d.append(f"M{self.col_lane(wire, channel.tile.col):.1f} {y:.1f}H{self.plan.x(channel.tile.col) - 2.5:.1f}")
        return "".join(d)

    def stub_ends(self, wire: Wire) -> dict[int, list[float]]:
        """The heights at which something joins the wire in each column."""
        ys: dict[int, list[float]] = defaultdict(list)
        for channel in (wire.route.source, *wire.route.dests):
            ys[channel.tile.col].append(self.pip_y(channel.tile, channel.direction, channel.index))
        for row, runs in wire.across.items():
            for a, b in runs:
                for col in range(a, b + 1):
                    ys[col].append(self.row_lane(wire, row))
        return ys

    def col_lane(self, wire: Wire, col: int) -> float:
        return self.plan.lane_x(col, wire.lane_x.get(col, 0))

    def row_lane(self, wire: Wire, row: int) -> float:
        return self.plan.lane_y(row, wire.lane_y.get(row, 0))

    def shared(self) -> int:
        """Fifos in shared memory and cascade links, as block arrows between the boxes. Returns how many fifos."""
        found = neighbours(self.machine)
        links = [(f.source, f.dest, f"t-{self.hues[f.fifo]}", f"{f.fifo}: shared memory") for f in found]
        links += [(c.source, c.dest, "ink", "cascade") for c in self.machine.cascades]
        drawn: dict[frozenset[Coord], int] = defaultdict(int)
        for a, b, cls, words in links:
            n = drawn[frozenset((a, b))]
            drawn[frozenset((a, b))] += 1
            if a.col in self.plan.columns and b.col in self.plan.columns:
                self.bridge(a, b, 12 + 14 * n, cls, f"{words}, {a} to {b}")
        return len(found)

    def bridge(self, a: Coord, b: Coord, shift: float, cls: str, hint: str) -> None:
        """A block arrow from one box to a neighbouring one, ``shift`` px in from the right (or upper) end of the edge."""
        if a.col == b.col:
            x = self.plan.x(a.col) + self.plan.widths[a.col] - shift
            low, high = (a, b) if a.row < b.row else (b, a)
            ends = self.plan.y(low.row), self.plan.y(high.row) + self.box_height(high.row)
            start, tip = ends if a is low else ends[::-1]
            s = 1 if tip > start else -1
            corners = [
                (x - 4, start),
                (x - 4, tip - 7 * s),
                (x - 7, tip - 7 * s),
                (x, tip),
                (x + 7, tip - 7 * s),
                (x + 4, tip - 7 * s),
                (x + 4, start),
            ]
        else:
            y = self.plan.y(a.row) + shift
            left, right = (a, b) if a.col < b.col else (b, a)
            ends = self.plan.x(left.col) + self.plan.widths[left.col], self.plan.x(right.col)
            start, tip = ends if a is left else ends[::-1]
            s = 1 if tip > start else -1
            corners = [
                (start, y - 4),
                (tip - 7 * s, y - 4),
                (tip - 7 * s, y - 7),
                (tip, y),
                (tip - 7 * s, y + 7),
                (tip - 7 * s, y + 4),
                (start, y + 4),
            ]
        self.canvas.add("polygon", cls, hint, points=" ".join(f"{px:.1f},{py:.1f}" for px, py in corners))

    def host(self) -> None:
        """The host's memory below the shim row, with an arrow for every shim channel in use."""
        y = self.plan.bottom - 2
        self.canvas.rect(6, y, self.canvas.width - 12, 20, "box", rx=4)
        words = "DDR (host memory)"
        if self.report:
            ddr = self.report.traffic["ddr"]
            words += f": the array reads {size_text(ddr.read)} and writes {size_text(ddr.written)}"
        self.canvas.text(16, y + 14, words, "small")
        for channel in self.machine.channels:
            if channel.tile.row or channel.tile.col not in self.plan.columns:
                continue
            out = channel.direction == "MM2S"
            x = (
                self.plan.x(channel.tile.col)
                + self.plan.widths[channel.tile.col] * (0.2 if out else 0.62)
                + channel.index * 12
            )
            edge = self.plan.y(0) + self.box_height(0)
            hue = self.hues.get(channel.fifo or "", "blue")
            self.canvas.line(x, edge + (6 if out else 0), x, y - (0 if out else 6), f"wire s-{hue}", stroke_width=1.5)
            self.canvas.arrow_head(x, edge if out else y, "up" if out else "down", f"f-{hue}", 3)

    # Words

    def channel_text(self, channel: DmaChannel) -> str:
        busy = self.load.get(channel_key(channel))
        return f"{channel}: {channel.fifo or 'no fifo'}" + (
            "" if busy is None else f", {busy:.0%} of its cycles moving data"
        )

    def wire_text(self, wire: Wire, busy: float | None) -> str:
        dests = ", ".join(str(d.tile) for d in wire.route.dests)
        return f"{wire.route.name}: stream {wire.route.source.tile} to {dests}" + (
            "" if busy is None else f", busy {busy:.0%}"
        )

    def tile_text(self, tile: _Tile) -> str:
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


def _loads(report: Report | None) -> dict[tuple[Coord, str, int], float]:
    """The share of the run in which each channel moved data."""
    if report is None or not report.ticks:
        return {}
    return {channel_key(use.channel): min(use.busy / report.ticks, 1.0) for use in report.channels}


def _alt(a: _Array, shared: int) -> str:
    used = [t for t in a.tiles.values() if t.used]
    kinds = {k: [t for t in used if a.device.kind(t.at.row) == k] for k in ("core", "mem", "shim")}
    total = {"core": a.device.compute_tiles, "mem": a.device.columns, "shim": a.device.columns}
    names = {"core": "compute tiles", "mem": "MemTiles", "shim": "shim tiles"}
    words = [", ".join(f"{len(kinds[k])} of {total[k]} {names[k]}" for k in kinds) + " in use."]
    for tile in kinds["core"][:8]:
        words.append(
            f"{tile.at} runs {tile.core.name if tile.core else 'nothing'}, {size_text(tile.nbytes)} of memory."
        )
    if len(kinds["core"]) > 8:
        most = max(kinds["core"], key=lambda t: t.nbytes)
        words.append(f"The fullest compute tile is {most.at} with {size_text(most.nbytes)}.")
    words.append(
        f"{len(a.machine.routes)} streams, {shared} fifos in shared memory, {len(a.machine.cascades)} cascade links."
    )
    if full := busiest(a.wires, a.machine):
        words.append(f"Busiest boundary: {full[0]} of {full[1]} streams {full[3]} from {full[2]}.")
    if a.report:
        words.append(f"Simulated: {a.report.cycles:,.0f} cycles.")
    return " ".join(words)


def array(of: Any, *, columns: tuple[int, int] | None = None, title: str | None = None) -> Picture:
    """The tile array of a design: pass a Machine, a Report or a Run of the simulated NPU.

    ``columns`` (first, last) shows a part of the array. With a report or run, each core shows how busy it was and a
    stream is drawn the wider the more of the time it moved data; these numbers are simulated.

    Raises:
        ValueError: if ``columns`` lies outside the device.
        TypeError: if ``of`` holds no machine.
    """
    machine, report = parts(of)
    first, last = columns or (0, machine.device.columns - 1)
    if not 0 <= first <= last < machine.device.columns:
        raise ValueError(
            f"columns {columns} lie outside {machine.device.name}, which has 0 to {machine.device.columns - 1}"
        )
    drawing = _Array(machine, report, range(first, last + 1))
    title = title or f"Tile array of {machine.device.name}" + (", simulated run" if report else "")
    c = drawing.canvas
    c.text(8, 18, title, "head")
    c.text(8, 33, _subtitle(drawing), "small faint")
    for wire in drawing.wires:
        drawing.wire(wire)
    for tile in drawing.tiles.values():
        if tile.at.col in drawing.plan.columns:
            drawing.tile(tile)
    shared = drawing.shared()
    drawing.host()
    entries = _legend_names(drawing.hues) + [("ink", "stack")]
    if report:
        entries += [("f-blue", "core busy"), ("t-red", "core stalled")]
    y = c.legend(10, drawing.plan.bottom + 36, entries, c.width - 20)
    for note in _notes(drawing, shared):
        c.text(10, y, note, "small faint")
        y += 14
    c.height = y
    return c.picture(title, _alt(drawing, shared))


def _subtitle(a: _Array) -> str:
    words = "Marks on a tile's left edge: DMA channels, S2MM (into memory) above MM2S (out of it)."
    return words + (" Wider stream: busier." if a.report else "")


def _notes(a: _Array, shared: int) -> list[str]:
    """What the legend's swatches do not say."""
    notes = []
    if shared:
        notes.append("Tinted arrow between two tiles: a fifo in memory that both reach, without DMA.")
    if a.machine.cascades:
        notes.append("Solid arrow between two tiles: cascade link.")
    if full := busiest(a.wires, a.machine):
        notes.append(
            f"Fullest boundary between two switches: {full[0]} of {full[1]} streams, {full[3]} from {full[2]}."
        )
    return notes

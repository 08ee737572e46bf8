"""The tile array: who runs what, memory against capacity, DMA channels in use, streams and shared memory."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from npulab.draw.contents import legend_names, parts, tiles
from npulab.draw.plan import Plan
from npulab.draw.svg import Canvas, Picture, size_text
from npulab.draw.tilebox import Tiles
from npulab.draw.wires import Wire, busiest, channel_key, neighbours, wires
from npusim.machine import Coord, Machine
from npusim.report import Report


class _Array:
    """One drawing in progress."""

    def __init__(self, machine: Machine, report: Report | None, columns: range) -> None:
        self.machine, self.report, self.device = machine, report, machine.device
        self.tiles = tiles(machine, report)
        self.wires, *lanes = wires(machine)
        self.neighbours = neighbours(machine)
        self.plan = Plan(self.tiles, columns, (lanes[0], lanes[1]), report is not None)
        self.canvas = Canvas(max(self.plan.width, 640.0), self.plan.bottom + 60)
        self.boxes = Tiles(machine, report, self.plan, self.canvas)
        self.full = busiest(self.wires, machine)

    def wire(self, wire: Wire) -> None:
        if not any(t.col in self.plan.columns for t in wire.tiles):
            return
        hue = self.boxes.hue(wire.route.source)
        busy = self.boxes.load.get(channel_key(wire.route.source))
        width = 1.5 if busy is None else 1.0 + (self.plan.lane - 2) * busy
        self.canvas.path(self.wire_path(wire), f"wire s-{hue}", hint=wire_text(wire, busy), stroke_width=width)
        for dest in wire.route.dests:
            if dest.tile.col in self.plan.columns:
                y = self.boxes.pip_y(dest.tile, "S2MM", dest.index)
                self.canvas.arrow_head(self.plan.x(dest.tile.col) - 2, y, "right", f"f-{hue}", 2.6)

    def wire_path(self, wire: Wire) -> str:
        """Across below the rows, up and down beside the columns, and into the tiles; cut off where columns are left out."""
        d: list[str] = []
        for row, runs in wire.across.items():
            y = self.plan.lane_y(row, wire.lane_y.get(row, 0))
            d += [f"M{self.lane_x(wire, a):.1f} {y:.1f}H{self.lane_x(wire, b):.1f}" for a, b in runs]
        for col, ys in self.joints(wire).items():
            if col in self.plan.columns:
                d.append(f"M{self.lane_x(wire, col):.1f} {min(ys):.1f}V{max(ys):.1f}")
        for channel in (wire.route.source, *wire.route.dests):
            if channel.tile.col in self.plan.columns:
                y = self.boxes.pip_y(channel.tile, channel.direction, channel.index)
                d.append(
                    f"M{self.lane_x(wire, channel.tile.col):.1f} {y:.1f}H{self.plan.x(channel.tile.col) - 2.5:.1f}"
                )
        return "".join(d)

    def joints(self, wire: Wire) -> dict[int, list[float]]:
        """The heights at which something joins the wire in each column."""
        ys: dict[int, list[float]] = defaultdict(list)
        for channel in (wire.route.source, *wire.route.dests):
            ys[channel.tile.col].append(self.boxes.pip_y(channel.tile, channel.direction, channel.index))
        for row, runs in wire.across.items():
            for col in (col for a, b in runs for col in range(a, b + 1)):
                ys[col].append(self.plan.lane_y(row, wire.lane_y.get(row, 0)))
        return ys

    def lane_x(self, wire: Wire, col: int) -> float:
        """The wire's place beside a column; the picture's edge for a column left out."""
        if col not in self.plan.columns:
            return 2.0 if col < self.plan.columns.start else self.plan.width - 2
        return self.plan.lane_x(col, wire.lane_x.get(col, 0))

    def bridges(self) -> None:
        """Fifos in shared memory and cascade links, as block arrows between the boxes."""
        links = [
            (n.source, n.dest, f"t-{self.boxes.hues[n.fifo]}", f"{n.fifo}: shared memory") for n in self.neighbours
        ]
        links += [(c.source, c.dest, "ink", "cascade") for c in self.machine.cascades]
        drawn: dict[frozenset[Coord], int] = defaultdict(int)
        for a, b, cls, words in links:
            n = drawn[frozenset((a, b))]
            drawn[frozenset((a, b))] += 1
            if a.col in self.plan.columns and b.col in self.plan.columns:
                self.bridge(a, b, 12 + 14 * n, cls, f"{words}, {a} to {b}")

    def bridge(self, a: Coord, b: Coord, shift: float, cls: str, hint: str) -> None:
        """An arrow from one box to the next, ``shift`` px in from the right (or upper) end of the edge that they share."""
        if a.col == b.col:
            low, high = (a, b) if a.row < b.row else (b, a)
            ends = self.plan.y(low.row), self.plan.y(high.row) + self.plan.height(high.row)
            x = self.plan.x(a.col) + self.plan.widths[a.col] - shift
            start, tip = ends if a is low else ends[::-1]
            self.canvas.block_arrow((x, start), (x, tip), cls, hint)
        else:
            left, right = (a, b) if a.col < b.col else (b, a)
            ends = self.plan.x(left.col) + self.plan.widths[left.col], self.plan.x(right.col)
            y = self.plan.y(a.row) + shift
            start, tip = ends if a is left else ends[::-1]
            self.canvas.block_arrow((start, y), (tip, y), cls, hint)

    def host(self) -> None:
        """The host's memory below the shim row, with an arrow for every shim channel in use."""
        y, edge = self.plan.bottom - 2, self.plan.y(0) + self.plan.height(0)
        self.canvas.rect(6, y, self.canvas.width - 12, 20, "box", rx=4)
        words = "DDR (host memory)"
        if self.report:
            ddr = self.report.traffic["ddr"]
            words += f": the array reads {size_text(ddr.read)} and writes {size_text(ddr.written)}"
        self.canvas.text(16, y + 14, words, "small")
        for channel in self.machine.channels:
            col, out = channel.tile.col, channel.direction == "MM2S"
            if channel.tile.row == 0 and col in self.plan.columns:
                x = self.plan.x(col) + self.plan.widths[col] * (0.2 if out else 0.62) + channel.index * 12
                hue = self.boxes.hue(channel)
                ends = (edge + 6, y) if out else (edge, y - 6)
                self.canvas.line(x, ends[0], x, ends[1], f"wire s-{hue}", stroke_width=1.5)
                self.canvas.arrow_head(x, edge if out else y, "up" if out else "down", f"f-{hue}", 3)

    def legend(self) -> None:
        entries = [*legend_names(self.boxes.hues), ("ink", "stack")]
        if self.report:
            entries += [("f-blue", "core busy"), ("t-red", "core stalled")]
        y = self.canvas.legend(10, self.plan.bottom + 36, entries, self.canvas.width - 20)
        for note in self.notes():
            self.canvas.text(10, y, note, "small faint")
            y += 14
        self.canvas.height = y

    def notes(self) -> list[str]:
        """What the legend's swatches do not say."""
        notes = []
        if self.neighbours:
            notes.append("Tinted arrow between two tiles: a fifo in memory that both reach, without DMA.")
        if self.machine.cascades:
            notes.append("Solid arrow between two tiles: cascade link.")
        if self.full:
            n, room, tile, way = self.full
            notes.append(f"Fullest boundary between two switches: {n} of {room} streams, {way} from {tile}.")
        return notes

    def draw(self, title: str) -> None:
        c = self.canvas
        c.text(8, 18, title, "head")
        words = "Marks on a tile's left edge: DMA channels, S2MM (into memory) above MM2S (out of it)."
        c.text(8, 33, words + (" Wider stream: busier." if self.report else ""), "small faint")
        for wire in self.wires:
            self.wire(wire)
        for tile in self.tiles.values():
            if tile.at.col in self.plan.columns:
                self.boxes.draw(tile)
        self.bridges()
        self.host()
        self.legend()

    def alt(self) -> str:
        used: dict[str, list[Any]] = {"core": [], "mem": [], "shim": []}
        for tile in self.tiles.values():
            if tile.used:
                used[self.device.kind(tile.at.row)].append(tile)
        columns = self.device.columns
        words = [
            f"{len(used['core'])} of {self.device.compute_tiles} compute tiles, {len(used['mem'])} of {columns} MemTiles, "
            f"{len(used['shim'])} of {columns} shim tiles in use."
        ]
        for tile in used["core"][:8]:
            name = tile.core.name if tile.core else "nothing"
            words.append(f"{tile.at} runs {name}, {size_text(tile.nbytes)} of memory.")
        if len(used["core"]) > 8:
            most = max(used["core"], key=lambda t: t.nbytes)
            words.append(f"The fullest compute tile is {most.at} with {size_text(most.nbytes)}.")
        words.append(f"{len(self.wires)} streams, {len(self.neighbours)} fifos in shared memory.")
        if self.machine.cascades:
            words.append(f"{len(self.machine.cascades)} cascade links.")
        words += self.notes()[-1:] if self.full else []
        if self.report:
            words.append(f"Simulated: {self.report.cycles:,.0f} cycles.")
        return " ".join(words)


def wire_text(wire: Wire, busy: float | None) -> str:
    """What a stream connects, and how busy it was."""
    dests = ", ".join(str(d.tile) for d in wire.route.dests)
    words = f"{wire.route.name}: stream {wire.route.source.tile} to {dests}"
    return words if busy is None else f"{words}, busy {busy:.0%}"


def array(of: Any, *, columns: tuple[int, int] | None = None, title: str | None = None) -> Picture:
    """The tile array of a design: pass a Machine, a Report or a Run of the simulated NPU.

    ``columns`` (first, last) shows a part of the array. With a report or run, each core shows how busy it was and a
    stream is drawn the wider the more of the time it moved data; these numbers are simulated.

    Raises:
        ValueError: if ``columns`` lies outside the device.
        TypeError: if ``of`` holds no machine.
    """
    machine, report = parts(of)
    last = machine.device.columns - 1
    first, end = columns or (0, last)
    if not 0 <= first <= end <= last:
        raise ValueError(f"columns {columns} lie outside {machine.device.name}, which has 0 to {last}")
    drawing = _Array(machine, report, range(first, end + 1))
    name = title or f"Tile array of {machine.device.name}" + (", simulated run" if report else "")
    drawing.draw(name)
    return drawing.canvas.picture(name, drawing.alt())

"""The dataflow graph of a design: host, workers and MemTile links as nodes, ObjectFifos as edges, from left to right."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from npulab.draw import theme
from npulab.draw.contents import parts
from npulab.draw.layers import Edge, Node, Piece, layout, names
from npulab.draw.svg import Canvas, Picture, fit, size_text
from npulab.draw.wires import family
from npusim.graph import Design, Fifo, LogicalTile

BOX, HOST, GAP = 108.0, 62.0, 148.0
BEND = 0.22  # the part of a gap in which an edge changes height; the rest is level and carries its label
MANY = 14
"""With more nodes than this, those that play the same part are drawn as one."""


def _where(tile: LogicalTile) -> str:
    """``compute tile (0,2)``, without coordinates while the tile is not placed."""
    kind = {"core": "compute tile", "mem": "MemTile", "shim": "shim tile"}[tile.kind]
    return kind if tile.col is None and tile.row is None else str(tile)


class _Ends:
    """Which node a fifo's, a flow's or a cascade's end belongs to."""

    def __init__(self, design: Design) -> None:
        self.source, self.sink = Node("host", "fills", "host"), Node("host", "drains", "host")
        self.cores = {id(c.tile): Node(c.name, _where(c.tile), "core") for c in design.cores}
        self.links: dict[tuple[str, bool], Node] = {}  # (fifo, whether it goes in) -> node
        self.tiles: dict[int, Node] = {}
        for link in design.links:
            what = "split" if len(link.outputs) > 1 else "join" if len(link.inputs) > 1 else "forward"
            tile = link.outputs[0].producer
            node = Node(what, _where(tile), tile.kind)
            self.links |= {(f.name, True): node for f in link.inputs} | {(f.name, False): node for f in link.outputs}

    def of(self, tile: LogicalTile, consumes: bool, fifo: str = "") -> Node:
        """The node at the producing or consuming end."""
        if (fifo, consumes) in self.links:
            return self.links[fifo, consumes]
        if tile.kind == "shim":
            return self.sink if consumes else self.source
        if id(tile) in self.cores:
            return self.cores[id(tile)]
        label = "MemTile" if tile.kind == "mem" else "no worker"
        return self.tiles.setdefault(id(tile), Node(label, _where(tile), tile.kind))


def _build(design: Design) -> tuple[list[Node], list[Edge]]:
    ends = _Ends(design)
    edges = []
    for fifo in design.fifos:
        for tile in fifo.consumers:
            a, b = ends.of(fifo.producer, False, fifo.name), ends.of(tile, True, fifo.name)
            edges.append(Edge(fifo.name, short_text(fifo), edge_text(fifo), a, b))
    for i, flow in enumerate(design.flows):
        a, b = ends.of(flow.source, False), ends.of(flow.dest, True)
        edges.append(Edge(f"flow {i}", "flow", "explicit stream", a, b, "flow"))
    for i, link in enumerate(design.cascades):
        a, b = ends.of(link.source, False), ends.of(link.dest, True)
        edges.append(Edge(f"cascade {i}", "cascade", "cascade link, 512 bit", a, b, "cascade"))
    seen = {n for edge in edges for n in (edge.a, edge.b)}
    nodes = dict.fromkeys([ends.source, *ends.cores.values(), *ends.links.values(), *ends.tiles.values(), ends.sink])
    return [n for n in nodes if n in seen or n.kind == "core"], edges


def _fold(nodes: list[Node], edges: list[Edge]) -> tuple[list[Node], list[Edge]]:
    """One node for all that have the same name but for numbers and the same kinds of edges, one edge for each kind."""
    kinds: dict[Node, tuple[set[str], set[str]]] = {node: (set(), set()) for node in nodes}
    for edge in edges:
        kinds[edge.a][1].add(family(edge.name))
        kinds[edge.b][0].add(family(edge.name))
    groups: dict[object, list[Node]] = defaultdict(list)
    for node in nodes:
        ins, outs = kinds[node]
        groups[
            node.kind, family(node.label), node.kind == "host" and node.detail, frozenset(ins), frozenset(outs)
        ].append(node)
    folded: dict[Node, Node] = {}
    for members in groups.values():
        first, many = members[0], len(members) > 1
        label, detail = (family(first.label), f"× {len(members)}") if many else (first.label, first.detail)
        folded |= dict.fromkeys(members, Node(label, detail, first.kind, len(members)))
    merged: dict[tuple[str, Node, Node], list[Edge]] = defaultdict(list)
    for edge in edges:
        merged[family(edge.name), folded[edge.a], folded[edge.b]].append(edge)
    return list(dict.fromkeys(folded.values())), [_merge(name, a, b, alike) for (name, a, b), alike in merged.items()]


def _merge(name: str, a: Node, b: Node, alike: list[Edge]) -> Edge:
    first, count = alike[0], len({edge.name for edge in alike})
    if count == 1:
        return Edge(first.name, first.label, first.hint, a, b, first.style)
    label = first.label.replace(first.name, name, 1).replace(" ·", f" × {count} ·", 1)
    return Edge(name, label, f"{count} times {first.hint}", a, b, first.style, count)


class _Graph:
    """One drawing in progress."""

    def __init__(self, nodes: list[Node], edges: list[Edge]) -> None:
        self.nodes, self.edges = nodes, edges
        fifos = list(dict.fromkeys(e.name for e in edges if e.style == "fifo"))
        self.hues = {name: theme.hue(i) for i, name in enumerate(fifos)}
        columns, self.pieces, self.height = layout(nodes, edges)
        self.top = 62.0 if any(e.a is e.b for e in edges) else 46.0
        self.x: dict[Node, float] = {}
        self.widths: dict[Node, float] = {}
        right = 22.0
        for column in columns:
            wide = max(BOX if n.kind in ("core", "mem") else HOST if n.kind == "host" else 0.0 for n in column)
            for node in column:
                self.widths[node] = HOST if node.kind == "host" else wide
                self.x[node] = right + (wide - self.widths[node]) / 2
            right += wide + GAP
        self.around = [e for e in edges if e.back and e.a is not e.b]
        self.canvas = Canvas(max(right - GAP + 22, 480.0), self.top + self.height + 16 + 18 * len(self.around))

    def node(self, node: Node) -> None:
        x, w, h = self.x[node], self.widths[node], node.height
        y, middle = self.top + node.y - h / 2, self.top + node.y
        cls = {"host": "box", "mem": "t-gold", "core": "t-blue"}[node.kind]
        if node.count > 1:
            self.canvas.rect(x + 4, y - 4, w, h, cls, rx=4)
        self.canvas.rect(x, y, w, h, cls, hint=f"{node.label} ({node.detail})", rx=12 if node.kind == "host" else 4)
        self.canvas.text(x + w / 2, middle - 2, fit(node.label, w - 8, 10.5), "small bold", "middle")
        self.canvas.text(x + w / 2, middle + 11, fit(node.detail, w - 8, 9), "tiny faint", "middle")

    def look(self, edge: Edge) -> tuple[str, str, float]:
        """Classes of line and head, and the line's width."""
        if edge.style == "fifo":
            return f"s-{self.hues[edge.name]}", f"f-{self.hues[edge.name]}", 1.6
        return ("axis", "ink", 3.5) if edge.style == "cascade" else ("axis dash", "ink", 1.6)

    def piece(self, piece: Piece, label: bool) -> None:
        edge = piece.edge
        line, head, thick = self.look(edge)
        x1, x2 = self.x[piece.a] + self.widths[piece.a], self.x[piece.b]
        y1 = self.top + piece.a.port_y(piece.a.outs, edge.name)
        y2 = self.top + piece.b.port_y(piece.b.ins, edge.name)
        fans_in = len(names(piece.a.outs)) < len(names(piece.b.ins))
        bend, last = GAP * BEND, piece.b is edge.b
        from_x = x2 - 8 - bend if fans_in else x1
        middle, end = from_x + bend / 2, x2 - 5 if last else x2 + self.widths[piece.b]
        d = f"M{x1:.1f} {y1:.1f}H{from_x:.1f}C{middle:.1f} {y1:.1f} {middle:.1f} {y2:.1f} {from_x + bend:.1f} {y2:.1f}H{end:.1f}"
        self.canvas.path(d, f"wire {line}", edge.hint, stroke_width=thick)
        if last:
            self.canvas.arrow_head(x2, y2, "right", head, 3.5)
        if label and self.labelled(piece):
            at = (x1 + 5, y1 - 4, "") if fans_in else (x2 - 9, y2 - 4, "end")
            self.canvas.text(at[0], at[1], fit(edge.label, GAP * (0.96 - BEND * (y1 != y2)), 9), "tiny", at[2])

    def labelled(self, piece: Piece) -> bool:
        """A fifo is labelled once, where it leaves its producer."""
        return piece is next(p for p in self.pieces if p.edge.name == piece.edge.name)

    def loop(self, edge: Edge) -> None:
        """An edge back to an earlier column: around below everything, or above the node where it ends there as well."""
        line, head, thick = self.look(edge)
        x1, x2 = self.x[edge.a] + self.widths[edge.a], self.x[edge.b]
        y1, y2 = self.top + edge.a.y, self.top + edge.b.y
        if edge.a is edge.b:
            y1, lane = y1 - edge.a.height / 2, y1 - edge.a.height / 2 - 14
            d, tip = f"M{x1 - 18:.1f} {y1:.1f}V{lane:.1f}H{x2 + 18:.1f}V{y1 - 5:.1f}", (x2 + 18, y1, "down")
        else:
            lane = self.top + self.height + 12 + 18 * self.around.index(edge)
            d, tip = f"M{x1:.1f} {y1:.1f}h14V{lane:.1f}H{x2 - 16:.1f}V{y2:.1f}H{x2 - 5:.1f}", (x2, y2, "right")
        self.canvas.path(d, f"wire {line}", edge.hint, stroke_width=thick)
        self.canvas.arrow_head(*tip, head, 3.5)
        self.canvas.text((x1 + x2) / 2, lane - 4, fit(edge.label, x1 - x2 + 40, 9), "tiny", "middle")

    def draw(self) -> None:
        label = len(self.edges) <= 40
        for piece in self.pieces:
            self.piece(piece, label)
        for edge in self.edges:
            if edge.back:
                self.loop(edge)
        for node in self.nodes:
            self.node(node)


def depth_text(fifo: Fifo) -> str:
    """Depth as one number, or the depths of the producer and each consumer."""
    return str(fifo.depth) if isinstance(fifo.depth, int) else "/".join(map(str, fifo.depth))


def edge_text(fifo: Fifo) -> str:
    """``x: 1024 bf16, depth 2``."""
    return f"{fifo.name}: {'×'.join(map(str, fifo.type.shape))} {fifo.type.element}, depth {depth_text(fifo)}"


def short_text(fifo: Fifo) -> str:
    """``x · 2 of 1024 bf16``."""
    return f"{fifo.name} · {depth_text(fifo)} of {'×'.join(map(str, fifo.type.shape))} {fifo.type.element}"


def _design(of: Any) -> Design:
    """The design graph of what a notebook has at hand."""
    if isinstance(of, Design):
        return of
    machine, _ = parts(of)
    if machine.design is None:
        raise ValueError("nothing to draw: this machine was not made from a design graph")
    return machine.design


def graph(of: Any, *, title: str | None = None, fold: bool | None = None) -> Picture:
    """The dataflow graph of a design: an edge from each fifo's producer to every consumer; explicit flows are dashed,
    cascade links thick. Pass a Design, or the Machine, Report or Run made from one.

    The host appears twice, as what fills and what drains. ``fold`` draws nodes that play the same part as one; by default
    when there are many.

    Raises:
        ValueError: if the design has no fifo and no core, or there is no design.
        TypeError: if ``of`` holds no machine.
    """
    design = _design(of)
    nodes, edges = _build(design)
    if not nodes:
        raise ValueError("nothing to draw: the design has no fifo and no core")
    if fold or (fold is None and len(nodes) > MANY):
        nodes, edges = _fold(nodes, edges)
    drawing = _Graph(nodes, edges)
    name = title or "Dataflow graph"
    drawing.canvas.text(8, 18, name, "head")
    drawing.canvas.text(8, 33, "Edges: ObjectFifos, with depth and type of object.", "small faint")
    drawing.draw()
    return drawing.canvas.picture(name, _alt(design))


def _alt(design: Design) -> str:
    words = [f"{len(design.cores)} workers and {len(design.fifos)} fifos."]
    for fifo in design.fifos[:16]:
        ends = f"from {_end(design, fifo.producer)} to {', '.join(_end(design, t) for t in fifo.consumers)}"
        words.append(f"{edge_text(fifo)} ({size_text(fifo.type.nbytes)} an object), {ends}.")
    if len(design.fifos) > 16:
        words.append(f"And {len(design.fifos) - 16} more fifos.")
    for link in design.cascades:
        words.append(f"A cascade from {_end(design, link.source)} to {_end(design, link.dest)}.")
    for flow in design.flows:
        words.append(f"An explicit stream from {_end(design, flow.source)} to {_end(design, flow.dest)}.")
    return " ".join(words)


def _end(design: Design, tile: LogicalTile) -> str:
    if tile.kind == "shim":
        return "the host"
    return next((core.name for core in design.cores if core.tile is tile), _where(tile))

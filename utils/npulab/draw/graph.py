"""The dataflow graph of a design: host, workers and MemTiles as nodes, ObjectFifos as edges, from left to right."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field

from npusim.graph import Design, Fifo, LogicalTile

from npulab.draw import theme
from npulab.draw.svg import Canvas, Picture, fit, size_text

BOX, GAP, ROW = 132.0, 150.0, 46.0


@dataclass(eq=False)
class _Node:
    """A worker, a MemTile (with its links) or the host as source or sink."""

    label: str
    detail: str = ""
    kind: str = "core"
    layer: int = 0
    y: float = 0.0
    into: list[_Edge] = field(default_factory=list)
    out: list[_Edge] = field(default_factory=list)


@dataclass(eq=False)
class _Edge:
    fifo: Fifo
    a: _Node
    b: _Node
    back: bool = False


def _nodes(design: Design) -> dict[tuple[int, bool], _Node]:
    """Nodes by (id of tile, whether it is the consuming end); only the host is two nodes, source and sink."""
    names: dict[int, list[str]] = defaultdict(list)
    for core in design.cores:
        names[id(core.tile)].append(core.name)
    source, sink = _Node("host", "fills", "host"), _Node("host", "drains", "host")
    nodes: dict[tuple[int, bool], _Node] = {}
    tiles = {id(t): t for f in design.fifos for t in (f.producer, *f.consumers)} | {id(c.tile): c.tile for c in design.cores}
    for key, tile in tiles.items():
        if tile.kind == "shim":
            nodes[key, False], nodes[key, True] = source, sink
        else:
            label = ", ".join(names[key]) or ("MemTile" if tile.kind == "mem" else "compute tile")
            nodes[key, False] = nodes[key, True] = _Node(label, str(tile), tile.kind)
    return nodes


def _edges(design: Design, nodes: dict[tuple[int, bool], _Node]) -> list[_Edge]:
    edges = []
    for fifo in design.fifos:
        for consumer in fifo.consumers:
            edge = _Edge(fifo, nodes[id(fifo.producer), False], nodes[id(consumer), True])
            edge.a.out.append(edge)
            edge.b.into.append(edge)
            edges.append(edge)
    return edges


def _mark_back(nodes: list[_Node]) -> None:
    """Mark the edges that close a cycle (also a node's edge to itself), by depth-first search."""
    state: dict[_Node, int] = {}

    def visit(node: _Node) -> None:
        state[node] = 1
        for edge in node.out:
            if state.get(edge.b) == 1:
                edge.back = True
            elif edge.b not in state:
                visit(edge.b)
        state[node] = 2

    for node in sorted(nodes, key=lambda n: len(n.into)):
        if node not in state:
            visit(node)


def _layers(nodes: list[_Node]) -> list[list[_Node]]:
    """Longest path from the sources; the host's sink comes last."""
    for _ in nodes:
        moved = False
        for node in nodes:
            for edge in node.out:
                if not edge.back and edge.b.layer < node.layer + 1:
                    edge.b.layer, moved = node.layer + 1, True
        if not moved:
            break
    last = max((n.layer for n in nodes), default=0)
    for node in nodes:
        if node.kind == "host" and node.into:
            node.layer = last
    layers: list[list[_Node]] = [[] for _ in range(last + 1)]
    for node in nodes:
        layers[node.layer].append(node)
    return [layer for layer in layers if layer]


def _arrange(layers: list[list[_Node]]) -> float:
    """Vertical places: each node near the middle of its neighbours, without overlap. Returns the height."""
    tallest = max(len(layer) for layer in layers)
    for layer in layers:
        for i, node in enumerate(layer):
            node.y = (i + 0.5) * tallest * ROW / len(layer)
    for sweep in (layers[1:], list(reversed(layers[:-1])), layers[1:]):
        for layer in sweep:
            place = {n: _centre(n) for n in layer}
            layer.sort(key=lambda n: place[n])
            for i, node in enumerate(layer):
                node.y = (i + 0.5) * tallest * ROW / len(layer)
    return tallest * ROW


def _centre(node: _Node) -> float:
    ys = [e.a.y for e in node.into if not e.back] + [e.b.y for e in node.out if not e.back]
    return sum(ys) / len(ys) if ys else node.y


def _depth(fifo: Fifo) -> str:
    return str(fifo.depth) if isinstance(fifo.depth, int) else "/".join(map(str, fifo.depth))


def _edge_text(fifo: Fifo) -> str:
    shape = "×".join(map(str, fifo.type.shape))
    return f"{fifo.name}: {shape} {fifo.type.element}, depth {_depth(fifo)}"


def _draw_node(c: Canvas, node: _Node, x: float, top: float) -> None:
    y = top + node.y - 16
    cls = {"host": "box", "mem": "t-gold", "core": "t-blue"}[node.kind]
    c.rect(x, y, BOX, 32, cls, hint=f"{node.label} ({node.detail})", rx=10 if node.kind == "host" else 4)
    c.text(x + BOX / 2, y + 13.5, fit(node.label, BOX - 8, 10.5), "small bold", "middle")
    c.text(x + BOX / 2, y + 26, fit(node.detail, BOX - 8, 9), "tiny faint", "middle")


def _draw_edge(c: Canvas, edge: _Edge, x1: float, x2: float, y1: float, y2: float, hue: str, label: bool) -> None:
    hint = _edge_text(edge.fifo)
    if edge.back:
        lift = 26 if edge.a is edge.b else 40
        mid = min(y1, y2) - lift
        d = f"M{x1:.1f} {y1:.1f}C{x1 + 40:.1f} {mid:.1f} {x2 - 40:.1f} {mid:.1f} {x2 - 5:.1f} {y2:.1f}"
    else:
        bend = (x2 - x1) * 0.45
        d = f"M{x1:.1f} {y1:.1f}C{x1 + bend:.1f} {y1:.1f} {x2 - bend:.1f} {y2:.1f} {x2 - 5:.1f} {y2:.1f}"
    c.path(d, f"wire s-{hue}" + (" dash" if edge.fifo.via_dma else ""), hint, stroke_width=1.6)
    c.arrow_head(x2, y2, "right", f"f-{hue}", 3.5)
    if label:
        c.text((x1 + x2) / 2, (y1 + y2) / 2 - 5 if not edge.back else min(y1, y2) - 22, fit(edge.fifo.name, GAP - 20, 9.5), "tiny", "middle")
        if not edge.back:
            shape = "×".join(map(str, edge.fifo.type.shape))
            c.text((x1 + x2) / 2, (y1 + y2) / 2 + 9, fit(f"{_depth(edge.fifo)} of {shape} {edge.fifo.type.element}", GAP - 12, 9), "tiny faint", "middle")


def graph(design: Design, *, title: str | None = None) -> Picture:
    """The dataflow graph of a design: an edge from each fifo's producer to every consumer.

    The host appears twice, as what fills and what drains. An edge against the direction of reading is drawn as an arc above.

    Raises:
        ValueError: if the design has no fifo and no core.
    """
    by_tile = _nodes(design)
    edges = _edges(design, by_tile)
    nodes = [n for n in dict.fromkeys(by_tile.values()) if n.into or n.out or n.kind == "core"]
    if not nodes:
        raise ValueError("nothing to draw: the design has no fifo and no core")
    _mark_back(nodes)
    layers = _layers(nodes)
    top = 56.0 if any(e.back for e in edges) else 44.0
    height = _arrange(layers)
    x_of = {n: 10 + i * (BOX + GAP) for i, layer in enumerate(layers) for n in layer}
    c = Canvas(20 + len(layers) * BOX + (len(layers) - 1) * GAP, top + height + 20)
    name = title or "Dataflow graph"
    c.text(8, 18, name, "head")
    c.text(8, 33, "Edges: ObjectFifos, with depth and type of object.", "small faint")
    hues = {f.name: theme.hue(i) for i, f in enumerate(design.fifos)}
    for edge in edges:
        _draw_edge(c, edge, *_ends(edge, x_of, top), hues[edge.fifo.name], label=len(edges) <= 24)
    for node in nodes:
        _draw_node(c, node, x_of[node], top)
    return c.picture(name, _alt(design, nodes))


def _ends(edge: _Edge, x_of: dict[_Node, float], top: float) -> tuple[float, float, float, float]:
    """x1, x2, y1, y2 of an edge; edges at one side of a node are spread along it."""

    def spread(node: _Node, among: list[_Edge]) -> float:
        side = [e for e in among if e.fifo is edge.fifo or not e.back]
        names = list(dict.fromkeys(e.fifo.name for e in side))
        n = names.index(edge.fifo.name) if edge.fifo.name in names else 0
        return top + node.y + (n - (len(names) - 1) / 2) * min(9.0, 24.0 / len(names))

    return x_of[edge.a] + BOX, x_of[edge.b], spread(edge.a, edge.a.out), spread(edge.b, edge.b.into)


def _alt(design: Design, nodes: list[_Node]) -> str:
    workers = [n for n in nodes if n.kind == "core"]
    words = [f"{len(workers)} workers and {len(design.fifos)} fifos."]
    for fifo in design.fifos[:16]:
        ends = f"from {_end(design, fifo.producer)} to {', '.join(_end(design, t) for t in fifo.consumers)}"
        words.append(f"{_edge_text(fifo)} ({size_text(fifo.type.nbytes)} an object), {ends}.")
    if len(design.fifos) > 16:
        words.append(f"And {len(design.fifos) - 16} more fifos.")
    return " ".join(words)


def _end(design: Design, tile: LogicalTile) -> str:
    if tile.kind == "shim":
        return "the host"
    return next((core.name for core in design.cores if core.tile is tile), str(tile))

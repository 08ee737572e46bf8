"""The dataflow graph of a design: host, workers and MemTile links as nodes, ObjectFifos as edges, from left to right."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field

from npulab.draw import theme
from npulab.draw.svg import Canvas, Picture, fit, size_text
from npulab.draw.wires import family
from npusim.graph import Design, Fifo, LogicalTile

BOX, HOST, GAP, PORT = 108.0, 62.0, 148.0, 17.0
BEND = 0.22  # the part of a gap in which an edge changes height; the rest is level and carries its label
MANY = 14
"""With more nodes than this, those that play the same part are drawn as one."""


@dataclass(eq=False)
class _Node:
    """A worker, what a MemTile does with one link, or the host as source or sink."""

    label: str
    detail: str
    kind: str
    count: int = 1
    layer: int = 0
    y: float = 0.0
    into: list[_Edge] = field(default_factory=list)
    out: list[_Edge] = field(default_factory=list)

    @property
    def width(self) -> float:
        return HOST if self.kind == "host" else BOX

    @property
    def height(self) -> float:
        return max(34.0, PORT * max(len(self.ports(self.into)), len(self.ports(self.out))) + 4)

    def ports(self, side: list[_Edge]) -> list[str]:
        """The fifos on one side, without those of cycles, top to bottom."""
        ends = sorted((e for e in side if not e.back), key=lambda e: (e.b if side is self.out else e.a).y)
        return list(dict.fromkeys(e.name for e in ends))

    def port_y(self, side: list[_Edge], name: str) -> float:
        names = self.ports(side)
        return self.y + ((names.index(name) - (len(names) - 1) / 2) * PORT if name in names else 0.0)


@dataclass(eq=False)
class _Edge:
    """One fifo (or, folded, several of a kind) from one node to another."""

    name: str
    fifo: Fifo
    a: _Node
    b: _Node
    count: int = 1
    back: bool = False


class _Ends:
    """Which node a fifo's end belongs to."""

    def __init__(self, design: Design) -> None:
        self.source, self.sink = _Node("host", "fills", "host"), _Node("host", "drains", "host")
        self.cores = {id(c.tile): _Node(c.name, str(c.tile), "core") for c in design.cores}
        self.links: dict[tuple[str, bool], _Node] = {}  # (fifo, whether it goes in) -> node
        self.tiles: dict[int, _Node] = {}
        for link in design.links:
            node = self._link(link.inputs, link.outputs)
            self.links |= {(f.name, True): node for f in link.inputs} | {(f.name, False): node for f in link.outputs}

    def _link(self, inputs: list[Fifo], outputs: list[Fifo]) -> _Node:
        what = "split" if len(outputs) > 1 else "join" if len(inputs) > 1 else "forward"
        tile = outputs[0].producer
        return _Node(what, str(tile), tile.kind)

    def of(self, fifo: Fifo, tile: LogicalTile, consumes: bool) -> _Node:
        """The node that produces or consumes ``fifo`` on ``tile``."""
        if (fifo.name, consumes) in self.links:
            return self.links[fifo.name, consumes]
        if tile.kind == "shim":
            return self.sink if consumes else self.source
        if id(tile) in self.cores:
            return self.cores[id(tile)]
        return self.tiles.setdefault(
            id(tile), _Node("MemTile" if tile.kind == "mem" else "no worker", str(tile), tile.kind)
        )


def _join(name: str, fifo: Fifo, a: _Node, b: _Node, count: int = 1) -> _Edge:
    edge = _Edge(name, fifo, a, b, count)
    a.out.append(edge)
    b.into.append(edge)
    return edge


def _build(design: Design) -> tuple[list[_Node], list[_Edge]]:
    ends = _Ends(design)
    edges = [
        _join(f.name, f, ends.of(f, f.producer, False), ends.of(f, tile, True))
        for f in design.fifos
        for tile in f.consumers
    ]
    nodes = dict.fromkeys([ends.source, *ends.cores.values(), *ends.links.values(), *ends.tiles.values(), ends.sink])
    return [n for n in nodes if n.into or n.out or n.kind == "core"], edges


def _fold(nodes: list[_Node], edges: list[_Edge]) -> tuple[list[_Node], list[_Edge]]:
    """One node for all that have the same name but for numbers and the same kinds of fifos, one edge for their fifos."""

    def part(node: _Node) -> tuple[object, ...]:
        kinds = (frozenset(family(e.name) for e in side) for side in (node.into, node.out))
        return (node.kind, family(node.label), node.kind == "host" and node.detail, *kinds)

    groups: dict[tuple[object, ...], list[_Node]] = defaultdict(list)
    for node in nodes:
        groups[part(node)].append(node)
    folded: dict[_Node, _Node] = {}
    for members in groups.values():
        first, many = members[0], len(members) > 1
        label, detail = (family(first.label), f"× {len(members)}") if many else (first.label, first.detail)
        folded |= dict.fromkeys(members, _Node(label, detail, first.kind, len(members)))
    merged: dict[tuple[str, _Node, _Node], list[_Edge]] = defaultdict(list)
    for edge in edges:
        merged[family(edge.name), folded[edge.a], folded[edge.b]].append(edge)
    made = []
    for (name, a, b), alike in merged.items():
        fifos = len({e.name for e in alike})
        made.append(_join(name if fifos > 1 else alike[0].name, alike[0].fifo, a, b, fifos))
    return list(dict.fromkeys(folded.values())), made


def _mark_back(nodes: list[_Node]) -> None:
    """Mark the edges that close a cycle (also a node's edge to itself), by depth-first search from the sources."""
    state: dict[_Node, int] = {}

    def visit(node: _Node) -> None:
        state[node] = 1
        for edge in node.out:
            if state.get(edge.b) == 1:
                edge.back = True
            elif edge.b not in state:
                visit(edge.b)
        state[node] = 2

    for node in sorted(nodes, key=lambda n: (n.kind != "host", len(n.into))):
        if node not in state:
            visit(node)


def _layers(nodes: list[_Node]) -> list[list[_Node]]:
    """Longest path from the sources; the host's sink comes last."""
    for _ in nodes:
        for edge in (e for n in nodes for e in n.out if not e.back):
            edge.b.layer = max(edge.b.layer, edge.a.layer + 1)
    last = max(n.layer for n in nodes)
    for node in nodes:
        if node.kind == "host" and node.into:
            node.layer = last
    layers = [[n for n in nodes if n.layer == i] for i in range(last + 1)]
    return [layer for layer in layers if layer]


def _arrange(layers: list[list[_Node]]) -> float:
    """Vertical places: each node near the middle of its neighbours, without overlap. Returns the height."""
    height = max(sum(n.height + 16 for n in layer) for layer in layers)
    for sweep in (layers, layers[1:], list(reversed(layers[:-1])), layers[1:]):
        for layer in sweep:
            middle = {n: _middle(n) for n in layer}
            layer.sort(key=lambda n: middle[n])
            slack = (height - sum(n.height + 16 for n in layer)) / len(layer)
            y = 0.0
            for node in layer:
                node.y = y + (node.height + 16 + slack) / 2
                y += node.height + 16 + slack
    return height


def _middle(node: _Node) -> float:
    ys = [e.a.y for e in node.into if not e.back] + [e.b.y for e in node.out if not e.back]
    return sum(ys) / len(ys) if ys else node.y


class _Graph:
    """One drawing in progress."""

    def __init__(self, nodes: list[_Node], edges: list[_Edge], hues: dict[str, str]) -> None:
        self.nodes, self.edges, self.hues = nodes, edges, hues
        _mark_back(nodes)
        layers = _layers(nodes)
        self.top = 62.0 if any(e.a is e.b for e in edges) else 46.0
        self.height = _arrange(layers)
        self.x: dict[_Node, float] = {}
        right = 22.0
        for layer in layers:
            wide = max(n.width for n in layer)
            self.x |= {n: right + (wide - n.width) / 2 for n in layer}
            right += wide + GAP
        self.around = [e for e in edges if e.back and e.a is not e.b]
        self.canvas = Canvas(max(right - GAP + 22, 480.0), self.top + self.height + 16 + 18 * len(self.around))

    def node(self, node: _Node) -> None:
        x, h = self.x[node], node.height
        y = self.top + node.y - h / 2
        cls = {"host": "box", "mem": "t-gold", "core": "t-blue"}[node.kind]
        if node.count > 1:
            self.canvas.rect(x + 4, y - 4, node.width, h, cls, rx=4)
        self.canvas.rect(
            x, y, node.width, h, cls, hint=f"{node.label} ({node.detail})", rx=12 if node.kind == "host" else 4
        )
        middle = self.top + node.y
        self.canvas.text(x + node.width / 2, middle - 2, fit(node.label, node.width - 8, 10.5), "small bold", "middle")
        self.canvas.text(x + node.width / 2, middle + 11, fit(node.detail, node.width - 8, 9), "tiny faint", "middle")

    def edge(self, edge: _Edge, label: bool) -> None:
        x1, x2 = self.x[edge.a] + edge.a.width, self.x[edge.b]
        y1 = self.top + edge.a.port_y(edge.a.out, edge.name)
        y2 = self.top + edge.b.port_y(edge.b.into, edge.name)
        hue = self.hues[edge.name]
        if edge.back:
            self.loop(edge, x1, x2, hue)
            return
        fans_in = len(edge.a.ports(edge.a.out)) < len(edge.b.ports(edge.b.into))
        bend = GAP * BEND
        from_x = x2 - 8 - bend if fans_in else x1
        middle = from_x + bend / 2
        d = f"M{x1:.1f} {y1:.1f}H{from_x:.1f}C{middle:.1f} {y1:.1f} {middle:.1f} {y2:.1f} {from_x + bend:.1f} {y2:.1f}H{x2 - 5:.1f}"
        self.canvas.path(d, f"wire s-{hue}", edge_text(edge.fifo), stroke_width=1.6)
        self.canvas.arrow_head(x2, y2, "right", f"f-{hue}", 3.5)
        same = [e for e in edge.a.out if e.name == edge.name]
        if label and same[0] is edge:
            at = (x1 + 5, y1 - 4, "") if fans_in else (x2 - 9, y2 - 4, "end")
            self.canvas.text(at[0], at[1], fit(short_text(edge), GAP * (0.96 - BEND * (y1 != y2)), 9), "tiny", at[2])

    def loop(self, edge: _Edge, x1: float, x2: float, hue: str) -> None:
        """An edge back to an earlier layer: around below everything, or above the node where it ends there as well."""
        y1 = y2 = self.top + edge.a.y
        if edge.a is edge.b:
            y1, lane = y1 - edge.a.height / 2, y1 - edge.a.height / 2 - 14
            d, tip = f"M{x1 - 18:.1f} {y1:.1f}V{lane:.1f}H{x2 + 18:.1f}V{y1 - 5:.1f}", (x2 + 18, y1, "down")
        else:
            y2, lane = self.top + edge.b.y, self.top + self.height + 12 + 18 * self.around.index(edge)
            d, tip = f"M{x1:.1f} {y1:.1f}h14V{lane:.1f}H{x2 - 16:.1f}V{y2:.1f}H{x2 - 5:.1f}", (x2, y2, "right")
        self.canvas.path(d, f"wire s-{hue}", edge_text(edge.fifo), stroke_width=1.6)
        self.canvas.arrow_head(*tip, f"f-{hue}", 3.5)
        self.canvas.text((x1 + x2) / 2, lane - 4, fit(short_text(edge), x1 - x2 + 40, 9), "tiny", "middle")

    def draw(self, label: bool) -> None:
        for edge in self.edges:
            self.edge(edge, label)
        for node in self.nodes:
            self.node(node)


def depth_text(fifo: Fifo) -> str:
    """Depth as one number, or the depths of the producer and each consumer."""
    return str(fifo.depth) if isinstance(fifo.depth, int) else "/".join(map(str, fifo.depth))


def edge_text(fifo: Fifo) -> str:
    """``x: 1024 bf16, depth 2``."""
    return f"{fifo.name}: {'×'.join(map(str, fifo.type.shape))} {fifo.type.element}, depth {depth_text(fifo)}"


def short_text(edge: _Edge) -> str:
    """``x · 2 of 1024 bf16``."""
    many = f" × {edge.count}" if edge.count > 1 else ""
    return f"{edge.name}{many} · {depth_text(edge.fifo)} of {'×'.join(map(str, edge.fifo.type.shape))} {edge.fifo.type.element}"


def graph(design: Design, *, title: str | None = None, fold: bool | None = None) -> Picture:
    """The dataflow graph of a design: an edge from each fifo's producer to every consumer.

    The host appears twice, as what fills and what drains. ``fold`` draws nodes that play the same part as one; by default
    when there are many.

    Raises:
        ValueError: if the design has no fifo and no core.
    """
    nodes, edges = _build(design)
    if not nodes:
        raise ValueError("nothing to draw: the design has no fifo and no core")
    if fold or (fold is None and len(nodes) > MANY):
        nodes, edges = _fold(nodes, edges)
    names = list(dict.fromkeys(e.name for e in edges))
    drawing = _Graph(nodes, edges, {name: theme.hue(i) for i, name in enumerate(names)})
    name = title or "Dataflow graph"
    drawing.canvas.text(8, 18, name, "head")
    drawing.canvas.text(8, 33, "Edges: ObjectFifos, with depth and type of object.", "small faint")
    drawing.draw(label=len(edges) <= 40)
    return drawing.canvas.picture(name, _alt(design))


def _alt(design: Design) -> str:
    words = [f"{len(design.cores)} workers and {len(design.fifos)} fifos."]
    for fifo in design.fifos[:16]:
        ends = f"from {_end(design, fifo.producer)} to {', '.join(_end(design, t) for t in fifo.consumers)}"
        words.append(f"{edge_text(fifo)} ({size_text(fifo.type.nbytes)} an object), {ends}.")
    if len(design.fifos) > 16:
        words.append(f"And {len(design.fifos) - 16} more fifos.")
    return " ".join(words)


def _end(design: Design, tile: LogicalTile) -> str:
    if tile.kind == "shim":
        return "the host"
    return next((core.name for core in design.cores if core.tile is tile), str(tile))

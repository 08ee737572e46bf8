"""Layered layout of a small directed graph: who stands in which column, at which height, and which way edges take.

Nodes and edges know nothing of pictures. An edge that skips columns goes through bends, which keep a place for it there.
"""

from __future__ import annotations

from dataclasses import dataclass, field

GAP_Y = 16.0  # px between two nodes of a column


@dataclass(eq=False)
class Node:
    """Something with a label; ``kind`` is ``core``, ``mem``, ``host`` or, for a bend, ``bend``."""

    label: str
    detail: str
    kind: str
    count: int = 1
    layer: int = 0
    y: float = 0.0
    ins: list[Piece] = field(default_factory=list)
    outs: list[Piece] = field(default_factory=list)

    PORT = 17.0  # px between two edges on one side

    @property
    def height(self) -> float:
        if self.kind == "bend":
            return self.PORT
        return max(34.0, self.PORT * max(len(names(self.ins)), len(names(self.outs))) + 4)

    def port_y(self, side: list[Piece], name: str) -> float:
        """The height at which an edge of that name arrives or leaves."""
        ends = names(sorted(side, key=lambda p: (p.b if side is self.outs else p.a).y))
        return self.y + (ends.index(name) - (len(ends) - 1) / 2) * self.PORT


@dataclass(eq=False)
class Edge:
    """A named connection. ``count`` things of a kind may be drawn as one; ``back`` edges close a cycle."""

    name: str
    label: str
    hint: str
    a: Node
    b: Node
    style: str = "fifo"
    count: int = 1
    back: bool = False


@dataclass(eq=False)
class Piece:
    """The part of an edge between two neighbouring columns."""

    edge: Edge
    a: Node
    b: Node


def names(side: list[Piece]) -> list[str]:
    """The different edges on one side of a node, in order."""
    return list(dict.fromkeys(p.edge.name for p in side))


def layout(nodes: list[Node], edges: list[Edge]) -> tuple[list[list[Node]], list[Piece], float]:
    """Columns (with bends), pieces of the edges that lead forward, and the height needed. Marks the edges that lead back."""
    _mark_back(nodes, edges)
    _assign(nodes, edges)
    columns: list[list[Node]] = [[] for _ in range(max(n.layer for n in nodes) + 1)]
    for node in nodes:
        columns[node.layer].append(node)
    pieces = [piece for edge in edges if not edge.back for piece in _pieces(edge, columns)]
    return columns, pieces, _arrange(columns)


def _mark_back(nodes: list[Node], edges: list[Edge]) -> None:
    """Mark the edges that close a cycle (also a node's edge to itself), by depth-first search from the sources."""
    outs: dict[Node, list[Edge]] = {node: [] for node in nodes}
    entered = {edge.b for edge in edges}
    for edge in edges:
        outs[edge.a].append(edge)
    state: dict[Node, int] = {}

    def visit(node: Node) -> None:
        state[node] = 1
        for edge in outs[node]:
            if state.get(edge.b) == 1:
                edge.back = True
            elif edge.b not in state:
                visit(edge.b)
        state[node] = 2

    for node in sorted(nodes, key=lambda n: n in entered):
        if node not in state:
            visit(node)


def _assign(nodes: list[Node], edges: list[Edge]) -> None:
    """Longest path from the sources; what the host drains comes last."""
    forward = [edge for edge in edges if not edge.back]
    for _ in nodes:
        for edge in forward:
            edge.b.layer = max(edge.b.layer, edge.a.layer + 1)
    last = max(n.layer for n in nodes)
    for node in nodes:
        if node.kind == "host" and any(edge.b is node for edge in forward):
            node.layer = last


def _pieces(edge: Edge, columns: list[list[Node]]) -> list[Piece]:
    bends = [Node("", "", "bend", layer=n) for n in range(edge.a.layer + 1, edge.b.layer)]
    for bend in bends:
        columns[bend.layer].append(bend)
    stops = [edge.a, *bends, edge.b]
    made = [Piece(edge, a, b) for a, b in zip(stops, stops[1:])]
    for piece in made:
        piece.a.outs.append(piece)
        piece.b.ins.append(piece)
    return made


def _arrange(columns: list[list[Node]]) -> float:
    """Heights: each node near the middle of its neighbours, without overlap. Returns the height of the tallest column."""
    height = max(sum(n.height + GAP_Y for n in column) for column in columns)
    for sweep in (columns, columns[1:], columns[-2::-1], columns[1:], columns[-2::-1]):
        for column in sweep:
            middle = {n: _middle(n) for n in column}
            column.sort(key=lambda n: middle[n])
            slack = (height - sum(n.height + GAP_Y for n in column)) / len(column)
            y = 0.0
            for node in column:
                node.y = y + (node.height + GAP_Y + slack) / 2
                y += node.height + GAP_Y + slack
    return height


def _middle(node: Node) -> float:
    ys = [p.a.y for p in node.ins] + [p.b.y for p in node.outs]
    return sum(ys) / len(ys) if ys else node.y

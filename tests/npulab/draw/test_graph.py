"""The dataflow graph."""

from __future__ import annotations

import pytest

from npulab import draw
from npulab.draw.layers import Edge, Node, layout
from npusim.devices import device
from npusim.graph import Cascade, Core, Design, Fifo, Flow, LogicalTile
from npusim.ir import Region
from tests.npulab import machines
from tests.npulab.draw.pictures import hints, legible, texts

EVERY = {
    "one worker": lambda: draw.graph(machines.saxpy_design()),
    "split and join": lambda: draw.graph(machines.split_design()),
    "32 workers": lambda: draw.graph(machines.matmul_design()),
    "32 workers, each": lambda: draw.graph(machines.matmul_design(), fold=False),
}


@pytest.mark.parametrize("name", EVERY)
def test_words_neither_overlap_nor_leave_the_picture(name: str) -> None:
    legible(EVERY[name]())


def test_nodes_and_edges() -> None:
    words = texts(EVERY["split and join"]())
    for word in ("host", "split", "join", "worker 0", "worker 3", "in_2 · 2 of 1024 bf16", "state · 2 of 1024 bf16"):
        assert word in words, word


def test_many_workers_of_a_kind_are_one_node() -> None:
    words = texts(EVERY["32 workers"]())
    assert words.count("matmul") == 1 and "× 32" in words and "memB × 32 · 2 of 1024 bf16" in words


def test_the_alternative_names_every_fifo_and_its_ends() -> None:
    alt = EVERY["one worker"]().alt
    assert "x: 1024 bf16, depth 2 (2 KiB an object), from the host to saxpy." in alt
    assert "z: 1024 bf16, depth 2 (2 KiB an object), from saxpy to the host." in alt


def test_a_broadcast_is_labelled_once_and_drawn_to_each() -> None:
    d = machines.saxpy_design()
    other = LogicalTile("core", 0, 3)
    d.cores.append(Core(other, Region.single(), "second"))
    d.fifos[0].consumers.append(other)
    picture = draw.graph(d)
    assert sum(t.startswith("x ·") for t in texts(picture)) == 1
    assert sum(h.startswith("x:") for h in hints(picture)) == 2


def test_cascades_and_explicit_flows_are_edges() -> None:
    d = Design(device("npu1"))
    a, b, c = (LogicalTile("core", 0, row) for row in (4, 3, 2))
    d.cores = [Core(t, Region.single(), n) for t, n in ((a, "a"), (b, "b"), (c, "c"))]
    d.cascades, d.flows = [Cascade(a, b)], [Flow(b, c)]
    picture = draw.graph(d)
    assert "cascade" in texts(picture) and "flow" in texts(picture)
    assert "A cascade from a to b. An explicit stream from b to c." in picture.alt


def test_depths_of_both_ends_are_shown() -> None:
    d = machines.saxpy_design()
    d.fifos[0].depth = (1, 3)
    assert "x · 1/3 of 1024 bf16" in texts(draw.graph(d))


def test_tiles_that_are_not_placed_have_no_coordinates() -> None:
    d = machines.saxpy_design()
    d.cores[0].tile.col = d.cores[0].tile.row = None
    assert "compute tile" in texts(draw.graph(d)) and not any("?" in t for t in texts(draw.graph(d)))


def test_a_machine_is_drawn_by_its_design() -> None:
    machine = machines.saxpy_machine()
    with pytest.raises(ValueError, match="not made from"):
        draw.graph(machine)
    machine.design = machines.saxpy_design()
    assert "saxpy" in texts(draw.graph(machine))


def test_nothing_to_draw_is_refused() -> None:
    with pytest.raises(ValueError, match="nothing to draw"):
        draw.graph(Design(device("npu1")))


def chain(*pairs: tuple[str, str]) -> tuple[dict[str, Node], list[Edge]]:
    nodes: dict[str, Node] = {}
    for name in dict.fromkeys(n for pair in pairs for n in pair):
        nodes[name] = Node(name, "", "core")
    return nodes, [Edge(f"{a}{b}", "", "", nodes[a], nodes[b]) for a, b in pairs]


def test_layers_are_longest_paths_and_long_edges_bend() -> None:
    nodes, edges = chain(("a", "b"), ("b", "c"), ("a", "c"))
    columns, pieces, _ = layout(list(nodes.values()), edges)
    assert [nodes[n].layer for n in "abc"] == [0, 1, 2]
    assert [n.kind for n in columns[1]].count("bend") == 1
    assert len(pieces) == 4


def test_cycles_are_cut_where_they_come_back() -> None:
    nodes, edges = chain(("a", "b"), ("b", "c"), ("c", "b"), ("c", "c"))
    layout(list(nodes.values()), edges)
    assert [e.back for e in edges] == [False, False, True, True]


def test_nodes_of_a_column_do_not_overlap() -> None:
    nodes, edges = chain(*((f"s{i}", f"t{j}") for i in range(4) for j in range(5)))
    columns, _, height = layout(list(nodes.values()), edges)
    for column in columns:
        column.sort(key=lambda n: n.y)
        assert all(a.y + a.height / 2 <= b.y - b.height / 2 for a, b in zip(column, column[1:]))
        assert column[0].y - column[0].height / 2 >= 0 and column[-1].y + column[-1].height / 2 <= height


def test_fifo_between_shim_ends_passes_from_host_to_host() -> None:
    d = Design(device("npu1"))
    shim = LogicalTile("shim", 0, 0)
    d.fifos = [Fifo("through", machines.BF16_1K, shim, [shim])]
    assert texts(draw.graph(d)).count("host") == 2

"""Where tiles go: the placer's rules, on designs that the recorded ones do not cover."""

from __future__ import annotations

import pytest

from npusim.errors import CapacityError, DesignError
from npusim.graph import Buffer, LogicalTile
from npusim.machine import Coord
from npusim.place import place
from npusim.place.tiles import place_tiles
from tests.npusim.place.build import I32, Maker, one_core


def core(col: int | None = None, row: int | None = None) -> LogicalTile:
    return LogicalTile("core", col, row)


def workers(maker: Maker, tiles: list[LogicalTile]) -> None:
    """A worker on each tile, with an input of its own."""
    for i, tile in enumerate(tiles):
        maker.worker(tile, [maker.fifo(f"x{i:02}", None, tile)])


def test_column_by_column_from_the_bottom() -> None:
    maker, tiles = Maker("npu1"), [core() for _ in range(6)]
    workers(maker, tiles)
    where = place_tiles(maker.design())
    assert [where[t] for t in tiles] == [(0, 2), (0, 3), (0, 4), (0, 5), (1, 2), (1, 3)]


def test_pinned_tiles_are_kept_free_for_their_workers() -> None:
    maker, tiles = Maker(), [core(), core(0, 2), core(), core(None, 2)]
    workers(maker, tiles)
    where = place_tiles(maker.design())
    assert [where[t] for t in tiles] == [(0, 3), (0, 2), (0, 4), (1, 2)]


def test_too_many_workers() -> None:
    maker = Maker("npu1_1col")
    workers(maker, [core() for _ in range(5)])
    with pytest.raises(CapacityError, match="5 compute tiles are needed, but npu1_1col has 4"):
        place(maker.design())


def test_a_hungry_worker_gets_neighbours() -> None:
    """Three inputs from other workers and two channels: one of the three must come from shared memory."""
    maker, middle, makers = Maker(), core(), [core() for _ in range(3)]
    inputs = [maker.fifo(f"m{i}", tile, middle) for i, tile in enumerate(makers)]
    maker.worker(middle, inputs, [maker.fifo("y", middle)])
    for i, (tile, fifo) in enumerate(zip(makers, inputs, strict=True)):
        maker.worker(tile, [maker.fifo(f"x{i}", None, tile)], [fifo])
    machine = place(maker.design())
    here = machine.cores[0].tile
    assert here == (0, 3)  # an inner tile, with neighbours on both sides
    assert sum(c.tile == here and c.direction == "S2MM" for c in machine.channels) <= 2


def test_a_free_worker_follows_its_cascade() -> None:
    maker, first, second = Maker(), core(1, 3), core()
    maker.worker(first, [maker.fifo("a", None, first)])
    maker.worker(second, [maker.fifo("b", None, second)], [maker.fifo("y", second)])
    maker.cascade(first, second)
    assert place(maker.design()).cascades[0].dest == (1, 2)


def test_a_free_worker_follows_a_shared_buffer() -> None:
    maker, owner, user = Maker(), core(2, 4), core()
    table = Buffer("table", I32, owner)
    maker.result.buffers.append(table)
    maker.worker(owner, [maker.fifo("a", None, owner)])
    maker.worker(user, [maker.fifo("b", None, user)], uses=[table])
    assert place(maker.design()).cores[1].tile == (2, 3)


def test_unsatisfiable_neighbours() -> None:
    maker, first, second, third = Maker(), core(0, 2), core(1, 2), core()
    maker.worker(third, [maker.fifo("c", None, third)])
    workers(maker, [first, second])
    maker.cascade(first, third)
    maker.cascade(third, second)
    with pytest.raises(
        DesignError, match=r"(?s)its cascade, its shared buffers or its fifos.*already placed: compute tile \(0,2\)"
    ):
        place(maker.design())


def test_shims_and_memtiles_stand_under_the_cores_they_serve() -> None:
    maker, tile = Maker(), core(5, 4)
    mem = LogicalTile("mem")
    x = maker.fifo("x", None, mem)
    f = maker.fifo("f", mem, tile)
    maker.link([x], [f])
    maker.worker(tile, [f], [maker.fifo("y", tile)])
    machine = place(maker.design())
    assert {b.tile for b in machine.buffers if b.fifo == "x"} == {(5, 1)}
    assert {c.tile for c in machine.host_channels.values()} == {(5, 0)}


def test_shims_move_aside_when_their_channels_run_out() -> None:
    maker, tiles = Maker("npu1"), [core(1, row) for row in range(2, 6)]
    workers(maker, tiles)
    columns = sorted(c.tile.col for c in place(maker.design()).host_channels.values())
    assert columns == [0, 1, 1, 2]  # two a tile; then the nearest and least used, the left one first


@pytest.mark.parametrize(
    ("tile", "words"),
    [
        (LogicalTile("core", 9, 2), r"column index \(9\) must be less than the number of columns in the device \(4\)"),
        (LogicalTile("core", 0, 1), r"\(0,1\), but row 1 holds MemTiles"),
        (LogicalTile("core", 0, 0), r"row 0 holds shim tiles"),
    ],
)
def test_tiles_that_do_not_exist(tile: LogicalTile, words: str) -> None:
    with pytest.raises(DesignError, match=words):
        place(one_core("npu1", tile=tile)[0].design())


def test_two_logical_tiles_at_one_place_are_one_tile() -> None:
    """A buffer pinned to the worker's coordinates is in the worker's own memory."""
    maker, tile = Maker(), core(1, 3)
    table = Buffer("table", I32, core(1, 3))
    maker.result.buffers.append(table)
    maker.worker(tile, [maker.fifo("x", None, tile)], [maker.fifo("y", tile)], uses=[table])
    machine = place(maker.design())
    assert {b.tile for b in machine.buffers} == {Coord(1, 3)}
    assert [b.name for b in machine.cores[0].buffers.values()] == ["table"]

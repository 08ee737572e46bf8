"""What transfers of MemTiles wait for: reads for writes, writes for both, others for nobody."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from npusim.air.moves import Walk
from npusim.air.order import Orderer, overlap
from npusim.air.transfers import FedEnd, RelayTransfer
from npusim.ir import UNKNOWN
from npusim.machine import BufferDescriptor, Coord, DmaChannel, MemBuffer
from npusim.report import ChannelUse
from npusim.types import MemRefType

TILE = Coord(0, 1)
BUFFER = MemBuffer("b", TILE, MemRefType((64,), "i32", space=1), 0)
WHOLE, LEFT, RIGHT = Walk(0, ((64, 1),)), Walk(0, ((32, 1),)), Walk(32, ((32, 1),))


def end(index: int, direction: str = "MM2S") -> FedEnd:
    channel = DmaChannel(TILE, direction, index)
    return FedEnd(channel, ChannelUse(channel), [])


def waits(*steps):
    """Indices of the steps (end, walk, writes) that each waits for, as (end, number)."""
    orderer, found = Orderer({}), []
    for at, walk, writes in steps:
        transfer = RelayTransfer(at, BufferDescriptor(BUFFER, walk.offset, walk.length, walk.dims), None, UNKNOWN, "x")
        orderer.add(transfer, BUFFER, walk, writes)
        found.append(dict(transfer.after))
    return found


def test_a_read_waits_for_the_write_and_the_next_write_for_the_read():
    into, out = end(0, "S2MM"), end(0)
    assert waits((into, WHOLE, True), (out, WHOLE, False), (into, WHOLE, True), (out, WHOLE, False)) == [
        {},
        {into: 1},
        {out: 1},
        {into: 2},
    ]


def test_reads_do_not_wait_for_each_other():
    into, a, b = end(0, "S2MM"), end(0), end(1)
    assert waits((into, WHOLE, True), (a, WHOLE, False), (b, WHOLE, False)) == [{}, {into: 1}, {into: 1}]


def test_parts_are_their_own():
    left, right, out = end(0, "S2MM"), end(1, "S2MM"), end(0)
    assert waits((left, LEFT, True), (right, RIGHT, True), (out, LEFT, False), (out, WHOLE, False)) == [
        {},
        {},
        {left: 1},
        {left: 1, right: 1},
    ]


walks = st.builds(
    lambda offset, a, sa, b, sb: Walk(offset, ((a, sa), (b, sb))),
    st.integers(0, 20), st.integers(1, 4), st.integers(1, 9), st.integers(1, 4), st.integers(1, 5),
)  # fmt: skip


def elements(walk: Walk) -> set[int]:
    (a, sa), (b, sb) = walk.dims
    return {walk.offset + i * sa + j * sb for i in range(a) for j in range(b)}


@settings(max_examples=200, deadline=None)
@given(walks, walks)
def test_overlap_is_exact_for_small_walks(a, b):
    assert overlap(a, b) == bool(elements(a) & elements(b))
    assert a.last == max(elements(a))
    assert np.prod([n for n, _ in a.dims]) == a.length

"""Fifo lowering beyond the recorded designs: depths, shared memory, links, repeats, initial values, pins, ports.

The expected structures follow the rules of the real lowering as read from it (mlir-aie, August 2026).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from npusim.errors import CapacityError, DesignError, UnsupportedError
from npusim.graph import (
    Buffer,
    ChannelProgram,
    Descriptor,
    Fifo,
    Flow,
    Lock,
    LockAction,
    LogicalTile,
    TileDma,
)
from npusim.ir import Op
from npusim.machine import Coord, DmaChannel, Machine
from npusim.place import place
from tests.npusim.place.build import I32, Maker, memref, one_core


def core(col: int | None = None, row: int | None = None) -> LogicalTile:
    return LogicalTile("core", col, row)


def ring(machine: Machine, fifo: str) -> list[str]:
    return [b.name for b in machine.buffers if b.fifo == fifo]


def channel(machine: Machine, fifo: str, direction: str, tile: tuple[int, int]) -> DmaChannel:
    return next(c for c in machine.channels if (c.fifo, c.direction, c.tile) == (fifo, direction, tile))


@pytest.mark.parametrize(
    ("depth", "window", "buffers"),
    [(2, 1, 2), (20, 1, 2), (1, 1, 1), (4, 3, 4), (8, 3, 4), ((2, 5), 1, 5), ((2, 1), 1, 1)],
)
def test_depth_of_a_consumer_on_a_core(depth: Any, window: int, buffers: int) -> None:
    """One number shrinks to the largest acquire plus one; a number for each end is taken literally."""
    maker, _, _ = one_core(x={"depth": depth}, y={"depth": (max(window, 2), 2)}, window=window)
    machine = place(maker.design())
    assert len(ring(machine, "x")) == buffers
    assert machine.cores[0].ports["x", False].depth == buffers


def test_a_literal_depth_shrinks_under_a_layout_transform() -> None:
    """As in the real lowering, which computes it anew for an end with dims_from_stream."""
    maker, _, _ = one_core(x={"depth": (2, 6), "from_stream": (((4, 4), (4, 1)),)})
    assert len(ring(place(maker.design()), "x")) == 2


@pytest.mark.parametrize(
    ("producer", "consumer", "home"),
    [
        ((1, 3), (1, 4), (1, 3)),  # north: both memories can be reached, the producer's is taken
        ((1, 4), (1, 3), (1, 4)),
        ((1, 3), (2, 3), (1, 3)),  # east: the consumer reaches west, into the producer's memory
        ((2, 3), (1, 3), (1, 3)),  # west: only the consumer's memory can be reached by both
        ((1, 3), (2, 4), None),
        ((1, 2), (1, 4), None),
    ],
)
def test_shared_memory_between_neighbours(
    producer: tuple[int, int], consumer: tuple[int, int], home: tuple[int, int] | None
) -> None:
    maker, first, second = Maker("npu1"), core(*producer), core(*consumer)
    mid = maker.fifo("mid", first, second, depth=3)
    maker.worker(first, [maker.fifo("x", None, first)], [mid])
    maker.worker(second, [mid], [maker.fifo("y", second)])
    machine = place(maker.design())
    homes = [b.tile for b in machine.buffers if b.fifo == "mid"]
    by_dma = [c for c in machine.channels if c.fifo == "mid"]
    if home is None:
        assert homes == [consumer] * 2 + [producer] * 2
        assert len(by_dma) == 2
        return
    assert homes == [home] * 3  # in shared memory there is one ring of the full depth
    assert not by_dma
    ports = {c.tile: c.ports for c in machine.cores}
    give, take = ports[Coord(*producer)]["mid", True], ports[Coord(*consumer)]["mid", False]
    assert give.buffers == take.buffers
    assert give.acquire_lock is take.release_lock
    assert give.release_lock is take.acquire_lock
    assert give.acquire_lock is not None
    assert (give.acquire_lock.init, give.acquire_lock.counts) == (3, "free")


def test_a_west_fifo_with_a_transform_needs_via_dma() -> None:
    def design(**options: Any) -> Machine:
        maker, first, second = Maker(), core(2, 3), core(1, 3)
        mid = maker.fifo("mid", first, second, from_stream=(((4, 1), (4, 4)),), **options)
        maker.worker(first, [maker.fifo("x", None, first)], [mid])
        maker.worker(second, [mid], [maker.fifo("y", second)])
        return place(maker.design())

    with pytest.raises(DesignError, match="via_DMA=True"):
        design()
    assert len([c for c in design(via_dma=True).channels if c.fifo == "mid"]) == 2


def test_a_self_loop_lives_in_its_own_memory() -> None:
    maker, tile = Maker(), core()
    loop = maker.fifo("loop", tile, tile, depth=2)
    maker.worker(tile, [maker.fifo("x", None, tile), loop], [maker.fifo("y", tile), loop])
    machine = place(maker.design())
    assert ring(machine, "loop") == ["loop_buff_0", "loop_buff_1"]
    assert {("loop", True), ("loop", False)} <= set(machine.cores[0].ports)
    assert not [c for c in machine.channels if c.fifo == "loop"]


@pytest.mark.parametrize(("delegate", "works"), [((1, 4), True), ((0, 3), False)])
def test_delegate_tile(delegate: tuple[int, int], works: bool) -> None:
    maker, first, second = Maker(), core(1, 3), core(1, 4)
    mid = maker.fifo("mid", first, second, delegate_tile=core(*delegate))
    maker.worker(first, [maker.fifo("x", None, first)], [mid])
    maker.worker(second, [mid], [maker.fifo("y", second)])
    if works:
        assert {b.tile for b in place(maker.design()).buffers if b.fifo == "mid"} == {delegate}
    else:
        with pytest.raises(DesignError, match="no shared memory access to delegate tile's memory module"):
            place(maker.design())


def forwarded(**options: Any) -> tuple[Maker, Fifo, Fifo]:
    maker, tile, mem = Maker(), core(), LogicalTile("mem")
    x = maker.fifo("x", None, mem, **options.pop("into", {}))
    f = maker.fifo("f", mem, tile, **options)
    maker.link([x], [f])
    maker.worker(tile, [f], [maker.fifo("y", tile)])
    return maker, x, f


def test_a_forward_shares_one_ring() -> None:
    machine = place(forwarded()[0].design())
    assert [b.name for b in machine.buffers if b.tile.row == 1] == ["x_cons_buff_0", "x_cons_buff_1"]
    into, out = channel(machine, "x", "S2MM", (0, 1)), channel(machine, "f", "MM2S", (0, 1))
    assert [d.buffer for d in into.descriptors] == [d.buffer for d in out.descriptors]
    assert into.descriptors[0].acquires[0].lock is out.descriptors[0].releases[0].lock


def test_a_single_buffer_repeats_in_hardware() -> None:
    """One descriptor and a repeating channel instead of a chain of copies."""
    maker, _, _ = forwarded(into={"depth": (2, 1)}, repeat_count=4, depth=(1, 2))
    machine = place(maker.design())
    out = channel(machine, "f", "MM2S", (0, 1))
    assert (len(out.descriptors), out.repeat) == (1, 3)
    into = channel(machine, "x", "S2MM", (0, 1)).descriptors[0]
    assert [(u.value, u.lock.init) for u in (*into.acquires, *into.releases)] == [(4, 4), (4, 0)]


def test_a_repeating_producer_on_a_core() -> None:
    """The chain copies each buffer; the core's port counts every object that often."""
    machine = place(one_core(y={"repeat_count": 3})[0].design())
    out = channel(machine, "y", "MM2S", (0, 2))
    assert [d.buffer.name for d in out.descriptors] == ["y_buff_0"] * 3 + ["y_buff_1"] * 3
    port = machine.cores[0].ports["y", True]
    assert (port.factor, port.acquire_lock and port.acquire_lock.init) == (3, 6)


def test_iteration_count_ends_the_chain() -> None:
    machine = place(forwarded(iter_count=5)[0].design())
    out = channel(machine, "f", "MM2S", (0, 1))
    assert out.repeat == 4
    assert [d.next for d in out.descriptors] == [1, None]


def test_initial_values_start_full() -> None:
    values = [np.full(16, i, np.int32) for i in range(2)]
    machine = place(one_core(y={"init_values": values})[0].design())
    buffers = [b for b in machine.buffers if b.fifo == "y"]
    assert [b.initial is v for b, v in zip(buffers, values, strict=True)] == [True, True]
    locks = {lock.counts: lock.init for lock in machine.locks if lock.fifo == "y" and lock.tile.row == 2}
    assert locks == {"free": 0, "full": 2}


def test_initial_values_sent_round_and_round_need_no_locks() -> None:
    """Nothing refills them, so the producer's side waits for nothing."""
    maker, tile, mem = Maker(), core(), LogicalTile("mem")
    values = [np.zeros(16, np.int32)] * 2
    w = maker.fifo("w", mem, tile, init_values=values, iter_count=7)
    maker.worker(tile, [w], [maker.fifo("y", tile)])
    machine = place(maker.design())
    out = channel(machine, "w", "MM2S", (0, 1))
    assert [(d.acquires, d.releases) for d in out.descriptors] == [((), ())] * 2
    assert not [lock for lock in machine.locks if lock.tile.row == 1]


def test_without_synchronisation_there_are_no_locks() -> None:
    machine = place(one_core(x={"disable_synchronization": True})[0].design())
    assert not [lock for lock in machine.locks if lock.fifo == "x"]
    port = machine.cores[0].ports["x", False]
    assert (port.acquire_lock, port.release_lock) == (None, None)


def test_a_consumer_of_smaller_objects() -> None:
    machine = place(one_core(type=memref(64), x={"consumer_type": memref(16)})[0].design())
    assert {b.type.size for b in machine.buffers if b.fifo == "x"} == {16}
    assert {d.length for d in channel(machine, "x", "S2MM", (0, 2)).descriptors} == {16}


def test_pinned_channels_come_first() -> None:
    maker, tile = Maker(), core()
    a = maker.fifo("a", None, tile)
    b = maker.fifo("b", None, tile, consumer_channels=(0,))
    maker.worker(tile, [a, b], [maker.fifo("y", tile, producer_channel=1)])
    machine = place(maker.design())
    used = {(c.fifo, c.direction): c.index for c in machine.channels if c.tile.row == 2}
    assert used == {("a", "S2MM"): 1, ("b", "S2MM"): 0, ("y", "MM2S"): 1}


def test_a_pin_that_is_taken() -> None:
    maker, tile = Maker(), core()
    fifos = [maker.fifo(n, None, tile, consumer_channels=(1,)) for n in "ab"]
    maker.worker(tile, fifos, [maker.fifo("y", tile)])
    with pytest.raises(DesignError, match=r"channel S2MM 1 of compute tile .* it is taken by fifo 'a'"):
        place(maker.design())


def test_a_core_may_not_use_the_fifos_of_its_own_link() -> None:
    maker, tile = Maker(), core(0, 2)
    x, f = maker.fifo("x", None, tile), maker.fifo("f", tile)
    maker.link([x], [f])
    maker.worker(tile, [x], [])
    with pytest.raises(DesignError, match="currently cannot access objectFifo used in ObjectFifoLinkOp"):
        place(maker.design())


def explicit(maker: Maker, tile: LogicalTile, direction: Any, index: int, **options: Any) -> None:
    """A one-descriptor DMA program that loops, guarded by two locks."""
    buffer, free, full = Buffer("b", I32, tile), Lock("free", tile, 1), Lock("full", tile, 0)
    acquire, release = (free, full) if direction == "S2MM" else (full, free)
    chain = [Descriptor(buffer, acquires=[LockAction(acquire)], releases=[LockAction(release)], next=0, **options)]
    maker.result.buffers.append(buffer)
    maker.result.locks += [free, full]
    maker.result.tile_dmas.append(TileDma(tile, [ChannelProgram(direction, index, chain)]))


@pytest.mark.parametrize(
    ("device", "kind", "direction", "value", "words"),
    [
        ("npu2", "mem", "MM2S", 7, None),
        ("npu1", "mem", "MM2S", 0, None),
        ("npu1", "mem", "MM2S", 7, "padded with 7, but npu1 pads with zeros only"),
        ("npu2", "mem", "S2MM", 0, r"padded by S2MM 0 of MemTile \(0,1\), but only what a MemTile sends"),
        ("npu2", "core", "MM2S", 0, "Padding is only supported by memtile dma bds"),
    ],
)
def test_padding_in_the_explicit_layer(device: str, kind: Any, direction: Any, value: int, words: str | None) -> None:
    maker, _, _ = one_core(device, tile=core(1, 2))
    tile, far = LogicalTile(kind, 0, 1 if kind == "mem" else 3), core(0, 2)
    padded = {"pad": ((2, 2),), "pad_value": value, "dims": ((12, 1),)}
    explicit(maker, tile, direction, 0, **padded)
    explicit(maker, far, "S2MM" if direction == "MM2S" else "MM2S", 0)
    maker.result.flows.append(Flow(tile, far) if direction == "MM2S" else Flow(far, tile))
    if words is None:
        place(maker.design())
    else:
        with pytest.raises(DesignError, match=words):
            place(maker.design())


def test_the_explicit_layer_comes_before_fifos() -> None:
    """A fifo takes the channel and descriptors that the design's own program leaves."""
    tile = core(0, 2)
    maker, _, _ = one_core(tile=tile)
    explicit(maker, tile, "S2MM", 0)
    shim = LogicalTile("shim", 0, 0)
    maker.result.flows.append(Flow(shim, tile, source_channel=1, shim_symbol="feed"))
    maker.transfer("feed")
    machine = place(maker.design())
    own = next(c for c in machine.channels if c.fifo is None)
    assert [(d.buffer.name, d.bd_id, d.next, d.length) for d in own.descriptors] == [("b", 0, 0, 16)]
    assert own.descriptors[0].acquires[0].lock.name == "free"
    fifo = channel(machine, "x", "S2MM", (0, 2))
    assert (fifo.index, [d.bd_id for d in fifo.descriptors]) == (1, [1, 2])
    assert (machine.host_channels["feed"].index, machine.host_channels["x"].index) == (1, 0)
    assert [(r.name, [str(d) for d in r.dests]) for r in machine.routes if r.name == "feed"] == [
        ("feed", ["S2MM 0 of tile (0,2)"])
    ]


def test_a_core_dma_reaches_its_own_tile_only() -> None:
    maker, _, _ = one_core(tile=core(0, 2))
    explicit(maker, core(0, 2), "S2MM", 1)
    maker.result.buffers[0].tile = core(0, 3)
    with pytest.raises(DesignError, match="Core tile DMAs can only access a buffer in the same tile"):
        place(maker.design())


def test_lock_and_descriptor_ids_of_the_design_are_kept() -> None:
    maker, _, _ = one_core(tile=core(0, 2))
    explicit(maker, core(0, 2), "MM2S", 1, bd_id=5)
    maker.result.locks[0].lock_id = 1
    machine = place(maker.design())
    ids = {lock.name: lock.lock_id for lock in machine.locks if lock.tile.row == 2}
    assert ids["free"] == 1
    assert sorted(ids.values()) == list(range(6))
    assert next(c for c in machine.channels if c.fifo is None).descriptors[0].bd_id == 5


def test_packet_flows_are_named_as_unsupported() -> None:
    maker, _, _ = one_core(tile=core(0, 2))
    maker.result.flows.append(Flow(core(0, 3), core(0, 4), packet_id=3))
    with pytest.raises(UnsupportedError, match="packet-switched"):
        place(maker.design())


def test_values_of_a_body_are_bound() -> None:
    maker, tile, other = Maker(), core(0, 3), core(0, 2)
    table, ready = Buffer("table", I32, other), Lock("ready", tile, 0)
    maker.result.buffers.append(table)
    maker.result.locks.append(ready)
    worker = maker.worker(tile, [maker.fifo("x", None, tile)], [maker.fifo("y", tile)], uses=[table])
    one = Op.make("arith.constant", results=["i32"], value=1)
    worker.body.entry.ops[:0] = [one, Op.make("aie.use_lock", [ready.value, one.result], action=0)]
    program = place(maker.design()).cores[0]
    assert [(b.name, b.tile) for b in program.buffers.values()] == [("table", (0, 2))]
    assert program.locks[ready.value].name == "ready"


def test_the_memory_of_a_tile_without_a_core_starts_at_0() -> None:
    maker, tile = Maker(), core(0, 3)
    maker.result.buffers.append(Buffer("table", I32, core(0, 2)))
    maker.worker(tile, [maker.fifo("x", None, tile)], [maker.fifo("y", tile)])
    machine = place(maker.design())
    assert next(b.address for b in machine.buffers if b.name == "table") == 0


def test_a_buffer_larger_than_a_bank_is_placed_in_sequence() -> None:
    maker, _, _ = one_core(type=memref(1024))
    maker.result.buffers.append(Buffer("big", memref(6000), maker.cores[0].tile))
    machine = place(maker.design())
    assert [(b.name, b.address, b.bank) for b in sorted(machine.buffers, key=lambda b: b.address)] == [
        ("big", 1024, None),
        ("y_buff_0", 25024, None),
        ("y_buff_1", 29120, None),
        ("x_cons_buff_0", 33216, None),
        ("x_cons_buff_1", 37312, None),
    ]


def test_a_fixed_address_is_kept_and_not_overlaid() -> None:
    maker, _, _ = one_core()
    maker.result.buffers.append(Buffer("table", I32, maker.cores[0].tile, address=1024))
    machine = place(maker.design())
    spots = sorted((b.address, b.address + b.type.nbytes) for b in machine.buffers)
    assert next(b.address for b in machine.buffers if b.name == "table") == 1024
    assert all(a[1] <= b[0] for a, b in zip(spots, spots[1:], strict=False))


def test_memtile_overflow() -> None:
    """On one MemTile of two columns: the neighbour takes what it can, then there is a limit."""
    maker, mem = Maker("npu1_1col"), LogicalTile("mem")
    kind = memref(48 * 1024)
    x, y = maker.fifo("x", None, mem, kind, depth=3), maker.fifo("y", mem, None, kind, depth=3)
    maker.link([x], [y])
    with pytest.raises(
        CapacityError, match=r"MemTile \(0,1\) needs 589824 bytes of data memory, but has 524288 bytes \(512 KiB"
    ):
        place(maker.design())


def test_a_compute_tile_without_a_worker_forwards_by_dma() -> None:
    """Through the memory of a core that runs nothing: a ring of the declared depth from address 0."""
    maker, middle, end = Maker(), core(0, 2), core(0, 4)
    x, f = maker.fifo("x", None, middle, depth=3), maker.fifo("f", middle, end)
    maker.link([x], [f])
    maker.worker(end, [f], [maker.fifo("y", end)])
    machine = place(maker.design())
    here = [b for b in machine.buffers if b.tile == (0, 2)]
    assert [(b.name, b.address) for b in here] == [
        ("x_cons_buff_0", 0),
        ("x_cons_buff_1", 16384),
        ("x_cons_buff_2", 32768),
    ]
    assert [c.tile for c in machine.cores] == [(0, 4)]
    assert len(channel(machine, "x", "S2MM", (0, 2)).descriptors) == 3

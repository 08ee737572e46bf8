"""The explicit layer: flows, locks, DMA programs, and the functions of the aie and aiex dialects beside them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from npusim import graph
from npusim.errors import DesignError, UnsupportedError
from npusim.frontends.iron.buffer import Buffer
from npusim.frontends.iron.device import NPU2, Tile
from npusim.frontends.iron.dialects_aie import EndOp, bds, buffer, dma_bd, dma_start, flow, lock, mem, next_bd
from npusim.frontends.iron.dialects_aiex import dma_configure_task
from npusim.frontends.iron.enums import AIETileType, DMAChannelDir, LockAction, WireBundle
from npusim.frontends.iron.flow import Flow, PacketDest, PacketFlow
from npusim.frontends.iron.hosttasks import (
    dma_await_task,
    dma_free_task,
    dma_start_task,
    shim_dma_bd,
    shim_dma_single_bd_task,
)
from npusim.frontends.iron.lock import Lock, use_lock
from npusim.frontends.iron.program import Program
from npusim.frontends.iron.resolvable import Resolvable
from npusim.frontends.iron.runtime import Runtime
from npusim.frontends.iron.tile_dma import Acquire, Bd, BdIteration, DmaChannel, Release, TileDma
from npusim.frontends.iron.worker import Worker
from tests.npusim.frontends.tracer import array, resolve

S2MM, MM2S = DMAChannelDir.S2MM, DMAChannelDir.MM2S


def tile(col: int = 0, row: int = 2) -> Tile:
    kinds = (AIETileType.ShimNOCTile, AIETileType.MemTile, AIETileType.CoreTile)
    return Tile(col, row, tile_type=kinds[min(row, 2)])


def explicit(*things: Any, seq: Any = None, args: Any = (), workers: Any = ()) -> graph.Design:
    """A design of these flows, locks and DMA programs."""
    rt = Runtime(seq or (lambda *a: None), list(args))
    for thing in things:
        add = {Lock: rt.add_lock, TileDma: rt.add_tile_dma}.get(type(thing), rt.add_flow)
        add(thing)
    return Program(NPU2(), rt, list(workers)).resolve_program().design


# -- flows


def test_flows() -> None:
    a, b = tile(0, 2), tile(1, 1)
    design = explicit(Flow(a, b, src_channel=1, dst_port=WireBundle.Core), Flow(b, a))
    first, second = design.flows
    assert (first.source, first.dest) == (second.dest, second.source) == (design.tiles[0], design.tiles[1])
    assert (first.source_port, first.source_channel, first.dest_port, first.dest_channel) == ("DMA", 1, "Core", 0)
    with pytest.raises(TypeError):
        Flow(a, b, WireBundle.DMA)  # type: ignore[misc]


def test_packet_flows() -> None:
    a, b, c = tile(0, 2), tile(1, 2), tile(2, 2)
    design = explicit(PacketFlow(5, a, b, extra_dsts=[PacketDest(c, channel=1)]))
    assert [(f.packet_id, f.dest.col, f.dest_channel) for f in design.flows] == [(5, 1, 0), (5, 2, 1)]
    with pytest.raises(UnsupportedError, match="keep_pkt_header"):
        PacketFlow(1, a, b, keep_pkt_header=True)


def test_named_shim_ends() -> None:
    shim, core = tile(0, 0), tile(0, 2)
    design = explicit(Flow(shim, core, shim_symbol="in"), Flow(core, shim, shim_symbol="out"))
    assert [f.shim_symbol for f in design.flows] == ["in", "out"]
    with pytest.raises(DesignError, match="needs a shim tile"):
        explicit(Flow(tile(0, 2), tile(1, 2), shim_symbol="in"))


# -- locks


def test_locks() -> None:
    first = Lock(tile(), name=None)
    number = int(first.name.removeprefix("lock_"))
    assert Lock(tile()).name == f"lock_{number + 1}"
    design = explicit(Lock(tile(), lock_id=3, init=2, name="mine"))
    made = design.locks[0]
    assert (made.name, made.init, made.lock_id) == ("mine", 2, 3)


def test_locks_in_a_core() -> None:
    t = tile()
    mine = Lock(t, name="mine")

    def core(k: Lock) -> None:
        k.acquire()
        k.acquire_exact(2)
        k.release(3)

    design = explicit(mine, workers=[Worker(core, [mine], tile=t)])
    uses = [o for o in design.cores[0].body.entry.ops[3].regions[0].entry.ops if o.name == "aie.use_lock"]
    assert [(o.attrs["action"], o.operands[1].owner.attrs["value"]) for o in uses] == [(2, 1), (0, 2), (1, 3)]
    assert all(o.operands[0] is design.locks[0].value for o in uses)


def test_locks_outside_of_their_place() -> None:
    mine = Lock(tile(), name="mine")
    with pytest.raises(DesignError, match=r"'mine'.*add_lock"):
        mine.acquire()
    with pytest.raises(DesignError, match=r"'mine'.*add_lock"):
        resolve(lambda a, b: mine.release())
    with pytest.raises(TypeError, match="needs a lock of the design"):
        resolve(lambda a, b: use_lock(mine, LockAction.Acquire))
    with pytest.raises(UnsupportedError, match="blocking="):
        resolve(lambda a, b: use_lock(mine, LockAction.Acquire, blocking=False))


# -- DMA programs


def test_tile_dma() -> None:
    t = tile(0, 1)
    buf, free, full = Buffer(array(8), name="buf", tile=t), Lock(t, init=1), Lock(t)
    programs = TileDma(
        t,
        [
            DmaChannel(
                S2MM, 0, [Bd(buf, length=6, acquires=[Acquire(free)], releases=[Release(full, 2)], next=1), Bd(buf)]
            ),
            DmaChannel(
                MM2S,
                3,
                [Bd(buf, 2, sizes=[2, 3], strides=[4, 1], next=None, packet=(0, 7), pad_dimensions=[(0, 0), (1, 1)])]
                + [Bd(buf, acquires=[Acquire(full, 2, False)], next=0)],
                pad_value=9,
            ),
        ],
    )
    assert programs.all_buffers_and_locks() == ([buf], [free, full])
    design = explicit(free, full, programs)
    (made,) = design.tile_dmas
    assert made.tile is design.buffers[0].tile
    read, write = made.channels
    assert [(c.direction, c.index) for c in (read, write)] == [("S2MM", 0), ("MM2S", 3)]
    first, second = read.descriptors
    assert (first.offset, first.length, first.next, second.next) == (0, 6, 1, 1)
    assert [(a.lock.name, a.value, a.equal) for a in first.acquires] == [(free.name, 1, False)]
    assert [(r.lock.name, r.value) for r in first.releases] == [(full.name, 2)]
    third, fourth = write.descriptors
    assert (third.offset, third.dims, third.next, third.packet_id, third.pad, third.pad_value) == (
        (2, ((2, 4), (3, 1)), None, 7, ((0, 0), (1, 1)), 9)
    )
    assert (fourth.acquires[0].equal, fourth.next, fourth.pad_value) == (True, 0, 0)


def one_bd(**given: Any) -> Any:
    t = tile(0, 1)
    return explicit(TileDma(t, [DmaChannel(MM2S, 0, [Bd(Buffer(array(8), tile=t), **given)], given.pop("_pad", 0))]))


@pytest.mark.parametrize(
    ("given", "kind", "words"),
    [
        ({"next": 1}, DesignError, "Bd.next is 1, but there are 1"),
        ({"next": "other"}, DesignError, "'self', a number or None"),
        ({"sizes": [4], "strides": []}, DesignError, "as many strides"),
        ({"sizes": [4.5], "strides": [1]}, TypeError, "are ints"),
        ({"pad_dimensions": [[1, 1]]}, DesignError, "list of tuples"),
        ({"iteration": BdIteration(2, 4)}, UnsupportedError, "iteration"),
    ],
)
def test_descriptors_are_checked(given: Any, kind: Any, words: str) -> None:
    with pytest.raises(kind, match=words):
        one_bd(**given)


def test_pad_values_need_paddings() -> None:
    t = tile(0, 1)
    with pytest.raises(DesignError, match="none of its descriptors has pad_dimensions"):
        explicit(TileDma(t, [DmaChannel(MM2S, 0, [Bd(Buffer(array(8), tile=t))], pad_value=1)]))
    t = tile(0, 1)
    mixed = [Bd(Buffer(array(8, d), tile=t), pad_dimensions=[(1, 1)]) for d in (np.int8, np.int32)]
    with pytest.raises(DesignError, match="one element size only"):
        explicit(TileDma(t, [DmaChannel(MM2S, 0, mixed, pad_value=1)]))


# -- functions of the dialects


class Sender(Resolvable):
    """Its own buffer on a MemTile, sent over and over to a buffer of a compute tile, which is handed to the worker."""

    def __init__(self, chain: Any = None) -> None:
        self.memtile, self.core, self.chain = tile(0, 1), tile(0, 2), chain

    def tiles(self) -> list[Any]:
        return [self.memtile, self.core]

    def resolve(self, loc: Any = None, ip: Any = None) -> None:
        source, dest = self.memtile.op, self.core.op
        self.empty, self.full = lock(dest, init=1), lock(dest, init=0, sym_name="full")
        data = buffer(source, array(8), "data", initial_value=np.arange(8, dtype=np.int32))
        self.got = buffer(dest, array(4))
        flow(source, WireBundle.DMA, 0, dest, WireBundle.DMA, 1)

        @mem(source)
        def _send(block: Any) -> None:
            dma_start(MM2S, 0, dest=block[1], chain=block[3])
            with block[1]:
                dma_bd(data, offset=0, transfer_len=4)
                next_bd(block[2])
            with block[2]:
                dma_bd(data, sizes=[2, 2], strides=[4, 1])
                next_bd(block[1])
            with block[3]:
                EndOp()

        @mem(dest)
        def _receive(block: Any) -> None:
            dma_start(S2MM, 1, dest=block[1], chain=block[2])
            with block[1]:
                use_lock(self.empty, LockAction.AcquireGreaterEqual)
                dma_bd(self.got)
                use_lock(self.full, LockAction.Release, 1)
                next_bd(block[1])
            with block[2]:
                EndOp()


def test_a_resolvable_of_ones_own() -> None:
    sender = Sender()

    def core(s: Sender) -> None:
        use_lock(s.full, LockAction.AcquireGreaterEqual)
        s.got[0] = s.got[1] + 1
        use_lock(s.empty, LockAction.Release)

    design = explicit(workers=[Worker(core, [sender], tile=sender.core)])
    assert design.buffers[0].name == "data"
    assert [k.name for k in design.locks] == [None, "full"]
    send, receive = design.tile_dmas
    assert [(d.offset, d.length, d.dims, d.next) for d in send.channels[0].descriptors] == [
        (0, 4, (), 1),
        (0, None, ((2, 4), (2, 1)), 0),
    ]
    (got,) = receive.channels[0].descriptors
    assert (got.acquires[0].lock, got.releases[0].lock, got.next) == (design.locks[0], design.locks[1], 0)
    assert (design.flows[0].source, design.flows[0].dest_channel) == (send.tile, 1)
    assert design.cores[0].tile is receive.tile is design.buffers[1].tile


@pytest.mark.parametrize(
    ("use", "words"),
    [
        (lambda: dma_bd(None), "belongs in a block|needs a buffer"),
        (lambda: next_bd(None), "belongs in a block"),
        (lambda: dma_start(MM2S, 0), "needs dest=block"),
        (lambda: lock(tile()), "a tile of the design is needed"),
        (lambda: EndOp(), "traces your code"),
    ],
)
def test_dialect_functions_outside_of_their_place(use: Any, words: str) -> None:
    with pytest.raises(DesignError, match=words):
        use()


def write(body: Any) -> Any:
    """A DMA program of a compute tile by a function of its blocks and a buffer."""

    class Own(Resolvable):
        at = tile()

        def tiles(self) -> list[Any]:
            return [self.at]

        def resolve(self, loc: Any = None, ip: Any = None) -> None:
            one, locked = buffer(self.at.op, array(8), "b"), lock(self.at.op)
            mem(self.at.op)(lambda block: body(block, one, locked))

    return explicit(workers=[Worker(None, [Own()])])


@pytest.mark.parametrize(
    ("inside", "words"),
    [
        (lambda b, k: (dma_bd(b), dma_bd(b)), "two dma_bd"),
        (lambda b, k: (use_lock(k, LockAction.Release), dma_bd(b)), "releases come after"),
        (lambda b, k: (dma_bd(b), use_lock(k, LockAction.Acquire)), "acquires come before"),
        (lambda b, k: None, "has no dma_bd"),
        (lambda b, k: next_bd(3), "block that follows"),
    ],
)
def test_blocks_are_checked(inside: Any, words: str) -> None:
    def body(block: Any, one: Any, locked: Any) -> None:
        dma_start(MM2S, 0, dest=block[1], chain=block[2])
        with block[1]:
            inside(one, locked)
        with block[2]:
            EndOp()

    with pytest.raises(DesignError, match=words):
        write(body)


# -- host tasks


def test_tasks_on_explicit_flows() -> None:
    shim, core = tile(0, 0), tile(0, 2)

    def seq(a: Any, b: Any) -> None:
        task = dma_configure_task(shim.op, MM2S, 0)
        with bds(task) as bd, bd[0]:
            shim_dma_bd(a.op, offset=4, sizes=[1, 1, 1, 8], strides=[0, 0, 0, 1])
            EndOp()
        out = shim_dma_single_bd_task("out", b.op, sizes=[1, 1, 1, 8], issue_token=True)
        dma_start_task(task, out)
        dma_await_task(out)
        dma_free_task(task)

    flows = (Flow(shim, core), Flow(core, shim, dst_channel=1, shim_symbol="out"))
    design = explicit(*flows, seq=seq, args=[array(16), array(8)])
    assert design.sequence is not None
    first, second, *rest = design.sequence.body.entry.ops
    assert first.attrs["alloc"] == design.flows[0].shim_symbol
    assert (second.attrs["alloc"], second.attrs["issue_token"]) == ("out", True)
    bd = first.regions[0].entry.ops[0]
    assert (bd.attrs["static_offset"], bd.attrs["static_len"]) == (4, 8)
    assert second.regions[0].entry.ops[0].attrs["static_strides"] == (0, 0, 0, 1)
    assert [o.name.removeprefix("aiex.dma_") for o in rest] == ["start_task", "start_task", "await_task", "free_task"]


def test_mistakes_with_tasks() -> None:
    shim, core = tile(0, 0), tile(0, 2)

    def no_flow(a: Any) -> None:
        dma_configure_task(shim.op, S2MM, 0)

    def empty(a: Any) -> None:
        with bds(dma_configure_task(shim.op, MM2S, 0)):
            pass

    def two(a: Any) -> None:
        with bds(dma_configure_task(shim.op, MM2S, 0)) as bd, bd[1]:
            pass

    def nothing(a: Any) -> None:
        dma_start_task()

    def no_task(a: Any) -> None:
        dma_free_task(3)

    def no_array(a: Any) -> None:
        shim_dma_single_bd_task("x", 3, sizes=[1, 1, 1, 8])

    for seq, words in (
        (no_flow, "no explicit flow ends there"),
        (empty, "needs one shim_dma_bd"),
        (two, "several buffer descriptors"),
        (nothing, "at least one task"),
        (no_task, "needs a task"),
        (no_array, "expected a host array"),
    ):
        with pytest.raises((DesignError, UnsupportedError), match=words):
            explicit(Flow(shim, core), seq=seq, args=[array(16)])
        shim, core = tile(0, 0), tile(0, 2)

"""Packet-switched streams: whole packets, first come first served, data in the descriptor that is next."""

from __future__ import annotations

import numpy as np
import pytest

from npusim.engine import Simulator
from npusim.errors import DeadlockError, DesignError
from npusim.ir import Op
from npusim.machine import BufferDescriptor, Coord, LockUse, Machine, MachineLock, MemBuffer, Route
from npusim.types import MemRefType
from tests.npusim.engine.handmade import Maker

N = 32
TILE = Coord(0, 2)
OBJECT = MemRefType((N,), "i32")


def packet(at: Op, number: int) -> None:
    """Give the descriptor of a host task a packet id."""
    at.regions[0].entry.ops[0].attrs["packet"] = f"#aie.packet_info<pkt_type = 0, pkt_id = {number}>"


def switched(pushes: list[int], sources: int = 2, drained: int = 2, emptied: bool = True) -> Machine:
    """Packets of id 0 and 1 from one shim channel each (or one for both) to one channel of a tile, which sends all back.

    The tile has a buffer for each id, in that order; the host pushes in the order of ``pushes`` and waits for what comes
    back, or (not ``emptied``) for the last push.
    """
    make = Maker("npu1")
    m = make.machine
    buffers = [MemBuffer(f"b{i}", TILE, OBJECT) for i in range(2)]
    locks = [(MachineLock(f"free{i}", TILE, 2 * i, 1), MachineLock(f"full{i}", TILE, 2 * i + 1, 0)) for i in range(2)]
    m.buffers += buffers
    m.locks += [lock for pair in locks for lock in pair]
    into, out = make.channel(TILE, "S2MM", 0), make.channel(TILE, "MM2S", 0)
    for channel, take, give in ((into, 0, 1), (out, 1, 0)):
        channel.descriptors = [
            BufferDescriptor(
                b, 0, N, acquires=(LockUse(locks[i][take]),), releases=(LockUse(locks[i][give]),), next=1 - i,
                packet_id=i if channel is into else None,
            )
            for i, b in enumerate(buffers)
        ]  # fmt: skip
    shims = [make.channel(Coord(i if sources == 2 else 0, 0), "MM2S", 0, fifo=f"s{i}") for i in range(sources)]
    back = make.channel(Coord(0, 0), "S2MM", 0, fifo="back")
    m.routes += [Route(shims[i % sources], [into], f"p{i}", packet_id=i) for i in range(2)]
    m.routes += [Route(out, [back], "back")] if emptied else []
    m.host_channels |= {f"s{i}": shims[i % sources] for i in range(2)} | {"back": back}
    seq = make.host(MemRefType((2 * N,), "i32"), MemRefType((drained * N,), "i32"))
    given, taken = seq.block.args
    tasks = [make.move(seq, "back", taken, True)] if emptied else []
    for number in pushes:
        tasks.append(make.move(seq, f"s{number}", given, not emptied, offset=N * number, length=N))
        packet(tasks[-1].owner, number)
    seq.op("aiex.dma_await_task", (tasks[0 if emptied else -1],))
    return m


def run(machine: Machine, **how):
    taken = np.zeros(machine.sequence.entry.args[1].type.size, np.int32)
    sim = Simulator(machine, **how)
    return taken, sim.run([np.arange(2 * N, dtype=np.int32), taken])


@pytest.mark.parametrize("sources", [1, 2])
def test_packets_arrive_in_the_order_in_which_they_are_sent(sources):
    taken, report = run(switched([0, 1], sources=sources))
    np.testing.assert_array_equal(taken, np.arange(2 * N))
    assert report.warnings == []
    swapped, report = run(switched([1, 0], sources=sources))
    np.testing.assert_array_equal(swapped, np.roll(np.arange(2 * N), N))
    assert len(report.warnings) == 2
    text = "\n".join(report.warnings)
    for i in range(2):
        assert f"1 packet(s) of id {i} (stream 'p{i}') came to S2MM 0 of tile (0,2)" in text


def test_each_packet_has_a_header():
    _, report = run(switched([0, 1]))
    plain = switched([0, 1])
    for route in plain.routes:
        route.packet_id = None
    plain.routes = [plain.routes[0], plain.routes[2]]
    into = next(use for use in report.channels if str(use.channel) == "S2MM 0 of tile (0,2)")
    assert into.bytes == 2 * N * 4
    cycles = into.busy / report.ticks_per_cycle
    assert cycles == 2 * (N + 2)  # words, a header word, a new descriptor


def test_the_same_cycles_without_data():
    _, full = run(switched([0, 1, 1, 0], drained=4))
    _, bare = run(switched([0, 1, 1, 0], drained=4), data=False, trace=False)
    assert bare.exact_cycles == full.exact_cycles


def test_who_came_first_holds_the_channel_until_its_packet_is_through():
    """Nobody takes what is in the two buffers, so the third packet keeps the channel and the fourth waits behind it."""
    with pytest.raises(DeadlockError, match="waits until a packet of stream 'p0' has passed"):
        run(switched([0, 1, 0, 1], emptied=False))


def test_an_id_without_a_way_is_refused():
    machine = switched([0, 1])
    for op in machine.sequence.entry.ops:
        if op.name == "aiex.dma_configure_task_for" and op.attrs["alloc"] == "s1":
            packet(op, 5)
    with pytest.raises(DesignError, match=r"packet of id 5.*ids with one: 1"):
        run(machine)

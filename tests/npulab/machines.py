"""Hand-made machines and reports for the pictures, records and checks; nothing here runs a simulation."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from npusim.devices import device
from npusim.graph import Core, Design, Fifo, Link, LogicalTile
from npusim.ir import Region
from npusim.machine import (
    BufferDescriptor,
    CascadeLink,
    Coord,
    CoreProgram,
    Direction,
    DmaChannel,
    FifoPort,
    Hop,
    Machine,
    MachineLock,
    MemBuffer,
    Route,
)
from npusim.report import ChannelUse, CoreUse, Report, TraceEvent, Traffic
from npusim.types import MemRefType

BF16_1K = MemRefType((1024,), "bf16")
TICKS = 8


BACK = {"East": "West", "West": "East", "North": "South", "South": "North"}


def step(at: Coord, to: Coord, *, up_first: bool) -> tuple[str, Coord]:
    """One step of the way: MemTiles have no streams sideways, so from there it goes up first."""
    across, up = to.col - at.col, to.row - at.row
    if across and not (up_first and up):
        return ("East", Coord(at.col + 1, at.row)) if across > 0 else ("West", Coord(at.col - 1, at.row))
    return ("North", Coord(at.col, at.row + 1)) if up > 0 else ("South", Coord(at.col, at.row - 1))


class Builder:
    """Puts fifos on a machine: memory from 1024 on, channels and locks in order, straight routes."""

    def __init__(self, name: str) -> None:
        self.machine = Machine(device(name))
        self.used: dict[Coord, int] = {}
        self.channels: dict[tuple[Coord, str], int] = {}

    def buffers(self, tile: Coord, fifo: str, kind: MemRefType, depth: int) -> list[MemBuffer]:
        made = []
        for i in range(depth):
            address = self.used.get(tile, 1024 if tile.row > 1 else 0)
            made.append(MemBuffer(f"{fifo}_buff_{i}", tile, kind, address, address // 16384, fifo=fifo))
            self.used[tile] = address + kind.nbytes
        self.machine.buffers += made
        return made

    def channel(self, tile: Coord, direction: Direction, fifo: str, ring: Sequence[MemBuffer] = ()) -> DmaChannel:
        index = self.channels.get((tile, direction), 0)
        self.channels[tile, direction] = index + 1
        made = DmaChannel(tile, direction, index, fifo=fifo)
        for i, buffer in enumerate(ring):
            made.descriptors.append(
                BufferDescriptor(buffer, 0, buffer.type.size, next=(i + 1) % len(ring), bd_id=index * 8 + i)
            )
        self.machine.channels.append(made)
        return made

    def locks(self, tile: Coord, fifo: str, depth: int) -> tuple[MachineLock, MachineLock]:
        n = sum(lock.tile == tile for lock in self.machine.locks)
        pair = (
            MachineLock(f"{fifo}_prod_lock", tile, n, depth, fifo, "free"),
            MachineLock(f"{fifo}_cons_lock", tile, n + 1, 0, fifo, "full"),
        )
        self.machine.locks += pair
        return pair

    def route(self, name: str, source: DmaChannel, dests: list[DmaChannel]) -> None:
        hops: list[Hop] = []
        for dest in dests:
            at, entry = source.tile, f"DMA {source.index}"
            while at != dest.tile:
                way, to = step(at, dest.tile, up_first=source.tile.row == 1)
                hops.append(Hop(at, entry, f"{way} 0"))
                at, entry = to, f"{BACK[way]} 0"
            hops.append(Hop(at, entry, f"DMA {dest.index}"))
        self.machine.routes.append(Route(source, dests, name, tuple(dict.fromkeys(hops))))

    def core(self, tile: Coord, name: str, ports: dict[tuple[str, bool], list[MemBuffer]] | None = None) -> CoreProgram:
        made = CoreProgram(tile, Region.single(), name)
        for (fifo, produce), ring in (ports or {}).items():
            made.ports[fifo, produce] = FifoPort(fifo, produce, ring, None, None, len(ring))
        self.machine.cores.append(made)
        return made

    def stream(self, name: str, a: Coord, bs: list[Coord], kind: MemRefType = BF16_1K, depth: int = 2, source=None):
        """A DMA fifo from ``a`` to ``bs``; returns the rings at both ends."""
        near = source if source is not None else ([] if a.row == 0 else self.buffers(a, name, kind, depth))
        out = self.channel(a, "MM2S", name, near)
        far = [[] if b.row == 0 else self.buffers(b, name, kind, depth) for b in bs]
        self.route(name, out, [self.channel(b, "S2MM", name, ring) for b, ring in zip(bs, far)])
        return near, far


def saxpy_machine() -> Machine:
    """One compute tile of npu1, two fifos in and one out."""
    b = Builder("npu1")
    shim, tile = Coord(0, 0), Coord(0, 2)
    _, (x,) = b.stream("x", shim, [tile])
    _, (y,) = b.stream("y", shim, [tile])
    z, _ = b.stream("z", tile, [shim])
    b.core(tile, "saxpy", {("x", False): x, ("y", False): y, ("z", True): z})
    for fifo in "xyz":
        b.locks(tile, fifo, 2)
    return b.machine


def saxpy_report(objects: int = 16) -> Report:
    """A plausible pipeline: fetch, compute, write back."""
    machine = saxpy_machine()
    fetch, work = 1024, 400
    events, t = [TraceEvent("host", "fill x", "task", 0, 200 * TICKS)], 747 * TICKS
    core = CoreUse(Coord(0, 2), "saxpy")
    end = 0
    for _ in range(objects):
        for name, index in (("x", 0), ("y", 1)):
            for tile in (Coord(0, 0), Coord(0, 2)):
                way = "MM2S" if tile.row == 0 else "S2MM"
                events.append(TraceEvent(f"{way} {index} of tile {tile}", name, "transfer", t, fetch * TICKS))
        events.append(TraceEvent("core (0,2)", "y", "stall", end, t + fetch * TICKS - end))
        start = t + fetch * TICKS
        events.append(TraceEvent("core (0,2)", "saxpy_bf16", "kernel", start, work * TICKS))
        core.stalled["y"] = core.stalled.get("y", 0) + start - end
        core.busy += work * TICKS
        end = start + work * TICKS
        for tile in (Coord(0, 2), Coord(0, 0)):
            way = "MM2S" if tile.row == 2 else "S2MM"
            events.append(TraceEvent(f"{way} 0 of tile {tile}", "z", "transfer", end, 512 * TICKS))
        t += fetch * TICKS
    core.kernels = {"saxpy_bf16": (objects, core.busy)}
    total = end + 600 * TICKS
    events.append(TraceEvent("host", "drain z", "task", 200 * TICKS, total - 200 * TICKS))
    n = objects * BF16_1K.nbytes
    traffic = {"ddr": Traffic(2 * n, n), "memtile": Traffic(), "l1": Traffic(n, 2 * n)}
    uses = [ChannelUse(c, n, objects, objects * (512 if c.fifo == "z" else fetch) * TICKS) for c in machine.channels]
    return Report(machine, total, TICKS, machine.device.clock_hz, traffic, uses, [core], events)


def matmul_machine(name: str = "npu2") -> Machine:
    """The whole array: A broadcast along rows, B split down columns by a MemTile, C joined on it."""
    b = Builder(name)
    columns = b.machine.device.columns
    tile = MemRefType((64, 64), "bf16")
    got: dict[Coord, dict[tuple[str, bool], list[MemBuffer]]] = {}
    for row in range(4):
        shim, mem = Coord(row % columns, 0), Coord(row % columns, 1)
        _, (ring,) = b.stream(f"A_{row}", shim, [mem], tile)
        tiles = [Coord(c, 2 + row) for c in range(columns)]
        _, far = b.stream(f"memA_{row}", mem, tiles, tile, source=ring)
        for at, ring in zip(tiles, far):
            got.setdefault(at, {})[f"memA_{row}", False] = ring
    for col in range(columns):
        shim, mem = Coord(col, 0), Coord(col, 1)
        _, (ring,) = b.stream(f"B_{col}", shim, [mem], MemRefType((4, 64, 64), "bf16"))
        for row in range(4):
            at = Coord(col, 2 + row)
            _, (far,) = b.stream(f"memB_{col}_{row}", mem, [at], tile, source=ring)
            near, _ = b.stream(f"memC_{col}_{row}", at, [mem], tile)
            got[at] |= {(f"memB_{col}_{row}", False): far, (f"memC_{col}_{row}", True): near}
        out, _ = [buf for buf in b.machine.buffers if buf.fifo and buf.fifo.startswith(f"memC_{col}_0")][:2], None
        b.stream(f"C_{col}", mem, [shim], tile, source=out)
    for at, ports in got.items():
        b.core(at, f"matmul {at.col},{at.row}", ports)
    return b.machine


def matmul_report(events_per_core: int = 60) -> Report:
    """32 busy cores with some thousand events."""
    machine = matmul_machine()
    rng = np.random.default_rng(1)
    events, cores = [], []
    total = 680 * events_per_core * TICKS
    for core in machine.cores:
        use = CoreUse(core.tile, core.name)
        t = 800 * TICKS
        for i in range(events_per_core):
            stall, work = int(rng.integers(5, 300)) * TICKS, int(rng.integers(300, 420)) * TICKS
            events.append(TraceEvent(f"core {core.tile}", "memB", "stall", t, stall))
            events.append(
                TraceEvent(f"core {core.tile}", "zero" if i % 8 == 0 else "matmul", "kernel", t + stall, work)
            )
            t += stall + work
            use.busy += work
            use.stalled["memB"] = use.stalled.get("memB", 0) + stall
        cores.append(use)
    uses = []
    for channel in machine.channels:
        busy = int(rng.integers(20, 95)) * total // 100
        uses.append(ChannelUse(channel, busy // TICKS * 4, 60, busy))
        for i in range(60):
            events.append(TraceEvent(str(channel), channel.fifo or "", "transfer", i * total // 60, busy // 60))
    events.append(TraceEvent("host", "sequence", "task", 0, total))
    traffic = {"ddr": Traffic(1 << 22, 1 << 20), "memtile": Traffic(1 << 23, 1 << 23), "l1": Traffic(1 << 21, 1 << 24)}
    return Report(machine, total, TICKS, machine.device.clock_hz, traffic, uses, cores, events)


def attention_machine() -> Machine:
    """Three neighbouring stages: shared memory between two of them, a cascade to the third."""
    b = Builder("npu1")
    shim, mem = Coord(0, 0), Coord(0, 1)
    qk, soft, pv = Coord(0, 2), Coord(0, 3), Coord(1, 3)
    _, (ring,) = b.stream("q", shim, [mem])
    _, (q,) = b.stream("q_fwd", mem, [qk], source=ring)
    scores = b.buffers(qk, "scores", BF16_1K, 2)
    out, _ = b.stream("o", pv, [Coord(1, 0)])
    b.core(qk, "qk", {("q_fwd", False): q, ("scores", True): scores})
    b.core(soft, "softmax", {("scores", False): scores})
    b.core(pv, "pv", {("o", True): out})
    b.machine.cascades.append(CascadeLink(soft, pv))
    return b.machine


def saxpy_design() -> Design:
    """The dataflow graph of saxpy."""
    shim, core = LogicalTile("shim", 0, 0), LogicalTile("core", 0, 2)
    fifos = [Fifo("x", BF16_1K, shim, [core]), Fifo("y", BF16_1K, shim, [core]), Fifo("z", BF16_1K, core, [shim])]
    return Design(device("npu1"), tiles=[shim, core], fifos=fifos, cores=[Core(core, Region.single(), "saxpy")])


def split_design() -> Design:
    """Split on a MemTile to four workers, join again, with a loop back from a worker to itself."""
    d = Design(device("npu2"))
    shim_in, shim_out, mem = LogicalTile("shim", 0, 0), LogicalTile("shim", 0, 0), LogicalTile("mem", 0, 1)
    cores = [LogicalTile("core", 0, 2 + i) for i in range(4)]
    big, small = MemRefType((4096,), "bf16"), BF16_1K
    src, dst = Fifo("in", big, shim_in, [mem]), Fifo("out", big, mem, [shim_out])
    ins = [Fifo(f"in_{i}", small, mem, [c]) for i, c in enumerate(cores)]
    outs = [Fifo(f"out_{i}", small, c, [mem]) for i, c in enumerate(cores)]
    loop = Fifo("state", small, cores[0], [cores[0]])
    d.fifos = [src, *ins, *outs, dst, loop]
    d.links = [Link([src], ins), Link(outs, [dst])]
    d.cores = [Core(c, Region.single(), f"worker {i}") for i, c in enumerate(cores)]
    d.tiles = [shim_in, shim_out, mem, *cores]
    return d


def matmul_design() -> Design:
    """32 workers: A and B through MemTile splits, C through joins."""
    d = Design(device("npu2"))
    shim = LogicalTile("shim", 0, 0)
    big, small = MemRefType((4096,), "bf16"), BF16_1K
    for col in range(8):
        mem = LogicalTile("mem", col, 1)
        cores = [LogicalTile("core", col, 2 + i) for i in range(4)]
        src, dst = Fifo(f"B_{col}", big, shim, [mem]), Fifo(f"C_{col}", big, mem, [shim])
        ins = [Fifo(f"memB_{col}_{i}", small, mem, [c]) for i, c in enumerate(cores)]
        outs = [Fifo(f"memC_{col}_{i}", small, c, [mem]) for i, c in enumerate(cores)]
        d.fifos += [src, *ins, *outs, dst]
        d.links += [Link([src], ins), Link(outs, [dst])]
        d.cores += [Core(c, Region.single(), f"matmul_{col}_{i}") for i, c in enumerate(cores)]
    return d

"""Machines made by hand, so that the engine is tested without a frontend or a placer."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from npusim.devices import DEVICES
from npusim.graph import KernelDecl
from npusim.ir import FOREVER, Block, Loc, Op, Region, Value
from npusim.kernels import KernelModel
from npusim.machine import (
    BufferDescriptor,
    Coord,
    CoreProgram,
    DmaChannel,
    FifoPort,
    LockUse,
    Machine,
    MachineLock,
    MemBuffer,
    Route,
)
from npusim.types import MemRefType, SubviewType


@dataclass
class Body:
    """Builds a region operation by operation."""

    block: Block
    line: int = 1
    constants: dict[tuple[str, Any], Value] = field(default_factory=dict)

    def op(self, name: str, operands: Any = (), results: Any = (), **attrs: Any) -> Op:
        self.line += 1
        op = Op.make(name, operands, results, Loc("design.py", self.line), **attrs)
        self.block.ops.append(op)
        return op

    def const(self, value: Any, kind: str = "index") -> Value:
        return self.op("arith.constant", (), (kind,), value=value).result

    def loop(self, upper: int, lower: int = 0, step: int = 1, carried: tuple[Value, ...] = ()) -> tuple[Body, Op]:
        bounds = [self.const(n) for n in (lower, upper, step)]
        op = self.op("scf.for", [*bounds, *carried], [v.type for v in carried])
        region = Region.single("index", *(v.type for v in carried))
        op.regions.append(region)
        return Body(region.entry, self.line), op

    def acquire(self, fifo: str, produce: bool, obj: MemRefType, n: int = 1) -> list[Value]:
        window = self.op("aie.objectfifo.acquire", (), (SubviewType(obj),), objFifo_name=fifo, port=int(not produce), size=n)
        return [
            self.op("aie.objectfifo.subview.access", (window.result,), (obj,), index=i).result for i in range(n)
        ]

    def release(self, fifo: str, produce: bool, n: int = 1) -> None:
        self.op("aie.objectfifo.release", (), (), objFifo_name=fifo, port=int(not produce), size=n)

    def end(self) -> None:
        self.op("scf.yield")


def body() -> tuple[Body, Region]:
    region = Region.single()
    return Body(region.entry), region


@dataclass
class Maker:
    """A machine with shim-to-core and core-to-shim fifos."""

    device: str = "npu1"
    machine: Machine = field(init=False)

    def __post_init__(self) -> None:
        self.machine = Machine(DEVICES[self.device])
        self.sequence = Region.single()
        self.machine.sequence = self.sequence

    def ring(self, name: str, tile: Coord, obj: MemRefType, depth: int) -> tuple[list[MemBuffer], MachineLock, MachineLock]:
        """Buffers, and the locks that count free and full ones."""
        m = self.machine
        buffers = [MemBuffer(f"{name}_buff_{i}", tile, obj, fifo=name) for i in range(depth)]
        free = MachineLock(f"{name}_prod_lock", tile, len(m.locks), depth, name, "free")
        full = MachineLock(f"{name}_cons_lock", tile, len(m.locks) + 1, 0, name, "full")
        m.buffers += buffers
        m.locks += [free, full]
        return buffers, free, full

    def channel(
        self, tile: Coord, direction: Any, index: int, ring: Any = None, fifo: str | None = None
    ) -> DmaChannel:
        channel = DmaChannel(tile, direction, index, fifo=fifo)
        if ring is not None:
            buffers, free, full = ring
            take, give = (full, free) if direction == "MM2S" else (free, full)
            n = len(buffers)
            channel.descriptors = [
                BufferDescriptor(b, 0, b.type.size, acquires=(LockUse(take),), releases=(LockUse(give),), next=(i + 1) % n)
                for i, b in enumerate(buffers)
            ]
        self.machine.channels.append(channel)
        return channel

    def fifo_in(self, name: str, tile: Coord, obj: MemRefType, depth: int = 2, index: int = 0) -> FifoPort:
        """From DDR to a core."""
        ring = self.ring(name, tile, obj, depth)
        shim = self.channel(Coord(tile.col, 0), "MM2S", index, fifo=name)
        self.machine.routes.append(Route(shim, [self.channel(tile, "S2MM", index, ring, name)], name))
        self.machine.host_channels[name] = shim
        return FifoPort(name, False, ring[0], ring[2], ring[1], depth)

    def fifo_out(self, name: str, tile: Coord, obj: MemRefType, depth: int = 2, index: int = 0) -> FifoPort:
        """From a core to DDR."""
        ring = self.ring(name, tile, obj, depth)
        shim = self.channel(Coord(tile.col, 0), "S2MM", index, fifo=name)
        self.machine.routes.append(Route(self.channel(tile, "MM2S", index, ring, name), [shim], name))
        self.machine.host_channels[name] = shim
        return FifoPort(name, True, ring[0], ring[1], ring[2], depth)

    def neighbour(self, name: str, tile: Coord, obj: MemRefType, depth: int = 2) -> tuple[FifoPort, FifoPort]:
        """Shared memory between two cores: producer's and consumer's port."""
        buffers, free, full = self.ring(name, tile, obj, depth)
        return FifoPort(name, True, buffers, free, full, depth), FifoPort(name, False, buffers, full, free, depth)

    def core(self, tile: Coord, region: Region, *ports: FifoPort, name: str = "core") -> CoreProgram:
        program = CoreProgram(tile, region, name, ports={(p.fifo, p.produce): p for p in ports})
        self.machine.cores.append(program)
        return program

    def kernel(self, name: str, *types: Any) -> None:
        self.machine.kernels[name] = KernelDecl(name, types)

    def host(self, *types: MemRefType) -> Body:
        entry = self.sequence.entry
        entry.args = [Value(t, entry) for t in types]
        return Body(entry)

    @staticmethod
    def move(at: Body, fifo: str, arg: Value, wait: bool, offset: int = 0, dims: Any = None, length: int | None = None) -> Value:
        """Configure and start a transfer; gives the task."""
        assert isinstance(arg.type, MemRefType)
        task = at.op("aiex.dma_configure_task_for", (), ("index",), alloc=fifo, issue_token=wait, repeat_count=0)
        region = Region.single()
        inner = Body(region.entry, at.line)
        dims = dims or ((1, 0), (1, 0), (1, 0), (arg.type.size if length is None else length, 1))
        n = int(np.prod([size for size, _ in dims]))
        inner.op(
            "aie.dma_bd", (arg,), static_offset=offset, static_len=n if length is None else length,
            static_sizes=tuple(s for s, _ in dims), static_strides=tuple(s for _, s in dims),
        )  # fmt: skip
        task.regions.append(region)
        at.op("aiex.dma_start_task", (task.result,))
        return task.result


def scale_model(cycles: int = 100) -> KernelModel:
    def scale(x: Any, y: Any, factor: Any) -> None:
        y[...] = x * factor

    return KernelModel(scale, lambda x, y, factor, device: cycles)


def scale_machine(device: str = "npu1", tiles: int = 4, size: int = 64, depth: int = 2, drain: int | None = None) -> Machine:
    """y = 7 x on one core, object by object, with a kernel."""
    make = Maker(device)
    obj, host = MemRefType((size,), "i32"), MemRefType((size * tiles,), "i32")
    tile = Coord(0, 2)
    make.kernel("scale", obj, obj, "i32")
    x, y = make.fifo_in("x", tile, obj, depth), make.fifo_out("y", tile, obj, depth)
    at, region = body()
    inner, _ = at.loop(FOREVER)
    (b,) = inner.acquire("y", True, obj)
    (a,) = inner.acquire("x", False, obj)
    inner.op("func.call", (a, b, inner.const(7, "i32")), callee="scale")
    inner.release("x", False)
    inner.release("y", True)
    inner.end()
    make.core(tile, region, x, y)
    seq = make.host(host, MemRefType((drain or size * tiles,), "i32"))
    make.move(seq, "x", seq.block.args[0], False)
    task = make.move(seq, "y", seq.block.args[1], True)
    seq.op("aiex.dma_await_task", (task,))
    return make.machine

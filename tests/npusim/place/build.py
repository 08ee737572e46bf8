"""Small designs by hand: tiles, fifos, workers that take one object of each input and give one of each output."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from npusim.devices import device
from npusim.graph import Buffer, Cascade, Core, Design, Fifo, Link, LogicalTile
from npusim.graph import Sequence as HostSequence
from npusim.ir import FOREVER, Block, Loc, Op, Region, Value
from npusim.types import MemRefType, SubviewType

I32 = MemRefType((16,), "i32")


def memref(n: int | tuple[int, ...], element: str = "i32") -> MemRefType:
    return MemRefType((n,) if isinstance(n, int) else n, element)


class Maker:
    """Collects a design; ``design()`` gives it. Lines of operations count up, so messages can be checked for them."""

    def __init__(self, name: str = "npu2") -> None:
        self.cores: list[Core] = []
        self.fifos: list[Fifo] = []
        self.result = Design(device(name))
        self.host = Region.single()
        self.line = 0

    def loc(self) -> Loc:
        self.line += 1
        return Loc("design.py", self.line)

    def fifo(
        self,
        name: str,
        producer: LogicalTile | None = None,
        consumers: Sequence[LogicalTile] | LogicalTile | None = None,
        type: MemRefType = I32,
        **options: Any,
    ) -> Fifo:
        """A fifo; an end that is not given is the host's, on a shim tile of its own."""
        if isinstance(consumers, LogicalTile):
            consumers = [consumers]
        ends = [LogicalTile("shim")] if consumers is None else list(consumers)
        options.setdefault("from_stream", ((),) * len(ends))
        fifo = Fifo(name, type, producer or LogicalTile("shim"), ends, loc=self.loc(), **options)
        self.fifos.append(fifo)
        return fifo

    def worker(
        self,
        tile: LogicalTile,
        takes: Sequence[Fifo] = (),
        gives: Sequence[Fifo] = (),
        *,
        window: int = 1,
        release: int | None = None,
        uses: Sequence[Buffer] = (),
        forever: bool = True,
        **options: Any,
    ) -> Core:
        """A core that acquires ``window`` objects of each fifo in every turn and releases as many (or ``release``)."""
        body, loop = Region.single(), Region.single("index")
        block = loop.entry
        for fifo, port in [*((f, 1) for f in takes), *((f, 0) for f in gives)]:
            block.ops.append(self.access("aie.objectfifo.acquire", fifo, port, window))
        for buffer in uses:
            zero = Op.make("arith.constant", results=["index"], value=0)
            block.ops += [zero, Op.make("memref.load", [buffer.value, zero.result], [buffer.type.element])]
        given = window if release is None else release
        for fifo, port in [*((f, 1) for f in takes), *((f, 0) for f in gives)]:
            if given:
                block.ops.append(self.access("aie.objectfifo.release", fifo, port, given))
        block.ops.append(Op.make("scf.yield"))
        bounds = [Op.make("arith.constant", results=["index"], value=v) for v in (0, FOREVER if forever else 1, 1)]
        body.entry.ops += [*bounds, Op.make("scf.for", [b.result for b in bounds], regions=[loop])]
        core = Core(tile, body, name=options.pop("name", f"worker {len(self.cores)}"), loc=self.loc(), **options)
        self.cores.append(core)
        return core

    def access(self, name: str, fifo: Fifo, port: int, size: int) -> Op:
        results = [SubviewType(fifo.type)] if name.endswith("acquire") else []
        return Op.make(name, results=results, loc=self.loc(), objFifo_name=fifo.name, port=port, size=size)

    def transfer(
        self,
        fifo: Fifo | str,
        sizes: Sequence[int] = (),
        strides: Sequence[int] = (),
        *,
        length: int | None = None,
        offset: int = 0,
        host: MemRefType | None = None,
        wait: bool = False,
        start: bool = True,
        into: Block | None = None,
    ) -> Value:
        """A fill or drain of the host sequence, started; returns the task."""
        name = fifo if isinstance(fifo, str) else fifo.name
        type = host or (fifo.type if isinstance(fifo, Fifo) else I32)
        if not sizes:
            sizes, strides = (1, 1, 1, type.size), (0, 0, 0, 1)
        argument = Value(type, self.host.entry)
        self.host.entry.args.append(argument)
        body = Region.single()
        body.entry.ops = [
            Op.make(
                "aie.dma_bd",
                [argument],
                static_len=int(np.prod(sizes[-3:])) if length is None else length,
                static_offset=offset,
                static_sizes=tuple(sizes),
                static_strides=tuple(strides),
            ),
            Op.make("aie.end"),
        ]
        task = Op.make(
            "aiex.dma_configure_task_for",
            results=["index"],
            loc=self.loc(),
            regions=[body],
            alloc=name,
            issue_token=wait,
            repeat_count=0,
        )
        ops = (into or self.host.entry).ops
        ops.append(task)
        if start:
            ops.append(Op.make("aiex.dma_start_task", [task.result], loc=self.loc()))
        return task.result

    def then(self, name: str, task: Value, into: Block | None = None) -> None:
        (into or self.host.entry).ops.append(Op.make(f"aiex.dma_{name}_task", [task], loc=self.loc()))

    def drain(self, fifo: Fifo, *args: Any, **options: Any) -> None:
        """A drain that is waited for."""
        self.then("await", self.transfer(fifo, *args, wait=True, **options))

    def link(self, inputs: Sequence[Fifo], outputs: Sequence[Fifo], offsets: Sequence[int] = ()) -> Link:
        link = Link(list(inputs), list(outputs), loc=self.loc())
        if len(inputs) > 1:
            link.src_offsets = tuple(offsets)
        elif len(outputs) > 1:
            link.dst_offsets = tuple(offsets)
        self.result.links.append(link)
        return link

    def cascade(self, source: LogicalTile, dest: LogicalTile) -> None:
        self.result.cascades.append(Cascade(source, dest, self.loc()))

    def host_ends(self) -> None:
        """Fill and drain every fifo that ends at the host and has no transfer yet."""
        done = {op.attrs["alloc"] for op in self.host.entry.ops if op.name.endswith("configure_task_for")}
        for fifo in self.fifos:
            if fifo.name not in done and fifo.producer.kind == "shim":
                self.transfer(fifo)
        for fifo in self.fifos:
            if fifo.name not in done and any(c.kind == "shim" for c in fifo.consumers):
                self.drain(fifo)

    def design(self, *, host_ends: bool = True) -> Design:
        """The design; the tiles in IRON's order, workers first."""
        if host_ends:
            self.host_ends()
        design = self.result
        design.cores, design.fifos = self.cores, sorted(self.fifos, key=lambda f: f.name)
        design.tiles = [core.tile for core in self.cores]
        design.sequence = HostSequence(self.host)
        return design


def one_core(
    name: str = "npu2",
    *,
    type: MemRefType = I32,
    x: dict[str, Any] | None = None,
    y: dict[str, Any] | None = None,
    tile: LogicalTile | None = None,
    **worker: Any,
) -> tuple[Maker, Fifo, Fifo]:
    """x -> worker -> y, with the host at both ends."""
    maker, core = Maker(name), tile or LogicalTile("core")
    into = maker.fifo("x", None, core, type, **(x or {}))
    out = maker.fifo("y", core, None, type, **(y or {}))
    maker.worker(core, [into], [out], **worker)
    return maker, into, out

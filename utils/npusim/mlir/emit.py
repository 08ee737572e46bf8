"""Prints the design graph as the module that IRON generates for it, in generic form.

Order, property names and defaults are those of the recorded modules; ``aie-opt`` reads the text. One order is not in the
graph: IRON writes the buffers, barrier locks and kernels of a worker in the order of the worker's arguments; here they come
by kind.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from npusim.devices import Device
from npusim.errors import DesignError, UnsupportedError
from npusim.graph import Buffer, Core, Design, Fifo, Flow, KernelDecl, Link, Lock, LogicalTile, Sequence
from npusim.ir import Region, Value
from npusim.mlir.attributes import (
    Attribute,
    DenseArray,
    Elements,
    FunctionType,
    Int,
    PairLists,
    Pairs,
    Symbol,
    TypeValue,
)
from npusim.mlir.bodies import lower
from npusim.mlir.chainwriter import dma_program
from npusim.mlir.enums import BUNDLES, DEVICES, DIRECTIONS, KINDS
from npusim.mlir.generic import Module, RawOp
from npusim.mlir.padding import pad_word
from npusim.mlir.printer import print_module
from npusim.types import MemRefType


def print_design(design: Design) -> str:
    """The module of a design in generic form. DesignError if the graph names things that it does not list."""
    return print_module(Module(_module(design)))


def _module(design: Design) -> RawOp:
    body = Region.single()
    body.entry.ops += [
        _op("aiex.scratchpad_parameter", sym_name=s.name, type=TypeValue(s.element)) for s in design.scratchpads
    ]
    device = _op("aie.device", device=_i32(_number(design.device)), sym_name=design.name)
    device.regions = [Region.single()]
    device.regions[0].entry.ops += list(_Emitter(design).ops())
    body.entry.ops.append(device)
    return RawOp("builtin.module", regions=[body])


def _number(device: Device) -> int:
    return next(number for number, name in DEVICES.items() if name == device.name)


class _Emitter:
    """The operations of one device and the values that tiles, buffers and locks have in them."""

    def __init__(self, design: Design) -> None:
        self.design = design
        self.tiles: dict[LogicalTile, Value] = {}
        self.things: dict[Value, Value] = {}

    def ops(self) -> Iterator[RawOp]:
        design = self.design
        yield from map(self.tile, design.tiles)
        yield from self.fifos_and_links()
        yield from self.flows()
        yield from (self.lock(lock) for lock in design.locks if lock.name is not None)
        yield from map(self.buffer, design.buffers)
        yield from (self.lock(lock) for lock in design.locks if lock.name is None)
        yield from map(_kernel, design.kernels)
        yield from map(self.core, design.cores)
        yield from (_op("aie.cascade_flow", self.at(c.source), self.at(c.dest)) for c in design.cascades)
        yield from (dma_program(dma, self.at(dma.tile), self.things) for dma in design.tile_dmas)
        if design.sequence is not None:
            yield self.sequence(design.sequence)
        yield RawOp("aie.end")

    def at(self, tile: LogicalTile) -> Value:
        if tile not in self.tiles:
            raise DesignError(f"the design uses {tile} but does not list it")
        return self.tiles[tile]

    def tile(self, tile: LogicalTile) -> RawOp:
        places = {name: _i32(n) for name, n in (("col", tile.col), ("row", tile.row)) if n is not None}
        op = _valued("aie.logical_tile", "index", tile_type=_i32(KINDS.index(tile.kind)), **places)
        self.tiles[tile] = op.result
        return op

    def fifos_and_links(self) -> Iterator[RawOp]:
        """Each link as soon as all its fifos are there."""
        waiting, written = list(self.design.links), set[Fifo]()
        for fifo in self.design.fifos:
            yield _fifo(fifo, [self.at(tile) for tile in (fifo.producer, *fifo.consumers)])
            if fifo.delegate_tile is not None:
                yield _op("aie.objectfifo.allocate", self.at(fifo.delegate_tile), objFifo_name=Symbol(fifo.name))
            written.add(fifo)
            for link in [w for w in waiting if written.issuperset((*w.inputs, *w.outputs))]:
                waiting.remove(link)
                yield _link(link)
        if waiting:
            names = [f.name for f in (*waiting[0].inputs, *waiting[0].outputs)]
            raise DesignError(f"a link joins fifos {', '.join(names)}, of which the design does not list all")

    def flows(self) -> Iterator[RawOp]:
        for flow in self.design.flows:
            source, dest = self.at(flow.source), self.at(flow.dest)
            yield _packet_flow(flow, source, dest) if flow.packet_id is not None else _flow(flow, source, dest)
            if flow.shim_symbol is not None:
                sends = flow.source.kind == "shim"
                yield _op(
                    "aie.shim_dma_allocation",
                    source if sends else dest,
                    channel_dir=_i32(DIRECTIONS.index("MM2S" if sends else "S2MM")),
                    channel_index=Int(flow.source_channel if sends else flow.dest_channel),
                    plio=False,
                    sym_name=flow.shim_symbol,
                )

    def lock(self, lock: Lock) -> RawOp:
        props = {
            "init": None if lock.init is None else _i32(lock.init),
            "lockID": None if lock.lock_id is None else _i32(lock.lock_id),
            "sym_name": lock.name,
        }
        op = _valued("aie.lock", "index", self.at(lock.tile), **props)
        self.things[lock.value] = op.result
        return op

    def buffer(self, buffer: Buffer) -> RawOp:
        initial = None if buffer.initial is None else _elements(buffer.initial, buffer.type)
        address = None if buffer.address is None else _i32(buffer.address)
        tile, name = self.at(buffer.tile), buffer.name
        op = _valued(
            "aie.buffer", buffer.type, tile, address=address, aligned=True, initial_value=initial, sym_name=name
        )
        self.things[buffer.value] = op.result
        return op

    def core(self, core: Core) -> RawOp:
        op = _valued(
            "aie.core",
            "index",
            self.at(core.tile),
            dynamic_objfifo_lowering=core.dynamic_objfifo_lowering,
            stack_size=None if core.stack_size is None else _i32(core.stack_size),
        )
        op.regions = [lower(core.body, self.things, end="aie.end")]
        return op

    def sequence(self, sequence: Sequence) -> RawOp:
        op = _op("aie.runtime_sequence", sym_name=sequence.name)
        op.regions = [lower(sequence.body, self.things)]
        return op


def _op(name: str, *operands: Value, **props: Attribute | None) -> RawOp:
    return RawOp(name, operands, props={key: value for key, value in props.items() if value is not None})


def _valued(name: str, type: MemRefType | str, *operands: Value, **props: Attribute | None) -> RawOp:
    op = _op(name, *operands, **props)
    op.results = [Value(type, op)]
    return op


def _i32(value: int) -> Int:
    return Int(int(value), "i32")


def _elements(array: np.ndarray[Any, Any], type: MemRefType) -> Elements:
    return Elements(np.asarray(array).astype(type.dtype).reshape(type.shape), type.element)


def _fifo(fifo: Fifo, tiles: list[Value]) -> RawOp:
    lists = (*fifo.from_stream, *((),) * len(fifo.consumers))[: len(fifo.consumers)]
    depth = fifo.depth
    props: Mapping[str, Attribute | None] = {
        "dimensionsFromStreamPerConsumer": PairLists(tuple(lists)),
        "dimensionsToStream": Pairs("bd_dim_layout_array", tuple(fifo.to_stream)),
        "disable_synchronization": fifo.disable_synchronization,
        "elemNumber": tuple(map(_i32, depth)) if isinstance(depth, tuple) else _i32(depth),
        "elemType": TypeValue(f"!aie.objectfifo<{fifo.type}>"),
        "plio": False,
        "sym_name": fifo.name,
        "via_DMA": fifo.via_dma,
        **_optional(fifo),
    }
    return _op("aie.objectfifo", *tiles, **props)


def _optional(fifo: Fifo) -> dict[str, Attribute | None]:
    """What only some fifos have."""
    channels, consumer = fifo.consumer_channels, fifo.consumer_type
    pinned = tuple(-1 if n is None else n for n in channels)
    values = None if fifo.init_values is None else tuple(_elements(v, fifo.type) for v in fifo.init_values)
    return {
        "padDimensions": Pairs("bd_pad_layout_array", tuple(fifo.pad)) if fifo.pad else None,
        "padValue": _i32(_signed(pad_word(fifo.pad_value, fifo.type))) if fifo.pad_value else None,
        "repeat_count": None if fifo.repeat_count is None else _i32(fifo.repeat_count),
        "iter_count": None if fifo.iter_count is None else _i32(fifo.iter_count),
        "initValues": values,
        "consumerElemType": None if consumer is None else TypeValue(f"!aie.objectfifo<{consumer}>"),
        "prod_dma_channel": None if fifo.producer_channel is None else _i32(fifo.producer_channel),
        "cons_dma_channels": DenseArray("i32", pinned) if any(n is not None for n in channels) else None,
    }


def _signed(word: int) -> int:
    return word - (1 << 32) if word >> 31 else word


def _link(link: Link) -> RawOp:
    return _op(
        "aie.objectfifo.link",
        dst_offsets=tuple(map(Int, link.dst_offsets)),
        fifoIns=tuple(Symbol(fifo.name) for fifo in link.inputs),
        fifoOuts=tuple(Symbol(fifo.name) for fifo in link.outputs),
        src_offsets=tuple(map(Int, link.src_offsets)),
    )


def _flow(flow: Flow, source: Value, dest: Value) -> RawOp:
    return _op(
        "aie.flow",
        source,
        dest,
        dest_bundle=_bundle(flow.dest_port),
        dest_channel=_i32(flow.dest_channel),
        source_bundle=_bundle(flow.source_port),
        source_channel=_i32(flow.source_channel),
    )


def _packet_flow(flow: Flow, source: Value, dest: Value) -> RawOp:
    assert flow.packet_id is not None
    op = _op("aie.packet_flow", ID=Int(flow.packet_id, "i8"))
    op.regions = [Region.single()]
    op.regions[0].entry.ops += [
        _op("aie.packet_source", source, bundle=_bundle(flow.source_port), channel=_i32(flow.source_channel)),
        _op("aie.packet_dest", dest, bundle=_bundle(flow.dest_port), channel=_i32(flow.dest_channel)),
        RawOp("aie.end"),
    ]
    return op


def _bundle(port: str) -> Int:
    if port not in BUNDLES:
        raise UnsupportedError(f"a flow's port {port!r} (known: {', '.join(BUNDLES)})")
    return _i32(BUNDLES.index(port))


def _kernel(kernel: KernelDecl) -> RawOp:
    signature = TypeValue(FunctionType(tuple(kernel.arg_types), ()))
    op = _op("func.func", function_type=signature, sym_name=kernel.name, sym_visibility="private")
    op.regions = [Region()]
    if kernel.object_file is not None:
        op.attrs = {"link_with": kernel.object_file}
    return op

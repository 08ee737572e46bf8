"""Reads a module of the ``aie`` dialect as a frontend generates it (fifos, logical tiles) into the design graph."""

from __future__ import annotations

from collections.abc import Callable

from npusim.errors import DesignError, UnsupportedError
from npusim.graph import (
    Buffer,
    Cascade,
    ChannelProgram,
    Core,
    Descriptor,
    Design,
    Fifo,
    Flow,
    KernelDecl,
    Link,
    Lock,
    LockAction,
    LogicalTile,
    Scratchpad,
    Sequence,
    TileDma,
)
from npusim.ir import Value, walk
from npusim.mlir.attributes import FunctionType
from npusim.mlir.bodies import lift, refuse_unknown
from npusim.mlir.chains import Chain, Transfer, Use, chains
from npusim.mlir.enums import BUNDLES, DIRECTIONS, KINDS
from npusim.mlir.generic import RawOp, ops_of, parse
from npusim.mlir.padding import pad_element
from npusim.mlir.schema import CORE_OPS, PROPERTIES, SEQUENCE_OPS
from npusim.mlir.things import device_of, fifo_type, initial, one_device
from npusim.types import MemRefType, SubviewType


def read_high(text: str, file: str = "<mlir>") -> Design:
    """The design of one module.

    DesignError: the text is wrong. UnsupportedError: it uses something that npusim has no notion of, by name.
    """
    return _Reader(parse(text, file).op).design


class _Reader:
    """The design being read and the objects that the module's values and symbols stand for."""

    def __init__(self, module: RawOp) -> None:
        self.tiles: dict[Value, LogicalTile] = {}
        self.things: dict[Value, Value] = {}
        body, around = one_device(module)
        self.design = Design(device_of(body), body.prop("sym_name", "main"))
        self.design.scratchpads += [Scratchpad(op.need("sym_name"), str(op.need("type"))) for op in around]
        for op in ops_of(body):
            handler = _HANDLERS.get(op.name)
            if handler is None:
                refuse_unknown(frozenset())(op)
                raise UnsupportedError(f"{op.loc}: operation {op.name} is not read in a device")
            known = PROPERTIES[op.name]
            for name in op.props:
                if name not in known:
                    raise UnsupportedError(f"{op.loc}: property {name} of {op.name} is not read here")
            handler(self, op)
        self._mark_parameters()

    # -- tiles and their connections

    def _logical_tile(self, op: RawOp) -> None:
        number = op.need("tile_type")
        if number >= len(KINDS):
            raise UnsupportedError(f"{op.loc}: tile type {number} is none of an NPU's")
        self._tile(op, LogicalTile(KINDS[number], op.prop("col"), op.prop("row")))

    def _placed_tile(self, op: RawOp) -> None:
        col, row = op.need("col"), op.need("row")
        self._tile(op, LogicalTile(self.design.device.kind(row), col, row))

    def _tile(self, op: RawOp, tile: LogicalTile) -> None:
        self.tiles[op.result] = tile
        self.design.tiles.append(tile)

    def _tiles(self, op: RawOp) -> list[LogicalTile]:
        for value in op.operands:
            if value not in self.tiles:
                raise DesignError(f"{op.loc}: {op.name} needs tiles as its operands")
        return [self.tiles[value] for value in op.operands]

    def _fifo(self, op: RawOp) -> None:
        producer, *consumers = self._tiles(op)
        if op.prop("plio"):
            raise UnsupportedError(f"{op.loc}: plio of fifo {op.prop('sym_name')!r}")
        channels = op.prop("cons_dma_channels", ())
        element = fifo_type(op, "elemType")
        self.design.fifos.append(
            Fifo(
                op.need("sym_name"),
                element,
                producer,
                consumers,
                op.need("elemNumber"),
                op.prop("dimensionsToStream", ()),
                op.prop("dimensionsFromStreamPerConsumer", ()),
                op.prop("via_DMA", False),
                op.prop("repeat_count"),
                op.prop("iter_count"),
                op.prop("padDimensions", ()),
                pad_element(op.prop("padValue", 0), element),
                list(op.prop("initValues")) if "initValues" in op.props else None,
                fifo_type(op, "consumerElemType") if "consumerElemType" in op.props else None,
                op.prop("disable_synchronization", False),
                producer_channel=op.prop("prod_dma_channel"),
                consumer_channels=tuple(None if n < 0 else n for n in channels),
                loc=op.loc,
            )
        )

    def _allocate(self, op: RawOp) -> None:
        self._named(op, op.need("objFifo_name")).delegate_tile = self._tiles(op)[0]

    def _named(self, op: RawOp, name: str) -> Fifo:
        try:
            return self.design.fifo(name)
        except KeyError:
            raise DesignError(f"{op.loc}: {op.name} names fifo {name!r}, which is not there") from None

    def _link(self, op: RawOp) -> None:
        inputs, outputs = ([self._named(op, n) for n in op.need(key)] for key in ("fifoIns", "fifoOuts"))
        self.design.links.append(
            Link(inputs, outputs, op.prop("src_offsets", ()), op.prop("dst_offsets", ()), loc=op.loc)
        )

    def _flow(self, op: RawOp) -> None:
        source, dest = self._tiles(op)
        (port, channel), (dest_port, dest_channel) = (
            (BUNDLES[op.need(f"{end}_bundle")], op.need(f"{end}_channel")) for end in ("source", "dest")
        )
        self.design.flows.append(Flow(source, dest, port, channel, dest_port, dest_channel, loc=op.loc))

    def _packet_flow(self, op: RawOp) -> None:
        if op.prop("keep_pkt_header") or op.prop("priority_route"):
            raise UnsupportedError(f"{op.loc}: a packet flow that keeps its headers or is a control overlay")
        ends = [(o.name, self._tiles(o)[0], BUNDLES[o.need("bundle")], o.need("channel")) for o in _packet_ends(op)]
        for _, source, port, channel in (end for end in ends if end[0] == "aie.packet_source"):
            for _, dest, dest_port, dest_channel in (end for end in ends if end[0] == "aie.packet_dest"):
                flow = Flow(source, dest, port, channel, dest_port, dest_channel, op.need("ID"), loc=op.loc)
                self.design.flows.append(flow)

    def _allocation(self, op: RawOp) -> None:
        """The name for the shim end of the explicit flow that was written before it."""
        tile, channel = self._tiles(op)[0], op.need("channel_index")
        for flow in self.design.flows:
            end = (flow.source, flow.source_channel) if op.need("channel_dir") else (flow.dest, flow.dest_channel)
            if end == (tile, channel) and flow.shim_symbol is None:
                flow.shim_symbol = op.prop("sym_name")
                return
        direction = DIRECTIONS[op.prop("channel_dir")]
        raise UnsupportedError(
            f"{op.loc}: {op.name} of {direction} {channel} of {tile}, to which no explicit flow leads"
        )

    def _cascade(self, op: RawOp) -> None:
        source, dest = self._tiles(op)
        self.design.cascades.append(Cascade(source, dest, op.loc))

    # -- memory, locks and programs

    def _buffer(self, op: RawOp) -> None:
        type = op.result.type
        if not isinstance(type, MemRefType):
            raise UnsupportedError(f"{op.loc}: a buffer of type {type}")
        tile = self._tiles(op)[0]
        buffer = Buffer(op.need("sym_name"), type, tile, initial(op, type), op.prop("address"), loc=op.loc)
        self.things[op.result] = buffer.value
        self.design.buffers.append(buffer)

    def _lock(self, op: RawOp) -> None:
        tile = self._tiles(op)[0]
        lock = Lock(op.prop("sym_name"), tile, op.prop("init"), op.prop("lockID"), loc=op.loc)
        self.things[op.result] = lock.value
        self.design.locks.append(lock)

    def _function(self, op: RawOp) -> None:
        name, signature = op.need("sym_name"), op.need("function_type")
        if any(region.blocks for region in op.regions) or not isinstance(signature, FunctionType) or signature.results:
            raise UnsupportedError(f"{op.loc}: function {name!r} with a body or results")
        inputs = tuple(t for t in signature.inputs if not isinstance(t, SubviewType))
        if len(inputs) != len(signature.inputs):
            raise UnsupportedError(f"{op.loc}: an object fifo as an argument of function {name!r}")
        link = op.attrs.get("link_with")
        self.design.kernels.append(KernelDecl(name, inputs, str(link) if link else None, loc=op.loc))

    def _core(self, op: RawOp) -> None:
        body = lift(op.regions[0], self.things, refuse_unknown(CORE_OPS))
        tile, dynamic = self._tiles(op)[0], op.prop("dynamic_objfifo_lowering")
        core = Core(tile, body, stack_size=op.prop("stack_size"), dynamic_objfifo_lowering=dynamic, loc=op.loc)
        self.design.cores.append(core)

    def _tile_dma(self, op: RawOp) -> None:
        programs = [self._channel(chain) for chain in chains(op)]
        self.design.tile_dmas.append(TileDma(self._tiles(op)[0], programs, op.loc))

    def _channel(self, chain: Chain) -> ChannelProgram:
        descriptors = [self._descriptor(transfer, chain.pad_value) for transfer in chain.transfers]
        return ChannelProgram(chain.direction, chain.index, descriptors, chain.repeat)

    def _descriptor(self, transfer: Transfer, pad_value: int) -> Descriptor:
        op = transfer.op
        if "iteration" in op.props or "offset_parameter" in op.props:
            raise UnsupportedError(f"{op.loc}: iteration or offset_parameter of a buffer descriptor")
        buffer = self.things.get(op.operands[0], Value("")).owner
        if not isinstance(buffer, Buffer):
            raise UnsupportedError(f"{op.loc}: a buffer descriptor on something that is not an aie.buffer")
        return Descriptor(
            buffer,
            op.prop("static_offset", 0),
            op.prop("static_len"),
            transfer.dims,
            op.prop("pad_dimensions", ()),
            pad_element(pad_value, buffer.type),
            [self._action(use) for use in transfer.acquires],
            [self._action(use) for use in transfer.releases],
            transfer.next,
            transfer.packet_id,
            op.prop("bd_id"),
        )

    def _action(self, use: Use) -> LockAction:
        lock = self.things.get(use.lock, use.lock).owner
        if not isinstance(lock, Lock):
            raise UnsupportedError("a buffer descriptor that uses something that is not an aie.lock")
        return LockAction(lock, use.value, use.exact)

    def _sequence(self, op: RawOp) -> None:
        if self.design.sequence is not None:
            raise UnsupportedError(f"{op.loc}: a second host sequence; one is read")
        body = lift(op.regions[0], self.things, refuse_unknown(SEQUENCE_OPS))
        self.design.sequence = Sequence(body, op.prop("sym_name", "sequence"), op.loc)

    def _mark_parameters(self) -> None:
        """The module does not say which buffers the host may write; those that it does write are."""
        if self.design.sequence is not None:
            written = {op.attrs["buffer"] for op in walk(self.design.sequence.body) if op.name == "aiex.npu.rtp_write"}
            for buffer in self.design.buffers:
                buffer.host_written = buffer.name in written

    def _end(self, op: RawOp) -> None:
        pass


def _packet_ends(flow: RawOp) -> list[RawOp]:
    return [op for op in ops_of(flow) if op.name != "aie.end"]


_HANDLERS: dict[str, Callable[[_Reader, RawOp], None]] = {
    "aie.logical_tile": _Reader._logical_tile,
    "aie.tile": _Reader._placed_tile,
    "aie.objectfifo": _Reader._fifo,
    "aie.objectfifo.allocate": _Reader._allocate,
    "aie.objectfifo.link": _Reader._link,
    "aie.flow": _Reader._flow,
    "aie.packet_flow": _Reader._packet_flow,
    "aie.shim_dma_allocation": _Reader._allocation,
    "aie.cascade_flow": _Reader._cascade,
    "aie.buffer": _Reader._buffer,
    "aie.lock": _Reader._lock,
    "func.func": _Reader._function,
    "aie.core": _Reader._core,
    "aie.mem": _Reader._tile_dma,
    "aie.memtile_dma": _Reader._tile_dma,
    "aie.shim_dma": _Reader._tile_dma,
    "aie.runtime_sequence": _Reader._sequence,
    "aie.end": _Reader._end,
}

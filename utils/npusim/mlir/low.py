"""Reads a compiled module of the ``aie`` dialect (tiles, addresses, locks, descriptors, switches) as a machine.

Such a module has no fifos; only the names of buffers and locks tell, for messages, which fifo they served. Control packets
and what is there for them, wires and external buffers are passed over.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from npusim.errors import DesignError, UnsupportedError
from npusim.graph import KernelDecl, Scratchpad
from npusim.ir import Value, walk
from npusim.machine import (
    BufferDescriptor,
    CascadeLink,
    Coord,
    CoreProgram,
    Direction,
    DmaChannel,
    LockUse,
    Machine,
    MachineLock,
    MemBuffer,
    Route,
)
from npusim.mlir.attributes import FunctionType
from npusim.mlir.bodies import lift, refuse_unknown
from npusim.mlir.chains import Chain, Transfer, Use, chains
from npusim.mlir.enums import BUNDLES, DIRECTIONS
from npusim.mlir.generic import RawOp, ops_of, parse
from npusim.mlir.padding import pad_element
from npusim.mlir.registers import settle_registers
from npusim.mlir.schema import LOW_CORE_OPS, LOW_DEVICE_OPS, LOW_DIALECTS, LOW_SEQUENCE_OPS
from npusim.mlir.switches import Switches
from npusim.mlir.things import device_of, initial, one_device
from npusim.place.compass import OPPOSITE, beyond
from npusim.types import MemRefType, SubviewType

DEFAULT_STACK = 1024  # bytes, for a core without stack_size

_LOCK = re.compile(r"(.+?)(?:(?:_\d+)?_cons)?_(prod|cons)_lock_\d+")
_BUFFER = re.compile(r"(.+?)(?:(?:_\d+)?_cons)?_buff_\d+")
_OVERLAY = frozenset({"TileControl", "Trace"})  # streams that carry no data of the design


def read_low(text: str, file: str = "<mlir>") -> Machine:
    """The machine of one compiled module.

    DesignError: the text is wrong. UnsupportedError: it uses something that npusim has no notion of, by name.
    """
    return _Reader(parse(text, file).op).machine


class _Reader:
    """The machine being read and what the module's values stand for."""

    def __init__(self, module: RawOp) -> None:
        body, around = one_device(module)
        self.machine = Machine(device_of(body), body.prop("sym_name", "main"))
        self.tiles: dict[Value, Coord] = {}
        self.buffers: dict[Value, MemBuffer] = {}
        self.locks: dict[Value, MachineLock] = {}
        self.channels: dict[tuple[Coord, Direction, int], DmaChannel] = {}
        self.cascades: dict[Coord, tuple[str, str]] = {}  # the sides of input and output
        self.switches = Switches()
        self.flows: list[tuple[DmaChannel, list[DmaChannel], int | None]] = []
        self.parameters = {op.prop("state_table_idx", 0): op for op in around}
        self.machine.scratchpads += [Scratchpad(op.need("sym_name"), str(op.need("type"))) for op in around]
        for op in ops_of(body):
            if op.name in _HANDLERS:
                _HANDLERS[op.name](self, op)
            elif op.name not in LOW_DEVICE_OPS:
                refuse_unknown(frozenset())(op)
                raise UnsupportedError(f"{op.loc}: operation {op.name} is not read in a compiled device")
        self.machine.channels += self.channels.values()
        self.machine.routes += self.routes()
        self.machine.cascades += self.cascade_links()
        self.machine.sequence_locks |= self.locks

    # -- tiles, memory, locks

    def _tile(self, op: RawOp) -> None:
        self.tiles[op.result] = Coord(op.need("col"), op.need("row"))

    def _at(self, op: RawOp) -> Coord:
        if not op.operands or op.operands[0] not in self.tiles:
            raise DesignError(f"{op.loc}: {op.name} needs an aie.tile as its operand")
        return self.tiles[op.operands[0]]

    def _buffer(self, op: RawOp) -> None:
        type, name = op.result.type, op.need("sym_name")
        if not isinstance(type, MemRefType):
            raise UnsupportedError(f"{op.loc}: a buffer of type {type}")
        match = _BUFFER.fullmatch(name)
        buffer = MemBuffer(
            name,
            self._at(op),
            type,
            op.need("address"),
            op.prop("mem_bank"),
            initial(op, type),
            match.group(1) if match else None,
            loc=op.loc,
        )
        self.buffers[op.result] = buffer
        self.machine.buffers.append(buffer)
        self.machine.sequence_buffers[name] = buffer

    def _lock(self, op: RawOp) -> None:
        tile, number = self._at(op), op.need("lockID")
        name = op.prop("sym_name", f"lock {number} of {tile}")
        lock = MachineLock(name, tile, number, op.prop("init", 0))
        if match := _LOCK.fullmatch(name):
            lock.fifo, lock.counts = match.group(1), "free" if match.group(2) == "prod" else "full"
        self.locks[op.result] = lock
        self.machine.locks.append(lock)

    # -- channels

    def _channel(self, tile: Coord, direction: Direction, index: int, op: RawOp) -> DmaChannel:
        return self.channels.setdefault((tile, direction, index), DmaChannel(tile, direction, index, loc=op.loc))

    def _allocation(self, op: RawOp) -> None:
        name: str = op.need("sym_name")
        channel = self._channel(self._at(op), DIRECTIONS[op.need("channel_dir")], op.need("channel_index"), op)
        channel.fifo = channel.fifo or name.removesuffix("_shim_alloc")
        self.machine.host_channels[name] = channel

    def _tile_dma(self, op: RawOp) -> None:
        tile = self._at(op)
        for chain in chains(op):
            channel = self._channel(tile, chain.direction, chain.index, chain.op)
            if channel.descriptors:
                raise DesignError(f"{chain.op.loc}: a second program for {channel}")
            channel.descriptors = [self._descriptor(transfer, chain) for transfer in chain.transfers]
            channel.repeat = chain.repeat
            owners = [d.buffer.fifo for d in channel.descriptors if isinstance(d.buffer, MemBuffer)]
            channel.fifo = owners[0] if owners else None

    def _descriptor(self, transfer: Transfer, chain: Chain) -> BufferDescriptor:
        op = transfer.op
        if "iteration" in op.props or "offset_parameter" in op.props:
            raise UnsupportedError(f"{op.loc}: iteration or offset_parameter of a buffer descriptor")
        buffer = self.buffers.get(op.operands[0])
        if buffer is None:
            raise UnsupportedError(f"{op.loc}: a buffer descriptor on something that is not an aie.buffer")
        offset = op.prop("static_offset", 0)
        return BufferDescriptor(
            buffer,
            offset,
            op.prop("static_len", buffer.type.size - offset),
            transfer.dims,
            op.prop("pad_dimensions", ()),
            pad_element(chain.pad_value, buffer.type),
            tuple(self._use(use, op) for use in transfer.acquires),
            tuple(self._use(use, op) for use in transfer.releases),
            transfer.next,
            op.prop("bd_id"),
            transfer.packet_id,
        )

    def _use(self, use: Use, op: RawOp) -> LockUse:
        if use.lock not in self.locks:
            raise UnsupportedError(f"{op.loc}: a descriptor that uses something that is not an aie.lock")
        return LockUse(self.locks[use.lock], use.value, use.exact)

    # -- streams

    def _switch(self, op: RawOp) -> None:
        self.switches.add(self._at(op), op)

    def _flow(self, op: RawOp) -> None:
        ends = [(self.tiles[v], side) for v, side in zip(op.operands, ("source", "dest"), strict=True)]
        ports = [(tile, BUNDLES[op.need(f"{side}_bundle")], op.need(f"{side}_channel")) for tile, side in ends]
        self._stream(op, ports[0], ports[1:], None)

    def _packet_flow(self, op: RawOp) -> None:
        ends = [(o.name, (self._at(o), BUNDLES[o.need("bundle")], o.need("channel"))) for o in _ends(op)]
        dests = [port for name, port in ends if name == "aie.packet_dest"]
        for source in (port for name, port in ends if name == "aie.packet_source"):
            self._stream(op, source, dests, op.need("ID"))

    def _stream(
        self, op: RawOp, source: tuple[Coord, str, int], dests: list[tuple[Coord, str, int]], packet: int | None
    ) -> None:
        bundles = {port[1] for port in (source, *dests)}
        if bundles & _OVERLAY:
            return
        if bundles != {"DMA"}:
            raise UnsupportedError(
                f"{op.loc}: a stream between ports {', '.join(sorted(bundles))}; between DMAs are read"
            )
        tile, _, index = source
        to = [self._channel(at, "S2MM", channel, op) for at, _, channel in dests]
        self.flows.append((self._channel(tile, "MM2S", index, op), to, packet))

    def routes(self) -> Iterator[Route]:
        """What the switches connect, then the flows that no switch serves."""
        served: set[tuple[DmaChannel, DmaChannel]] = set()
        for tile, index in self.switches.sources():
            hops, ends = self.switches.follow(tile, index)
            source = self.channels.get((tile, "MM2S", index))
            dests = [self.channels[at, "S2MM", i] for at, i in ends if (at, "S2MM", i) in self.channels]
            if source is not None and dests:
                served.update((source, dest) for dest in dests)
                yield Route(source, dests, source.fifo or str(source), tuple(hops))
        for source, dests, packet in self.flows:
            rest = [dest for dest in dests if (source, dest) not in served]
            if rest:
                hops = [] if packet is None else self.switches.follow(source.tile, source.index, packet)[0]
                yield Route(source, rest, source.fifo or str(source), tuple(hops), packet)

    def _cascade(self, op: RawOp) -> None:
        self.cascades[self._at(op)] = BUNDLES[op.need("inputDir")], BUNDLES[op.need("outputDir")]

    def cascade_links(self) -> Iterator[CascadeLink]:
        """The pairs of neighbours of which one puts out where the other takes in."""
        for tile, (_, side) in self.cascades.items():
            other = beyond((tile, side))
            if other in self.cascades and self.cascades[other][0] == OPPOSITE[side]:
                yield CascadeLink(tile, other)

    # -- programs

    def _function(self, op: RawOp) -> None:
        name, signature = op.need("sym_name"), op.need("function_type")
        if any(region.blocks for region in op.regions) or not isinstance(signature, FunctionType):
            raise UnsupportedError(f"{op.loc}: function {name!r} with a body")
        inputs = tuple(t for t in signature.inputs if not isinstance(t, SubviewType))
        link = op.attrs.get("link_with")
        self.machine.kernels[name] = KernelDecl(name, inputs, str(link) if link else None, loc=op.loc)

    def _core(self, op: RawOp) -> None:
        if not op.regions[0].blocks or "elf_file" in op.props:
            raise UnsupportedError(f"{op.loc}: a core that is only an ELF file")
        tile, stack = self._at(op), op.prop("stack_size", DEFAULT_STACK)
        body = lift(op.regions[0], {}, refuse_unknown(LOW_CORE_OPS, LOW_DIALECTS))
        core = CoreProgram(tile, body, f"core {tile}", stack, buffers=self.buffers, locks=self.locks, loc=op.loc)
        self.machine.cores.append(core)

    def _sequence(self, op: RawOp) -> None:
        if self.machine.sequence is not None:
            raise UnsupportedError(f"{op.loc}: a second host sequence; one is read")
        body = lift(op.regions[0], {}, refuse_unknown(LOW_SEQUENCE_OPS))
        settle_registers(body, {index: str(p.need("sym_name")) for index, p in self.parameters.items()})
        self.machine.sequence = body
        for inner in walk(body):
            if inner.name == "aiex.npu.rtp_write" and inner.attrs["buffer"] in self.machine.sequence_buffers:
                self.machine.sequence_buffers[inner.attrs["buffer"]].host_written = True


def _ends(flow: RawOp) -> list[RawOp]:
    return [op for op in ops_of(flow) if op.name != "aie.end"]


_HANDLERS: dict[str, Callable[[_Reader, RawOp], None]] = {
    "aie.tile": _Reader._tile,
    "aie.buffer": _Reader._buffer,
    "aie.lock": _Reader._lock,
    "aie.shim_dma_allocation": _Reader._allocation,
    "aie.mem": _Reader._tile_dma,
    "aie.memtile_dma": _Reader._tile_dma,
    "aie.switchbox": _Reader._switch,
    "aie.shim_mux": _Reader._switch,
    "aie.flow": _Reader._flow,
    "aie.packet_flow": _Reader._packet_flow,
    "aie.configure_cascade": _Reader._cascade,
    "func.func": _Reader._function,
    "aie.core": _Reader._core,
    "aie.runtime_sequence": _Reader._sequence,
}

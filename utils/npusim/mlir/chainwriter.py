"""Writes an explicit DMA program as the control flow graph that :mod:`npusim.mlir.chains` reads."""

from __future__ import annotations

from collections.abc import Mapping

from npusim.errors import DesignError
from npusim.graph import ChannelProgram, Descriptor, LockAction, TileDma
from npusim.ir import Block, Region, Value
from npusim.mlir.attributes import Attribute, DenseArray, Int, Pairs
from npusim.mlir.enums import AT_LEAST, DIRECTIONS, EXACT, RELEASE
from npusim.mlir.generic import RawOp
from npusim.mlir.padding import pad_word

_NAMES = {"core": "aie.mem", "mem": "aie.memtile_dma", "shim": "aie.shim_dma"}


def dma_program(dma: TileDma, tile: Value, things: Mapping[Value, Value]) -> RawOp:
    """The operation of one tile: for each channel its ``dma_start`` and a block for each of its descriptors."""
    program = RawOp(_NAMES[dma.tile.kind], (tile,))
    program.results = [Value("index", program)]
    block = Block()
    blocks = [block]
    for channel in dma.channels:
        chain = [Block() for _ in channel.descriptors]
        rest = Block()
        block.ops.append(_start(channel, chain[0] if chain else rest, rest))
        for descriptor, place in zip(channel.descriptors, chain, strict=True):
            _fill(place, descriptor, chain, things)
        blocks += [*chain, rest]
        block = rest
    block.ops.append(RawOp("aie.end"))
    program.regions = [Region(blocks)]
    return program


def _start(channel: ChannelProgram, first: Block, rest: Block) -> RawOp:
    props: dict[str, Attribute] = {
        "channel_dir": _i32(DIRECTIONS.index(channel.direction)),
        "channel_index": _i32(channel.index),
        "repeat_count": _i32(channel.repeat),
    }
    words = {pad_word(d.pad_value, d.buffer.type) for d in channel.descriptors if d.pad_value}
    if len(words) > 1:
        raise DesignError(f"{channel.direction} {channel.index} pads with several values; a channel has one")
    if words:
        props["pad_value"] = _i32(words.pop())
    start = RawOp("aie.dma_start", successors=[(first, ()), (rest, ())], props=props)
    start.results = [Value("i1", start)]
    return start


def _fill(block: Block, descriptor: Descriptor, chain: list[Block], things: Mapping[Value, Value]) -> None:
    for action in descriptor.acquires:
        block.ops += _use_lock(action, EXACT if action.equal else AT_LEAST, things)
    if descriptor.packet_id is not None:
        block.ops.append(
            RawOp("aie.dma_bd_packet", props={"packet_type": _i32(0), "packet_id": _i32(descriptor.packet_id)})
        )
    block.ops.append(_transfer(descriptor, things))
    for action in descriptor.releases:
        block.ops += _use_lock(action, RELEASE, things)
    if descriptor.next is None:
        block.ops.append(RawOp("aie.end"))
    else:
        block.ops.append(RawOp("aie.next_bd", successors=[(chain[descriptor.next], ())]))


def _transfer(descriptor: Descriptor, things: Mapping[Value, Value]) -> RawOp:
    props: dict[str, Attribute] = {"operandSegmentSizes": DenseArray("i32", (1, 0, 0, 0, 0))}
    if descriptor.offset:
        props["static_offset"] = _i32(descriptor.offset)
    if descriptor.length is not None:
        props["static_len"] = _i32(descriptor.length)
    if descriptor.dims:
        props["static_sizes"] = DenseArray("i64", tuple(size for size, _ in descriptor.dims))
        props["static_strides"] = DenseArray("i64", tuple(stride for _, stride in descriptor.dims))
    if descriptor.pad:
        props["pad_dimensions"] = Pairs("bd_pad_layout_array", tuple(descriptor.pad))
    if descriptor.bd_id is not None:
        props["bd_id"] = _i32(descriptor.bd_id)
    return RawOp("aie.dma_bd", (_thing(descriptor.buffer.value, descriptor.buffer.name, things),), props=props)


def _use_lock(use: LockAction, action: int, things: Mapping[Value, Value]) -> list[RawOp]:
    constant = RawOp("arith.constant", props={"value": _i32(use.value)})
    constant.results = [Value("i32", constant)]
    lock = _thing(use.lock.value, use.lock.name, things)
    return [constant, RawOp("aie.use_lock", (lock, constant.result), props={"action": _i32(action)})]


def _thing(value: Value, name: str | None, things: Mapping[Value, Value]) -> Value:
    if value not in things:
        raise DesignError(f"a DMA program uses {name!r}, which the design does not list")
    return things[value]


def _i32(value: int) -> Int:
    return Int(int(value), "i32")

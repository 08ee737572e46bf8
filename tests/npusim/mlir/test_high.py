"""Generated modules read into the design graph."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from npusim.errors import DesignError, UnsupportedError
from npusim.ir import FOREVER, walk
from npusim.mlir import print_design, read_high
from npusim.types import MemRefType, SubviewType

MLIR = Path(__file__).parents[2] / "data" / "reference" / "mlir"
IRON = sorted(MLIR.glob("iron_*.high.mlir"))
AIR = sorted(MLIR.glob("air_*.high.mlir"))


def recorded(name: str):
    return read_high((MLIR / f"{name}.high.mlir").read_text(), f"{name}.high.mlir")


def wrapped(*ops: str, before: str = "") -> str:
    """A module around operations of a device with one core tile %0, one MemTile %1 and one shim tile %2."""
    tiles = [
        f'%{i} = "aie.logical_tile"() <{{tile_type = {kind} : i32}}> : () -> index' for i, kind in enumerate((0, 1, 2))
    ]
    body = "\n".join((*tiles, *ops, '"aie.end"() : () -> ()'))
    return (
        f'"builtin.module"() ({{\n{before}"aie.device"() <{{device = 4 : i32, sym_name = "main"}}> ({{\n{body}\n'
        "}) : () -> ()\n}) : () -> ()"
    )


FIFO = (
    '"aie.objectfifo"(%2, %0) <{{dimensionsFromStreamPerConsumer = #aie<bd_dim_layout_array_array[[]]>, '
    "dimensionsToStream = #aie<bd_dim_layout_array[]>, disable_synchronization = false, elemNumber = 2 : i32, "
    'elemType = !aie.objectfifo<memref<16xi16>>, {}plio = false, sym_name = "x", via_DMA = false}}> : (index, index) -> ()'
)


def test_the_recorded_modules_are_there() -> None:
    assert (len(IRON), len(AIR)) == (40, 12)


@pytest.mark.parametrize("path", IRON, ids=lambda p: p.name)
def test_reading_and_printing_gives_the_same_text(path: Path) -> None:
    text = path.read_text()
    printed = print_design(read_high(text))
    if "iron_jit" in path.name:  # recorded after a pass through the dialect's own syntax, which leaves defaults out
        text = text.replace("<{alloc = @fx}>", "<{alloc = @fx, issue_token = false, repeat_count = 0 : i32}>")
        text = text.replace("issue_token = true}>", "issue_token = true, repeat_count = 0 : i32}>")
        text = text.replace('"aie.dma_bd"(%arg0) <{', '"aie.dma_bd"(%arg0) <{burst_length = 0 : i32, ')
        text = text.replace('"aie.dma_bd"(%arg1) <{', '"aie.dma_bd"(%arg1) <{burst_length = 0 : i32, ')
    assert printed.rstrip() == text.rstrip()


@pytest.mark.parametrize("path", AIR, ids=lambda p: p.name)
def test_modules_of_mlir_air_are_refused_by_name(path: Path) -> None:
    with pytest.raises(UnsupportedError, match=rf"{path.name}:\d+: dialect 'air' \(operation air\."):
        read_high(path.read_text(), path.name)


def test_fifos_and_their_ends() -> None:
    design = recorded("iron_broadcast4.npu2")
    assert design.device.name == "npu2"
    fifo = design.fifo("x")
    assert (fifo.type, fifo.depth) == (MemRefType((128,), "i32"), (2, 2, 3, 2, 3))
    assert fifo.producer.kind == "shim"
    assert fifo.consumers[0] is design.cores[0].tile
    assert fifo.from_stream == ((), (), (), ())


def placed(tile) -> tuple[int | None, int | None]:
    return tile.col, tile.row


def test_links_transforms_padding_and_repeats() -> None:
    design = recorded("iron_repeat_pad.npu1")
    assert design.fifo("xp").to_stream == ((6, 16), (16, 1))
    assert design.fifo("xp").pad == ((1, 1), (2, 2))
    assert design.fifo("wr").repeat_count == 4
    assert [([f.name for f in k.inputs], [f.name for f in k.outputs], k.dst_offsets) for k in design.links] == [
        (["w"], ["wr"], (0,)),
        (["x"], ["xp"], (0,)),
    ]
    joined = recorded("iron_split_join4.npu1").links
    assert [(k.src_offsets, k.dst_offsets) for k in joined] == [((0, 64, 128, 192), ()), ((), (0, 64, 128, 192))]


def test_buffers_locks_and_the_values_that_stand_for_them() -> None:
    design = recorded("iron_rtp_barrier.npu1")
    parameters, table = design.buffers
    assert (parameters.name, parameters.host_written, parameters.initial) == ("rtp", True, None)
    assert (table.host_written, table.initial.tolist()) == (False, list(range(32)))
    (lock,) = design.locks
    assert (lock.name, lock.init) == (None, None)
    ops = list(walk(design.cores[0].body))
    uses = [op for op in ops if op.name == "aie.use_lock"]
    assert [(op.operands[0], op.attrs) for op in uses] == [(lock.value, {"action": 0}), (lock.value, {"action": 1})]
    assert {
        op.operands[0].owner for op in ops if op.name == "memref.load" and op.operands[0].owner in design.buffers
    } == {
        parameters,
        table,
    }
    assert [op.attrs for op in walk(design.sequence.body) if op.name == "aiex.npu.rtp_write"] == [
        {"buffer": "rtp", "index": 0},
        {"buffer": "rtp", "index": 2},
    ]


def test_core_bodies_have_plain_attributes() -> None:
    (core,) = recorded("iron_jit.npu1").cores
    first = core.body.entry.ops
    assert [op.attrs.get("value") for op in first[:3]] == [0, FOREVER, 1]
    loop = first[3]
    acquire, access = loop.regions[0].entry.ops[:2]
    assert acquire.attrs == {"objFifo_name": "fx", "port": 1, "size": 1}
    assert acquire.result.type == SubviewType(MemRefType((128,), "i32"))
    assert access.operands == (acquire.result,)
    assert access.result.owner is access
    add = next(op for op in walk(core.body) if op.name == "arith.addi")
    assert add.attrs == {}  # overflowFlags say nothing
    assert add.loc.line > 10


def test_host_transfers_have_the_same_attributes_however_they_were_printed() -> None:
    ops = list(walk(recorded("iron_jit.npu1").sequence.body))
    assert [op.attrs for op in ops if op.name == "aiex.dma_configure_task_for"] == [
        {"alloc": "fx", "issue_token": False, "repeat_count": 0},
        {"alloc": "fy", "issue_token": True, "repeat_count": 0},
    ]
    assert [op.attrs for op in ops if op.name == "aie.dma_bd"] == [
        {
            "burst_length": 0,
            "static_len": 128,
            "static_offset": 0,
            "static_sizes": (1, 1, 1, 128),
            "static_strides": (0, 0, 0, 1),
        }
    ] * 2


def test_explicit_dma_programs() -> None:
    design = recorded("iron_tile_dma.npu1")
    (flow,) = design.flows
    assert (placed(flow.source), flow.source_port, placed(flow.dest), flow.dest_channel) == ((0, 4), "DMA", (0, 2), 0)
    sender, receiver = design.tile_dmas
    (channel,) = sender.channels
    (descriptor,) = channel.descriptors
    assert (channel.direction, channel.index, channel.repeat, descriptor.next) == ("MM2S", 0, 0, 0)
    assert descriptor.buffer.name == "src"
    assert [(a.lock.name, a.value, a.equal) for a in descriptor.acquires + descriptor.releases] == [
        ("go", 1, False),
        ("done", 1, False),
    ]
    assert receiver.channels[0].direction == "S2MM"


def test_kernels_and_cascades_and_scratchpads() -> None:
    design = recorded("iron_cascade.npu1")
    assert [(k.name, k.arg_types, k.object_file) for k in design.kernels] == [
        ("half_put", (MemRefType((64,), "i32"),), "casc.o"),
        ("half_get", (MemRefType((64,), "i32"), MemRefType((64,), "i32")), "casc.o"),
    ]
    assert [(c.source, c.dest) for c in design.cascades] == [(design.cores[0].tile, design.cores[1].tile)]
    assert [(s.name, s.element) for s in recorded("iron_shared_buffer.npu1").scratchpads] == [("gain", "i32")]


def test_everything_else_of_a_fifo() -> None:
    design = read_high(
        wrapped(
            FIFO.format(
                "consumerElemType = !aie.objectfifo<memref<8xi16>>, cons_dma_channels = array<i32: 1>, "
                "initValues = [dense<1> : tensor<16xi16>, dense<2> : tensor<16xi16>], iter_count = 3 : i32, "
                "padValue = 458759 : i32, prod_dma_channel = 0 : i32, "
            ),
            '"aie.objectfifo.allocate"(%1) <{objFifo_name = @x}> : (index) -> ()',
        )
    )
    fifo = design.fifo("x")
    assert fifo.consumer_type == MemRefType((8,), "i16")
    assert (fifo.consumer_channels, fifo.producer_channel, fifo.iter_count) == ((1,), 0, 3)
    assert fifo.pad_value == 7  # the word 0x00070007 repeats it
    assert [v[0] for v in fifo.init_values] == [1, 2]
    assert fifo.delegate_tile is design.tiles[1]
    assert print_design(read_high(print_design(design))) == print_design(design)


def test_flows_by_packet_and_by_name() -> None:
    ends = "dest_bundle = 1 : i32, dest_channel = 1 : i32, source_bundle = 1 : i32, source_channel = 0 : i32"
    text = wrapped(
        f'"aie.flow"(%2, %0) <{{{ends}}}> : (index, index) -> ()',
        '"aie.shim_dma_allocation"(%2) <{channel_dir = 1 : i32, channel_index = 0 : i64, plio = false, '
        'sym_name = "in"}> : (index) -> ()',
        '"aie.packet_flow"() <{ID = 5 : i8}> ({\n"aie.packet_source"(%0) <{bundle = 1 : i32, channel = 1 : i32}> : '
        '(index) -> ()\n"aie.packet_dest"(%1) <{bundle = 1 : i32, channel = 2 : i32}> : (index) -> ()\n'
        '"aie.end"() : () -> ()\n}) : () -> ()',
    )
    design = read_high(text)
    plain, packets = design.flows
    assert (plain.shim_symbol, plain.dest_channel, plain.packet_id) == ("in", 1, None)
    assert (packets.packet_id, packets.source_channel, packets.dest_channel) == (5, 1, 2)
    assert "\n".join(line.strip() for line in print_design(design).splitlines()) == text


def test_placed_tiles_are_read_as_well() -> None:
    text = wrapped('%9 = "aie.tile"() <{col = 2 : i32, row = 1 : i32}> : () -> index')
    tile = read_high(text).tiles[-1]
    assert (tile.kind, tile.col, tile.row) == ("mem", 2, 1)


REFUSED = [
    (wrapped('"aie.plio"() <{col = 1 : i32}> : () -> ()'), "operation aie.plio"),
    (wrapped('"vector.print"() : () -> ()'), r"dialect 'vector' \(operation vector.print\)"),
    (wrapped(FIFO.format("aie_stream = 1 : i32, ")), "property aie_stream of aie.objectfifo"),
    (wrapped(FIFO.format("").replace("plio = false", "plio = true")), "plio of fifo 'x'"),
    (wrapped(FIFO.format("padValue = 7 : i32, ")), "pad value 0x00000007"),
    (wrapped('%9 = "aie.core"(%0) ({\n"llvm.trap"() : () -> ()\n}) : (index) -> index'), "dialect 'llvm'"),
    (wrapped('%9 = "aie.core"(%0) ({\n"aie.event"() : () -> ()\n}) : (index) -> index'), "operation aie.event"),
    (wrapped().replace("device = 4", "device = 1"), "device 1 is not an NPU"),
    (wrapped().replace("tile_type = 2", "tile_type = 3"), "tile type 3"),
    (wrapped(before='"aiex.configure"() : () -> ()\n'), "operation aiex.configure"),
    ('"builtin.module"() ({\n}) : () -> ()', "0 aie.device"),
    (wrapped('"func.func"() <{function_type = () -> i32, sym_name = "f"}> ({\n}) : () -> ()'), "'f' with a body or results"),
    (
        wrapped('"aie.shim_dma_allocation"(%2) <{channel_dir = 1 : i32, channel_index = 0 : i64, sym_name = "in"}> : (index) -> ()'),
        "MM2S 0 of shim tile",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("text", "words"), REFUSED)
def test_what_is_not_served_is_named(text: str, words: str) -> None:
    with pytest.raises(UnsupportedError, match=words):
        read_high(text)


WRONG = [
    ('"aie.device"() ({\n}) : () -> ()', "expected builtin.module"),
    (wrapped('"aie.objectfifo.link"() <{fifoIns = [@a], fifoOuts = [@b]}> : () -> ()'), "fifo 'a', which is not there"),
    (wrapped('"aie.cascade_flow"(%0, %9) : (index, index) -> ()', '%9 = "aie.lock"(%0) : (index) -> index'), "needs tiles"),
    (wrapped(FIFO.format("").replace("elemNumber = 2 : i32, ", "")), "aie.objectfifo lacks its property elemNumber"),
    (wrapped('%9 = "aie.buffer"(%0) <{initial_value = dense<[1, 2]> : tensor<2xi8>, sym_name = "b"}> : (index) -> memref<3xi8>'),
     "2 initial values for a buffer of type memref<3xi8>"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "words"), WRONG)
def test_what_is_wrong_is_a_design_error(text: str, words: str) -> None:
    with pytest.raises(DesignError, match=words):
        read_high(text)


def test_initial_values_take_the_shape_of_the_buffer() -> None:
    text = wrapped(
        '%9 = "aie.buffer"(%0) <{initial_value = dense<3> : tensor<8xi8>, sym_name = "b"}> : (index) -> memref<2x4xi8>'
    )
    (buffer,) = read_high(text).buffers
    assert np.array_equal(buffer.initial, np.full((2, 4), 3, np.int8))

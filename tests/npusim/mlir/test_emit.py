"""Any design graph survives being printed and read again."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from npusim.devices import DEVICES, device
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
from npusim.ir import Op, Region, Value
from npusim.mlir import compare, print_design, read_high
from npusim.types import MemRefType, numpy_dtype

NAMES = st.text(st.sampled_from('abc_9. ü"\\'), min_size=1, max_size=6)
ELEMENTS = st.sampled_from(["i8", "i16", "i32", "ui8", "bf16", "f32", "i64", "f16"])
SHAPES = st.lists(st.integers(1, 6), min_size=1, max_size=3).map(tuple)
TYPES = st.builds(MemRefType, SHAPES, ELEMENTS)
PAIRS = st.lists(st.tuples(st.integers(1, 64), st.integers(0, 512)), max_size=4).map(tuple)
MAYBE = st.none() | st.integers(1, 200)


@st.composite
def arrays(draw: st.DrawFn, of: MemRefType) -> np.ndarray:
    """Any contents of that type, splats and exact bit patterns included."""
    dtype = numpy_dtype(of.element)
    if draw(st.booleans()):
        return np.full(of.shape, draw(st.integers(0, 100)), dtype)
    data = draw(st.binary(min_size=of.nbytes, max_size=of.nbytes))
    return np.frombuffer(data, dtype).reshape(of.shape).copy()


@st.composite
def fifos(draw: st.DrawFn, name: str, tiles: list[LogicalTile]) -> Fifo:
    of = draw(TYPES)
    consumers = draw(st.lists(st.sampled_from(tiles), min_size=1, max_size=3))
    depths = st.integers(1, 9) | st.tuples(*[st.integers(1, 9)] * (1 + len(consumers)))
    return Fifo(
        name,
        of,
        draw(st.sampled_from(tiles)),
        consumers,
        draw(depths),
        draw(PAIRS),
        tuple(draw(PAIRS) for _ in consumers),
        draw(st.booleans()),
        draw(MAYBE),
        draw(MAYBE),
        draw(PAIRS),
        draw(st.integers(-100, 100)) if of.dtype.itemsize < 8 else 0,
        draw(st.none() | st.lists(arrays(of), min_size=1, max_size=2)),
        draw(st.none() | TYPES),
        draw(st.booleans()),
        draw(st.none() | st.sampled_from(tiles)),
        draw(st.none() | st.integers(0, 1)),
        tuple(draw(st.none() | st.integers(0, 5)) for _ in consumers),
    )


@st.composite
def programs(draw: st.DrawFn, tile: LogicalTile, buffers: list[Buffer], locks: list[Lock]) -> TileDma:
    pad = draw(st.sampled_from([0, -1]))  # -1 is the same word for elements of all sizes
    channels = []
    for direction, index in draw(st.sets(st.tuples(st.sampled_from(["S2MM", "MM2S"]), st.integers(0, 1)), min_size=1)):
        count = draw(st.integers(1, 3))
        uses = st.lists(st.builds(LockAction, st.sampled_from(locks), st.integers(0, 9)), max_size=2)
        chain = [
            Descriptor(
                draw(st.sampled_from(buffers)),
                draw(st.integers(0, 9)),
                draw(MAYBE),
                draw(PAIRS),
                draw(PAIRS),
                pad,
                draw(uses),
                draw(uses),
                i + 1,
                draw(st.none() | st.integers(0, 31)),
                draw(st.none() | st.integers(0, 15)),
            )
            for i in range(count)
        ]
        for use in chain[0].acquires:
            use.equal = draw(st.booleans())
        chain[-1].next = draw(st.none() | st.integers(0, count - 1))
        channels.append(ChannelProgram(direction, index, chain, draw(st.integers(0, 9))))
    return TileDma(tile, channels)


@st.composite
def designs(draw: st.DrawFn) -> Design:
    design = Design(device(draw(st.sampled_from(sorted(DEVICES)))), draw(NAMES))
    kinds = ["core", "mem", "shim", *draw(st.lists(st.sampled_from(["core", "mem", "shim"]), max_size=3))]
    coordinates = st.none() | st.integers(0, 5)
    design.tiles = [LogicalTile(kind, draw(coordinates), draw(coordinates)) for kind in kinds]
    names = draw(st.lists(NAMES, min_size=2, max_size=4, unique=True))
    design.fifos = [draw(fifos(name, design.tiles)) for name in names]
    if draw(st.booleans()):
        offsets = draw(st.tuples(*[st.integers(0, 99)] * (len(names) - 1)))
        design.links = [Link(design.fifos[:1], design.fifos[1:], (), offsets)]
    types = draw(
        st.lists(st.builds(MemRefType, SHAPES, st.sampled_from(["i8", "i32", "bf16"])), min_size=1, max_size=3)
    )
    for i, of in enumerate(types):
        initial = draw(st.none() | arrays(of))
        design.buffers.append(Buffer(f"b{i}", of, draw(st.sampled_from(design.tiles)), initial, draw(MAYBE)))
    for name in (*draw(st.lists(NAMES, max_size=2, unique=True)), None):
        tile, init = draw(st.sampled_from(design.tiles)), draw(st.none() | st.integers(0, 9))
        design.locks.append(Lock(name, tile, init, draw(st.none() | st.integers(0, 15))))
    shim, core = design.tiles[2], design.tiles[0]
    design.flows = [
        Flow(shim, core, "DMA", 0, "DMA", 1, shim_symbol=draw(st.none() | NAMES)),
        Flow(core, shim, "DMA", draw(st.integers(0, 1)), "DMA", 0, draw(st.none() | st.integers(0, 31))),
    ]
    design.cascades = [Cascade(core, design.tiles[1])]
    design.tile_dmas = [draw(programs(core, design.buffers, design.locks))]
    design.kernels = [KernelDecl(n, (*types, "i32"), draw(st.none() | NAMES)) for n in draw(st.sets(NAMES, max_size=2))]
    design.scratchpads = [Scratchpad("s", "bf16")]
    return design


@given(designs())
@settings(max_examples=60, deadline=None)
def test_printing_and_reading_gives_the_same_graph(design: Design) -> None:
    text = print_design(design)
    again = read_high(text)
    assert compare(design, again) is None
    assert print_design(again) == text


def small() -> Design:
    design = Design(device("npu1"))
    design.tiles = [LogicalTile("core"), LogicalTile("core")]
    design.buffers = [Buffer("b", MemRefType((4,), "i32"), design.tiles[0])]
    design.locks = [Lock("l", design.tiles[0])]
    return design


def constants(*types: str) -> Region:
    region = Region.single()
    values = {"i1": True, "bf16": 0.1, "f32": float("inf"), "index": -1}
    region.entry.ops += [Op.make("arith.constant", (), (t,), value=values.get(t, 7)) for t in types]
    return region


def test_bodies_with_what_frontends_leave_out() -> None:
    design = small()
    region = constants("i32", "index", "i1", "bf16", "f32", "i8")
    word, place, flag, half = (op.result for op in region.entry.ops[:4])
    view = Op.make(
        "memref.subview",
        (design.buffers[0].value, place),
        (MemRefType((2,), "i32", 0, (1,), True),),
        static_offsets=(-(2**63),),
        static_sizes=(2,),
        static_strides=(1,),
    )
    branch = Op.make("scf.if", (flag,), (), regions=[Region.single()])
    branch.regions[0].entry.ops.append(Op.make("scf.yield"))
    region.entry.ops += [
        Op.make("aie.use_lock", (design.locks[0].value, word), action=2),
        view,
        Op.make("arith.addi", (word, word), ("i32",)),
        Op.make("arith.addf", (half, half), ("bf16",)),
        Op.make("math.exp", (half,), ("bf16",)),
        branch,
    ]
    design.cores = [Core(design.tiles[0], region)]
    design.sequence = Sequence(Region.single(MemRefType((4,), "i32"), "i32"))
    task = Op.make(
        "aiex.dma_configure_task_for", (), ("index",), regions=[Region.single()], alloc="x", issue_token=True
    )
    transfer = Op.make("aie.dma_bd", (design.sequence.body.entry.args[0],), static_len=4, static_offset=0)
    task.regions[0].entry.ops.append(transfer)
    design.sequence.body.entry.ops += [task, Op.make("aiex.dma_start_task", (task.result,))]
    text = print_design(design)
    assert compare(design, read_high(text)) is None
    for line in (
        '"memref.subview"(%3, %7) <{operandSegmentSizes = array<i32: 1, 1, 0, 0>, static_offsets = array<i64: '
        "-9223372036854775808>, static_sizes = array<i64: 2>, static_strides = array<i64: 1>}> : (memref<4xi32>, index) -> "
        "memref<2xi32, strided<[1], offset: ?>>",
        "<{value = 0x7F800000 : f32}>",
        "<{value = 1.000977e-01 : bf16}>",
        "<{value = true}>",
        "<{fastmath = #arith.fastmath<none>}> : (bf16) -> bf16",
        '"aie.end"() : () -> ()',
        "issue_token = true, repeat_count = 0 : i32}>",
        "<{burst_length = 0 : i32, operandSegmentSizes = array<i32: 1, 0, 0, 0, 0>, static_len = 4 : i32",
    ):
        assert line in text


def test_unstructured_bodies_print_their_segments() -> None:
    design = small()
    region = constants("i1", "i32")
    flag, word = (op.result for op in region.entry.ops)
    region.blocks += Region.single("i32").blocks + Region.single().blocks
    _, middle, last = region.blocks
    branch = Op.make("cf.cond_br", (flag,))
    branch.successors = [(middle, (word,)), (last, ())]
    switch = Op.make("cf.switch", (middle.args[0],), case_values=(0, 3))
    switch.successors = [(last, ()), (middle, (word,)), (last, ())]
    region.entry.ops.append(branch)
    middle.ops.append(switch)
    last.ops.append(Op.make("aie.end"))
    design.cores = [Core(design.tiles[0], region)]
    text = print_design(design)
    assert '"cf.cond_br"(%5, %6)[^bb1, ^bb2] <{operandSegmentSizes = array<i32: 1, 1, 0>}>' in text
    assert (
        "<{case_operand_segments = array<i32: 1, 0>, case_values = dense<[0, 3]> : vector<2xi32>, "
        "operandSegmentSizes = array<i32: 1, 0, 1>}>" in text
    )
    assert compare(design, read_high(text)) is None


def _use_unlisted(design: Design) -> None:
    other = Buffer("other", MemRefType((4,), "i32"), design.tiles[0])
    region = constants("index")
    region.entry.ops.append(Op.make("memref.load", (other.value, region.entry.ops[0].result), ("i32",)))
    design.cores = [Core(design.tiles[0], region)]


def _fifo(name: str, design: Design) -> Fifo:
    return Fifo(name, MemRefType((4,), "i32"), design.tiles[0], [design.tiles[1]])


WRONG = [
    (lambda d: d.cascades.append(Cascade(d.tiles[0], LogicalTile("core"))), DesignError, "compute tile (?,?) but does not list it"),
    (_use_unlisted, DesignError, "uses buffer 'other', which the design does not list"),
    (lambda d: d.links.append(Link([_fifo("a", d)], [_fifo("c", d)])), DesignError, "a link joins fifos a, c"),
    (lambda d: d.flows.append(Flow(*d.tiles, source_port="Door")), UnsupportedError, "port 'Door'"),
    (lambda d: d.tile_dmas.append(TileDma(d.tiles[0], [ChannelProgram("MM2S", 0, [
        Descriptor(d.buffers[0], pad_value=n) for n in (1, 2)])])), DesignError, "pads with several values"),
    (lambda d: d.tile_dmas.append(TileDma(d.tiles[0], [ChannelProgram("MM2S", 0, [
        Descriptor(d.buffers[0], acquires=[LockAction(Lock("far", d.tiles[1]))])])])), DesignError, "'far', which the design does not"),
    (lambda d: d.buffers.append(Buffer("w", MemRefType((4,), "i9"), d.tiles[0], np.zeros(4))), UnsupportedError, "i9"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "kind", "words"), WRONG, ids=[w for _, _, w in WRONG])
def test_graphs_that_do_not_hang_together_are_refused(change, kind: type[Exception], words: str) -> None:
    design = small()
    change(design)
    with pytest.raises(kind) as error:
        print_design(design)
    assert words in str(error.value)


def test_a_value_defined_nowhere_is_an_error() -> None:
    design = small()
    region = constants("i32")
    region.entry.ops.append(Op.make("arith.addi", (region.entry.ops[0].result, Value("i32")), ("i32",)))
    design.cores = [Core(design.tiles[0], region)]
    with pytest.raises(DesignError, match=r"arith.addi .* uses a value that nothing defines"):
        print_design(design)

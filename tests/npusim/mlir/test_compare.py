"""Graph equality: every change of a design is found and named."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from npusim.graph import Cascade, Design, KernelDecl, Lock, LogicalTile, Scratchpad
from npusim.ir import Op, Value, walk
from npusim.mlir import compare, print_design, read_high
from npusim.mlir.__main__ import main

MLIR = Path(__file__).parents[2] / "data" / "reference" / "mlir"
IRON = sorted(MLIR.glob("iron_*.high.mlir"))


def recorded(name: str) -> Design:
    return read_high((MLIR / f"{name}.npu1.high.mlir").read_text())


@pytest.mark.parametrize("path", IRON, ids=lambda p: p.name)
def test_a_printed_design_is_the_same_graph(path: Path) -> None:
    design = read_high(path.read_text())
    assert compare(design, read_high(print_design(design))) is None


def test_no_two_recorded_designs_are_the_same() -> None:
    designs = [read_high(p.read_text()) for p in IRON]
    for i, a in enumerate(designs):
        for b in designs[i + 1 :]:
            assert compare(a, b)


def test_the_order_of_listing_does_not_count() -> None:
    a, b = recorded("iron_split_join4"), recorded("iron_split_join4")
    for things in (b.tiles, b.fifos, b.links, b.cores):
        things.reverse()
    assert compare(a, b) is None


def test_what_a_frontend_may_leave_out() -> None:
    a, b = recorded("iron_inline_loop"), recorded("iron_inline_loop")
    for op in (op for core in b.cores for op in walk(core.body) if op.name == "scf.if"):
        assert len(op.regions) == 2
    for fifo in b.fifos:
        fifo.from_stream = ()
    for core in b.cores:
        assert core.body.entry.ops.pop().name == "aie.end"
    for op in walk(b.sequence.body):
        for key in ("burst_length", "repeat_count"):
            op.attrs.pop(key, None)
        if op.attrs.get("issue_token") is False:
            del op.attrs["issue_token"]
        if op.regions:
            op.regions[0].entry.ops.pop()
    assert compare(a, b) is None
    assert print_design(b) == print_design(a)
    links = recorded("iron_memtile_4d")
    for link in links.links:
        link.dst_offsets = ()
    assert compare(recorded("iron_memtile_4d"), links) is None


def op_of(design: Design, name: str, nth: int = 0) -> Op:
    regions = [core.body for core in design.cores] + [design.sequence.body]
    return [op for region in regions for op in walk(region) if op.name == name][nth]


def _set(path: str, value: object) -> Callable[[Design], None]:
    """Set ``fifos.0.depth`` and the like."""

    def change(design: Design) -> None:
        *steps, last = path.split(".")
        thing: object = design
        for step in steps:
            thing = thing[int(step)] if step.lstrip("-").isdigit() else getattr(thing, step)
        assert getattr(thing, last) is not value
        setattr(thing, last, value)

    return change


def _attr(name: str, key: str, value: object, nth: int = 0) -> Callable[[Design], None]:
    def change(design: Design) -> None:
        op_of(design, name, nth).attrs[key] = value

    return change


def _swap_operands(name: str) -> Callable[[Design], None]:
    def change(design: Design) -> None:
        op = op_of(design, name)
        op.operands = op.operands[::-1]

    return change


def _other_end(design: Design) -> None:
    tile = LogicalTile("core")
    design.tiles.append(tile)
    design.fifos[0].consumers[0] = tile


CHANGES = [
    ("iron_via_dma", _set("fifos.0.depth", 3), "fifo 'mid': depth: 2 in the first, 3 in the second"),
    ("iron_via_dma", _set("fifos.0.via_dma", False), "fifo 'mid': via dma: True"),
    ("iron_via_dma", _set("fifos.0.name", "y2"), "fifo 'y2' is only in the second"),
    ("iron_via_dma", lambda d: d.fifos.pop(), "fifo 'y' is only in the first"),
    ("iron_via_dma", _set("fifos.0.producer.col", 3), "fifo 'mid': producer: compute tile ("),
    ("iron_via_dma", _set("fifos.1.iter_count", 3), "fifo 'x': iter count: none in the first, 3 in the second"),
    ("iron_via_dma", _set("fifos.1.pad_value", -1), "fifo 'x': pad value: 0 in the first, 4294967295"),
    ("iron_via_dma", _set("fifos.1.init_values", [np.zeros(96, np.int32)]), "fifo 'x': initial values: False"),
    ("iron_via_dma", _set("fifos.1.producer_channel", 1), "fifo 'x': producer channel"),
    ("iron_via_dma", _set("fifos.1.consumer_channels", (1,)), "fifo 'x': consumers' channels: (None,)"),
    ("iron_via_dma", _set("fifos.1.delegate_tile", LogicalTile("core")), "fifo 'x': delegate tile: none"),
    ("iron_via_dma", _set("fifos.1.disable_synchronization", True), "fifo 'x': disable synchronization"),
    ("iron_scale_one_core", _other_end, "fifo 'y': producer: compute tile (?,?) is a tile that other things stand on in the first, another"),
    ("iron_memtile_4d", _set("fifos.0.to_stream", ()), "fifo 'l1in': layout transform to the stream: [(8, 256)"),
    ("iron_memtile_4d", _set("fifos.2.from_stream", ((),)), "fifo 'l1out': layout transform from the stream of consumer 0"),
    ("iron_repeat_pad", _set("fifos.1.repeat_count", None), "fifo 'wr': repeat count: 4 in the first, none"),
    ("iron_repeat_pad", _set("fifos.3.pad", ((0, 2), (2, 2))), "fifo 'xp': padding: [(1, 1)"),
    ("iron_split_join4", _set("links.0.src_offsets", (0, 64, 192, 128)), "link 'j0, j1, j2, j3 -> dst': src offsets"),
    ("iron_split_join4", lambda d: d.links.pop(), "link 'src -> s0, s1, s2, s3' is only in the first"),
    ("iron_rtp_barrier", _set("buffers.1.initial", np.arange(32) // 2), "buffer 'table': initial value: element 1: 1 in"),
    ("iron_rtp_barrier", _set("buffers.1.address", 4096), "buffer 'table': address: none in the first, 4096"),
    ("iron_rtp_barrier", _set("locks.0.init", 2), "unnamed lock 0: initial value: 0 in the first, 2 in the second"),
    ("iron_rtp_barrier", _set("locks.0.name", "go"), "lock 'go' is only in the second"),
    ("iron_rtp_barrier", _attr("aie.use_lock", "action", 2), "aie.use_lock (<mlir>"),
    ("iron_rtp_barrier", _attr("aiex.npu.rtp_write", "index", 1), "host sequence, operation 2, aiex.npu.rtp_write"),
    ("iron_rtp_barrier", _attr("aiex.set_lock", "value", 0), "value: 1 in the first, 0 in the second"),
    ("iron_tile_dma", _set("flows.0.dest_channel", 1), "flow 0: dest channel: 0 in the first, 1 in the second"),
    ("iron_tile_dma", _set("flows.0.shim_symbol", "s"), "flow 0: shim symbol: none in the first, 's' in the second"),
    ("iron_tile_dma", lambda d: d.flows.pop(), "number of flows: 1 in the first, 0 in the second"),
    ("iron_tile_dma", _set("tile_dmas.0.channels.0.repeat", 2), "tile DMA of compute tile (0,4): channel 'MM2S 0': repeat: 0 in"),
    ("iron_tile_dma", _set("tile_dmas.0.channels.0.index", 1), "channel 'MM2S 1' is only in the second"),
    ("iron_tile_dma", _set("tile_dmas.0.channels.0.descriptors.0.length", 32), "descriptor 0: length: 64 in the first"),
    ("iron_tile_dma", _set("tile_dmas.1.channels.0.descriptors.0.next", None), "descriptor 0: next: 0 in the first, none"),
    ("iron_tile_dma", _set("tile_dmas.1.channels.0.descriptors.0.acquires.0.value", 2), "acquire 0: value: 1 in"),
    ("iron_tile_dma", lambda d: d.tile_dmas.pop(), "the tile DMA of compute tile (0,2) is only in the first"),
    ("iron_cascade", lambda d: d.cascades.clear(), "number of cascades: 1 in the first, 0"),
    ("iron_cascade", lambda d: d.cascades.append(Cascade(d.tiles[0], d.tiles[0])), "number of cascades: 1"),
    ("iron_cascade", lambda d: _reverse(d.cascades[0]), "cascade 0: source: compute tile (0,3) in the first, compute tile (0,2)"),
    ("iron_cascade", _set("kernels.0.object_file", "b.o"), "kernel 'half_put': object file: casc.o in the first, b.o"),
    ("iron_cascade", _set("kernels.0.arg_types", ("i32",)), "kernel 'half_put': arguments: (memref<64xi32>) in"),
    ("iron_cascade", lambda d: d.kernels.append(KernelDecl("f", ())), "kernel 'f' is only in the second"),
    ("iron_cascade", _attr("func.call", "callee", "half_get"), "func.call (<mlir>"),
    ("iron_shared_buffer", lambda d: d.scratchpads.append(Scratchpad("s", "i32")), "scratchpad parameter 's' is only"),
    ("iron_shared_buffer", _set("scratchpads.0.element", "i8"), "scratchpad parameter 'gain': element: 'i32'"),
    ("iron_matmul_2x2", _set("cores.2.stack_size", None), "core of compute tile (?,?): stack size: 3072 in the first, none"),
    ("iron_runtime_loop", _set("cores.0.dynamic_objfifo_lowering", None), "dynamic objfifo lowering: False in the first"),
    ("iron_inline_loop", _attr("arith.cmpi", "predicate", 2), "predicate: 4 in the first, 2 in the second"),
    ("iron_inline_loop", _swap_operands("arith.subf"), "operand 0: the result of arith.mulf"),
    ("iron_inline_loop", _attr("arith.constant", "value", 2.5, -10), "value"),
    ("iron_inline_loop", lambda d: op_of(d, "scf.for").regions[0].entry.ops.pop(3), "operation 8"),
    ("iron_inline_loop", lambda d: op_of(d, "scf.if").regions.pop(), "scf.if (<mlir>"),
    ("iron_inline_loop", lambda d: d.sequence.body.entry.args.append(Value("i32")), "host sequence, block arguments"),
    ("iron_inline_loop", _set("sequence", None), "the host sequence is only in the first"),
    ("iron_inline_loop", _set("sequence.name", "other"), "name of the host sequence: 'sequence' in the first, 'other'"),
    ("iron_inline_loop", _attr("aie.dma_bd", "static_strides", (0, 0, 8, 2), 1), "static_strides: (0, 0, 8, 1) in the first"),
    ("iron_inline_loop", lambda d: d.tiles.append(LogicalTile("mem")), "number of tiles MemTile (?,?) on which nothing stands"),
    ("iron_inline_loop", lambda d: d.locks.append(Lock("l", d.tiles[0])), "lock 'l' is only in the second"),
    ("iron_inline_loop", _set("name", "other"), "name of the device: 'main' in the first, 'other' in the second"),
]  # fmt: skip


def _reverse(cascade: Cascade) -> None:
    cascade.source, cascade.dest = cascade.dest, cascade.source


@pytest.mark.parametrize(("name", "change", "words"), CHANGES, ids=[f"{n}-{w[:40]}" for n, _, w in CHANGES])
def test_a_change_is_found_and_named(name: str, change: Callable[[Design], None], words: str) -> None:
    changed = recorded(name)
    change(changed)
    forth, back = compare(recorded(name), changed), compare(changed, recorded(name))
    assert forth is not None
    assert back is not None
    assert words in forth


def test_constants_compare_by_their_type() -> None:
    a, b = recorded("iron_inline_loop"), recorded("iron_inline_loop")
    for value, kind, other in ((300, "i8", 44), (0.1, "f32", float(np.float32(0.1))), (1, "i1", True)):
        for design, v in ((a, value), (b, other)):
            op = op_of(design, "arith.constant", -1)
            op.attrs["value"], op.result.type = v, kind
        assert compare(a, b) is None


def test_the_device_is_compared_first() -> None:
    other = read_high((MLIR / "iron_jit.npu2.high.mlir").read_text())
    assert compare(recorded("iron_jit"), other, ("ours", "theirs")) == "device: 'npu1' in ours, 'npu2' in theirs"


@pytest.mark.parametrize("device", ["npu1", "npu2"])
def test_the_command_builds_python_designs(device: str, capsys: pytest.CaptureFixture[str]) -> None:
    module, source = MLIR / f"iron_tile_dma.{device}.high.mlir", MLIR.parent / "designs" / "iron_tile_dma.py"
    assert main(["compare", str(source), str(module), "--device", device]) == 0
    assert "iron_tile_dma.py and" in capsys.readouterr().out


def test_the_command(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    a, b = str(MLIR / "iron_remote_fifo.npu1.high.mlir"), str(MLIR / "iron_neighbour_fifo.npu1.high.mlir")
    assert main(["compare", a, a]) == 0
    assert "are the same graph" in capsys.readouterr().out
    assert main(["compare", a, b]) == 1
    assert capsys.readouterr().out.startswith(
        "fifo 'mid': depth: 3 in iron_remote_fifo.npu1.high.mlir, 2 in iron_neighbour_fifo.npu1.high.mlir"
    )
    assert main(["print", a]) == 0
    assert capsys.readouterr().out.rstrip() == Path(a).read_text().rstrip()
    wrong = tmp_path / "wrong.mlir"
    wrong.write_text("module {\n}")
    assert main(["compare", a, str(wrong)]) == 2
    assert "DesignError: wrong.mlir, line 1" in capsys.readouterr().err
    assert main(["compare", a, str(tmp_path / "none.mlir")]) == 2

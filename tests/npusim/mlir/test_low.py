"""Compiled modules read as machines, and run."""

from __future__ import annotations

import copy
import importlib.util
import inspect
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from npusim.engine import Simulator
from npusim.errors import DesignError, UnsupportedError
from npusim.ir import walk
from npusim.kernels import KernelModel
from npusim.machine import CascadeLink, Coord, Machine, MemBuffer
from npusim.mlir import read_low
from npusim.place.compass import OPPOSITE, beyond

REFERENCE = Path(__file__).parents[2] / "data" / "reference"
MLIR = REFERENCE / "mlir"
IRON = sorted([*MLIR.glob("iron_*.low.mlir"), *MLIR.glob("static/iron_*.low.mlir")])
AIR = sorted(MLIR.glob("air_*.low.mlir"))
RUNNABLE = [*IRON, *(p for p in AIR if p.name.split(".")[0] in ("air_herd1_dma", "air_segment_l2", "air_two_herds"))]


@pytest.fixture(scope="module")
def oracle() -> ModuleType:
    spec = importlib.util.spec_from_file_location("reference_oracle", REFERENCE / "oracle.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


def recorded(name: str) -> Machine:
    return read_low((MLIR / f"{name}.low.mlir").read_text(), f"{name}.low.mlir")


def models(case) -> dict[str, KernelModel]:
    return {
        name: KernelModel(f, lambda *args, device: 100, uses_cascade="cascade" in inspect.signature(f).parameters)
        for name, f in case.kernels.items()
    }


def test_the_recorded_modules_are_there() -> None:
    assert (len(IRON), len(AIR)) == (80, 12)


@pytest.mark.parametrize("path", RUNNABLE, ids=lambda p: str(p.relative_to(MLIR)))
def test_a_compiled_module_computes_what_it_must(path: Path, oracle: ModuleType) -> None:
    name = path.name.split(".")[0]
    case = oracle.CASES[name]
    args = copy.deepcopy(case.args)
    Simulator(read_low(path.read_text(), path.name), kernels=models(case)).run(args)
    oracle.verify(name, args)


@pytest.mark.parametrize("path", [*IRON, *AIR], ids=lambda p: str(p.relative_to(MLIR)))
def test_a_machine_hangs_together(path: Path) -> None:
    """Descriptors stay in their buffers, chains in their channels, buffers in their tiles; hops join up."""
    machine = read_low(path.read_text(), path.name)
    for buffer in machine.buffers:
        assert 0 <= buffer.address <= machine.device.limits(buffer.tile.row).memory.value - buffer.type.nbytes
    for channel in machine.channels:
        for descriptor in channel.descriptors:
            assert descriptor.next is None or 0 <= descriptor.next < len(channel.descriptors)
            assert isinstance(descriptor.buffer, MemBuffer)
            if not descriptor.pad:
                assert descriptor.offset + descriptor.length <= descriptor.buffer.type.size
    sent = {route.source for route in machine.routes}
    for channel in machine.channels:
        if channel.direction == "MM2S":
            assert channel in sent
        else:
            assert any(channel in route.dests for route in machine.routes)
    for route in (r for r in machine.routes if r.packet_id is None):
        entries = {(hop.tile, hop.entry) for hop in route.hops}
        assert (route.source.tile, f"DMA {route.source.index}") in entries
        for hop in route.hops:
            side, _, number = hop.exit.partition(" ")
            if side == "DMA":
                assert any((d.tile, d.index) == (hop.tile, int(number)) for d in route.dests)
            else:
                assert (beyond((hop.tile, side)), f"{OPPOSITE[side]} {number}") in entries
        assert sum(hop.exit.startswith("DMA") for hop in route.hops) == len(route.dests)


def test_timing_alone_takes_the_same_cycles(oracle: ModuleType) -> None:
    for path in (p for p in IRON if ".npu2." in p.name and p.parent == MLIR):
        case = oracle.CASES[path.name.split(".")[0]]
        if case.kernels or "inline_loop" in path.name:  # the one has no cycle models, the other branches on its data
            continue
        cycles = [
            Simulator(read_low(path.read_text()), data=data).run(copy.deepcopy(case.args)).cycles
            for data in (True, False)
        ]
        assert cycles[0] == cycles[1]


def test_buffers_and_locks_keep_their_places_and_fifos() -> None:
    machine = recorded("iron_rtp_barrier.npu1")
    table = next(b for b in machine.buffers if b.name == "table")
    assert (table.tile, table.address, table.bank, table.fifo) == (Coord(0, 2), 1152, 0, None)
    assert table.initial.tolist() == list(range(32))
    window = next(b for b in machine.buffers if b.name == "x_cons_buff_1")
    assert (window.fifo, window.address) == ("x", 49152)
    assert [b.name for b in machine.buffers if b.host_written] == ["rtp"]
    locks = {lock.name: (lock.tile, lock.lock_id, lock.init, lock.fifo, lock.counts) for lock in machine.locks}
    assert locks["x_cons_prod_lock_0"] == ((0, 2), 2, 2, "x", "free")
    assert locks["y_cons_lock_0"] == ((0, 2), 1, 0, "y", "full")
    assert locks["lock 4 of (0,2)"] == ((0, 2), 4, 0, None, "other")


def test_descriptors_with_padding_transforms_and_repeats() -> None:
    machine = recorded("iron_repeat_pad.npu1")
    padded = next(d for c in machine.channels for d in c.descriptors if d.pad)
    assert (padded.length, padded.dims, padded.pad) == (160, ((6, 16), (16, 1)), ((1, 1), (2, 2)))
    repeats = next(c for c in machine.channels if len(c.descriptors) == 8)
    assert [d.next for d in repeats.descriptors] == [1, 2, 3, 4, 5, 6, 7, 0]
    assert [d.bd_id for d in repeats.descriptors] == list(range(2, 10))
    filled = next(c for c in machine.channels if c.direction == "S2MM" and c.fifo == repeats.fifo and c.tile.row == 1)
    assert [(u.lock.counts, u.value) for u in filled.descriptors[0].acquires] == [("free", 4)]


def test_host_channels_and_broadcasts() -> None:
    machine = recorded("iron_broadcast4.npu1")
    channel = machine.host_channels["x_shim_alloc"]
    assert (channel.direction, channel.fifo, channel.descriptors) == ("MM2S", "x", [])
    (broadcast,) = (r for r in machine.routes if r.source is channel)
    assert len(broadcast.dests) == 4
    assert broadcast.name == "x"


def test_cascades_cores_and_kernels() -> None:
    machine = recorded("iron_cascade.npu2")
    assert [(c.source, c.dest) for c in machine.cascades] == [(Coord(0, 3), Coord(0, 2))]
    assert isinstance(machine.cascades[0], CascadeLink)
    assert {k: v.object_file for k, v in machine.kernels.items()} == {"half_put": "casc.o", "half_get": "casc.o"}
    stacks = {core.tile: core.stack_size for core in recorded("iron_inline_loop.npu1").cores}
    assert sorted(stacks.values()) == [1024, 2048]


def test_branches_carry_their_operands() -> None:
    (core,) = recorded("iron_sliding_window.npu1").cores
    terminators = {op.name: op for op in walk(core.body) if op.successors}
    assert set(terminators) == {"cf.br", "cf.cond_br", "cf.switch"}
    for op in walk(core.body):
        for block, operands in op.successors:
            assert [v.type for v in operands] == [v.type for v in block.args]
    assert len(terminators["cf.cond_br"].operands) == len(terminators["cf.switch"].operands) == 1
    assert len(terminators["cf.switch"].attrs["case_values"]) == len(terminators["cf.switch"].successors) - 1


def test_sequences_have_the_attributes_that_generated_ones_have() -> None:
    ops = list(walk(recorded("iron_rtp_barrier.npu1").sequence))
    tasks = [op.attrs for op in ops if op.name == "aiex.dma_configure_task_for"]
    assert tasks == [
        {"alloc": "x_shim_alloc", "issue_token": False, "repeat_count": 0},
        {"alloc": "y_shim_alloc", "issue_token": True, "repeat_count": 0},
    ]
    assert {op.attrs["burst_length"] for op in ops if op.name == "aie.dma_bd"} == {0}


@pytest.mark.parametrize("folder", [".", "static"])
def test_a_scratchpad_parameter_reaches_the_cores(folder: str, oracle: ModuleType) -> None:
    machine = read_low((MLIR / folder / "iron_shared_buffer.npu1.low.mlir").read_text())
    assert [(s.name, s.element) for s in machine.scratchpads] == [("gain", "i32")]
    simulator = Simulator(machine)
    simulator.scratchpad["gain"] = 5
    args = copy.deepcopy(oracle.CASES["iron_shared_buffer"].args)
    simulator.run(args)
    assert np.array_equal(args[1], args[0] * 3 + 5)


def test_packet_streams_are_kept_apart() -> None:
    machine = recorded("air_herd2x2_broadcast.npu1")
    packets = [r for r in machine.routes if r.packet_id is not None]
    assert sorted(r.packet_id for r in packets) == [0, 1, 2, 3]
    assert {len(r.dests) for r in packets} == {2}
    sends = [op for op in walk(machine.sequence) if op.name == "aie.dma_bd" and "packet" in op.attrs]
    assert sends


def device(*ops: str) -> str:
    """A compiled device with a core tile %0 (0,2), a MemTile %1, a shim tile %2, buffer %3 and lock %4 on the core tile."""
    tiles = [
        f'%{i} = "aie.tile"() <{{col = 0 : i32, row = {row} : i32}}> : () -> index' for i, row in enumerate((2, 1, 0))
    ]
    memory = [
        '%3 = "aie.buffer"(%0) <{address = 1024 : i32, aligned = true, sym_name = "b"}> : (index) -> memref<16xi32>',
        '%4 = "aie.lock"(%0) <{lockID = 3 : i32, init = 1 : i32}> : (index) -> index',
    ]
    body = "\n".join((*tiles, *memory, *ops, '"aie.end"() : () -> ()'))
    return f'"builtin.module"() ({{\n"aie.device"() <{{device = 8 : i32}}> ({{\n{body}\n}}) : () -> ()\n}}) : () -> ()'


def program(*ops: str, channel: int = 0) -> str:
    start = f"channel_dir = 0 : i32, channel_index = {channel} : i32, repeat_count = 2 : i32"
    return (
        f'%5 = "aie.mem"(%0) ({{\n%6 = "arith.constant"() <{{value = 1 : i32}}> : () -> i32\n'
        f'%7 = "aie.dma_start"()[^bb1, ^bb2] <{{{start}}}> : () -> i1\n^bb1:\n{chr(10).join(ops)}\n'
        '^bb2:\n"aie.end"() : () -> ()\n}) : (index) -> index'
    )


ACQUIRE = '"aie.use_lock"(%4, %6) <{action = 0 : i32}> : (index, i32) -> ()'
RELEASE = '"aie.use_lock"(%4, %6) <{action = 1 : i32}> : (index, i32) -> ()'
BD = '"aie.dma_bd"(%3) <{operandSegmentSizes = array<i32: 1, 0, 0, 0, 0>, static_offset = 4 : i32}> : (memref<16xi32>) -> ()'
END = '"aie.end"() : () -> ()'


def connect(source: tuple[int, int], dest: tuple[int, int]) -> str:
    return (
        f'"aie.connect"() <{{dest_bundle = {dest[0]} : i32, dest_channel = {dest[1]} : i32, source_bundle = {source[0]} : i32, '
        f"source_channel = {source[1]} : i32}}> : () -> ()"
    )


def test_a_chain_that_ends() -> None:
    (channel,) = read_low(device(program(ACQUIRE, BD, RELEASE, END))).channels
    (descriptor,) = channel.descriptors
    assert (channel.repeat, descriptor.next, descriptor.offset, descriptor.length) == (2, None, 4, 12)
    assert [(u.value, u.equal) for u in descriptor.acquires] == [(1, True)]
    assert descriptor.releases[0].lock.name == "lock 3 of (0,2)"


REFUSED = [
    (device('"aie.plio"() <{col = 1 : i32}> : () -> ()'), UnsupportedError, "operation aie.plio is not read here"),
    (device('"aie.core"(%0) ({\n}) : (index) -> index'), UnsupportedError, "only an ELF file"),
    (device('%9 = "aie.core"(%0) ({\n"llvm.trap"() : () -> ()\n}) : (index) -> index'), UnsupportedError, "dialect 'llvm'"),
    (device('"aie.buffer"(%0) <{sym_name = "c"}> : (index) -> memref<4xi8>'), DesignError, "lacks its property address"),
    (device('%9 = "aie.mem"(%4) ({\n}) : (index) -> index'), DesignError, "needs an aie.tile"),
    (device(program(BD, BD, END)), DesignError, "a second aie.dma_bd in one block"),
    (device(program(RELEASE, BD, END)), DesignError, "releases a lock only after"),
    (device(program('"aie.dma_bd_packet"() : () -> ()', '"x.y"() : () -> ()', END)), UnsupportedError, "operation x.y in a DMA"),
    (device(program(BD, END), program(BD, END).replace("%5", "%8")), DesignError, "a second program for S2MM 0 of tile (0,2)"),
    (device(program(BD.replace("static_offset = 4 : i32", "iteration = #aie.bd_iteration<size = 2>"), END)), UnsupportedError,
     "iteration"),
    (device('%9 = "aie.switchbox"(%1) ({\n' + connect((1, 0), (5, 0)) + "\n" + connect((5, 0), (5, 0)) + "\n"
            + '}) : (index) -> index',
            '%8 = "aie.switchbox"(%0) ({\n' + connect((3, 0), (3, 0)) + '\n}) : (index) -> index'),
     DesignError, "comes back to port South 0 of the switch of tile (0,2)"),
    (device('"aie.flow"(%0, %1) <{dest_bundle = 1 : i32, dest_channel = 0 : i32, source_bundle = 0 : i32, source_channel = 0 : '
            'i32}> : (index, index) -> ()'), UnsupportedError, "a stream between ports Core, DMA"),
    (device('"aie.runtime_sequence"() <{sym_name = "s"}> ({\n%9 = "arith.constant"() <{value = 0 : i32}> : () -> i32\n'
            '"aiex.npu.write32"(%9, %9) : (i32, i32) -> ()\n}) : () -> ()'), UnsupportedError, "an address that is not in a buffer"),
    (device('"aie.runtime_sequence"() <{sym_name = "s"}> ({\n"aiex.npu.update_from_scratchpad"() <{address = 0 : ui32, buffer = @b, '
            'state_table_idx = 3 : ui8}> : () -> ()\n}) : () -> ()'), UnsupportedError, "of place 3"),
    (device('"aie.runtime_sequence"() <{sym_name = "s"}> ({\n"aiex.npu.sync"() : () -> ()\n}) : () -> ()'), UnsupportedError,
     "operation aiex.npu.sync is not read here"),
    (device('"aie.runtime_sequence"() <{sym_name = "s"}> ({\n' + BD.replace("static_offset = 4 : i32", "offset_state_table_idx = 0 : ui8")
            + '\n}) : () -> ()'), UnsupportedError, "offset_state_table_idx of a host transfer"),
    ('"builtin.module"() ({\n}) : () -> ()', UnsupportedError, "0 aie.device operations"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "kind", "words"), REFUSED, ids=[w for _, _, w in REFUSED])
def test_what_is_wrong_or_not_served_is_named(text: str, kind: type[Exception], words: str) -> None:
    with pytest.raises(kind) as error:
        read_low(text)
    assert words in str(error.value)


def test_flows_without_switches_are_streams_too() -> None:
    flow = (
        '"aie.flow"(%0, %2) <{dest_bundle = 1 : i32, dest_channel = 1 : i32, source_bundle = 1 : i32, source_channel = 0 : '
        "i32}> : (index, index) -> ()"
    )
    (route,) = read_low(device(flow)).routes
    assert (route.source.tile, route.dests[0].tile, route.dests[0].index, route.hops) == ((0, 2), (0, 0), 1, ())

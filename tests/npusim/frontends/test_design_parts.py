"""Devices, tiles, workers, kernels, cascades and the program as a whole."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from ml_dtypes import bfloat16

from npusim.errors import DesignError, UnsupportedError
from npusim.frontends.iron import device as devices
from npusim.frontends.iron.buffer import Buffer
from npusim.frontends.iron.cascade import CascadeFlow
from npusim.frontends.iron.controlflow import range_
from npusim.frontends.iron.device import NPU1, NPU2, AnyComputeTile, AnyMemTile, Device, Tile, from_name
from npusim.frontends.iron.dtype import dtype_to_str, str_to_dtype
from npusim.frontends.iron.enums import AIEArch, AIEDevice, AIETileType, DMAChannelDir, WireBundle
from npusim.frontends.iron.kernel import ExternalFunction, Kernel
from npusim.frontends.iron.objectfifo import ObjectFifo
from npusim.frontends.iron.program import Program
from npusim.frontends.iron.pyfunc import func
from npusim.frontends.iron.runtime import Runtime
from npusim.frontends.iron.trace_events import (
    CoreEvent,
    MemEvent,
    MemTileEvent,
    PortEvent,
    ShimTileEvent,
    ShimTilePortEvent,
)
from npusim.frontends.iron.util import np_dtype_to_mlir_type, pack_pad_value, v8bfp16ebs8
from npusim.frontends.iron.worker import Worker
from npusim.types import MemRefType
from tests.npusim.frontends.tracer import array, body, program, resolve

CORE = AIETileType.CoreTile


def alone(*workers: Worker, device: Any = None, cascades: Any = ()) -> Any:
    return Program(device or NPU2(), Runtime(lambda: None, []), list(workers)).resolve_program().design


# -- devices and tiles


@pytest.mark.parametrize(
    ("name", "cols", "family"),
    [("NPU1", 4, "npu1"), ("NPU2", 8, "npu2")]
    + [(f"NPU1Col{n}", n, "npu1") for n in range(1, 4)]
    + [(f"NPU2Col{n}", n, "npu2") for n in range(1, 8)],
)
def test_devices(name: str, cols: int, family: str) -> None:
    made = getattr(devices, name)()
    assert (made.cols, made.rows, made.facts.family) == (cols, 6, family)
    assert made.arch == (AIEArch.AIE2 if family == "npu1" else AIEArch.AIE2p)
    assert [made.get_tile_type(0, row) for row in (0, 1, 2)] == [
        AIETileType.ShimNOCTile,
        AIETileType.MemTile,
        AIETileType.CoreTile,
    ]
    with pytest.raises(DesignError, match="outside of"):
        made.get_tile_type(cols, 0)


def test_devices_by_name() -> None:
    assert [
        type(d).__name__ for d in (from_name("npu"), from_name("NPU2", n_cols=4), from_name("npu2", n_cols=None))
    ] == [
        "NPU1Col1",
        "NPU2Col4",
        "NPU2",
    ]
    assert from_name("npu1", n_cols=4).cols == 4
    for wrong in (("npu3", 1), ("npu1", 5), ("npu2", 0)):
        with pytest.raises(DesignError):
            from_name(wrong[0], n_cols=wrong[1])
    with pytest.raises(UnsupportedError, match="Versal"):
        from_name("xcvc1902")
    with pytest.raises(UnsupportedError, match="xcve2302"):
        Device(AIEDevice.xcve2302)


def test_tiles() -> None:
    assert Tile(0, 2) != Tile(0, 2)
    assert str(Tile(col=1)) == "Tile(1, ?)"
    assert (str(Worker(None).tile), Worker(None).tile is AnyComputeTile) == ("Tile<CoreTile>(?, ?)", False)
    copy = AnyMemTile.copy()
    assert (copy is AnyMemTile, copy.tile_type) == (False, AIETileType.MemTile)
    with pytest.raises(DesignError, match="expected a CoreTile"):
        AnyMemTile.with_type(CORE)
    with pytest.raises(DesignError, match="not part of a resolved program"):
        _ = copy.op


@pytest.mark.parametrize(
    ("tile", "words"),
    [
        (Tile(0, 9), "does not exist: npu2 has"),
        (Tile(8, 2), "columns 0 to 7"),
        (Tile(0, 1), "is a MemTile"),
        (Tile(0, 0), "is a shim tile"),
        (Tile(col=9), "column index \\(9\\)"),
        (Tile(row=-1), "row index \\(-1\\)"),
    ],
)
def test_tiles_that_cannot_be(tile: Tile, words: str) -> None:
    with pytest.raises(DesignError, match=words):
        alone(Worker(None, tile=tile))


def test_a_worker_wants_a_compute_tile() -> None:
    with pytest.raises(DesignError, match="compute tile"):
        Worker(None, tile=AnyMemTile)


def test_partitions_are_smaller() -> None:
    alone(Worker(None, tile=Tile(3, 2)), device=devices.NPU2Col4())
    with pytest.raises(DesignError, match="npu2_3col"):
        alone(Worker(None, tile=Tile(3, 2)), device=devices.NPU2Col3())


def test_allocation_schemes() -> None:
    alone(Worker(None, allocation_scheme="bank-aware"))
    with pytest.raises(UnsupportedError, match="basic-sequential"):
        alone(Worker(None, allocation_scheme="basic-sequential"))


# -- workers


def test_worker_attributes() -> None:
    core = alone(Worker(None, stack_size=4096, dynamic_objfifo_lowering=False, trace=1, trace_events=[])).cores[0]
    assert (core.stack_size, core.dynamic_objfifo_lowering) == (4096, False)
    core = alone(Worker(None)).cores[0]
    assert (core.stack_size, core.dynamic_objfifo_lowering, core.loc.file) == (None, None, __file__)


def test_worker_arguments_keep_their_shape() -> None:
    w = Worker(None, [[1, 2], (3,)])
    assert (w.fn_args, w.flat_fn_args) == ([[1, 2], (3,)], [1, 2, 3])
    seen: list[Any] = []
    alone(Worker(lambda *a: seen.extend(a), [[1, 2], (3,), None]))
    assert seen == [[1, 2], (3,), None]
    with pytest.raises(TypeError, match="core_fn is a function"):
        Worker(3)  # type: ignore[arg-type]


def test_grid() -> None:
    grid = Worker.grid(2, 3, lambda r, c: Worker(None, [r, c]))
    assert [[w.fn_args for w in row] for row in grid] == [[[r, c] for c in range(3)] for r in range(2)]
    with pytest.raises(TypeError, match="flatten a grid"):
        Program(NPU2(), Runtime(lambda: None, []), grid)


def test_buffers_share_the_workers_tile() -> None:
    tile = Tile(1, 2, tile_type=CORE)
    pinned, own = Buffer(array(4), name="pinned", tile=tile), Buffer(array(4), name="own")
    ws = [Worker(lambda *a: None, [pinned, own], tile=tile), Worker(lambda *a: None, [pinned], tile=Tile(1, 3))]
    design = alone(*ws)
    assert {b.name: b.tile for b in design.buffers} == {"pinned": design.cores[0].tile, "own": design.cores[0].tile}
    assert own.tile is tile
    with pytest.raises(DesignError, match="'own' has no explicit tile and is shared"):
        Worker(None, [own])


def test_two_workers_on_one_tile() -> None:
    with pytest.raises(DesignError, match="two workers stand on one tile"):
        alone(Worker(None, tile=Tile(1, 3)), Worker(None, tile=Tile(1, 3)))
    shared = Tile(tile_type=CORE)
    with pytest.raises(DesignError, match="two workers stand on one tile"):
        alone(Worker(None, tile=shared), Worker(None, tile=shared))


def test_a_worker_left_out_is_warned_about() -> None:
    x, y = ObjectFifo(array(4), name="x"), ObjectFifo(array(4), name="y")
    Worker(lambda a, b: None, [x.cons(), y.prod()])
    rt = Runtime(lambda a, b, p, c: None, [array(4), array(4), x.prod(), y.cons()])
    with pytest.warns(UserWarning, match="is not in Program"):
        design = Program(NPU2(), rt, []).resolve_program().design
    assert design.cores == []


def test_cascades() -> None:
    a, b = Worker(None, tile=Tile(0, 3)), Worker(None, tile=Tile(0, 2))
    CascadeFlow(a, b)
    design = alone(a, b)
    (link,) = design.cascades
    assert (link.source, link.dest) == (design.cores[0].tile, design.cores[1].tile)
    a, b = Worker(None, tile=Tile(0, 4)), Worker(None, tile=Tile(0, 2))
    CascadeFlow(a, b)
    with pytest.raises(DesignError, match="must be adjacent"):
        alone(a, b)


# -- programs


def test_programs() -> None:
    with pytest.raises(DesignError, match="needs a device"):
        Program(None, Runtime(lambda: None, []), [])
    for wrong in (("npu2", Runtime(lambda: None)), (NPU2(), lambda: None)):
        with pytest.raises(TypeError):
            Program(*wrong)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="Workers"):
        Program(NPU2(), Runtime(lambda: None), [1])
    with pytest.raises(TypeError, match="sequence function first"):
        Runtime([array(4)])  # type: ignore[arg-type]


def test_modules() -> None:
    made = program(lambda a, b: None)
    made.enable_trace(trace_size=8192, workers=[])
    module = made.resolve_program("mine")
    assert module.design.name == "mine"
    assert module.operation.verify() is True
    assert '"aie.device"() <{device = 8 : i32, sym_name = "mine"}>' in str(module)
    with pytest.raises(TypeError):
        made.enable_trace(size=3)  # type: ignore[call-arg]


def test_events_for_the_hardware_s_trace_have_no_effect() -> None:
    plain, traced = program(lambda a, b: None), program(lambda a, b: None)
    running = PortEvent(CoreEvent.PORT_RUNNING_3, WireBundle.DMA, 1, master=False)
    assert (running.slot, running.direction, CoreEvent.PORT_RUNNING_3) == (3, DMAChannelDir.MM2S, 87)
    traced.enable_trace(8192, coretile_events=[CoreEvent.LOCK_STALL, running], memtile_events=[MemTileEvent.TRUE])
    assert str(traced.resolve_program()) == str(plain.resolve_program())
    assert MemEvent.DMA_MM2S_1_MEMORY_STARVATION == 42
    assert ShimTileEvent.BROADCAST_A_15 == 125
    with pytest.raises(DesignError, match=r"takes one of ShimTileEvent.PORT_\.\.\., got"):
        ShimTilePortEvent(CoreEvent.PORT_RUNNING_0, WireBundle.South, 2)
    with pytest.raises(DesignError, match=r"takes one of CoreEvent.PORT_\.\.\., got"):
        PortEvent(CoreEvent.ACTIVE, WireBundle.DMA, 0)


def test_symbols_are_unique() -> None:
    with pytest.raises(DesignError, match=r"redefinition of symbol 'x'.*an ObjectFifo.*a Buffer"):
        resolve(lambda a, b, c: None, extra=[Buffer(array(4), name="x")])
    twice = [Kernel("k", "k.o", [array(4)]) for _ in range(2)]
    with pytest.raises(DesignError, match="make one Kernel for all workers"):
        resolve(lambda a, b, c, d: None, extra=twice)
    with pytest.raises(DesignError, match="the host sequence"):
        resolve(lambda a, b, c: None, extra=[Buffer(array(4), name="sequence")])


# -- kernels


def call(kinds: list[Any], *args: Any, taken: Any = None) -> list[Any]:
    """The operations of calling a kernel of these argument types with an element of x and args."""
    k = Kernel("k", "k.o", kinds)
    ops = body(lambda a, b, fn: fn(*([a.acquire(1)] if taken else []), *args), taken=taken, extra=[k])
    return [o for o in ops if not o.name.startswith("aie.")]


@pytest.mark.parametrize("shape", [(4, 4), (1, 16), (2, 2, 4)])
def test_arrays_are_flattened(shape: tuple[int, ...]) -> None:
    collapse, called = call([array(16)], taken=array(shape)) if len(shape) == 2 else call3(shape)
    assert collapse.attrs == {"reassociation": (tuple(range(len(shape))),)}
    assert called.operands == (collapse.result,)
    assert (called.name, called.attrs) == ("func.call", {"callee": "k"})


def call3(shape: tuple[int, ...]) -> list[Any]:
    """As ``call``; the host's array is flat, since a 3-D one has no default pattern."""
    k = Kernel("k", "k.o", [array(16)])
    ops = body(lambda a, b, fn: fn(a.acquire(1)), taken=array(shape), extra=[k], host=array(16))
    return [o for o in ops if not o.name.startswith("aie.")]


@pytest.mark.parametrize(
    ("kind", "given"),
    [
        (array((4, 4)), array(16)),
        (array((2, 8)), array((4, 4))),
        (array(16), array(16, np.int16)),
        (array(32, np.int16), array(16)),
        (array(16), array((4, 8))),
        (np.int32, array(16)),
    ],
)
def test_arrays_that_do_not_fit(kind: Any, given: Any) -> None:
    with pytest.raises(DesignError, match=r"argument 0 of kernel 'k' \(declared at .*got memref<"):
        call([kind], taken=given)


def test_views_are_not_flattened() -> None:
    k = Kernel("k", "k.o", [array(8)])
    with pytest.raises(DesignError, match="argument 0 of kernel 'k'"):
        resolve(lambda a, b, fn: fn(a.acquire(1)[1]), taken=array((4, 8)), extra=[k])
    k = Kernel("k", "k.o", [array(8)])
    resolve(lambda a, b, fn: fn(a.acquire(1)[0]), taken=array((4, 8)), extra=[k])  # offset 0, contiguous


@pytest.mark.parametrize(
    ("kind", "number", "value"),
    [(np.int32, 5, 5), (np.int16, 5, 5), (np.float32, 5, 5.0), (np.float32, 5.5, 5.5), (np.dtype(np.int8), 300, 44)],
)
def test_numbers(kind: Any, number: Any, value: Any) -> None:
    constant, called = call([kind], number)
    assert constant.attrs["value"] == value
    assert called.operands == (constant.result,)


def test_numbers_that_do_not_fit() -> None:
    with pytest.raises(DesignError, match=r"5.5 does not fit the integer type i32"):
        call([np.int32], 5.5)
    with pytest.raises(DesignError, match=r"convert the numpy scalar with int"):
        call([np.int32], np.int64(5))
    with pytest.raises(DesignError, match="is memref<16xi32>, got 5"):
        call([array(16)], 5)


def test_induction_variables_are_cast() -> None:
    k = Kernel("k", "k.o", [np.int32, array(4)])
    t = Buffer(array(4), name="t")

    def core(a: Any, b: Any, fn: Any, table: Any) -> None:
        for i in range_(4):
            fn(i, table)

    cast, called = (o for o in body(core, extra=[k, t]) if o.name in ("arith.index_cast", "func.call"))
    assert cast.result.type == "i32"
    assert called.operands[0] is cast.result


def test_calling_a_kernel_wrongly() -> None:
    k = Kernel("k", "k.o", [array(16), np.int32])
    for core, extra, words in (
        (lambda a, b, fn: fn(a.acquire(1)), [k], r"expects 2 arguments, got 1"),
        (lambda a, b: k(a.acquire(1), 1), [], "pass it to the Worker in fn_args"),
        (lambda a, b, fn: fn(a.acquire(1), 1, loc=2), [k], "positional arguments only"),
    ):
        with pytest.raises((DesignError, UnsupportedError), match=words):
            resolve(core, extra=extra)
    with pytest.raises(DesignError, match="works only while"):
        k(1, 2)
    with pytest.raises(DesignError, match="does not belong in the host sequence"):
        resolve(lambda a, b, fn: None, extra=[k], seq=lambda a, b, p, c: k(a, 1))


def test_kernel_questions() -> None:
    k = Kernel("k", "k.o", [array((4, 8), bfloat16), np.int32], link_with_mode="merge")
    assert (k.object_file_name, k.link_with_mode) == ("k.o", "merge")
    assert (k.arg_shape(), k.arg_dtype(), k.tile_size()) == ((4, 8), np.dtype(bfloat16), 4)
    assert len(k.arg_types()) == len(k._arg_types) == 2
    for wrong in (lambda: k.arg_shape(1), lambda: k.arg_shape(2), lambda: Kernel("e", "e.o").tile_size()):
        with pytest.raises(DesignError):
            wrong()
    with pytest.raises(DesignError, match="needs a name"):
        Kernel("", "k.o")
    with pytest.raises(DesignError, match="link_with_mode"):
        Kernel("k", "k.o", link_with_mode="no")
    with pytest.raises(DesignError, match="no argument type"):
        resolve(lambda a, b, k: None, extra=[Kernel("k", "k.o", [3])])  # type: ignore[list-item]


def test_external_functions() -> None:
    source = "void f(int *x) {}"
    f = ExternalFunction("f", source_string=source, arg_types=[array(4)], compile_flags=["-O3"], include_dirs=["inc"])
    declared = resolve(lambda a, b, k: None, extra=[f]).kernels[0]
    assert (declared.name, declared.object_file, declared.arg_types) == ("f", "f.o", (MemRefType((4,), "i32"),))
    assert (declared.source_string, declared.compile_flags, declared.include_dirs) == (source, ("-O3",), ("inc",))
    same = ExternalFunction(
        "f", source_string=source, arg_types=[array(4)], compile_flags=["-O3"], include_dirs=["inc"]
    )
    assert same == f
    assert hash(same) == hash(f)
    other = ExternalFunction("f", source_string=source + " ", arg_types=[array(4)])
    assert other != f
    assert other.object_file_name.startswith("f_")  # not the other's object file
    prefixed = ExternalFunction("f", source_string=source, symbol_prefix="a1")
    assert (prefixed._name, prefixed.object_file_name) == ("a1_f", "a1_f.o")
    assert ExternalFunction("g", source_string=source, inline=True).object_file_name == "g.ll"


def test_a_kernel_of_a_compiled_object_file_has_its_source() -> None:
    """As matmul's zero: one source, two functions, of which one is declared by its object file alone."""
    first = ExternalFunction("first", source_file="two.cc", arg_types=[array(4)], compile_flags=["-DN=4"], include_dirs=["inc"])
    second = Kernel("second", first.object_file_name, [array(4)])
    declared = {d.name: d for d in resolve(lambda a, b, k, n: None, extra=[first, second]).kernels}["second"]
    assert (declared.object_file, declared.source_file, declared.source_name) == (first.object_file_name, "two.cc", None)
    assert (declared.compile_flags, declared.include_dirs) == (("-DN=4",), ("inc",))
    alone = resolve(lambda a, b, k: None, extra=[Kernel("second", "another.o", [array(4)])]).kernels[0]
    assert (alone.source_file, alone.compile_flags) == (None, ())


def test_external_functions_refused() -> None:
    for given, words in (
        ({}, "source_file or source_string"),
        ({"source_string": "", "inline": True, "use_chess": True}, "use_chess"),
        ({"source_string": "", "inline": True, "object_file_name": "f.o"}, r"\.ll or \.bc"),
    ):
        with pytest.raises(DesignError, match=words):
            ExternalFunction("f", **given)  # type: ignore[arg-type]
    ExternalFunction("h", "h.o", source_string="1")
    with pytest.raises(DesignError, match="distinct object_file_name"):
        ExternalFunction("h", "h.o", source_string="2")


def test_kernels_serve_several_programs() -> None:
    k = Kernel("k", "k.o", [array(16)])
    for _ in range(2):
        design = resolve(lambda a, b, fn: fn(a.acquire(1)), extra=[k])
        assert [d.name for d in design.kernels] == ["k"]


def test_kernels_in_python() -> None:
    @func
    def scale(x: array(16), y: array(16), k: np.int32) -> None:  # type: ignore[valid-type]
        for i in range_(16):
            y[i] = x[i] * k  # type: ignore[index]

    ops = body(lambda a, b, fn: fn(a.acquire(1), b.acquire(1), 3), extra=[scale])
    assert [o.name for o in ops if o.name.startswith("memref.")] == ["memref.load", "memref.store"]
    assert scale.__name__ == "scale"
    with pytest.raises(DesignError, match=r"argument 0 of @func 'scale' is memref<16xi32>, got memref<8xi32>"):
        resolve(lambda a, b, fn: fn(a.acquire(1), b.acquire(1), 3), taken=array(8), extra=[scale])
    with pytest.raises(DesignError, match=r"expects 3 argument\(s\), got 1"):
        resolve(lambda a, b, fn: fn(a.acquire(1)), extra=[scale])
    with pytest.raises(DesignError, match="need a type"):
        func(lambda x: None)
    with pytest.raises(UnsupportedError, match="sym_visibility="):
        func(sym_visibility="private")


# -- small things


def test_mlir_types_by_name() -> None:
    from npusim.frontends.iron.mlir_types import NAMES as T

    assert (T["i32"](), T["bool"](), T["index"]()) == ("i32", "i1", "index")
    assert T["memref"](4, 8, element_type=T["bf16"]()) == T["memref"](4, 8, "bf16") == MemRefType((4, 8), "bf16")
    for wrong in ((4, "f8"), (0, "i32"), (4, 8)):
        with pytest.raises((DesignError, UnsupportedError)):
            T["memref"](*wrong)


def test_the_real_toolchain_is_only_named() -> None:
    from npusim.frontends.iron.toolchain import COMPILE, CONFIG, TRACE_UTILS

    assert isinstance(CONFIG["cxx_header_path"](), str)
    assert [COMPILE["resolve_target_arch"](d) for d in (None, NPU1(), NPU2(), AIEDevice.npu2_3col)] == [
        "aie2",
        "aie2",
        "aie2p",
        "aie2p",
    ]
    for table, name in ((CONFIG, "peano_cxx_path"), (COMPILE, "compile_mlir_module"), (TRACE_UTILS, "get_cycles")):
        with pytest.raises(UnsupportedError, match=name):
            table[name]("x")


def test_element_types_by_name() -> None:
    for name, kind in {"bf16": bfloat16, "i8": np.int8, "i16": np.int16, "f32": np.float32, "i32": np.int32}.items():
        assert str_to_dtype(name) is kind
        assert dtype_to_str(kind) == name
    with pytest.raises(DesignError, match="'f8'"):
        str_to_dtype("f8")
    with pytest.raises(DesignError, match="float64"):
        dtype_to_str(np.float64)
    assert np_dtype_to_mlir_type(np.int64) == "i64"
    with pytest.raises(UnsupportedError, match="v8bfp16ebs8"):
        np_dtype_to_mlir_type(v8bfp16ebs8)
    with pytest.raises(UnsupportedError, match="elements of type v8bfp16ebs8 are not served; known: i1, i8"):
        MemRefType.of(np.ndarray[(4,), np.dtype[v8bfp16ebs8]])  # type: ignore[misc]
    assert [hex(pack_pad_value(v, n)) for v, n in ((5, 1), (0x1234, 2), (-1, 4))] == [
        "0x5050505",
        "0x12341234",
        "0xffffffff",
    ]


def test_npu1_has_four_columns() -> None:
    with pytest.raises(DesignError, match="npu1"):
        alone(Worker(None, tile=Tile(4, 2)), device=NPU1())

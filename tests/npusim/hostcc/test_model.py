"""A learner's own kernel on the simulated NPU: written in C++, compiled for the host, run inside a design."""

from __future__ import annotations

import numpy as np
import pytest
from ml_dtypes import bfloat16

from npusim import kernels
from npusim.devices import DEVICES, NPU1, NPU2
from npusim.errors import DesignError, UnsupportedError
from npusim.frontends.finder import simulated
from npusim.graph import KernelDecl
from npusim.hostcc import compile_kernel, host_model, rates
from npusim.hostcc.rates import Counts
from npusim.kernel_models.timing import SCALAR_ELEMENT, START_AND_END
from npusim.load import as_design
from npusim.run import simulate
from npusim.types import MemRefType
from tests.designs.hostcheck import needs_compiler, same_bits

pytestmark = needs_compiler

TILE, N = 256, 1024

SCALE = """
#include <aie_api/aie.hpp>

extern "C" void my_scale(const bfloat16 *x, bfloat16 *y, int32_t n, float a) {
  aie::set_rounding(aie::rounding_mode::conv_even);
  const auto factor = aie::broadcast<bfloat16, 32>(bfloat16(a));
  for (int i = 0; i < n; i += 32)
    aie::store_v(y + i, aie::mul(aie::load_v<32>(x + i), factor).to_vector<bfloat16>());
}
"""

SQUARES = """
extern "C" void squares(const int *x, int *y) {
  for (int i = 0; i < 256; ++i)
    y[i] = x[i] * x[i];
}
"""


def one_core(source, name, dtype, scalars=(), tile=TILE, n=N, device="npu2", **options):
    """A design of one core that calls ``name(x, y, *scalars)`` on each tile."""
    with simulated():
        from aie.iron import ExternalFunction, ObjectFifo, Program, Runtime, Worker
        from aie.iron.controlflow import range_
        from aie.iron.device import NPU1, NPU2

        of_tile, whole = (np.ndarray[(k,), np.dtype[dtype]] for k in (tile, n))
        kinds = [np.int32 if isinstance(s, int) else np.float32 for s in scalars]
        kernel = ExternalFunction(name, source_string=source, arg_types=[of_tile, of_tile, *kinds], **options)
        x, y = ObjectFifo(of_tile, name="x"), ObjectFifo(of_tile, name="y")

        def core(x_in, y_out, f):
            for _ in range_(n // tile):
                f(x_in.acquire(1), y_out.acquire(1), *scalars)
                x_in.release(1)
                y_out.release(1)

        def sequence(a, b, fill, drain):
            fill.fill(a)
            drain.drain(b, wait=True)

        runtime = Runtime(sequence, [whole, whole, x.prod(), y.cons()])
        where = {"npu1": NPU1, "npu2": NPU2}[device]()
        return as_design(Program(where, runtime, [Worker(core, [x.cons(), y.prod(), kernel])]).resolve_program())


# ---- in a design


@pytest.mark.parametrize("device", ["npu1", "npu2"])
def test_a_vector_kernel_from_a_string(device):
    x = np.random.default_rng(1).standard_normal(N).astype(bfloat16)
    y = np.zeros(N, bfloat16)
    report = simulate(one_core(SCALE, "my_scale", bfloat16, (TILE, 1.7), device=device), [x, y])
    assert same_bits(y, (x.astype(np.float32) * np.float32(bfloat16(1.7))).astype(bfloat16))
    again = simulate(one_core(SCALE, "my_scale", bfloat16, (TILE, 1.7), device=device), [x, y], data=False)
    assert again.cycles == report.cycles
    (core,) = report.cores
    calls, ticks = core.kernels["my_scale"]
    assert calls == N // TILE
    assert ticks > 0


def test_a_scalar_kernel_without_any_header():
    x, y = np.arange(N, dtype=np.int32), np.zeros(N, np.int32)
    report = simulate(one_core(SQUARES, "squares", np.int32), [x, y])
    assert (y == x * x).all()
    calls, ticks = report.cores[0].kernels["squares"]
    assert ticks / report.ticks_per_cycle / calls == START_AND_END + TILE * SCALAR_ELEMENT


@pytest.mark.parametrize(
    "code",
    [
        """template <typename T, int N> void negate(const T *x, T *y) {
          for (int i = 0; i < N; ++i) y[i] = -x[i];
        }
        // negate(x, y), for C
        extern "C" { /* void negate(T) */ void negate(const int *x, int *y) { negate<int, 256>(x, y); } }""",
        """extern "C" void negate(const int *x,
          int *y);
        template <typename T> T negate(T x) { return -x; }
        void negate(const int *x, int *y) { for (int i = 0; i < 256; ++i) y[i] = negate(x[i]); }""",
    ],
)
def test_a_template_may_have_the_kernel_s_name_too(code):
    x, y = np.arange(N, dtype=np.int32), np.zeros(N, np.int32)
    simulate(one_core(code, "negate", np.int32), [x, y])
    assert (y == -x).all()


def test_the_header_brings_assert_and_std_with_it():
    code = """#include <aie_api/aie.hpp>
    extern "C" void clip(const int32 *x, int32 *y) {
      assert(x != y);
      for (int i = 0; i < 256; ++i) y[i] = std::clamp(x[i], 100, std::abs(-200));
    }"""
    x, y = np.arange(N, dtype=np.int32), np.zeros(N, np.int32)
    simulate(one_core(code, "clip", np.int32), [x, y])
    assert (y == x.clip(100, 200)).all()


def test_floats_in_32_bit_integer_accumulators_keep_their_bits():
    code = """#include <aie_api/aie.hpp>
    extern "C" void twice(const float *x, float *y) {
      aie::accum<acc32, 16> sum;
      for (int i = 0; i < 256; i += 16) {
        const auto v = aie::load_v<16>(x + i);
        sum = aie::add(v, v);
        aie::store_v(y + i, sum.to_vector<float>());
      }
    }"""
    x, y = np.random.default_rng(3).standard_normal(N).astype(np.float32), np.zeros(N, np.float32)
    simulate(one_core(code, "twice", np.float32), [x, y])
    assert same_bits(y, x + x)


def test_the_same_result_as_the_same_kernel_in_numpy():
    design = one_core(SQUARES, "squares", np.int32)
    x = np.random.default_rng(2).integers(-(2**31), 2**31 - 1, N, dtype=np.int32)
    from_cpp, from_numpy = np.zeros(N, np.int32), np.zeros(N, np.int32)

    def squares(x, y):
        y[...] = x * x

    simulate(design, [x, from_cpp])
    simulate(design, [x, from_numpy], kernels={"squares": kernels.KernelModel(squares, lambda *_, device: 1)})
    assert (from_cpp == from_numpy).all()
    assert from_cpp.any()


def test_a_file_with_macros_includes_and_a_prefix(tmp_path):
    (tmp_path / "add.cc").write_text(
        '#include "amount.h"\nextern "C" void add(const int *x, int *y) {\n'
        "  for (int i = 0; i < TILE; ++i) y[i] = x[i] + amount;\n}\n"
    )
    (tmp_path / "amount.h").write_text("constexpr int amount = 41;\n")
    decl = KernelDecl(
        "first_add",
        (MemRefType((8,), "i32"),) * 2,
        source_file=str(tmp_path / "add.cc"),
        source_name="add",
        compile_flags=("-DTILE=8", "-O3"),
    )
    x, y = np.arange(8, dtype=np.int32), np.zeros(8, np.int32)
    compile_kernel(decl, NPU2)(x, y)
    assert (y == x + 41).all()
    (tmp_path / "amount.h").write_text("constexpr int amount = 42;\n")  # a changed include is noticed
    compile_kernel(decl, NPU2)(x, y)
    assert (y == x + 42).all()
    design = one_core(SQUARES, "squares", np.int32, symbol_prefix="mine")
    simulate(design, [np.arange(N, dtype=np.int32), out := np.zeros(N, np.int32)])
    assert out[3] == 9


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            ("y[i] = x[i]", "y[i] = x[i + 1]"),
            r"worker 'core' on compute tile \(0,2\), at test_model\.py:\d+: out of bounds: kernel squares accesses byte 1024 of argument 0",
        ),
        (("* x[i];", "* x[i]"), r"kernel 'squares' does not compile:\nsquares\.cc:4: expected"),
        (("++i", "i += 0"), r"endless loop\? kernel squares did not return within .* s .*\(squares\.cc:\d\)"),
        (("void squares", "void square"), r"defines no function of that name"),
    ],
)
def test_mistakes_are_clear_errors(change, message, monkeypatch):
    monkeypatch.setenv("NPUSIM_KERNEL_TIMEOUT", "0.3")
    with pytest.raises(DesignError, match=message):
        simulate(
            one_core(SQUARES.replace(*change), "squares", np.int32),
            [np.arange(N, dtype=np.int32), np.zeros(N, np.int32)],
        )


def test_without_a_compiler_it_says_what_to_install(monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.delenv("NPUSIM_CXX", raising=False)
    with pytest.raises(
        UnsupportedError, match=r"'squares' must be compiled for the host.*apt install g\+\+.*NPUSIM_CXX"
    ):
        simulate(one_core(SQUARES, "squares", np.int32), [np.arange(N, dtype=np.int32), np.zeros(N, np.int32)])


# ---- which model is found


def test_models_come_before_compiling(monkeypatch):
    types = (MemRefType((TILE,), "i32"),) * 2
    decl = KernelDecl("squares", types, source_string=SQUARES)
    assert kernels.lookup(decl, device=NPU1).source == rates.SOURCE
    given = kernels.KernelModel(print, lambda *_, device: 1)
    assert kernels.lookup(decl, {"squares": given}, NPU1) is given
    with pytest.raises(UnsupportedError, match=r"register a model with @npusim\.kernels\.model"):
        kernels.lookup(decl)
    with pytest.raises(UnsupportedError, match="register a model"):
        kernels.lookup(KernelDecl("squares", types, object_file="squares.o"), device=NPU1)


def test_a_kernel_of_ones_own_with_the_name_of_a_library_kernel_is_compiled():
    name = "zero_i32"
    types = (MemRefType((TILE,), "i32"),)
    own = f'extern "C" void {name}(int *c) {{ for (int i = 0; i < 256; ++i) c[i] = 1; }}'
    model = kernels.lookup(KernelDecl(name, types, source_string=own), device=NPU1)
    model.compute(c := np.zeros(TILE, np.int32))
    assert (c == 1).all()
    library = kernels.lookup(KernelDecl(name, types, source_string='#include "aie_kernels/zero.cc"'), device=NPU1)
    assert library.source != rates.SOURCE


# ---- cycles


def test_the_rule():
    counts = Counts(loads=100, stores=40, vector=30, moves=45, turns=2, issued=0, cascade_in=0, cascade_out=0)
    assert counts.slots() == {"load": 50, "store": 40, "vector": 30, "move": 45}
    assert rates.bound(counts, NPU1) == 50
    assert rates.cycles(counts, NPU1) == START_AND_END + 50 + 2 * SCALAR_ELEMENT


@pytest.mark.parametrize("device", [NPU1, NPU2], ids=lambda d: d.name)
def test_issues_are_counted_in_the_device_s_widths(device):
    tile = MemRefType((1024,), "bf16")
    model = host_model(KernelDecl("my_scale", (tile, tile, "i32", "f32"), source_string=SCALE), device)
    bound = model.bound(tile, tile, 1024, 1.0, device=device)
    lanes = 16 if device is NPU1 else 32
    assert bound == max(2048 / device.load_bytes.value, 2048 / device.store_bytes.value, 1024 / lanes)
    # widening the operands is free (products take them as they are); narrowing the products is a move
    assert model.cycles(tile, tile, 1024, 1.0, device=device) == START_AND_END + 1024 // lanes + 1
    assert model.cycles(tile, tile, 512, 1.0, device=device) < model.cycles(tile, tile, 1024, 1.0, device=device)
    assert (model.source, model.confidence, model.uses_cascade) == (rates.SOURCE, "L", False)


def test_published_cycles_of_a_library_kernel():
    """mlir-aie's programming guide, section 4c: scale of 1024 i16 takes 78 cycles on XDNA 1, and of 1024 i32 in a scalar loop 12,297."""
    scale = """
#include <aie_api/aie.hpp>
extern "C" void scale(const int16 *a, int16 *c, int16 factor) {
  for (int i = 0; i < 1024; i += 32)
    aie::store_v(c + i, aie::mul(aie::load_v<32>(a + i), factor).to_vector<int16>(0));
}
extern "C" void scalar(const int32 *a, int32 *c, int32 factor) {
  for (int i = 0; i < 1024; ++i) c[i] = factor * a[i];
}"""
    i16, i32 = MemRefType((1024,), "i16"), MemRefType((1024,), "i32")
    vector = host_model(KernelDecl("scale", (i16, i16, "i16"), source_string=scale), NPU1)
    assert vector.cycles(i16, i16, 3, device=NPU1) == 78
    one_by_one = host_model(KernelDecl("scalar", (i32, i32, "i32"), source_string=scale), NPU1)
    assert one_by_one.cycles(i32, i32, 3, device=NPU1) == pytest.approx(12297, rel=0.01)


def test_cycles_do_not_depend_on_data():
    text = """
#include <aie_api/aie.hpp>
extern "C" void branches(const int *x, int *y) {
  for (int i = 0; i < 256; ++i)
    if (x[i] > 5)
      for (int j = 0; j < x[i]; ++j) y[i] += j;
}"""
    types = (MemRefType((TILE,), "i32"),) * 2
    model = host_model(KernelDecl("branches", types, source_string=text), NPU1)
    before = model.cycles(*types, device=NPU1)
    x, y = np.full(TILE, 100, np.int32), np.zeros(TILE, np.int32)
    model.compute(x, y)
    assert (y == 4950).all()
    assert model.cycles(*types, device=NPU1) == before == START_AND_END + TILE * SCALAR_ELEMENT


# ---- cascade

CASCADE = """
#include <aie_api/aie.hpp>

extern "C" {
void half_put(const int32 *a) {
  for (int i = 0; i < 64; i += 16) put_mcd(aie::load_v<16>(a + i));
}
void half_get(const int32 *b, int32 *y) {
  for (int i = 0; i < 64; i += 16) {
    const aie::vector<int32, 16> word = get_scd_v16int32();
    aie::store_v(y + i, aie::add(word, aie::load_v<16>(b + i)));
  }
}
}
"""


def cascade_design(source):
    with simulated():
        from aie.iron import CascadeFlow, ExternalFunction, ObjectFifo, Program, Runtime, Worker
        from aie.iron.device import NPU2, Tile

        ty = np.ndarray[(64,), np.dtype[np.int32]]
        a, b, y = (ObjectFifo(ty, name=n) for n in ("a", "b", "y"))
        put = ExternalFunction("half_put", source_string=source, arg_types=[ty])
        get = ExternalFunction("half_get", source_string=source, arg_types=[ty, ty])

        def top(src, fn):
            fn(src.acquire(1))
            src.release(1)

        def bottom(src, dst, fn):
            fn(src.acquire(1), dst.acquire(1))
            src.release(1)
            dst.release(1)

        w0 = Worker(top, [a.cons(), put], tile=Tile(0, 3))
        w1 = Worker(bottom, [b.cons(), y.prod(), get], tile=Tile(0, 2))
        CascadeFlow(w0, w1)

        def sequence(xa, xb, xy, pa, pb, cy):
            pa.fill(xa)
            pb.fill(xb)
            cy.drain(xy, wait=True)

        runtime = Runtime(sequence, [ty, ty, ty, a.prod(), b.prod(), y.cons()])
        return as_design(Program(NPU2(), runtime, [w0, w1]).resolve_program())


def test_two_kernels_joined_by_the_cascade():
    a, b, y = np.arange(64, dtype=np.int32), np.arange(64, dtype=np.int32) * 100, np.zeros(64, np.int32)
    report = simulate(cascade_design(CASCADE), [a, b, y])
    assert (y == a + b).all()
    assert report.cascade_bytes == 256
    timing = simulate(cascade_design(CASCADE), [a, b, y], data=False)
    assert timing.cycles == report.cycles


def test_a_kernel_whose_cascade_depends_on_data_is_refused():
    source = CASCADE.replace("i < 64; i += 16) {", "i < 64 * b[0]; i += 16) {")
    a, b, y = (np.zeros(64, np.int32) for _ in range(3))
    with pytest.raises(DesignError, match="took 0 bytes from the cascade, and 256 when its operations were counted"):
        simulate(cascade_design(source), [a, b, y])


def test_rates_of_the_header_are_those_of_the_device_table():
    text = """
#include <aie_api/aie.hpp>
extern "C" void widths(int32 *out) {
  using namespace npusim_host;
  const unsigned all[] = {load_width, store_width, products_per_issue<int8, int8>(), products_per_issue<int16, int16>(),
                          products_per_issue<bfloat16, bfloat16>(), cascade_word, aie::vector_decl_align};
  for (int i = 0; i < 7; ++i) out[i] = int32(all[i]);
}"""
    for device in (NPU1, NPU2):
        kernel = compile_kernel(KernelDecl("widths", (MemRefType((7,), "i32"),), source_string=text), device)
        kernel(out := np.zeros(7, np.int32))
        load, store, i8, i16, bf16, word, align = out.tolist()
        assert (load * rates.LOAD_UNITS, store) == (device.load_bytes.value, device.store_bytes.value)
        assert (i8, i16) == (device.macs.value["i8"], device.macs.value["i16"])
        assert (word, align) == (device.cascade_bytes.value, store)
        assert bf16 == (
            device.macs.value["bf16"] if device is NPU1 else 32
        )  # XDNA 2 multiplies bf16 element by element
    assert set(DEVICES) >= {"npu1", "npu2"}

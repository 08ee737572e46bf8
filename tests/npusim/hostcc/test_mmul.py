"""aie::mmul of the host header against numpy: every shape of both devices, values, refused shapes, BFP16, counted issues."""

from __future__ import annotations

import numpy as np
import pytest
from ml_dtypes import bfloat16

from npusim.devices import NPU1, NPU2
from npusim.errors import DesignError
from npusim.kernel_models.linalg import mac_slots
from npusim.kernel_models.rounding import bfp16
from tests.designs.hostcheck import compiled, needs_compiler, same_bits

RNG = np.random.default_rng(11)
F32 = np.float32
EMULATION = {"AIE_API_EMULATE_BFLOAT16_MMUL_WITH_BFP16": 1}

# One entry a device and pair of types: the shapes in which a kernel of one mac is compiled and run.
SHAPES = {
    ("AIE2", "bfloat16", "bfloat16"): "4x8x4 4x8x8 8x8x4 8x8x8 4x16x4 4x16x8 8x1x8",
    ("AIE2", "int8", "int8"): "4x8x8 4x16x8 8x8x8 2x8x8",
    ("AIE2", "int16", "int16"): "4x4x4 2x4x8 4x2x8",
    ("AIE2", "int16", "int8"): "4x4x8",
    ("AIE2", "int32", "int16"): "4x2x4",
    ("AIE2", "float", "float"): "4x8x4",
    ("AIE2P", "bfloat16", "bfloat16"): "4x8x8 8x8x8 4x8x4 8x8x4",
    ("AIE2P", "int8", "int8"): "8x8x8 4x8x8",
    ("AIE2P", "uint8", "int8"): "8x8x8",
    ("AIE2P", "int16", "int16"): "4x4x8",
    ("AIE2P", "int32", "int32"): "4x2x8",
    ("AIE2P", "float", "float"): "4x8x4",
}
DTYPES = {"bfloat16": np.dtype(bfloat16), "float": np.dtype(F32)}

pytestmark = needs_compiler


def dtype_of(name):
    return DTYPES.get(name) or np.dtype(name)


def result_of(a):
    return {"bfloat16": "float", "float": "float"}.get(a, "int32")


def function(name, a, b, shape, accumulated="accauto"):
    m, k, n = map(int, shape.split("x"))
    c = result_of(a)
    return f"""
extern "C" void {name}(const {a} *a, const {b} *b, {c} *c) {{
  using MMUL = aie::mmul<{m}, {k}, {n}, {a}, {b}, {accumulated}>;
  static_assert(MMUL::size_A == {m * k} && MMUL::size_B == {k * n} && MMUL::size_C == {m * n});
  aie::vector<{a}, {m * k}> x[2];
  aie::vector<{b}, {k * n}> y[2];
  for (int part = 0; part < 2; ++part) {{
    for (unsigned i = 0; i < x[0].size(); ++i) x[part][i] = a[part * x[0].size() + i];
    for (unsigned i = 0; i < y[0].size(); ++i) y[part][i] = b[part * y[0].size() + i];
  }}
  MMUL block;
  block.mac(x[0], y[0]);
  block.mac(x[1], y[1]);
  const aie::vector<{c}, {m * n}> sums = block.template to_vector<{c}>();
  for (unsigned i = 0; i < sums.size(); ++i) c[i] = sums[i];
}}"""


def operands(a, b, shape):
    m, k, n = map(int, shape.split("x"))
    made = []
    for name, size in ((a, 2 * m * k), (b, 2 * k * n)):
        dtype = dtype_of(name)
        if name in DTYPES:
            made.append((RNG.standard_normal(size) * 2.0 ** RNG.integers(-4, 4, size)).astype(dtype))
        else:
            info = np.iinfo(dtype)
            made.append(RNG.integers(info.min, info.max, size, dtype=dtype, endpoint=True))
    return made[0].reshape(2, m, k), made[1].reshape(2, k, n), np.zeros((m, n), dtype_of(result_of(a)))


def summed(a, b):
    """k upwards, in fp32: what the header promises."""
    total = np.zeros((a.shape[1], b.shape[2]), F32)
    for part in range(2):
        for k in range(a.shape[2]):
            total = total + a[part, :, k, None].astype(F32) * b[part, None, k].astype(F32)
    return total


@pytest.mark.parametrize(("arch", "a", "b"), SHAPES, ids="-".join)
def test_products(arch, a, b):
    shapes = SHAPES[arch, a, b].split()
    names = [f"product_{shape}" for shape in shapes]
    text = "#include <aie_api/aie.hpp>\n" + "".join(function(n, a, b, s) for n, s in zip(names, shapes))
    kernels = compiled(text, names, arch)
    for name, shape in zip(names, shapes):
        x, y, c = operands(a, b, shape)
        kernels.call(name, x, y, c)
        if a in DTYPES:
            expected = summed(x, y)
        else:
            expected = (x.astype(np.int64) @ y.astype(np.int64)).sum(0).astype(np.int32)
        assert same_bits(c, expected), shape


@pytest.mark.parametrize(
    ("arch", "a", "shape", "listed"),
    [
        ("AIE2", "bfloat16", "4x4x4", "bfloat16 has these shapes on AIE2: 4x8x4, 4x8x8"),
        ("AIE2P", "bfloat16", "4x16x8", "bfloat16 has these shapes on AIE2P: 4x8x8, 8x8x8"),
        ("AIE2", "int8", "16x8x8", "int8 x int8 has these shapes on AIE2: 4x8x8"),
        ("AIE2P", "int16", "4x4x4", "int16 x int16 has these shapes on AIE2P: 4x4x8"),
    ],
)
def test_a_shape_that_the_device_has_not(arch, a, shape, listed):
    text = "#include <aie_api/aie.hpp>\n" + function("product", a, a, shape)
    with pytest.raises(DesignError, match=f"(?s)'product' does not compile:\nkernels.cc:\\d+: aie::mmul of {listed}"):
        compiled(text, ["product"], arch)


# ---- BFP16


def blocks(x, extreme):
    """Bf16 values whose blocks along the last axis hold what is hard: zeros, one large value, 127.5 steps, powers of two."""
    x = x.astype(F32)
    x[0] = 0
    x[1, 3] *= 2.0**12
    x[2] = [127.5, -127.5, 1, 2, 3, 0.5, 1.5, 64]
    x[3] = [-127.5, 64, 0.5, 1.5, 2.5, -0.5, -1.5, 8]
    x[4] *= F32(2.0**extreme)
    return x.astype(bfloat16)


@pytest.mark.parametrize("extreme", [0, -50, 60])
def test_block_floating_point(extreme):
    text = "#include <aie_api/aie.hpp>\n" + function("product", "bfloat16", "bfloat16", "8x8x8")
    kernels = compiled(text, ["product"], "AIE2P", EMULATION)
    x, y, c = operands("bfloat16", "bfloat16", "8x8x8")
    x[0] = blocks(x[0], extreme)
    y[1] = blocks(y[1].T, -extreme).T
    kernels.product(x, y, c)
    a = bfp16(x.astype(F32)).astype(np.float64)
    b = bfp16(np.swapaxes(y.astype(F32), 1, 2)).swapaxes(1, 2).astype(np.float64)
    total = np.zeros((8, 8), F32)
    for part in range(2):
        total = total + (a[part] @ b[part]).astype(F32)  # eight products are exact in float64
    assert same_bits(c, total)
    assert not same_bits(c, summed(x, y))


def test_block_floating_point_only_where_asked_and_able():
    text = "#include <aie_api/aie.hpp>\n" + function("product", "bfloat16", "bfloat16", "8x8x8")
    x, y, c = operands("bfloat16", "bfloat16", "8x8x8")
    for arch, defines in (("AIE2", EMULATION), ("AIE2P", {})):
        compiled(text, ["product"], arch, defines).product(x, y, c)
        assert same_bits(c, summed(x, y))


# ---- what it costs


def two_by_two(shape):
    m, k, n = map(int, shape.split("x"))
    return f"""
#include <aie_api/aie.hpp>
extern "C" void step(const bfloat16 *a, const bfloat16 *b, float *c) {{
  using MMUL = aie::mmul<{m}, {k}, {n}, bfloat16>;
  const auto a0 = aie::load_v<MMUL::size_A>(a), a1 = aie::load_v<MMUL::size_A>(a + MMUL::size_A);
  const auto b0 = aie::load_v<MMUL::size_B>(b), b1 = aie::load_v<MMUL::size_B>(b + MMUL::size_B);
  MMUL c00, c01, c10, c11;
  c00.mac(a0, b0);
  c01.mac(a0, b1);
  c10.mac(a1, b0);
  c11.mac(a1, b1);
  for (const MMUL *block : {{&c00, &c01, &c10, &c11}}) {{
    aie::store_v(c, block->to_vector<float>());
    c += MMUL::size_C;
  }}
}}"""


@pytest.mark.parametrize(
    ("arch", "shape", "emulated"), [("AIE2", "4x8x4", False), ("AIE2P", "8x8x8", True), ("AIE2P", "4x8x8", False)]
)
def test_a_step_of_four_products_takes_the_slots_that_the_library_models_say(arch, shape, emulated):
    m, k, n = map(int, shape.split("x"))
    kernels = compiled(two_by_two(shape), ["step"], arch, EMULATION if emulated else {})
    a, b = (np.ones(2 * size, bfloat16) for size in (m * k, k * n))
    counts = kernels.step(a, b, np.zeros(4 * m * n, F32)).counts
    assert counts.vector == 4 * mac_slots(arch, "bf16", emulated)
    device = {"AIE2": NPU1, "AIE2P": NPU2}[arch]
    if arch == "AIE2":
        assert 4 * m * k * n / counts.vector == device.macs.value["bf16"]
    assert counts.loads * device.load_bytes.value / 2 == a.nbytes + b.nbytes
    assert counts.stores * device.store_bytes.value == 4 * m * n * 4

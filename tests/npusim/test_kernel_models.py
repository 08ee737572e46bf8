"""The library kernels' numpy models against plain formulas, and their cycle models against what was published."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from ml_dtypes import bfloat16

from npusim.devices import NPU1, NPU2
from npusim.kernel_models import MODELS, find, linalg
from npusim.kernel_models.linalg import CascadeMatMul, MatMul
from npusim.kernel_models.rounding import bf16, bfp16
from npusim.types import MemRefType

RNG = np.random.default_rng(7)


def numbers(*shape, dtype=np.float32, scale=1.0):
    return (RNG.standard_normal(shape) * scale).astype(dtype)


def integers(*shape, dtype=np.int16, limit=100):
    return RNG.integers(-limit, limit, shape).astype(dtype)


def run(name, *args):
    MODELS[name].compute(*args)


def array(n, element):
    return MemRefType((n,), element)


@given(st.lists(st.floats(-(2.0**100), 2.0**100, width=32), min_size=1, max_size=8))
def test_bf16_rounds_to_nearest_even(values):
    x = np.array(values, dtype=np.float32)
    bits = x.view(np.uint32).astype(np.uint64)
    rounded = ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16 << 16).astype(np.uint32)
    assert np.array_equal(bf16(x).view(np.uint32), rounded)


@given(st.lists(st.floats(-8192, 8192, width=32), min_size=8, max_size=8))
@example([0.0] * 7 + [2.0**-148])  # the smallest numbers there are
def test_bfp16_keeps_seven_bits_of_the_largest(values):
    x = np.array(values, dtype=np.float32)
    got = bfp16(x)
    assert np.all(np.abs(got - x) <= np.abs(x).max() * 2.0**-6)
    if -got.min() <= np.abs(x).max():  # else one became -128, the next power of two: a coarser step for the others
        assert np.array_equal(bfp16(got), got)


def test_bfp16_has_a_code_for_minus_128_only():
    x = np.array([127.5, 3.0, -1.0, 0.0, 0.0, 0.0, 0.0, 0.0], dtype=np.float32)
    assert bfp16(x)[:3].tolist() == [128.0, 4.0, -0.0]  # exponent raised, all in steps of 2: 3 and -1 are ties
    assert bfp16(-x)[:3].tolist() == [-128.0, -3.0, 1.0]


def test_bfp16_far_from_one():
    x = np.array([1.0, -0.3, 0.007, 1.9921875, 0.5, 0.0, 0.25, -1.5], dtype=np.float32)
    for scale in (2.0**-120, 2.0**-60, 2.0**90, 2.0**120):
        assert np.array_equal(bfp16(x * np.float32(scale)), bfp16(x) * np.float32(scale))


def test_bfp16_shares_one_exponent():
    x = np.array([1.0, 2.0**-7, 2.0**-9, -0.75] + [0.0] * 4, dtype=np.float32)
    assert bfp16(x)[:4].tolist() == [1.0, 0.0, 0.0, -0.75]


def test_copy_and_scale():
    x, y = integers(128, dtype=np.int32), np.zeros(128, np.int32)
    run("passThroughLine", x, y, 100)
    assert np.array_equal(y[:100], x[:100])
    assert not y[100:].any()
    run("vector_scalar_mul_vector", x, y, np.array([3], np.int32), 128)
    assert np.array_equal(y, 3 * x)
    small, out = np.array([300, -300], np.int16), np.zeros(2, np.int16)
    run("vector_scalar_mul_vector", small, out, np.array([200], np.int32), 2)
    assert out.tolist() == [60000 - 65536, 65536 - 60000]


def test_binary_and_relu():
    a, b, out = numbers(1024, dtype=bfloat16), numbers(1024, dtype=bfloat16), np.zeros(1024, bfloat16)
    run("eltwise_add_bf16_vector", a, b, out)
    assert np.array_equal(out, (a.astype(np.float32) + b.astype(np.float32)).astype(bfloat16))
    run("eltwise_mul_bf16_vector", a, b, out)
    assert np.array_equal(out, (a.astype(np.float32) * b.astype(np.float32)).astype(bfloat16))
    run("bf16_relu", a, out)
    assert np.array_equal(out, np.where(a > 0, a, 0).astype(bfloat16))


def test_reductions():
    x, out = integers(256, dtype=np.int32), np.zeros(1, np.int32)
    for name, wanted in (("add", x.sum()), ("min", x.min()), ("max", x.max())):
        run(f"reduce_{name}_vector", x, out, 256)
        assert out[0] == wanted
    run("reduce_add_vector", np.array([2**31 - 1, 1], np.int32), out, 2)
    assert out[0] == -(2**31)
    run("compute_max", np.array([3], np.int32), np.array([4], np.int32), out)
    assert out[0] == 4


@pytest.mark.parametrize("name", ["exp_bf16_1024", "silu_bf16", "gelu_bf16"])
def test_infinities_and_nans_are_computed_in_silence(name):
    every = np.arange(2**16, dtype=np.uint16).view(bfloat16)
    out = np.zeros_like(every)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run(name, every, out)
    nans = (every.view(np.uint16) & 0x7FFF) > 0x7F80
    assert (out.view(np.uint16)[nans] & 0x7FFF > 0x7F80).all()


def test_activations_are_close_to_their_formulas():
    x = numbers(1024, dtype=bfloat16, scale=2)
    v = x.astype(np.float64)
    out = np.zeros(1024, bfloat16)
    sigmoid = 1 / (1 + np.exp(-v))
    gelu = 0.5 * v * (1 + np.tanh(np.sqrt(2 / np.pi) * (v + 0.044715 * v**3)))
    for name, wanted in (("exp_bf16_1024", np.exp(v)), ("silu_bf16", v * sigmoid), ("gelu_bf16", gelu)):
        run(name, x, out)
        assert np.allclose(out.astype(np.float64), wanted, rtol=0.02, atol=0.02), name
    run("softmax_bf16", x, out, 1024)
    wanted = np.exp(v - v.max())
    assert np.allclose(out.astype(np.float64), wanted / wanted.sum(), rtol=0.04, atol=1e-4)
    first, second = numbers(1024, dtype=bfloat16), numbers(1024, dtype=bfloat16)
    run("swiglu_bf16", x, first, second, out)
    gate = v * second.astype(np.float64)
    assert np.allclose(
        out.astype(np.float64), v * first.astype(np.float64) * gate / (1 + np.exp(-gate)), rtol=0.05, atol=0.05
    )


def blocked(matrix, rows, cols, by_columns=False):
    """A matrix in tiles of rows x cols, written with loops."""
    height, width = matrix.shape
    tiles = [(i, j) for i in range(height // rows) for j in range(width // cols)]
    if by_columns:
        tiles.sort(key=lambda at: (at[1], at[0]))
    parts = [matrix[i * rows : (i + 1) * rows, j * cols : (j + 1) * cols] for i, j in tiles]
    return np.concatenate([(part.T if by_columns else part).reshape(-1) for part in parts])


@pytest.mark.parametrize("b_col_major", [False, True])
@pytest.mark.parametrize("c_col_major", [False, True])
@pytest.mark.parametrize(
    "kinds", [(np.int8, np.int32), (np.int16, np.int16), (bfloat16, bfloat16), (bfloat16, np.float32)]
)
def test_blocked_product(b_col_major, c_col_major, kinds):
    a, b = integers(16, 24, dtype=kinds[0], limit=9), integers(24, 32, dtype=kinds[0], limit=9)
    start = integers(16, 32, dtype=kinds[1], limit=9)
    c = blocked(start, 4, 8, c_col_major)
    variant = MatMul(16, 24, 32, (4, 6, 8), b_col_major, c_col_major)
    variant.compute(blocked(a, 4, 6), blocked(b, 6, 8, b_col_major), c)
    wanted = (start.astype(np.float64) + a.astype(np.float64) @ b.astype(np.float64)).astype(kinds[1])
    assert np.array_equal(c, blocked(wanted, 4, 8, c_col_major))


@pytest.mark.parametrize("b_col_major", [False, True])
def test_scalar_product(b_col_major):
    a, b, c = integers(8, 6), integers(6, 4), np.zeros((8, 4), np.int32)
    flat = c.reshape(-1)
    MatMul(8, 6, 4, None, b_col_major).compute(a.reshape(-1), (b.T if b_col_major else b).reshape(-1), flat)
    assert np.array_equal(c, a.astype(np.int32) @ b.astype(np.int32))


def test_products_that_do_not_fit_are_cut_off():
    a = b = np.full((4, 4), 200, np.int16)
    c = np.zeros(16, np.int16)
    MatMul(4, 4, 4, (4, 4, 4)).compute(a.reshape(-1), b.reshape(-1), c)
    assert set(c.tolist()) == {(160000 + 32768) % 65536 - 32768}


def test_emulated_product_rounds_along_k():
    a, b = numbers(8, 16, dtype=bfloat16), numbers(16, 8, dtype=bfloat16)
    c = np.zeros(64, np.float32)
    MatMul(8, 16, 8, (8, 8, 8), emulated=True).compute(blocked(a, 8, 8), blocked(b, 8, 8), c)
    exact = a.astype(np.float64) @ b.astype(np.float64)
    wanted = bfp16(a.astype(np.float32)) @ bfp16(b.astype(np.float32).T).T
    assert np.allclose(c.reshape(8, 8), wanted, atol=1e-5)
    assert 0 < np.abs(c.reshape(8, 8) - exact).max() < 0.2


def test_matrix_vector():
    a, b = integers(32, 16), integers(16)
    c = np.ones(32, np.int32)
    run("matvec_scalar_i16_i32", a.reshape(-1), b, c)
    assert np.array_equal(c, 1 + a.astype(np.int32) @ b.astype(np.int32))
    words = np.array([a[row, 2 * pair + half] for pair in range(8) for row in range(32) for half in range(2)])
    c[...] = 1
    run("matvec_vectorized_i16_i32", words, b, c)
    assert np.array_equal(c, 1 + a.astype(np.int32) @ b.astype(np.int32))


class Wire:
    """A cascade that remembers what was put."""

    def __init__(self, words=None):
        self.words = words

    def put(self, words):
        self.words = words

    def get(self, shape, dtype):
        assert self.words.shape == shape
        assert self.words.dtype == dtype
        return self.words


def test_a_chain_of_cascades_adds_up():
    a, b = [integers(4, 6) for _ in range(3)], [integers(6, 8) for _ in range(3)]
    wire, c = Wire(), np.zeros(32, np.int32)
    for i, (receives, sends) in enumerate([(False, True), (True, True), (True, False)]):
        stage = CascadeMatMul(4, 6, 8, receives, sends)
        stage.compute(a[i].reshape(-1), b[i].reshape(-1), c, cascade=wire)
        assert stage.model().cascade_bytes(None) == (32 * 64 * receives, 32 * 64 * sends)
    assert np.array_equal(c.reshape(4, 8), sum(x.astype(np.int32) @ y.astype(np.int32) for x, y in zip(a, b)))


def test_zeroing():
    c = integers(64)
    run("zero_i16", c)
    assert not c.any()


def test_published_cycles():
    """mlir-aie programming guide, section 4c, XDNA 1."""
    i16, i32, one = array(1024, "i16"), array(1024, "i32"), array(1, "i32")
    scale, slow = MODELS["vector_scalar_mul_vector"], MODELS["vector_scalar_mul_scalar"]
    assert scale.cycles(i16, i16, one, 1024, device=NPU1) == 78
    assert scale.cycles(i32, i32, one, 1024, device=NPU1) == 339
    assert slow.cycles(i32, i32, one, 1024, device=NPU1) == pytest.approx(12297, rel=0.01)
    product = MatMul(64, 64, 32, (4, 4, 4)).model()
    assert product.bound(device=NPU1) == 2048
    assert product.cycles(device=NPU1) == pytest.approx(2535, rel=0.02)


@pytest.mark.parametrize("device", [NPU1, NPU2])
def test_no_kernel_beats_its_bound(device):
    bf, i32 = array(1024, "bf16"), array(1024, "i32")
    calls = {
        "passThroughLine": (i32, i32, 1024),
        "vector_scalar_mul_vector": (i32, i32, array(1, "i32"), 1024),
        "eltwise_add_bf16_vector": (bf, bf, bf),
        "eltwise_mul_bf16_vector": (bf, bf, bf),
        "bf16_relu": (bf, bf),
        "reduce_add_vector": (i32, array(1, "i32"), 1024),
        "softmax_bf16": (bf, bf, 1024),
        "gelu_bf16": (bf, bf),
        "swiglu_bf16": (bf, bf, bf, bf),
        "matvec_vectorized_i16_i32": (array(1024, "i16"), array(32, "i16"), array(32, "i32")),
        "zero_bf16": (bf,),
    }
    for name, args in calls.items():
        model = MODELS[name]
        assert model.bound is not None
        assert 0 < model.bound(*args, device=device) < model.cycles(*args, device=device), name


def test_every_model_names_its_source():
    for name, model in MODELS.items():
        assert model.source, name
        assert model.confidence in ("H", "M", "L"), name


def test_finding_by_symbol():
    assert find("695565c2_eltwise_add_bf16_vector") is MODELS["eltwise_add_bf16_vector"]
    assert find("zero_i16") is MODELS["zero_i16"]
    assert find("f2c79415_matmul_i16_i16") is None  # its layouts are not in its name


def test_slots_of_floating_point_on_the_second_generation():
    assert linalg.mac_slots("AIE2", "bf16", False) == 1
    assert linalg.mac_slots("AIE2P", "bf16", False) == 8
    assert linalg.mac_slots("AIE2P", "bf16", True) == 1.5
    assert linalg.mac_slots("AIE2P", "i8", False) == 1

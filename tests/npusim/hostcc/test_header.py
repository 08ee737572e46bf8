"""The host's aie_api header against numpy: rounding, arithmetic, reductions, lanes, functions. Both generations."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from ml_dtypes import bfloat16

from designs.kernels.arithmetic import exp2_hardware, reciprocal
from tests.designs.hostcheck import ARCHES, adversarial, compiled, needs_compiler, same_bits

SOURCE = Path(__file__).with_name("vectors.cc")
NAMES = re.findall(
    r"\w+",
    """float_to_bf16 float_to_bf16_by_default shift_down scalar_bf16 add_bf16 sub_bf16 max_bf16 min_bf16 mul_bf16 negmul_bf16
neg_bf16 abs_bf16 select_bf16 add_float mul_float add_int16 sub_uint8 saturating_add_int8 xor_int32 max_int32 abs_int32
logical_int32 arithmetic_int32 mac_msc_bf16 mul_int16 mul_int16_wraps compared reduce_bf16 reduce_float reduce_int32 reshaped
parts widths copy_with_iterators copy_unaligned functions powers scalar_arithmetic operators loops""",
)
MODES = {
    0: "floor",
    1: "ceil",
    2: "zero",
    3: "away",
    8: "-inf",
    9: "+inf",
    10: "to zero",
    11: "from zero",
    12: "even",
    13: "odd",
}
RNG = np.random.default_rng(5)
F32 = np.float32

pytestmark = [needs_compiler, pytest.mark.filterwarnings("ignore::RuntimeWarning")]


@pytest.fixture(scope="module", params=ARCHES)
def kernels(request):
    return compiled(SOURCE, NAMES, request.param)


def rounded(value, mode):
    """Exact numbers (float64) to integers under a mode."""
    floor, ceil = np.floor(value), np.ceil(value)
    if mode in (0, 1, 2, 3):
        return {0: floor, 1: ceil, 2: np.trunc(value), 3: np.where(value < 0, floor, ceil)}[mode]
    tie = value - floor == 0.5
    odd = np.where(floor % 2 == 0, ceil, floor)
    at_tie = {8: floor, 9: ceil, 10: np.trunc(value), 11: np.where(value < 0, floor, ceil), 12: np.rint(value), 13: odd}
    return np.where(tie, at_tie[mode], np.rint(value))


def floats(n=64):
    """Floats of which a quarter are half-way between two bf16 numbers."""
    bits = RNG.integers(0, 2**32, n, dtype=np.uint32)
    bits[::4] = bits[::4] & 0xFFFF0000 | 0x8000
    bits = np.where(bits & 0x7F800000 == 0x7F800000, bits & 0x3FFFFFFF, bits).astype(np.uint32)  # finite ones
    return bits.view(F32)


def bf16(values):
    return np.asarray(values, F32).astype(bfloat16)


# ---- rounding


@pytest.mark.parametrize("mode", MODES)
def test_floats_to_bf16(kernels, mode):
    x, out = floats(), np.zeros(64, bfloat16)
    kernels.float_to_bf16(x, out, np.int32(mode))
    step = np.ldexp(1.0, np.maximum(np.frexp(x.astype(np.float64))[1] - 8, -133))
    expected = rounded(x / step, mode) * step
    finite = np.abs(expected) < 2.0**128
    assert (out.astype(np.float64)[finite] == expected[finite]).all()


def test_the_default_mode_is_floor(kernels):
    x, by_default, floor = floats(), np.zeros(64, bfloat16), np.zeros(64, bfloat16)
    kernels.float_to_bf16(x, floor, np.int32(12))  # what a call sets, the next one does not see
    kernels.float_to_bf16_by_default(x, by_default)
    kernels.float_to_bf16(x, floor, np.int32(0))
    assert same_bits(by_default, floor)
    assert not same_bits(by_default, bf16(x))


def test_scalars_round_to_nearest_even(kernels):
    x, out = np.concatenate([floats(60), F32([np.nan, np.inf, -np.inf, 3.4e38])]), np.zeros(64, bfloat16)
    kernels.scalar_bf16(x, out)
    assert same_bits(out, bf16(x))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("shift", [0, 1, 4, 16])
def test_accumulators_to_integers(kernels, mode, shift):
    x, out = RNG.integers(-(2**19), 2**19, 32).astype(np.int32), np.zeros(32, np.int16)
    x[::2] = x[::2] >> shift << shift | (1 << shift >> 1)  # ties
    for saturation in (0, 1, 3):
        kernels.shift_down(x, out, np.int32(shift), np.int32(mode), np.int32(saturation))
        exact = rounded(x / 2.0**shift, mode).astype(np.int64)
        low = -32768 if saturation == 1 else -32767
        expected = exact.astype(np.int16) if saturation == 0 else np.clip(exact, low, 32767).astype(np.int16)
        assert same_bits(out, expected)


# ---- element by element

_BF16 = {
    "add_bf16": lambda a, b: bf16(a.astype(F32) + b.astype(F32)),
    "sub_bf16": lambda a, b: bf16(a.astype(F32) - b.astype(F32)),
    "mul_bf16": lambda a, b: bf16(a.astype(F32) * b.astype(F32)),
    "negmul_bf16": lambda a, b: bf16(F32(0) - a.astype(F32) * b.astype(F32)),
    "neg_bf16": lambda a, b: -a,
    "abs_bf16": lambda a, b: np.abs(a),
    "max_bf16": lambda a, b: np.where(a.astype(F32) < b.astype(F32), b, a),
    "min_bf16": lambda a, b: np.where(b.astype(F32) < a.astype(F32), b, a),
    "select_bf16": lambda a, b: np.where(a.astype(F32) < b.astype(F32), b, a),
}


@pytest.mark.parametrize("name", _BF16)
def test_bf16(kernels, name):
    a, b, out = adversarial(32, 3), adversarial(32, 4)[::-1].copy(), np.zeros(32, bfloat16)
    kernels.call(name, a, b, out)
    assert same_bits(out, _BF16[name](a, b))


_INTEGERS = {
    "add_int16": lambda a, b: a + b,
    "sub_uint8": lambda a, b: a - b,
    "saturating_add_int8": lambda a, b: np.clip(a.astype(int) + b, -128, 127).astype(np.int8),
    "xor_int32": lambda a, b: a ^ b,
    "max_int32": np.maximum,
    "abs_int32": lambda a, b: np.abs(a),
    "logical_int32": lambda a, b: (a.view(np.uint32) >> 5).view(np.int32),
    "arithmetic_int32": lambda a, b: a >> 5,
}


@pytest.mark.parametrize("name", _INTEGERS)
def test_integers(kernels, name):
    dtype = np.dtype(name.rsplit("_", 1)[1])
    info = np.iinfo(dtype)
    a, b = RNG.integers(info.min, info.max, (2, 64 // dtype.itemsize), dtype=dtype, endpoint=True)
    a[:2], b[:2] = [info.min, info.max], [info.max, info.max]
    out = np.zeros_like(a)
    kernels.call(name, a, b, out)
    assert same_bits(out, _INTEGERS[name](a, b))


@pytest.mark.parametrize(("name", "f"), [("add_float", np.add), ("mul_float", np.multiply)])
def test_float(kernels, name, f):
    a, b, out = floats(16), floats(16), np.zeros(16, F32)
    kernels.call(name, a, b, out)
    assert same_bits(out, f(a, b))


def test_products_are_added_in_fp32(kernels):
    a, b, out = bf16(RNG.standard_normal(32)), bf16(RNG.standard_normal(32)), np.zeros(32, F32)
    kernels.mac_msc_bf16(a, b, out)
    x, y = a.astype(F32), b.astype(F32)
    assert same_bits(out, x * y + x * F32(2.5) - F32(0.5) * y)


def test_integer_products(kernels):
    a, b = RNG.integers(-32768, 32767, (2, 16), dtype=np.int16, endpoint=True)
    out = np.zeros(16, np.int32)
    kernels.mul_int16(a, b, out, np.int32(7))
    assert same_bits(out, (a.astype(np.int64) * b >> 7).astype(np.int32))
    kernels.mul_int16_wraps(a, b, out)
    assert same_bits(out, (8 * a.astype(np.int64) * b).astype(np.int32))


def test_masks(kernels):
    a, b = RNG.integers(-3, 3, (2, 16), dtype=np.int32)
    out = np.zeros(9, np.int32)
    kernels.compared(a, b, out)
    bits = [
        int((f(a, b) << np.arange(16)).sum())
        for f in (np.less, np.less_equal, np.greater, np.greater_equal, np.equal, np.not_equal)
    ]
    less = bits[0]
    assert out.tolist() == [*bits, int((a != b).sum()), bits[3], (less << 3 & 0xFFFF) ^ less >> 2]


# ---- reductions


def halving(lanes):
    lanes = lanes.astype(F32)
    while lanes.size > 1:
        lanes = lanes[: lanes.size // 2] + lanes[lanes.size // 2 :]
    return lanes[0]


def in_turn(rows):
    """Rows added one after another."""
    total = rows[0].astype(F32)
    for row in rows[1:]:
        total = total + row.astype(F32)
    return total


def sum_bf16(x, arch):
    if arch == "AIE2P":
        return halving(in_turn(x.reshape(-1, min(32, x.size))))
    rows = min(4, x.size // 8)
    groups = (
        x.reshape(-1, rows, 8).transpose(0, 2, 1).reshape(-1, rows)
    )  # AIE2: by eights, as a matrix product with ones
    return halving(in_turn(np.concatenate([np.zeros((1, rows), x.dtype), groups])))


def sum_float(x, arch):
    if arch == "AIE2P":
        return halving(in_turn(x.reshape(-1, min(32, x.size))))
    if x.size <= 16:
        return halving(x)
    return halving(np.add(*(in_turn(half) for half in x.reshape(2, -1, 16))))


def test_sums(kernels, request):
    arch = request.node.callspec.params["kernels"]
    x, out = bf16(RNG.standard_normal(64) * 2.0 ** RNG.integers(-8, 8, 64)), np.zeros(6, bfloat16)
    kernels.reduce_bf16(x, out)
    sums = [bf16(sum_bf16(x[:n], arch)) for n in (8, 16, 32, 64)]
    assert same_bits(out, np.array([*sums, x.max(), x.min()], bfloat16))
    wide, result = x.astype(F32) * F32(1.1), np.zeros(5, F32)
    kernels.reduce_float(wide, result)
    assert same_bits(result, np.array([*(sum_float(wide[:n], arch) for n in (8, 16, 32, 64)), wide[:16].max()], F32))


def test_integer_sums_wrap(kernels):
    x, out = RNG.integers(-(2**31), 2**31 - 1, 16, dtype=np.int32), np.zeros(7, np.int32)
    kernels.reduce_int32(x, out)
    total = x.sum(dtype=np.int32)
    assert out.tolist() == [total, x.max(), x.min(), total, -total, total, total]


# ---- lanes


@pytest.mark.parametrize("n", [1, 2, 4, 8, 16])
def test_reshaped(kernels, n):
    a, b = np.arange(32, dtype=np.int16), np.arange(100, 132, dtype=np.int16)
    out = np.zeros(15 * 32, np.int16)
    kernels.reshaped(a, b, out, np.int32(n))
    zipped = np.stack([a.reshape(-1, n), b.reshape(-1, n)], 1).reshape(2, 32)
    both = np.concatenate([a, b]).reshape(-1, 2, n)
    chunks = a.reshape(-1, 2, n)
    undefined = np.full(32, -1, np.int16)
    expected = [
        *zipped,
        both[:, 0].reshape(-1),
        both[:, 1].reshape(-1),
        np.concatenate([chunks[:, 0].reshape(-1), chunks[:, 1].reshape(-1)]),
        a[::-1],
        a.reshape(n, -1).T.reshape(-1),
        np.roll(a, n),
        np.roll(a, -n),
        np.concatenate([b[32 - n :], a[: 32 - n]]),
        np.concatenate([a[n:], b[:n]]),
        np.concatenate([np.full(n, a[0]), a[: 32 - n]]),
        np.concatenate([a[n:], np.full(n, a[-1])]),
        np.concatenate([undefined[:n], a[: 32 - n]]),
        np.concatenate([a[n:], undefined[:n]]),
    ]
    for i, row in enumerate(expected):
        assert (out.reshape(-1, 32)[i] == row).all(), i


@pytest.mark.parametrize("at", [0, 2, 3])
def test_parts(kernels, at):
    x, out = np.arange(32, dtype=np.int16), np.zeros(128, np.int16)
    kernels.parts(x, out, np.int32(at))
    w = np.full(32, -1, np.int16)
    w[8 * at : 8 * at + 8] = x[8 * (3 - at) : 8 * (3 - at) + 8]
    w[at] = 7
    assert (out[:32] == np.concatenate([[9], w[:-1]])).all()
    assert (out[32:64] == np.concatenate([x[16:], np.full(16, -1)])).all()
    assert (out[64:96] == x).all()
    assert (out[96:] == np.tile(x[:16], 2)).all()


def test_widths(kernels):
    x = RNG.integers(-128, 127, 32, dtype=np.int8)
    wide, narrow = np.zeros(32, np.int16), np.zeros(32, np.int8)
    kernels.widths(x, wide, narrow)
    assert (wide == x).all()
    assert (narrow == np.clip(2 * x.astype(int), -128, 127)).all()


def test_iterators_and_unaligned_access(kernels):
    x, out = adversarial(64), np.zeros(64, bfloat16)
    result = kernels.copy_with_iterators(x, out, np.int32(64))
    assert x.tobytes() == out.tobytes()
    assert (result.counts.loads, result.counts.stores) == (4, 4)
    y, z = np.arange(40, dtype=np.int16), np.zeros(40, np.int16)
    kernels.copy_unaligned(y, z, np.int32(3))
    assert (z[3:19] == y[3:19]).all()
    assert not z[:3].any()
    assert not z[19:].any()


# ---- functions


def test_functions(kernels):
    x = np.abs(bf16(RNG.standard_normal(32) * 2.0 ** RNG.integers(-6, 6, 32))) + bf16(2.0**-8)
    inverse, root = np.zeros(32, bfloat16), np.zeros(32, bfloat16)
    exact, fixed, back = np.zeros(32, F32), np.zeros(32, np.int32), np.zeros(32, F32)
    kernels.functions(x, inverse, exact, root, fixed, back)
    wide = x.astype(np.float64)
    assert same_bits(inverse, reciprocal(x))  # the AIE API's approximation, step by step
    assert np.abs(exact * wide - 1).max() < 6e-4
    assert np.abs(root.astype(np.float64) * np.sqrt(wide) - 1).max() < 0.012
    assert (fixed == np.floor(wide * 256)).all()
    assert same_bits(back, (fixed / 256).astype(F32))


def test_powers_of_two(kernels, request):
    if request.node.callspec.params["kernels"] == "AIE2":
        pytest.skip("AIE2 has no exp2; test_mistakes shows that it is refused")
    x = np.concatenate([np.linspace(-140, 140, 2031), [0, -0.0, 1, -1, np.inf, -np.inf, 127.9999, 128, -126, -126.0001, -1e30, 1e30, 0.5,
                        2.0**-12, -(2.0**-12), -200.5, 1.75]]).astype(F32)  # fmt: skip
    out = np.zeros(x.size, bfloat16)
    kernels.powers(x, out, np.int32(x.size))
    assert same_bits(out, exp2_hardware(x))


def test_scalar_arithmetic(kernels):
    a, b = adversarial(32, 8), adversarial(32, 9)[::-1].copy()
    out, wide = np.zeros(32, bfloat16), np.zeros(32, F32)
    kernels.scalar_arithmetic(a, b, out, wide)
    x, y = a.astype(F32), b.astype(F32)
    tripled = bf16(bf16(x + y).astype(F32) * F32(3))
    expected = np.where(x < y, -tripled, bf16(tripled.astype(F32) / F32(7)))
    expected[0], expected[1] = np.uint16(0xFF7F).view(bfloat16), bfloat16(1 / 3)
    assert same_bits(out, expected)
    assert same_bits(wide, x * F32(2.5) + y)


# ---- the language


def test_operators(kernels):
    a, b = RNG.integers(-100, 100, (2, 16), dtype=np.int32)
    out = np.zeros(16, np.int32)
    kernels.operators(a, b, out)
    total = a + b - (a & b) + (a ^ 3) + b + (a << 2) - (b >> 1)
    assert same_bits(out, np.where((a < b) | (a == b), ~total, total))


def test_every_sort_of_loop_runs_as_written_and_is_counted(kernels):
    x, out = np.arange(8, dtype=np.int32), np.zeros(2, np.int32)
    counts = kernels.loops(x, out, np.int32(8)).counts
    assert out.tolist() == [28 - 8 + 4 + 500, 5]
    # turns of while count its last look at the condition, too
    assert counts.turns == (8 + 1) + 8 + 3 + 5 + 5

"""Table lookups of the host header: values, rounding of the index, a wrong layout, and an exponential from two tables."""

from __future__ import annotations

import numpy as np
import pytest
from ml_dtypes import bfloat16

from npusim.errors import DesignError
from tests.designs.hostcheck import ARCHES, compiled, mutated, needs_compiler, same_bits

TEXT = """
#include <aie_api/aie.hpp>

using Table = aie::lut<4, bfloat16>;

extern "C" {
void looked_up(const int16 *in, const bfloat16 *ab, const bfloat16 *cd, bfloat16 *out, int32 step, int32 mode) {
  aie::set_rounding(aie::rounding_mode(mode));
  aie::parallel_lookup<int16, Table, aie::lut_oor_policy::saturate> lookup(Table(256, ab, cd), step, 128);
  aie::store_v(out, lookup.fetch(aie::load_v<32>(in)));
}
void wrapped(const uint16 *in, const bfloat16 *ab, const bfloat16 *cd, bfloat16 *out, int32 step) {
  aie::parallel_lookup<uint16, Table, aie::lut_oor_policy::truncate> lookup(Table(256, ab, cd), step);
  aie::store_v(out, lookup.fetch(aie::load_v<16>(in)));
}
void line(const bfloat16 *in, const float *ab, const float *cd, float *out) {
  using Pairs = aie::lut<4, float, bfloat16>;
  aie::linear_approx<bfloat16, Pairs> approx(Pairs(32, ab, cd), -2, 16);
  aie::store_v(out, approx.compute(aie::load_v<16>(in)).to_vector<float>());
}
}
"""
NAMES = ["looked_up", "wrapped", "line"]

pytestmark = needs_compiler


def twice(values):
    """The layout of a table for two lookups at once: runs of 16 bytes, each twice."""
    run = 16 // values.dtype.itemsize
    return np.repeat(values.reshape(-1, 1, run), 2, axis=1).reshape(-1)


@pytest.fixture(scope="module", params=ARCHES)
def kernels(request):
    return compiled(TEXT, NAMES, request.param)


@pytest.fixture(scope="module")
def table():
    return np.arange(256).astype(bfloat16) * bfloat16(0.5)


def test_signed_index_with_a_bias(kernels, table):
    x = np.linspace(-40000, 40000, 32).clip(-32768, 32767).astype(np.int16)
    out = np.zeros(32, bfloat16)
    kernels.looked_up(x, twice(table), twice(table), out, np.int32(6), np.int32(0))
    assert same_bits(out, table[np.clip((x.astype(int) >> 6) + 128, 0, 255)])


def test_the_index_is_rounded_by_the_mode_two_bits_below(kernels, table):
    x, out = np.arange(-96, 96, 6, dtype=np.int16), np.zeros(32, bfloat16)
    kernels.looked_up(x, twice(table), twice(table), out, np.int32(6), np.int32(12))
    rounded = np.rint(x / 2.0**4).astype(int) >> 2
    assert same_bits(out, table[rounded + 128])
    assert not same_bits(out, table[(x.astype(int) >> 6) + 128])


def test_unsigned_index_wraps(kernels, table):
    x, out = np.arange(0, 65536, 4099, dtype=np.uint16), np.zeros(16, bfloat16)
    kernels.wrapped(x, twice(table), twice(table), out, np.int32(2))
    assert same_bits(out, table[(x.astype(int) >> 2) % 256])


def test_lines(kernels):
    pairs = np.stack([np.arange(32) / 8, np.arange(32) * 3.0], 1).astype(np.float32).reshape(-1)  # slope, offset
    x, out = np.linspace(-5, 5, 16).astype(bfloat16), np.zeros(16, np.float32)
    kernels.line(x, twice(pairs), twice(pairs), out)
    i = np.clip(np.floor(x.astype(np.float64) * 4) + 16, 0, 31).astype(int)
    assert same_bits(out, pairs[2 * i] * x.astype(np.float32) + pairs[2 * i + 1])


@pytest.mark.parametrize(
    "wrong", [lambda t: np.tile(t, 2), lambda t: np.repeat(t, 2)], ids=["one after the other", "each twice"]
)
def test_a_wrong_layout_is_refused(kernels, table, wrong):
    x, out = np.full(32, 77, np.int16), np.zeros(32, bfloat16)
    with pytest.raises(DesignError, match=r"a lookup table's four copies differ.*the layout is wrong"):
        kernels.looked_up(x, wrong(table), twice(table), out, np.int32(0), np.int32(0))


def test_only_four_accesses(tmp_path):
    with pytest.raises(DesignError, match="aie::lut is served for 4 parallel accesses"):
        compiled(mutated(TEXT, "aie::lut<4, bfloat16>", "aie::lut<2, bfloat16>"), NAMES, "AIE2")

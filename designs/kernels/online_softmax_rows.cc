// Online softmax on a block of scores that lies row by row, [BQ, BK] bf16; row vectors of BQ as in online_softmax.cc.
//
// A row has no group of eight columns to itself here, so its maximum and its sum are folded from 32 lanes to one, those of
// several rows together. Its exponentials are summed before they leave the registers, which saves the pass over P that panels
// need. -DBQ, -DBK: queries and keys of a block, multiples of 32; -DDV as for online_softmax.cc.

#include "online_softmax.h"

using namespace panels;
static_assert(BK % lanes == 0, "rows are whole vectors of 32");

namespace {

using Quarter = aie::vector<float, 16>;

const auto larger_of = [](const auto &a, const auto &b) { return aie::max(a, b); };
const auto sum_of = [](const auto &a, const auto &b) { return aie::add(a, b); };

// Neighbouring lanes to one
template <typename V, typename F> inline auto halved(const V &v, F f) { return f(aie::filter_even(v), aie::filter_odd(v)); }

// The largest of each lane over a row
inline Vector lane_maxima(const bfloat16 *__restrict row) {
  Vector all = lowest();
  for (unsigned j = 0; j < BK; j += lanes) all = aie::max(all, aie::load_v<lanes>(row + j));
  return all;
}

// u = the largest of each row; eight rows are folded together
inline void row_maxima(const bfloat16 *__restrict s, bfloat16 *__restrict u) {
  for (unsigned row = 0; row < BQ; row += group, s += group * BK) {
    const auto two = [&](unsigned i) {
      return halved(aie::concat(lane_maxima(s + i * BK), lane_maxima(s + (i + 1) * BK)), larger_of);
    };
    const auto four = [&](unsigned i) { return halved(aie::concat(two(i), two(i + 2)), larger_of); };
    const auto eight = halved(aie::concat(four(0), four(4)), larger_of); // four lanes a row are left
    aie::store_v(u + row, halved(halved(eight, larger_of), larger_of));
  }
}

// A row of p = 2^((s - u) * scale); gives its sum in sixteen lanes
inline Quarter exponentials(const bfloat16 *__restrict s, bfloat16 u, const Vector &scale, bfloat16 *__restrict p) {
  const Vector maximum = aie::broadcast<bfloat16, lanes>(u);
  Sums sum = aie::zeros<accfloat, lanes>();
  for (unsigned j = 0; j < BK; j += lanes) {
    const Vector power = exp_difference(aie::load_v<lanes>(s + j), maximum, scale);
    aie::store_v(p + j, power);
    sum = aie::add(sum, power);
  }
  return halved(sum.to_vector<float>(), sum_of);
}

// Four rows; gives their sums
inline aie::vector<float, 4> four_rows(const bfloat16 *__restrict s, const bfloat16 *__restrict u, const Vector &scale,
                                       bfloat16 *__restrict p) {
  const auto row = [&](unsigned i) { return exponentials(s + i * BK, u[i], scale, p + i * BK); };
  const auto two = [&](unsigned i) {
    const Quarter first = row(i), second = row(i + 1);
    return halved(aie::concat(first, second), sum_of);
  };
  const Quarter upper = two(0), lower = two(2);
  const Quarter four = halved(aie::concat(upper, lower), sum_of); // four lanes a row
  return halved(halved(four, sum_of), sum_of);
}

} // namespace

extern "C" {

// One block of a stream: P to a tile of its own, m and l brought up to date, r handed on
void online_softmax_rows(const bfloat16 *__restrict s, bfloat16 *__restrict p, bfloat16 *__restrict m, bfloat16 *__restrict l,
                         bfloat16 *__restrict r, float scale) {
  round_to_even();
  const Vector factor = rounded(scale);
  alignas(aie::vector_decl_align) bfloat16 u[BQ], t[BQ];
  row_maxima(s, u);
  larger(m, u);
  corrections(m, u, r, factor);
  copy(u, m, BQ);
  for (unsigned i = 0; i < BQ; i += 16) {
    const auto four = [&](unsigned j) { return four_rows(s + (i + j) * BK, u + i + j, factor, p + (i + j) * BK); };
    const auto a = four(0), b = four(4), c = four(8), d = four(12);
    aie::accum<accfloat, 16> all;
    all.from_vector(aie::concat(a, b, c, d));
    aie::store_v(t + i, all.to_vector<bfloat16>());
  }
  accumulate(t, r, l);
}

} // extern "C"

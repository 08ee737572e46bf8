// The steps of online softmax on a block of BQ queries by BK keys, bf16 in panels, and on row vectors of BQ.
//
// m: running maximum of the unscaled scores, from the lowest finite number; l: running sum; r: correction of what was summed
// under the old maximum; scale: log2(e) / sqrt(d), rounded to bf16. A block that is masked altogether gives P = 0, r = 1.

#pragma once

#include "exp2.h"

namespace panels {

static_assert(BQ % lanes == 0, "row vectors are whole vectors of 32");
static_assert(BK % width == 0 && DV % width == 0, "tiles are whole panels");

// Eight lanes of each row to one, for eight rows: neighbours, then pairs, then fours.
template <typename V, typename F> inline auto folded(const V &v, F f) {
  const auto four = f(aie::filter_even(v), aie::filter_odd(v));
  const auto two = f(aie::filter_even(four), aie::filter_odd(four));
  return f(aie::filter_even(two), aie::filter_odd(two));
}

inline void maxima(const bfloat16 *__restrict s, bfloat16 *__restrict u) {
  for (unsigned row = 0; row < BQ; row += group) {
    Vector upper = lowest(), lower = lowest();
    for (unsigned j = 0; j < BK / width; ++j) {
      const bfloat16 *at = s + j * BQ * width + row * width;
      upper = aie::max(upper, aie::load_v<lanes>(at));
      lower = aie::max(lower, aie::load_v<lanes>(at + lanes));
    }
    aie::store_v(u + row, folded(aie::concat(upper, lower), [](const auto &a, const auto &b) { return aie::max(a, b); }));
  }
}

// Sums of four rows, in float: panel after panel, then eight lanes to one.
inline aie::vector<float, 4> sums_of_four(const bfloat16 *p) {
  Sums sums = aie::zeros<accfloat, lanes>();
  for (unsigned j = 0; j < BK / width; ++j) sums = aie::add(sums, aie::load_v<lanes>(p + j * BQ * width));
  return folded(sums.to_vector<float>(), [](const auto &a, const auto &b) { return aie::add(a, b); });
}

inline void sums(const bfloat16 *__restrict p, bfloat16 *__restrict t) {
  for (unsigned row = 0; row < BQ; row += 16) {
    const bfloat16 *at = p + row * width;
    aie::accum<accfloat, 16> all;
    all.from_vector(aie::concat(sums_of_four(at), sums_of_four(at + lanes), sums_of_four(at + 2 * lanes), sums_of_four(at + 3 * lanes)));
    aie::store_v(t + row, all.to_vector<bfloat16>());
  }
}

inline void larger(const bfloat16 *__restrict m, bfloat16 *__restrict u) {
  for (unsigned i = 0; i < BQ; i += lanes) aie::store_v(u + i, aie::max(aie::load_v<lanes>(m + i), aie::load_v<lanes>(u + i)));
}

inline void corrections(const bfloat16 *__restrict m, const bfloat16 *__restrict u, bfloat16 *__restrict r, const Vector &scale) {
  for (unsigned i = 0; i < BQ; i += lanes)
    aie::store_v(r + i, exp_difference(aie::load_v<lanes>(m + i), aie::load_v<lanes>(u + i), scale));
}

inline void exponentials(const bfloat16 *__restrict u, const bfloat16 *s, bfloat16 *p, const Vector &scale) {
  for (unsigned row = 0; row < BQ; row += group)
    each_panel<BK, BQ>(row, Spread(u + row), [&](unsigned at, const Vector &maximum) {
      aie::store_v(p + at, exp_difference(aie::load_v<lanes>(s + at), maximum, scale));
    });
}

// l = l * r + t
inline void accumulate(const bfloat16 *__restrict t, const bfloat16 *__restrict r, bfloat16 *__restrict l) {
  for (unsigned i = 0; i < BQ; i += lanes) {
    Sums sum = aie::mul(aie::load_v<lanes>(l + i), aie::load_v<lanes>(r + i));
    sum = aie::add(sum, aie::load_v<lanes>(t + i));
    aie::store_v(l + i, sum.to_vector<bfloat16>());
  }
}

inline void rescale(const bfloat16 *__restrict r, bfloat16 *__restrict o) {
  for (unsigned row = 0; row < BQ; row += group)
    each_panel<DV, BQ>(row, Spread(r + row), [&](unsigned at, const Vector &factor) {
      aie::store_v(o + at, aie::mul(aie::load_v<lanes>(o + at), factor).to_vector<bfloat16>());
    });
}

// One block: p = probabilities of s, m = new maximum, t = row sums of p, r = correction. p may be s.
inline void step(const bfloat16 *s, bfloat16 *p, bfloat16 *__restrict m, bfloat16 *__restrict t, bfloat16 *__restrict r, float scale) {
  const Vector factor = rounded(scale);
  maxima(s, t);
  larger(m, t);
  corrections(m, t, r, factor);
  exponentials(t, s, p, factor);
  copy(t, m, BQ);
  sums(p, t);
}

} // namespace panels

// Merging two partial results (O, m, l) of attention over different keys, under their common maximum.

#pragma once

#include "online_softmax.h"

namespace panels {

// What the two results' O and l are multiplied with; m becomes the common maximum, l the common sum.
struct Weights {
  alignas(aie::vector_decl_align) bfloat16 theirs[BQ];
  alignas(aie::vector_decl_align) bfloat16 ours[BQ];

  Weights(const bfloat16 *__restrict m_in, const bfloat16 *__restrict l_in, bfloat16 *__restrict m, bfloat16 *__restrict l,
          const Vector &scale) {
    for (unsigned i = 0; i < BQ; i += lanes) {
      const Vector their_m = aie::load_v<lanes>(m_in + i), our_m = aie::load_v<lanes>(m + i);
      const Vector u = aie::max(their_m, our_m);
      const Vector a = exp_difference(their_m, u, scale), b = exp_difference(our_m, u, scale);
      Sums sum = aie::mul(aie::load_v<lanes>(l_in + i), a);
      sum = aie::mac(sum, aie::load_v<lanes>(l + i), b);
      aie::store_v(l + i, sum.to_vector<bfloat16>());
      aie::store_v(m + i, u);
      aie::store_v(theirs + i, a);
      aie::store_v(ours + i, b);
    }
  }
};

// Eight rows of O, panel after panel, each vector merged with the next that `take` gives.
template <typename F> inline void merge_rows(const Weights &weights, unsigned row, bfloat16 *__restrict o, F take) {
  const Spread theirs(weights.theirs + row), ours(weights.ours + row);
  const auto merge = [&](unsigned at, const Vector &a, const Vector &b) {
    Sums sum = aie::mul(take(at), a);
    sum = aie::mac(sum, aie::load_v<lanes>(o + at), b);
    aie::store_v(o + at, sum.to_vector<bfloat16>());
  };
  for (unsigned j = 0; j < DV / width; ++j) {
    const unsigned at = j * BQ * width + row * width;
    merge(at, theirs.upper, ours.upper);
    merge(at + lanes, theirs.lower, ours.lower);
  }
}

} // namespace panels

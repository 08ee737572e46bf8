// Online softmax on tiles in panels, step by step (see online_softmax.h), and what the output needs of it.
//
// -DBQ, -DBK: queries and keys of a block (multiples of 32 and 8); -DDV: head dimension of the values.

#include "online_softmax.h"

using namespace panels;

extern "C" {

// u [BQ] = largest of each row of S [BQ, BK]
void row_max(const bfloat16 *__restrict s, bfloat16 *__restrict u) { maxima(s, u); }

// u = max(m, u)
void max_with(const bfloat16 *__restrict m, bfloat16 *__restrict u) { larger(m, u); }

// S becomes P = 2^((S - u) * scale)
void exp_scores(const bfloat16 *__restrict u, bfloat16 *__restrict s, float scale) {
  round_to_even();
  exponentials(u, s, s, rounded(scale));
}

// r = 2^((m - u) * scale)
void exp_correction(const bfloat16 *__restrict m, const bfloat16 *__restrict u, bfloat16 *__restrict r, float scale) {
  round_to_even();
  corrections(m, u, r, rounded(scale));
}

// t [BQ] = sum of each row of P [BQ, BK]
void row_sum(const bfloat16 *__restrict p, bfloat16 *__restrict t) {
  round_to_even();
  sums(p, t);
}

// l = l * r + t
void accumulate_sums(const bfloat16 *__restrict t, const bfloat16 *__restrict r, bfloat16 *__restrict l) {
  round_to_even();
  accumulate(t, r, l);
}

// O [BQ, DV] = O * r, row by row
void rescale_output(const bfloat16 *__restrict r, bfloat16 *__restrict o) {
  round_to_even();
  rescale(r, o);
}

// O = O * r + T, row by row
void accumulate_output(const bfloat16 *__restrict t, const bfloat16 *__restrict r, bfloat16 *__restrict o) {
  round_to_even();
  for (unsigned row = 0; row < BQ; row += group)
    each_panel<DV, BQ>(row, Spread(r + row), [&](unsigned at, const Vector &factor) {
      Sums sum = aie::mul(aie::load_v<lanes>(o + at), factor);
      sum = aie::add(sum, aie::load_v<lanes>(t + at));
      aie::store_v(o + at, sum.to_vector<bfloat16>());
    });
}

// O = O / l, row by row; a row that saw no key (l = 0, O = 0) stays 0
void divide_output(const bfloat16 *__restrict l, bfloat16 *__restrict o) {
  round_to_even();
  alignas(aie::vector_decl_align) bfloat16 reciprocals[BQ];
  for (unsigned i = 0; i < BQ; i += lanes)
    aie::store_v(reciprocals + i, aie::inv(aie::max(aie::load_v<lanes>(l + i), tiny())));
  rescale(reciprocals, o);
}

// One block in place: S becomes P; m the new maximum, t the row sums of P, r the correction
void softmax_step(bfloat16 *__restrict s, bfloat16 *__restrict m, bfloat16 *__restrict t, bfloat16 *__restrict r, float scale) {
  round_to_even();
  step(s, s, m, t, r, scale);
}

// One block of a stream: P to a tile of its own, l brought up to date, r handed on
void online_softmax(const bfloat16 *__restrict s, bfloat16 *__restrict p, bfloat16 *__restrict m, bfloat16 *__restrict l,
                    bfloat16 *__restrict r, float scale) {
  round_to_even();
  alignas(aie::vector_decl_align) bfloat16 t[BQ];
  step(s, p, m, t, r, scale);
  accumulate(t, r, l);
}

} // extern "C"

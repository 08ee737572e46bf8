// Softmax along rows that lie one after the other, bf16: whole rows, or rows in pieces with their maximum and sum apart.
//
// -DROWS, -DCOLS: rows and columns of a piece, COLS a multiple of 32. scale: log2(e) / sqrt(d), rounded to bf16. Sums are
// float, of 32 columns at a time. Rows that are masked altogether give 0.

#include "exp2.h"

using namespace panels;
static_assert(COLS % lanes == 0, "rows are whole vectors of 32");

namespace {

inline Vector everywhere(bfloat16 x) { return aie::broadcast<bfloat16, lanes>(x); }

// The largest of a row and of `from`, in all lanes
inline Vector row_maximum(const bfloat16 *__restrict s, Vector from) {
  for (unsigned j = 0; j < COLS; j += lanes) from = aie::max(from, aie::load_v<lanes>(s + j));
  return everywhere(aie::reduce_max(from));
}

// p = 2^((s - u) * scale)
inline void row_exponentials(const bfloat16 *__restrict s, const Vector &u, const Vector &scale, bfloat16 *__restrict p) {
  for (unsigned j = 0; j < COLS; j += lanes) aie::store_v(p + j, exp_difference(aie::load_v<lanes>(s + j), u, scale));
}

// The sum of 2^((s - u) * scale) over a row
inline float row_sum_of_exponentials(const bfloat16 *__restrict s, const Vector &u, const Vector &scale) {
  Sums sum = aie::zeros<accfloat, lanes>();
  for (unsigned j = 0; j < COLS; j += lanes) sum = aie::add(sum, exp_difference(aie::load_v<lanes>(s + j), u, scale));
  return aie::reduce_add(sum.to_vector<float>());
}

inline void divide_row(bfloat16 *__restrict p, const Vector &sum) {
  const Vector reciprocal = aie::inv(aie::max(sum, tiny()));
  for (unsigned j = 0; j < COLS; j += lanes)
    aie::store_v(p + j, aie::mul(aie::load_v<lanes>(p + j), reciprocal).to_vector<bfloat16>());
}

} // namespace

extern "C" {

// P [ROWS, COLS] = softmax of each row of S
void softmax_rows(const bfloat16 *__restrict s, bfloat16 *__restrict p, float scale) {
  round_to_even();
  const Vector factor = rounded(scale);
  for (unsigned row = 0; row < ROWS; ++row, s += COLS, p += COLS) {
    const Vector u = row_maximum(s, lowest());
    row_exponentials(s, u, factor, p);
    Sums sum = aie::zeros<accfloat, lanes>();
    for (unsigned j = 0; j < COLS; j += lanes) sum = aie::add(sum, aie::load_v<lanes>(p + j));
    divide_row(p, rounded(aie::reduce_add(sum.to_vector<float>())));
  }
}

// m [ROWS], l [ROWS]: maximum and sum so far, brought up to date with a piece of each row
void softmax_stats(const bfloat16 *__restrict s, bfloat16 *__restrict m, bfloat16 *__restrict l, float scale) {
  round_to_even();
  const Vector factor = rounded(scale);
  for (unsigned row = 0; row < ROWS; ++row, s += COLS) {
    const Vector before = everywhere(m[row]);
    const Vector u = row_maximum(s, aie::max(before, lowest()));
    Sums sum = aie::mul(everywhere(l[row]), exp_difference(before, u, factor));
    Sums piece;
    piece.from_vector(aie::broadcast<float, lanes>(row_sum_of_exponentials(s, u, factor)));
    sum = aie::add(sum, piece);
    m[row] = u.get(0);
    l[row] = sum.to_vector<bfloat16>().get(0);
  }
}

// P of a piece of each row, given the whole row's maximum and sum
void softmax_apply(const bfloat16 *__restrict s, const bfloat16 *__restrict m, const bfloat16 *__restrict l,
                   bfloat16 *__restrict p, float scale) {
  round_to_even();
  const Vector factor = rounded(scale);
  for (unsigned row = 0; row < ROWS; ++row, s += COLS, p += COLS) {
    row_exponentials(s, everywhere(m[row]), factor, p);
    divide_row(p, everywhere(l[row]));
  }
}

} // extern "C"

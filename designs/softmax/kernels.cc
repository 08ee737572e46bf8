// Softmax of rows that are too long for a tile's memory: what beside the shared kernels (softmax.cc) it takes.
//
// -DROWS, -DCOLS: rows and columns of a piece, row by row; multiples of 32. m [ROWS], l [ROWS]: maximum and sum of each
// row. scale: log2(e) / sqrt(d), rounded to bf16.

#include "softmax.cc"

static_assert(ROWS % lanes == 0, "m and l are whole vectors of 32");

extern "C" {

// Before the first piece: m = the lowest finite number, l = 0
void begin_rows(bfloat16 *__restrict m, bfloat16 *__restrict l) {
  fill(m, ROWS, lowest());
  fill(l, ROWS, aie::zeros<bfloat16, lanes>());
}

// First of three passes: m = the larger of m and of a piece's row
void piece_maxima(const bfloat16 *__restrict s, bfloat16 *__restrict m) {
  for (unsigned row = 0; row < ROWS; ++row, s += COLS)
    m[row] = row_maximum(s, aie::max(everywhere(m[row]), lowest())).get(0);
}

// Second of three passes: l = l + sum of 2^((s - m) * scale), with the maxima of whole rows
void piece_sums(const bfloat16 *__restrict s, const bfloat16 *__restrict m, bfloat16 *__restrict l, float scale) {
  round_to_even();
  const Vector factor = rounded(scale);
  for (unsigned row = 0; row < ROWS; ++row, s += COLS) {
    Sums sum, piece;
    sum.from_vector(everywhere(l[row]));
    piece.from_vector(aie::broadcast<float, lanes>(row_sum_of_exponentials(s, everywhere(m[row]), factor)));
    l[row] = aie::add(sum, piece).to_vector<bfloat16>().get(0);
  }
}

} // extern "C"

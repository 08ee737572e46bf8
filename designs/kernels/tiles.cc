// Fills and copies of attention's tiles (bf16, in panels) and row vectors (one bf16 a query).
//
// -DBQ, -DBK: queries and keys of a block; -DDK, -DDV: head dimensions of keys and of values. BQ a multiple of 32.

#include "panels.h"

using namespace panels;
static_assert(BQ % lanes == 0, "row vectors are whole vectors of 32");
static_assert(BK % width == 0 && DK % width == 0 && DV % width == 0, "tiles are whole panels");

extern "C" {

void zero_scores(bfloat16 *__restrict s) { fill(s, BQ * BK, aie::zeros<bfloat16, lanes>()); }
void zero_output(bfloat16 *__restrict o) { fill(o, BQ * DV, aie::zeros<bfloat16, lanes>()); }
void zero_sums(bfloat16 *__restrict l) { fill(l, BQ, aie::zeros<bfloat16, lanes>()); }
void lowest_maxima(bfloat16 *__restrict m) { fill(m, BQ, lowest()); }

void copy_queries(const bfloat16 *__restrict x, bfloat16 *__restrict y) { copy(x, y, BQ * DK); }
void copy_rows(const bfloat16 *__restrict x, bfloat16 *__restrict y) { copy(x, y, BQ); }

} // extern "C"

// Rows of a block of samples, for a product with all of it. -DBQ: rows taken, -DBK: rows of the block, -DDK: its samples.
//
// Both lie in panels of eight columns, see panels.h: a row's eight values of a panel are together.

#include "panels.h"

using namespace panels;
static_assert(BQ % 4 == 0 && BK % BQ == 0 && DK % width == 0, "whole vectors of four rows, whole bands, whole panels");

// band [BQ, DK] = rows number*BQ to number*BQ + BQ-1 of x [BK, DK]
extern "C" void take_rows(const bfloat16 *__restrict x, bfloat16 *__restrict band, int32_t number) {
  for (unsigned j = 0; j < DK / width; ++j)
    copy(x + (j * BK + number * BQ) * width, band + j * BQ * width, BQ * width);
}

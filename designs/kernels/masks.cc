// Masks on a block of scores S [BQ, BK] (bf16 in panels): minus infinity where a query must not see a key.
//
// Blocks are numbered from 0, of queries by BQ, of keys by BK. -DBQ, -DBK; causal and window masks exist for BQ = BK.

#include "panels.h"

using namespace panels;
static_assert(BQ % group == 0 && BK % width == 0, "whole groups of rows and panels");

namespace {

// Bits of four rows of eight columns, the first row's number within its 8x8 block being `row`: columns after the row.
constexpr uint32_t after(unsigned row) {
  uint32_t bits = 0;
  for (unsigned r = 0; r < 4; ++r)
    for (unsigned c = 0; c < width; ++c)
      if (c > row + r) bits |= uint32_t(1) << (r * width + c);
  return bits;
}

inline void mask_four_rows(bfloat16 *at, uint32_t bits) {
  aie::store_v(at, aie::select(aie::load_v<lanes>(at), masked(), aie::mask<lanes>::from_uint32(bits)));
}

#if BQ == BK
// Masks the keys after the query, or with `later` false the query's own and those before it.
inline void mask_diagonal(bfloat16 *__restrict s, bool later) {
  for (unsigned column = 0; column < BK; column += width) {
    bfloat16 *panel = s + column * BQ;
    bfloat16 *block = panel + column * width; // the 8x8 block on the diagonal
    if (later)
      fill(panel, column * width, masked());
    else
      fill(block + group * width, (BQ - column - group) * width, masked());
    mask_four_rows(block, later ? after(0) : ~after(0));
    mask_four_rows(block + lanes, later ? after(4) : ~after(4));
  }
}
#endif

} // namespace

extern "C" {

#if BQ == BK
// Keys after the query
void mask_causal(bfloat16 *__restrict s, int32_t q_block, int32_t k_block) {
  if (k_block > q_block)
    fill(s, BQ * BK, masked());
  else if (k_block == q_block)
    mask_diagonal(s, true);
}

// Keys after the query, and those `window` blocks before it or more
void mask_window(bfloat16 *__restrict s, int32_t q_block, int32_t k_block, int32_t window) {
  const int32_t oldest = q_block - window;
  if (k_block > q_block || k_block < oldest)
    fill(s, BQ * BK, masked());
  else if (k_block == q_block)
    mask_diagonal(s, true);
  else if (k_block == oldest)
    mask_diagonal(s, false);
}
#endif

// Padded keys: those numbered `keys` and more
void mask_keys(bfloat16 *__restrict s, int32_t k_block, int32_t keys) {
  const int32_t valid = keys - k_block * int32_t(BK); // columns of this block
  for (int32_t column = 0; column < int32_t(BK); column += int32_t(width)) {
    bfloat16 *panel = s + unsigned(column) * BQ;
    if (column >= valid) {
      fill(panel, BQ * width, masked());
    } else if (column + int32_t(width) > valid) {
      const uint32_t row = (0xffu << unsigned(valid - column)) & 0xffu;
      for (unsigned i = 0; i < BQ * width; i += lanes) mask_four_rows(panel + i, row * 0x01010101u);
    }
  }
}

} // extern "C"

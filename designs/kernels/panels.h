// Tiles in panels of eight columns, four rows (32 elements, 64 bytes) a vector; and values of rows, spread over them.
//
// A tile of R rows and C columns lies as [C/8][R][8]: element (r, c) at c/8 * R*8 + r*8 + c%8. See layout.py for why one
// layout serves both generations.

#pragma once

#include <aie_api/aie.hpp>
#include <stdint.h>

namespace panels {

constexpr unsigned width = 8;  // columns of a panel
constexpr unsigned group = 8;  // rows that are worked on at a time
constexpr unsigned lanes = 32; // four rows of a panel: half a group

using Vector = aie::vector<bfloat16, lanes>;
using Sums = aie::accum<accfloat, lanes>;

// Every kernel begins with this: the core starts with rounding down, which drifts.
inline void round_to_even() { ::aie::set_rounding(aie::rounding_mode::conv_even); }

// A bf16 in all lanes, from its bits.
inline Vector bits(int16 pattern) { return aie::broadcast<int16, lanes>(pattern).cast_to<bfloat16>(); }
inline Vector lowest() { return bits(int16(0xff7f)); } // where maxima start: the lowest finite number
inline Vector masked() { return bits(int16(0xff80)); } // what masks write: minus infinity
inline Vector tiny() { return bits(int16(0x0080)); }   // 2^-126, the smallest normal number

// A float in all lanes, rounded to bf16.
inline Vector rounded(float x) {
  Sums acc;
  acc.from_vector(aie::broadcast<float, lanes>(x));
  return acc.to_vector<bfloat16>();
}

inline void fill(bfloat16 *__restrict to, unsigned elements, const Vector &value) {
  for (unsigned i = 0; i < elements; i += lanes) aie::store_v(to + i, value);
}

inline void copy(const bfloat16 *__restrict from, bfloat16 *__restrict to, unsigned elements) {
  for (unsigned i = 0; i < elements; i += lanes) aie::store_v(to + i, aie::load_v<lanes>(from + i));
}

// The values of eight rows, each eight times: what a group of a panel is added to or multiplied with.
struct Spread {
  Vector upper, lower; // rows 0 to 3, rows 4 to 7

  explicit Spread(const bfloat16 *rows) {
    const auto once = aie::load_v<group>(rows);
    const auto twice = aie::interleave_zip(once, once, 1);
    const auto two = aie::concat(twice.first, twice.second);
    const auto again = aie::interleave_zip(two, two, 1);
    const auto four = aie::concat(again.first, again.second);
    const auto last = aie::interleave_zip(four, four, 1);
    upper = last.first;
    lower = last.second;
  }
};

// Calls f(offset, half) for each vector of a tile of R rows and C columns, in memory's order within a group of eight rows,
// all panels of a group before the next: half is the Spread's vector for it.
template <unsigned C, unsigned R, typename F> inline void each_panel(unsigned row, const Spread &rows, F f) {
  for (unsigned j = 0; j < C / width; ++j) {
    const unsigned at = j * R * width + row * width;
    f(at, rows.upper);
    f(at + lanes, rows.lower);
  }
}

} // namespace panels

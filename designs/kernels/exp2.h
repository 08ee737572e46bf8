// Powers of two: 32 float exponents to bf16.
//
// XDNA 2 has an instruction, 16 lanes at a time: straight lines between powers of two, up to 6 % too high.
// XDNA 1 has none: the exponent becomes a fixed-point number of 8 and 8 bits; two tables of 256 entries give 2^i and
// 2^(j/256), whose product is exact. Four entries are looked up in a cycle, for which each table is stored four times: 4 KiB
// of the tile's memory for both.

#pragma once

#include "panels.h"

namespace panels {

#if __AIE_ARCH__ == 21

inline Vector exp2(const Sums &exponents) { return aie::exp2<bfloat16>(exponents.to_vector<float>()); }

#else

// 256 bf16 patterns, four times: two arrays for the two load units, each with every run of eight values doubled.
struct Table {
  static constexpr unsigned entries = 256, run = 8;
  alignas(aie::vector_decl_align) int16 ab[2 * entries];
  alignas(aie::vector_decl_align) int16 cd[2 * entries];

  template <typename F> constexpr explicit Table(F pattern) : ab(), cd() {
    for (unsigned i = 0; i < entries; ++i)
      for (unsigned copy = 0; copy < 2; ++copy) {
        const unsigned at = i / run * 2 * run + copy * run + i % run;
        ab[at] = cd[at] = pattern(i);
      }
  }
};

// 2^i for i = 0 to 127, -128 to -1 (the order of the upper byte); 0 below the smallest normal number.
constexpr int16 whole_power(unsigned index) {
  const int i = index < 128 ? int(index) : int(index) - 256;
  return i < -126 ? 0 : int16((i + 127) << 7);
}

// 2^(j/256), from the exponential series; no entry lies near the middle of two bf16 numbers.
constexpr int16 fractional_power(unsigned j) {
  const double x = 0.69314718055994530942 * j / 256;
  double term = 1, sum = 0;
  for (int n = 1; n < 24; ++n) sum += term *= x / n; // 2^x - 1
  return int16((127 << 7) + int(sum * 128 + 0.5));
}

inline constexpr Table whole_powers{whole_power};
inline constexpr Table fractional_powers{fractional_power};

inline Vector exp2(const Sums &exponents) {
  using Lut = aie::lut<4, bfloat16, bfloat16>;
  using Lookup = aie::parallel_lookup<uint16, Lut, aie::lut_oor_policy::truncate>;
  const auto fixed = aie::to_fixed<int16>(exponents.to_vector<float>(), 8); // held at -128 and 127.99
  // The lookup rounds its index; with the other byte cleared there is nothing to round.
  const auto i = aie::bit_and(aie::broadcast<int16, lanes>(int16(0xff00)), fixed);
  const auto j = aie::bit_and(aie::broadcast<int16, lanes>(int16(0x00ff)), fixed);
  Lookup whole(Lut(Table::entries, whole_powers.ab, whole_powers.cd), 8);
  Lookup fraction(Lut(Table::entries, fractional_powers.ab, fractional_powers.cd), 0);
  const Vector a = whole.fetch(i.cast_to<uint16>());
  const Vector b = fraction.fetch(j.cast_to<uint16>());
  return aie::mul(a, b).to_vector<bfloat16>();
}

#endif

// 2^((x - y) * scale). The difference is rounded to bf16 and no lower than the lowest number: a masked score less a maximum
// of nothing but masked scores is finite then, and its power 0.
inline Vector exp_difference(const Vector &x, const Vector &y, const Vector &scale) {
  const Vector difference = aie::max(aie::sub(x, y), lowest());
  return exp2(aie::mul(difference, scale));
}

} // namespace panels

// Block floating point, bfp16ebs8: eight values share an exponent; each is a two's complement number of 8 bits.
//
// The largest magnitude, in [2^e, 2^(e+1)), sets the step 2^(e-6); values are rounded to whole steps, ties to even. If
// one becomes +128, which has no code, the step is doubled and all are rounded again. The rule is that of
// npusim.kernel_models.rounding.bfp16, which says where it comes from. A block that is not finite gives NaN.

#pragma once

#include <cmath>

#include "types.hpp"

namespace npusim_host {

constexpr unsigned block = 8;

struct Block { // value i is digits[i] * step; digits are whole numbers from -128 to 127
  float step;
  float digits[block];
};

inline bool round_block(Block &out, const float *values, float per_step) {
  bool fits = true;
  for (unsigned i = 0; i < block; ++i) {
    const float scaled = values[i] * per_step;            // below 2^22: adding 1.5 * 2^23 rounds to a whole number
    out.digits[i] = (scaled + 12582912.0f) - 12582912.0f; // ties to even
    fits = fits && out.digits[i] < 128;
  }
  return fits;
}

inline Block to_block(const float *values) {
  std::uint32_t largest = 0;
  for (unsigned i = 0; i < block; ++i) {
    const std::uint32_t magnitude = std::bit_cast<std::uint32_t>(values[i]) & 0x7fffffff;
    if (magnitude > largest) largest = magnitude;
  }
  Block out{1, {}};
  if (largest == 0) return out;
  if (largest >= 0x7f800000) {
    out.step = std::numeric_limits<float>::quiet_NaN();
    for (float &d : out.digits) d = 1;
    return out;
  }
  float scaled[block];
  int exponent = std::ilogb(std::bit_cast<float>(largest));
  const bool extreme = exponent < -110 || exponent > 110; // keep steps and their reciprocals normal numbers
  for (unsigned i = 0; i < block; ++i) scaled[i] = extreme ? std::ldexp(values[i], -exponent) : values[i];
  const int used = extreme ? 0 : exponent;
  if (!round_block(out, scaled, std::ldexp(1.0f, 6 - used))) {
    round_block(out, scaled, std::ldexp(1.0f, 5 - used));
    ++exponent;
  }
  out.step = std::ldexp(1.0f, exponent - 6); // may be subnormal, never inexact
  return out;
}

// Eight products of digits: a whole number up to 2^17, exact in float in any order.
inline float dot(const Block &a, const Block &b) {
  float sum = 0;
  for (unsigned i = 0; i < block; ++i) sum += a.digits[i] * b.digits[i];
  return sum;
}

} // namespace npusim_host

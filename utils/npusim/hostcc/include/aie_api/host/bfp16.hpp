// Block floating point, bfp16ebs8: eight values share the exponent of the largest one; each keeps a sign and 7 bits of
// magnitude, rounded to nearest even and held at +-127. (How the core's conversion rounds is not published.)

#pragma once

#include <cmath>

#include "types.hpp"

namespace npusim_host {

constexpr unsigned block = 8;

struct Block {
  float step; // 2^e: value i is digits[i] * step
  float digits[block];
};

inline Block to_block(const float *values) {
  float largest = 0;
  bool nan = false;
  for (unsigned i = 0; i < block; ++i) {
    const float magnitude = std::fabs(values[i]);
    nan = nan || std::isnan(magnitude);
    if (magnitude > largest) largest = magnitude;
  }
  Block out;
  if (nan) {
    out.step = std::numeric_limits<float>::quiet_NaN();
    for (float &d : out.digits) d = 1;
    return out;
  }
  int exponent = 0; // largest < 2^exponent; 0 for infinity, too
  if (std::isfinite(largest)) std::frexp(largest, &exponent);
  out.step = std::ldexp(1.0f, exponent - 7);
  for (unsigned i = 0; i < block; ++i) {
    const float scaled = values[i] / out.step;
    // Adding and taking away 1.5 * 2^23 rounds to an integer, ties to even.
    const float rounded = (scaled + 12582912.0f) - 12582912.0f;
    out.digits[i] = scaled > 127 ? 127 : scaled < -127 ? -127 : rounded > 127 ? 127 : rounded < -127 ? -127 : rounded;
  }
  return out;
}

// Eight products of digits: an integer below 2^17, so exact in float in any order.
inline float dot(const Block &a, const Block &b) {
  float sum = 0;
  for (unsigned i = 0; i < block; ++i) sum += a.digits[i] * b.digits[i];
  return sum;
}

} // namespace npusim_host

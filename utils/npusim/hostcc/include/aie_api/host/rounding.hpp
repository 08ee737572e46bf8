// Rounding as the core's mode says: float to bfloat16, and accumulators shifted down to integers.

#pragma once

#include <bit>
#include <limits>
#include <utility>

#include "config.hpp"

namespace aie {

// The mode is floor until the kernel sets another, as after the core's reset.
enum class rounding_mode : unsigned {
  floor = 0,           // towards negative infinity
  ceil = 1,            // towards positive infinity
  symmetric_floor = 2, // towards zero
  symmetric_ceil = 3,  // away from zero
  negative_inf = 8,    // the next six: to nearest; at half-way towards negative infinity,
  positive_inf = 9,    // towards positive infinity,
  symmetric_zero = 10, // towards zero,
  symmetric_inf = 11,  // away from zero,
  conv_even = 12,      // to even,
  conv_odd = 13,       // to odd
};

enum class saturation_mode : unsigned { none = 0, saturate = 1, symmetric = 3 };

inline void set_rounding(rounding_mode mode) { npusim_host::rounding = unsigned(mode); }
inline rounding_mode get_rounding() { return rounding_mode(npusim_host::rounding); }
inline void set_saturation(saturation_mode mode) { npusim_host::saturation = unsigned(mode); }
inline saturation_mode get_saturation() { return saturation_mode(npusim_host::saturation); }

// Sets a mode and gives the one before.
inline rounding_mode swap_rounding(rounding_mode mode) {
  return rounding_mode(std::exchange(npusim_host::rounding, unsigned(mode)));
}
inline saturation_mode swap_saturation(saturation_mode mode) {
  return saturation_mode(std::exchange(npusim_host::saturation, unsigned(mode)));
}

class tile { // the running core's modes
public:
  static tile current() { return {}; }
  void set_rounding(rounding_mode mode) const { aie::set_rounding(mode); }
  rounding_mode get_rounding() const { return aie::get_rounding(); }
  void set_saturation(saturation_mode mode) const { aie::set_saturation(mode); }
  saturation_mode get_saturation() const { return aie::get_saturation(); }
};

} // namespace aie

inline void set_rnd(unsigned mode) { npusim_host::rounding = mode; }
inline void set_sat() { npusim_host::saturation = 1; }
inline void clr_sat() { npusim_host::saturation = 0; }

namespace npusim_host {

using Mode = aie::rounding_mode;

// Whether cutting `low` (less than 2 * half) off a number in sign and magnitude adds one to the magnitude that is kept.
constexpr bool magnitude_up(Mode mode, bool negative, bool odd, std::uint64_t low, std::uint64_t half) {
  switch (mode) {
  case Mode::floor: return negative && low;
  case Mode::ceil: return !negative && low;
  case Mode::symmetric_floor: return false;
  case Mode::symmetric_ceil: return low != 0;
  default: break;
  }
  if (low != half) return low > half;
  switch (mode) {
  case Mode::negative_inf: return negative;
  case Mode::positive_inf: return !negative;
  case Mode::symmetric_zero: return false;
  case Mode::symmetric_inf: return true;
  case Mode::conv_odd: return !odd;
  default: return odd;
  }
}

constexpr std::uint16_t bf16_bits(float value, Mode mode) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const bool negative = bits >> 31;
  if ((bits & 0x7fffffff) > 0x7f800000) return std::uint16_t(negative << 15 | 0x7fc0);
  const std::uint32_t kept = bits >> 16;
  return std::uint16_t(kept + magnitude_up(mode, negative, kept & 1, bits & 0xffff, 0x8000));
}

constexpr std::uint16_t bf16_bits_even(float value) { // conv_even, without branches
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
  const bool nan = (bits & 0x7fffffff) > 0x7f800000;
  return std::uint16_t(nan ? bits >> 31 << 15 | 0x7fc0 : rounded);
}

constexpr float bf16_value(std::uint16_t bits) { return std::bit_cast<float>(std::uint32_t(bits) << 16); }

// value / 2^shift as an integer; a negative shift multiplies.
constexpr std::int64_t shifted(std::int64_t value, int shift, Mode mode) {
  if (shift <= 0) return std::int64_t(std::uint64_t(value) << (shift < -63 ? 63 : -shift));
  if (shift > 62) shift = 62;
  const std::uint64_t magnitude = value < 0 ? 0 - std::uint64_t(value) : std::uint64_t(value);
  const std::uint64_t kept = magnitude >> shift, low = magnitude & ((std::uint64_t(1) << shift) - 1);
  const std::uint64_t rounded = kept + magnitude_up(mode, value < 0, kept & 1, low, std::uint64_t(1) << (shift - 1));
  return value < 0 ? -std::int64_t(rounded) : std::int64_t(rounded);
}

// An integer as T: cut off, or held at T's ends, as the saturation mode says.
template <typename T> constexpr T narrowed(std::int64_t value, unsigned mode) {
  if (mode == 0 || sizeof(T) == 8) return T(value);
  using Limits = std::numeric_limits<T>;
  const std::int64_t high = Limits::max();
  const std::int64_t low = mode == 3 && std::is_signed_v<T> ? -high : std::int64_t(Limits::min());
  return T(value < low ? low : value > high ? high : value);
}

} // namespace npusim_host

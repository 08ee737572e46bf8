// bfloat16: the upper half of a float. Scalar conversions round to nearest, ties to even; those of vectors follow the
// mode.

#pragma once

#include "rounding.hpp"

struct bfloat16 {
  std::uint16_t bits;

  bfloat16() = default;
  constexpr bfloat16(float value) : bits(npusim_host::bf16_bits_even(value)) {}
  constexpr bfloat16(double value) : bfloat16(float(value)) {}
  template <typename I>
    requires std::is_integral_v<I>
  constexpr bfloat16(I value) : bfloat16(float(value)) {}

  static constexpr bfloat16 from_bits(std::uint16_t bits) {
    bfloat16 made(0.0f);
    made.bits = bits;
    return made;
  }
  constexpr operator float() const { return npusim_host::bf16_value(bits); }

  constexpr bfloat16 operator-() const { return from_bits(bits ^ 0x8000); }
  constexpr bfloat16 &operator+=(float b) { return *this = float(*this) + b; }
  constexpr bfloat16 &operator-=(float b) { return *this = float(*this) - b; }
  constexpr bfloat16 &operator*=(float b) { return *this = float(*this) * b; }
  constexpr bfloat16 &operator/=(float b) { return *this = float(*this) / b; }
};
static_assert(sizeof(bfloat16) == 2);

// Two bfloat16, or one and an integer, give a bfloat16; one and a float or double give that.
namespace npusim_host {
template <typename T> constexpr bool is_bf16 = std::is_same_v<T, bfloat16>;
template <typename A, typename B>
constexpr bool mixes_bf16 =
    (is_bf16<A> && (is_bf16<B> || std::is_arithmetic_v<B>)) || (is_bf16<B> && std::is_arithmetic_v<A>);
template <typename A, typename B>
using sum_of_bf16 =
    std::conditional_t<std::is_floating_point_v<A>, A, std::conditional_t<std::is_floating_point_v<B>, B, bfloat16>>;
} // namespace npusim_host

#define NPUSIM_BF16_ARITHMETIC(OP)                                                                          \
  template <typename A, typename B>                                                                         \
    requires npusim_host::mixes_bf16<A, B>                                                                  \
  constexpr npusim_host::sum_of_bf16<A, B> operator OP(A a, B b) {                                          \
    using Wide = std::conditional_t<std::is_same_v<npusim_host::sum_of_bf16<A, B>, double>, double, float>; \
    return npusim_host::sum_of_bf16<A, B>(Wide(a) OP Wide(b));                                              \
  }
#define NPUSIM_BF16_COMPARISON(OP)         \
  template <typename A, typename B>        \
    requires npusim_host::mixes_bf16<A, B> \
  constexpr bool operator OP(A a, B b) {   \
    return double(a) OP double(b);         \
  }
NPUSIM_BF16_ARITHMETIC(+)
NPUSIM_BF16_ARITHMETIC(-)
NPUSIM_BF16_ARITHMETIC(*)
NPUSIM_BF16_ARITHMETIC(/)
NPUSIM_BF16_COMPARISON(==)
NPUSIM_BF16_COMPARISON(!=)
NPUSIM_BF16_COMPARISON(<)
NPUSIM_BF16_COMPARISON(<=)
NPUSIM_BF16_COMPARISON(>)
NPUSIM_BF16_COMPARISON(>=)
#undef NPUSIM_BF16_ARITHMETIC
#undef NPUSIM_BF16_COMPARISON

template <> struct std::numeric_limits<bfloat16> {
  static constexpr bool is_specialized = true, is_signed = true, is_integer = false, is_exact = false;
  static constexpr bool has_infinity = true, has_quiet_NaN = true, is_iec559 = false, is_bounded = true;
  static constexpr int digits = 8, max_exponent = 128, min_exponent = -125;
  static constexpr bfloat16 min() { return bfloat16::from_bits(0x0080); }
  static constexpr bfloat16 max() { return bfloat16::from_bits(0x7f7f); }
  static constexpr bfloat16 lowest() { return bfloat16::from_bits(0xff7f); }
  static constexpr bfloat16 epsilon() { return bfloat16::from_bits(0x3c00); }
  static constexpr bfloat16 infinity() { return bfloat16::from_bits(0x7f80); }
  static constexpr bfloat16 quiet_NaN() { return bfloat16::from_bits(0x7fc0); }
};

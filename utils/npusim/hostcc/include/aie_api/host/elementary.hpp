// Functions of floats, and conversions between floats and fixed-point integers.
//
// inv and invsqrt of vectors are the AIE API's approximations, step by step (Xilinx/aie_api include/aie_api/detail/aie2
// and aie2p/elementary.hpp); sqrt of vectors is one scalar function after another there. exp2 is what is known of the
// AIE2P core's instruction, tanh is exact here and not on the core.

#pragma once

#include <cmath>

#include "reshape.hpp"

namespace npusim_host {

constexpr unsigned approximation_issues = 6; // products and sums of one approximation below
constexpr unsigned exp2_lanes = 16;          // aie_api detail/aie2p/elementary.hpp: native_lanes

// A float as T would keep it between two steps: bfloat16 is rounded as the mode says.
template <typename T> float kept_as(float value) {
  if constexpr (std::is_same_v<T, bfloat16>)
    return bf16_value(bf16_bits(value, Mode(rounding)));
  else
    return value;
}
template <typename T> T float_as(float value) {
  if constexpr (std::is_same_v<T, bfloat16>)
    return bfloat16::from_bits(bf16_bits(value, Mode(rounding)));
  else
    return T(value);
}

// 1 / x: a guess from the bits, then two refinements.
template <typename T> T approximate_inv(T x) {
  const float v = x, k1 = T(1.9395974f);
  float y;
  if constexpr (std::is_same_v<T, bfloat16>)
    y = bf16_value(std::uint16_t(0x7eb5 - x.bits));
  else
    y = std::bit_cast<float>(0x7eb53567u - std::bit_cast<std::uint32_t>(v));
  const float t = kept_as<T>(kept_as<T>(-(v * y) + 1.436142f) * y);
  const float minus_y = kept_as<T>(-(t * k1));
  const float refined = kept_as<T>(minus_y * v + 2.0f);
  return float_as<T>(-(minus_y * refined));
}

// 1 / sqrt(x): a guess from the bits, then one refinement.
template <typename T> T approximate_invsqrt(T x) {
  constexpr float c2 = 0.703952253f, c3 = 2.38924456f;
  const float v = x;
  const float half = kept_as<T>(v * float(T(c2)));
  const auto halved = std::uint32_t(shifted(std::bit_cast<std::int32_t>(v), 1, Mode(rounding)));
  const float y = kept_as<T>(std::bit_cast<float>(0x5f1ffff9u - halved));
  const float squared = kept_as<T>(y * y);
  const float refined = kept_as<T>(c2 * c3 - half * squared);
  return float_as<T>(y * refined);
}

// The AIE2P core's exp2, as far as known: x is cut off after 11 fractional bits, towards zero (AMD's AIE-ML v2
// intrinsics guide); 2^(i + f) is 2^i (1 + f), cut off to bfloat16, and 0 below 2^-126 (both inferred from published
// results; see designs.kernels.arithmetic). Up to 6.1 % too large, exact at whole numbers.
inline bfloat16 core_exp2(float x) {
  if (std::isnan(x)) return bfloat16::from_bits(0x7fc0);
  const float held = x < -200 ? -200 : x > 128 ? 128 : x;
  const int fixed = int(held * 2048);
  const int bits = (fixed + 127 * 2048) >> 4; // exponent and seven bits of f
  return bfloat16::from_bits(std::uint16_t(bits < 0x0080 ? 0 : bits));
}

template <typename R, unsigned N, typename V, typename F>
aie::vector<R, N> function_of(const V &v, unsigned issued, F f) {
  vector_issues(issued);
  aie::vector<R, N> out;
  for (unsigned i = 0; i < N; ++i) out.data[i] = f(v.data[i]);
  return out;
}

} // namespace npusim_host

namespace aie {

template <typename T, unsigned N>
  requires npusim_host::is_float<T>
vector<T, N> inv(const vector<T, N> &v) {
  constexpr unsigned steps = npusim_host::approximation_issues * npusim_host::multiply_issues<T, T, accfloat, N>();
  return npusim_host::function_of<T, N>(v, steps, npusim_host::approximate_inv<T>);
}
template <typename T, unsigned N>
  requires npusim_host::is_float<T>
vector<T, N> invsqrt(const vector<T, N> &v) {
  constexpr unsigned steps = npusim_host::approximation_issues * npusim_host::multiply_issues<T, T, accfloat, N>();
  return npusim_host::function_of<T, N>(v, steps, npusim_host::approximate_invsqrt<T>);
}
template <typename T, unsigned N>
  requires npusim_host::is_float<T>
vector<T, N> sqrt(const vector<T, N> &v) {
  npusim_host::counters.turns += N;
  return npusim_host::function_of<T, N>(v, 0, [](T x) { return npusim_host::float_as<T>(std::sqrt(float(x))); });
}
template <typename T>
  requires(std::is_arithmetic_v<T> || npusim_host::is_bf16<T>)
T max(T a, T b) {
  return a < b ? b : a;
}
template <typename T>
  requires(std::is_arithmetic_v<T> || npusim_host::is_bf16<T>)
T min(T a, T b) {
  return b < a ? b : a;
}
inline float inv(float x) { return 1.0f / x; }
inline float invsqrt(float x) { return 1.0f / std::sqrt(x); }
inline float sqrt(float x) { return std::sqrt(x); }
inline float div(float a, float b) { return a / b; }

template <Vector V, typename E> auto div(const V &a, const E &b) {
  if constexpr (Vector<E>)
    return mul(a, inv(b));
  else
    return mul(a, npusim_host::splat<typename V::value_type, V::size()>(typename V::value_type(inv(float(b)))));
}

// The two functions that the AIE2P core has an instruction for.
template <typename R = bfloat16, unsigned N> vector<R, N> exp2(const vector<float, N> &v) {
  static_assert(npusim_host::aie2p || N == 0,
                "aie::exp2 exists on AIE2P (XDNA 2) only; AIE2 looks exponentials up in a table");
  static_assert(std::is_same_v<R, bfloat16>, "aie::exp2 gives bfloat16");
  return npusim_host::function_of<R, N>(v, npusim_host::issues(N, npusim_host::exp2_lanes), npusim_host::core_exp2);
}
template <typename R = bfloat16, unsigned N> vector<R, N> tanh(const vector<float, N> &v) {
  static_assert(npusim_host::aie2p || N == 0, "aie::tanh exists on AIE2P (XDNA 2) only");
  static_assert(std::is_same_v<R, bfloat16>, "aie::tanh gives bfloat16");
  return npusim_host::function_of<R, N>(v, npusim_host::issues(N, npusim_host::exp2_lanes),
                                        [](float x) { return npusim_host::float_as<R>(float(std::tanh(double(x)))); });
}

// x * 2^shift as an integer, held at the type's ends. bfloat16 vectors round down (the core's vfloor), floats to
// nearest.
template <typename R = int32, typename T, unsigned N>
  requires npusim_host::is_float<T>
vector<R, N> to_fixed(const vector<T, N> &v, int shift = 0) {
  npusim_host::vector_issues(npusim_host::issues(N, npusim_host::float_lanes));
  vector<R, N> out;
  for (unsigned i = 0; i < N; ++i) {
    const double scaled = std::ldexp(double(float(v.data[i])), shift);
    const double whole = std::is_same_v<T, bfloat16> ? std::floor(scaled) : std::nearbyint(scaled);
    const double low = double(std::numeric_limits<R>::min()), high = double(std::numeric_limits<R>::max());
    out.data[i] = R(std::isnan(whole) ? 0 : whole < low ? low : whole > high ? high : whole);
  }
  return out;
}
inline int32 to_fixed(float a, int shift = 0) { return int32(std::nearbyint(std::ldexp(a, shift))); }

// x / 2^shift as a float.
template <typename R = float, typename T, unsigned N>
  requires std::is_integral_v<T>
vector<R, N> to_float(const vector<T, N> &v, int shift = 0) {
  npusim_host::vector_issues(npusim_host::issues(N, npusim_host::float_lanes));
  vector<R, N> out;
  for (unsigned i = 0; i < N; ++i) out.data[i] = npusim_host::float_as<R>(float(std::ldexp(double(v.data[i]), -shift)));
  return out;
}
template <typename R = float, typename Tag, unsigned N>
  requires(!std::is_same_v<Tag, accfloat>)
vector<R, N> to_float(const accum<Tag, N> &acc, int shift = 0) {
  npusim_host::vector_issues(npusim_host::issues(N, npusim_host::float_lanes));
  vector<R, N> out;
  for (unsigned i = 0; i < N; ++i)
    out.data[i] = npusim_host::float_as<R>(float(std::ldexp(double(acc.data[i]), -shift)));
  return out;
}
inline float to_float(int32 a, int shift = 0) { return std::ldexp(float(a), -shift); }

} // namespace aie

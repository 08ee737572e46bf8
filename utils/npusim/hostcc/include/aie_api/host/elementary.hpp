// Functions of floats, and conversions between floats and fixed-point integers.
//
// Where the AIE API approximates (inv, invsqrt, sqrt, and the core's exp2 and tanh) the host gives the value to double
// precision, rounded to float, then to the result's type: it shows what the kernel means, not the last bits of the core.

#pragma once

#include <cmath>

#include "reshape.hpp"

namespace npusim_host {

constexpr unsigned approximation_issues = 6; // products and sums of aie_api's approximations of 1/x and 1/sqrt(x)
constexpr unsigned exp2_lanes = 16;          // aie_api detail/aie2p/elementary.hpp: native_lanes

template <typename T> T float_as(double value) {
  if constexpr (std::is_same_v<T, bfloat16>)
    return bfloat16::from_bits(bf16_bits(float(value), Mode(rounding)));
  else
    return T(value);
}
template <typename R, unsigned N, typename V, typename F>
aie::vector<R, N> function_of(const V &v, unsigned issued, F f) {
  vector_issues(issued);
  aie::vector<R, N> out;
  for (unsigned i = 0; i < N; ++i) out.data[i] = float_as<R>(f(double(float(v.data[i]))));
  return out;
}

} // namespace npusim_host

namespace aie {

template <typename T, unsigned N>
  requires npusim_host::is_float<T>
vector<T, N> inv(const vector<T, N> &v) {
  return npusim_host::function_of<T, N>(v, npusim_host::issues(N, npusim_host::float_lanes) * npusim_host::approximation_issues,
                                        [](double x) { return 1.0 / x; });
}
template <typename T, unsigned N>
  requires npusim_host::is_float<T>
vector<T, N> invsqrt(const vector<T, N> &v) {
  return npusim_host::function_of<T, N>(v, npusim_host::issues(N, npusim_host::float_lanes) * npusim_host::approximation_issues,
                                        [](double x) { return 1.0 / std::sqrt(x); });
}
template <typename T, unsigned N>
  requires npusim_host::is_float<T>
vector<T, N> sqrt(const vector<T, N> &v) {
  return npusim_host::function_of<T, N>(v, npusim_host::issues(N, npusim_host::float_lanes) * npusim_host::approximation_issues,
                                        [](double x) { return std::sqrt(x); });
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
inline float invsqrt(float x) { return float(1.0 / std::sqrt(double(x))); }
inline float sqrt(float x) { return std::sqrt(x); }
inline float div(float a, float b) { return a / b; }

template <Vector V, typename E> auto div(const V &a, const E &b) {
  return mul(a, inv(npusim_host::as_vector<V>(b)));
}

// The two functions that the AIE2P core has an instruction for.
template <typename R = bfloat16, unsigned N> vector<R, N> exp2(const vector<float, N> &v) {
  static_assert(npusim_host::aie2p || N == 0, "aie::exp2 exists on AIE2P (XDNA 2) only; AIE2 looks exponentials up in a table");
  static_assert(std::is_same_v<R, bfloat16>, "aie::exp2 gives bfloat16");
  return npusim_host::function_of<R, N>(v, npusim_host::issues(N, npusim_host::exp2_lanes),
                                        [](double x) { return std::exp2(x); });
}
template <typename R = bfloat16, unsigned N> vector<R, N> exp2(const accum<accfloat, N> &acc) {
  return exp2<R>(acc.template to_vector<float>());
}
template <typename R = bfloat16, unsigned N> vector<R, N> tanh(const vector<float, N> &v) {
  static_assert(npusim_host::aie2p || N == 0, "aie::tanh exists on AIE2P (XDNA 2) only");
  static_assert(std::is_same_v<R, bfloat16>, "aie::tanh gives bfloat16");
  return npusim_host::function_of<R, N>(v, npusim_host::issues(N, npusim_host::exp2_lanes),
                                        [](double x) { return std::tanh(x); });
}

// x * 2^shift as an integer, held at the type's ends. bfloat16 vectors round down (the core's vfloor), floats to nearest.
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
  for (unsigned i = 0; i < N; ++i) out.data[i] = npusim_host::float_as<R>(std::ldexp(double(v.data[i]), -shift));
  return out;
}
template <typename R = float, typename Tag, unsigned N>
  requires(!std::is_same_v<Tag, accfloat>)
vector<R, N> to_float(const accum<Tag, N> &acc, int shift = 0) {
  npusim_host::vector_issues(npusim_host::issues(N, npusim_host::float_lanes));
  vector<R, N> out;
  for (unsigned i = 0; i < N; ++i) out.data[i] = npusim_host::float_as<R>(std::ldexp(double(acc.data[i]), -shift));
  return out;
}
inline float to_float(int32 a, int shift = 0) { return std::ldexp(float(a), -shift); }

} // namespace aie

// Element types, accumulator tags, and which accumulator a product gets.

#pragma once

#include <type_traits>

#include "bfloat16.hpp"

struct accauto {}; // the accumulator that fits the operands
struct acc32 {};
struct acc40 {};
struct acc48 {};
struct acc56 {};
struct acc64 {};
struct acc72 {};
struct acc80 {};
struct accfloat {};

namespace npusim_host {

template <typename T, typename... Us> constexpr bool one_of = (std::is_same_v<T, Us> || ...);
template <typename T> constexpr bool is_element = one_of<T, int8, uint8, int16, uint16, int32, uint32, bfloat16, float>;
template <typename T> constexpr bool is_float = one_of<T, bfloat16, float>;
template <typename T> constexpr bool is_tag = one_of<T, acc32, acc40, acc48, acc56, acc64, acc72, acc80, accfloat>;

// The integer type of twice, or half, the width.
template <typename T>
using wider = std::conditional_t<
    std::is_same_v<T, int8>, int16,
    std::conditional_t<std::is_same_v<T, uint8>, uint16, std::conditional_t<std::is_same_v<T, int16>, int32, uint32>>>;
template <typename T>
using narrower = std::conditional_t<
    std::is_same_v<T, int32>, int16,
    std::conditional_t<std::is_same_v<T, uint32>, uint16, std::conditional_t<std::is_same_v<T, int16>, int8, uint8>>>;

// acc32 is a 32-bit accumulator that wraps round; wider ones have 64 bits on these devices.
template <typename Tag>
using accumulated = std::conditional_t<std::is_same_v<Tag, accfloat>, float,
                                       std::conditional_t<std::is_same_v<Tag, acc32>, std::int32_t, std::int64_t>>;

template <typename A, typename B>
using product_tag =
    std::conditional_t<is_float<A>, accfloat,
                       std::conditional_t<(sizeof(A) <= 2 && sizeof(B) <= 2), acc32,
                                          std::conditional_t<(sizeof(A) + sizeof(B) < 8), acc48, acc64>>>;
template <typename Tag, typename A, typename B = A>
using tag_or_product = std::conditional_t<std::is_same_v<Tag, accauto>, product_tag<A, B>, Tag>;

template <typename Tag> constexpr unsigned tag_bits = one_of<Tag, acc32, accfloat> ? 32 : 64;

// Lanes that the vector unit multiplies in one issue, and issues that one such operation takes.
template <typename A, typename B, typename Tag, unsigned N> constexpr unsigned multiply_issues() {
  if constexpr (std::is_same_v<A, bfloat16> && std::is_same_v<B, bfloat16>)
    return issues(N, aie2p && N >= 64 ? 64 : float_lanes);
  else if constexpr (is_float<A> || is_float<B>)
    return issues(N, float_lanes) * float_multiply;
  else
    return issues(N, accumulator_bits / tag_bits<Tag>) * (sizeof(A) == 4 && sizeof(B) == 4   ? 4
                                                          : sizeof(A) == 4 || sizeof(B) == 4 ? 2
                                                                                             : 1);
}

// Issues of an addition, comparison or the like of N elements.
template <typename T, unsigned N> constexpr unsigned simple_issues() {
  return is_float<T> ? issues(N, float_lanes) : issues(N * sizeof(T), vector_width);
}

// Sum, difference and product as T: integers wrap round, as the core's do.
template <typename T> constexpr T wrapped_add(T a, T b) {
  if constexpr (std::is_integral_v<T>)
    return T(std::uint64_t(a) + std::uint64_t(b));
  else
    return a + b;
}
template <typename T> constexpr T wrapped_sub(T a, T b) {
  if constexpr (std::is_integral_v<T>)
    return T(std::uint64_t(a) - std::uint64_t(b));
  else
    return a - b;
}
template <typename R, typename A, typename B> constexpr R product(A a, B b) {
  if constexpr (std::is_same_v<R, float>)
    return float(a) * float(b);
  else
    return R(std::uint64_t(std::int64_t(a)) * std::uint64_t(std::int64_t(b)));
}

} // namespace npusim_host

namespace aie {

using npusim_host::Where;

template <typename T>
concept Elem = npusim_host::is_element<T>;

template <typename T, unsigned N> class vector;
template <typename Tag, unsigned N> class accum;
template <unsigned N> class mask;

namespace detail {
template <typename T> struct is_vector : std::false_type {};
template <typename T, unsigned N> struct is_vector<vector<T, N>> : std::true_type {};
template <typename T> struct is_accum : std::false_type {};
template <typename T, unsigned N> struct is_accum<accum<T, N>> : std::true_type {};
} // namespace detail

template <typename T>
concept Vector = detail::is_vector<T>::value;
template <typename T>
concept Accum = detail::is_accum<T>::value;
// What may stand for a scalar operand of vectors of T: numbers that convert to it.
template <typename E, typename T>
concept ScalarFor = (std::is_arithmetic_v<E> || std::is_same_v<E, bfloat16>) && Elem<T>;

} // namespace aie

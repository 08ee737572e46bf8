// Element by element: sums, products into accumulators, extremes, bits, shifts. Sums of bfloat16 vectors are formed in
// fp32 and rounded as the mode says, as on the core; products of bfloat16 are exact in fp32 before they are added.

#pragma once

#include "accum.hpp"

namespace npusim_host {

// Applies f to lanes and gives a vector of the same type.
template <typename T, unsigned N, typename F> aie::vector<T, N> lanewise(unsigned issued, F f) {
  vector_issues(issued);
  aie::vector<T, N> out;
  for (unsigned i = 0; i < N; ++i) out.data[i] = f(i);
  return out;
}

// Floats go through the accumulators: bfloat16 is rounded as the mode says.
template <typename T, unsigned N, typename F> aie::vector<T, N> float_lanewise(F f) {
  vector_issues(issues(N, float_lanes));
  aie::accum<accfloat, N> sums;
  for (unsigned i = 0; i < N; ++i) sums.data[i] = f(i);
  if constexpr (std::is_same_v<T, bfloat16>) move_issues(2 * issues(N, float_lanes)); // both operands are widened
  return sums.template to_vector<T>();
}

template <typename T, unsigned N> aie::vector<T, N> splat(T value) {
  aie::vector<T, N> out;
  for (unsigned i = 0; i < N; ++i) out.data[i] = value;
  return out;
}

// A scalar operand as the vector it stands for.
template <typename V, typename E> auto as_vector(const E &e) {
  if constexpr (aie::Vector<E>)
    return e;
  else
    return splat<typename V::value_type, V::size()>(typename V::value_type(e));
}

template <typename A, typename B> using the_vector = std::conditional_t<aie::Vector<A>, A, B>;
template <typename A, typename B>
concept Operands = (aie::Vector<A> && aie::Vector<B> && std::is_same_v<A, B>) ||
                   (aie::Vector<A> && (std::is_arithmetic_v<B> || is_bf16<B>)) ||
                   (aie::Vector<B> && (std::is_arithmetic_v<A> || is_bf16<A>));
// Operands of a product: integer types may differ, lanes may not. A scalar has the type of the floats it multiplies.
template <typename V, typename E>
constexpr bool fits = aie::Vector<E> || !is_float<typename V::value_type> || std::is_same_v<E, typename V::value_type>;
template <typename A, typename B> constexpr bool same_lanes() {
  if constexpr (aie::Vector<A> && aie::Vector<B>)
    return A::size() == B::size();
  else
    return aie::Vector<A> != aie::Vector<B>;
}

template <typename Tag, bool negate, typename A, typename B> auto multiply(const A &a, const B &b) {
  using V = the_vector<A, B>;
  static_assert(fits<V, A> && fits<V, B>,
                "a scalar in a product has the type of the vector's elements: write bfloat16(x) or x.0f");
  const auto x = as_vector<V>(a);
  const auto y = as_vector<V>(b);
  using TA = typename std::remove_const_t<decltype(x)>::value_type;
  using TB = typename std::remove_const_t<decltype(y)>::value_type;
  static_assert(is_float<TA> == is_float<TB> && (!is_float<TA> || std::is_same_v<TA, TB>),
                "the operands of a product are integers, or both bfloat16, or both float");
  using Acc = aie::accum<tag_or_product<Tag, TA, TB>, V::size()>;
  vector_issues(multiply_issues<TA, TB, typename Acc::value_type, V::size()>());
  Acc out;
  for (unsigned i = 0; i < V::size(); ++i) {
    const auto p = product<typename Acc::lane>(x.data[i], y.data[i]);
    out.data[i] = negate ? wrapped_sub(typename Acc::lane(0), p) : p;
  }
  return out;
}

template <bool negate, typename Acc, typename A, typename B> Acc multiply_onto(const Acc &acc, const A &a, const B &b) {
  using V = the_vector<A, B>;
  static_assert(fits<V, A> && fits<V, B>,
                "a scalar in a product has the type of the vector's elements: write bfloat16(x) or x.0f");
  const auto x = as_vector<V>(a);
  const auto y = as_vector<V>(b);
  using TA = typename std::remove_const_t<decltype(x)>::value_type;
  using TB = typename std::remove_const_t<decltype(y)>::value_type;
  static_assert(V::size() == Acc::size(), "accumulator and operands have the same lanes");
  static_assert(is_float<TA> == is_float<TB> && (!is_float<TA> || std::is_same_v<TA, TB>),
                "the operands of a product are integers, or both bfloat16, or both float");
  static_assert(is_float<TA> == Acc::is_floating_point(),
                "products of floats go to accfloat, of integers to the others");
  vector_issues(multiply_issues<TA, TB, typename Acc::value_type, V::size()>());
  Acc out;
  for (unsigned i = 0; i < V::size(); ++i) {
    const auto p = product<typename Acc::lane>(x.data[i], y.data[i]);
    out.data[i] = negate ? wrapped_sub(acc.data[i], p) : wrapped_add(acc.data[i], p);
  }
  return out;
}

// An accumulator and what is put onto its lanes, another accumulator or one number, combined by f.
template <aie::Accum A, typename B, typename F> A onto_lanes(const A &acc, const B &other, F f) {
  vector_issues(issues(A::bits(), accumulator_bits));
  A out;
  for (unsigned i = 0; i < A::size(); ++i) {
    if constexpr (aie::Accum<B>)
      out.data[i] = f(acc.data[i], typename A::lane(other.data[i]));
    else
      out.data[i] = f(acc.data[i], typename A::lane(other));
  }
  return out;
}

} // namespace npusim_host

namespace aie {

// ---- vectors

template <typename A, typename B>
  requires npusim_host::Operands<A, B>
auto add(const A &a, const B &b) {
  using V = npusim_host::the_vector<A, B>;
  using T = typename V::value_type;
  const V x = npusim_host::as_vector<V>(a), y = npusim_host::as_vector<V>(b);
  if constexpr (npusim_host::is_float<T>)
    return npusim_host::float_lanewise<T, V::size()>([&](unsigned i) { return float(x.data[i]) + float(y.data[i]); });
  else
    return npusim_host::lanewise<T, V::size()>(npusim_host::simple_issues<T, V::size()>(), [&](unsigned i) {
      return npusim_host::wrapped_add(x.data[i], y.data[i]);
    });
}
template <typename A, typename B>
  requires npusim_host::Operands<A, B>
auto sub(const A &a, const B &b) {
  using V = npusim_host::the_vector<A, B>;
  using T = typename V::value_type;
  const V x = npusim_host::as_vector<V>(a), y = npusim_host::as_vector<V>(b);
  if constexpr (npusim_host::is_float<T>)
    return npusim_host::float_lanewise<T, V::size()>([&](unsigned i) { return float(x.data[i]) - float(y.data[i]); });
  else
    return npusim_host::lanewise<T, V::size()>(npusim_host::simple_issues<T, V::size()>(), [&](unsigned i) {
      return npusim_host::wrapped_sub(x.data[i], y.data[i]);
    });
}
template <typename A, typename B>
  requires npusim_host::Operands<A, B>
auto saturating_add(const A &a, const B &b) {
  using V = npusim_host::the_vector<A, B>;
  using T = typename V::value_type;
  const V x = npusim_host::as_vector<V>(a), y = npusim_host::as_vector<V>(b);
  return npusim_host::lanewise<T, V::size()>(npusim_host::simple_issues<T, V::size()>(), [&](unsigned i) {
    return npusim_host::narrowed<T>(std::int64_t(x.data[i]) + std::int64_t(y.data[i]), 1);
  });
}
template <typename A, typename B>
  requires npusim_host::Operands<A, B>
auto saturating_sub(const A &a, const B &b) {
  using V = npusim_host::the_vector<A, B>;
  using T = typename V::value_type;
  const V x = npusim_host::as_vector<V>(a), y = npusim_host::as_vector<V>(b);
  return npusim_host::lanewise<T, V::size()>(npusim_host::simple_issues<T, V::size()>(), [&](unsigned i) {
    return npusim_host::narrowed<T>(std::int64_t(x.data[i]) - std::int64_t(y.data[i]), 1);
  });
}
template <typename A, typename B>
  requires npusim_host::Operands<A, B>
auto max(const A &a, const B &b) {
  using V = npusim_host::the_vector<A, B>;
  using T = typename V::value_type;
  const V x = npusim_host::as_vector<V>(a), y = npusim_host::as_vector<V>(b);
  return npusim_host::lanewise<T, V::size()>(npusim_host::issues(V::bytes(), npusim_host::vector_width),
                                             [&](unsigned i) { return x.data[i] < y.data[i] ? y.data[i] : x.data[i]; });
}
template <typename A, typename B>
  requires npusim_host::Operands<A, B>
auto min(const A &a, const B &b) {
  using V = npusim_host::the_vector<A, B>;
  using T = typename V::value_type;
  const V x = npusim_host::as_vector<V>(a), y = npusim_host::as_vector<V>(b);
  return npusim_host::lanewise<T, V::size()>(npusim_host::issues(V::bytes(), npusim_host::vector_width),
                                             [&](unsigned i) { return y.data[i] < x.data[i] ? y.data[i] : x.data[i]; });
}
template <typename A, typename B>
  requires npusim_host::Operands<A, B>
auto maxdiff(const A &a, const B &b) { // the difference, or 0 where it is negative
  using V = npusim_host::the_vector<A, B>;
  return max(sub(a, b), npusim_host::splat<typename V::value_type, V::size()>(typename V::value_type(0)));
}
template <Vector V, typename L, typename H> V clamp(const V &v, const L &low, const H &high) {
  return min(max(v, low), high);
}
template <Vector V> V neg(const V &v) {
  using T = typename V::value_type;
  return npusim_host::lanewise<T, V::size()>(npusim_host::simple_issues<T, V::size()>(), [&](unsigned i) {
    if constexpr (npusim_host::is_float<T>)
      return T(-v.data[i]);
    else
      return npusim_host::wrapped_sub(T(0), v.data[i]);
  });
}
template <Vector V> V abs(const V &v) {
  using T = typename V::value_type;
  return npusim_host::lanewise<T, V::size()>(
      npusim_host::issues(V::bytes(), npusim_host::vector_width), [&](unsigned i) {
        if constexpr (std::is_same_v<T, bfloat16>)
          return bfloat16::from_bits(v.data[i].bits & 0x7fff);
        else if constexpr (std::is_same_v<T, float>)
          return std::bit_cast<float>(std::bit_cast<std::uint32_t>(v.data[i]) & 0x7fffffffu);
        else
          return v.data[i] < T(0) ? npusim_host::wrapped_sub(T(0), v.data[i]) : v.data[i];
      });
}

#define NPUSIM_BITWISE(NAME, OP)                                                                       \
  template <typename A, typename B>                                                                    \
    requires npusim_host::Operands<A, B>                                                               \
  auto NAME(const A &a, const B &b) {                                                                  \
    using V = npusim_host::the_vector<A, B>;                                                           \
    using T = typename V::value_type;                                                                  \
    const V x = npusim_host::as_vector<V>(a), y = npusim_host::as_vector<V>(b);                        \
    return npusim_host::lanewise<T, V::size()>(npusim_host::simple_issues<T, V::size()>(),             \
                                               [&](unsigned i) { return T(x.data[i] OP y.data[i]); }); \
  }
NPUSIM_BITWISE(bit_and, &)
NPUSIM_BITWISE(bit_or, |)
NPUSIM_BITWISE(bit_xor, ^)
#undef NPUSIM_BITWISE

template <Vector V> V bit_not(const V &v) {
  using T = typename V::value_type;
  return npusim_host::lanewise<T, V::size()>(npusim_host::simple_issues<T, V::size()>(),
                                             [&](unsigned i) { return T(~v.data[i]); });
}
template <Vector V> V upshift(const V &v, unsigned shift) {
  using T = typename V::value_type;
  return npusim_host::lanewise<T, V::size()>(npusim_host::simple_issues<T, V::size()>(),
                                             [&](unsigned i) { return T(std::uint64_t(v.data[i]) << shift); });
}
template <Vector V> V downshift(const V &v, unsigned shift) {
  using T = typename V::value_type;
  return npusim_host::lanewise<T, V::size()>(npusim_host::simple_issues<T, V::size()>(),
                                             [&](unsigned i) { return T(v.data[i] >> shift); });
}
template <Vector V> V logical_downshift(const V &v, unsigned shift) {
  using T = typename V::value_type;
  return npusim_host::lanewise<T, V::size()>(npusim_host::simple_issues<T, V::size()>(), [&](unsigned i) {
    return T(std::make_unsigned_t<T>(v.data[i]) >> shift);
  });
}

// ---- products

template <typename Tag = accauto, typename A, typename B>
  requires(npusim_host::same_lanes<A, B>())
auto mul(const A &a, const B &b) {
  return npusim_host::multiply<Tag, false>(a, b);
}
template <typename Tag = accauto, typename A, typename B>
  requires(npusim_host::same_lanes<A, B>())
auto negmul(const A &a, const B &b) {
  return npusim_host::multiply<Tag, true>(a, b);
}
template <Accum Acc, typename A, typename B>
  requires(npusim_host::same_lanes<A, B>())
Acc mac(const Acc &acc, const A &a, const B &b) {
  return npusim_host::multiply_onto<false>(acc, a, b);
}
template <Accum Acc, typename A, typename B>
  requires(npusim_host::same_lanes<A, B>())
Acc msc(const Acc &acc, const A &a, const B &b) {
  return npusim_host::multiply_onto<true>(acc, a, b);
}
template <typename Tag = accauto, Vector V> auto mul_square(const V &v) { return mul<Tag>(v, v); }
template <Accum Acc, Vector V> Acc mac_square(const Acc &acc, const V &v) { return mac(acc, v, v); }
template <Accum Acc, Vector V> Acc msc_square(const Acc &acc, const V &v) { return msc(acc, v, v); }

// ---- accumulators

template <Accum A, typename B>
  requires(!Vector<B>)
A add(const A &acc, const B &other) {
  return npusim_host::onto_lanes(acc, other, [](auto a, auto b) { return npusim_host::wrapped_add(a, b); });
}
template <Accum A, Vector V> A add(const A &acc, const V &v) { return add(acc, A(v)); }
template <Accum A, typename B>
  requires(!Vector<B>)
A sub(const A &acc, const B &other) {
  return npusim_host::onto_lanes(acc, other, [](auto a, auto b) { return npusim_host::wrapped_sub(a, b); });
}
template <Accum A, Vector V> A sub(const A &acc, const V &v) { return sub(acc, A(v)); }
template <Accum A> A neg(const A &acc) {
  npusim_host::vector_issues(npusim_host::issues(A::bits(), npusim_host::accumulator_bits));
  A out;
  for (unsigned i = 0; i < A::size(); ++i) out.data[i] = npusim_host::wrapped_sub(typename A::lane(0), acc.data[i]);
  return out;
}

} // namespace aie

// aie::mask, comparisons that give one, and select.

#pragma once

#include <array>

#include "arithmetic.hpp"

namespace aie {

template <unsigned N> class mask {
  static constexpr unsigned words = (N + 31) / 32;
  std::array<std::uint32_t, words> word_{};

public:
  static constexpr unsigned size() { return N; }
  constexpr explicit mask(bool set = false) {
    for (unsigned i = 0; i < N; ++i)
      if (set) this->set(i);
  }
  template <typename... Words> static constexpr mask from_uint32(std::uint32_t first, Words... others) {
    static_assert(sizeof...(Words) + 1 == words, "one 32-bit word for 32 lanes");
    mask out;
    out.word_ = {first, std::uint32_t(others)...};
    if constexpr (N % 32) out.word_[words - 1] &= (1u << N % 32) - 1;
    return out;
  }
  template <typename... Words> static constexpr mask from_uint64(std::uint64_t first, Words... others) {
    static_assert((sizeof...(Words) + 1) * 2 == words, "one 64-bit word for 64 lanes");
    const std::uint64_t given[] = {first, std::uint64_t(others)...};
    mask out;
    for (unsigned i = 0; i < words; ++i) out.word_[i] = std::uint32_t(given[i / 2] >> 32 * (i % 2));
    return out;
  }
  constexpr bool test(unsigned i) const { return word_[i / 32] >> i % 32 & 1; }
  constexpr void set(unsigned i) { word_[i / 32] |= 1u << i % 32; }
  constexpr void clear(unsigned i) { word_[i / 32] &= ~(1u << i % 32); }
  constexpr std::uint32_t to_uint32(unsigned i = 0) const { return word_[i]; }
  constexpr std::uint64_t to_uint64(unsigned i = 0) const {
    return word_[2 * i] | std::uint64_t(word_[2 * i + 1]) << 32;
  }
  constexpr unsigned count() const {
    unsigned n = 0;
    for (std::uint32_t w : word_) n += unsigned(std::popcount(w));
    return n;
  }
  constexpr bool full() const { return count() == N; }
  constexpr bool empty() const { return count() == 0; }
  constexpr bool operator==(const mask &) const = default;
  constexpr mask operator~() const {
    return combine(*this, [](bool a, bool) { return !a; });
  }
  constexpr mask operator&(const mask &b) const {
    return combine(b, [](bool a, bool c) { return a && c; });
  }
  constexpr mask operator|(const mask &b) const {
    return combine(b, [](bool a, bool c) { return a || c; });
  }
  constexpr mask operator^(const mask &b) const {
    return combine(b, [](bool a, bool c) { return a != c; });
  }
  constexpr mask &operator&=(const mask &b) { return *this = *this & b; }
  constexpr mask &operator|=(const mask &b) { return *this = *this | b; }
  constexpr mask operator<<(unsigned n) const { return moved(int(n)); }
  constexpr mask operator>>(unsigned n) const { return moved(-int(n)); }

private:
  template <typename F> constexpr mask combine(const mask &b, F f) const {
    mask out;
    for (unsigned i = 0; i < N; ++i)
      if (f(test(i), b.test(i))) out.set(i);
    return out;
  }
  constexpr mask moved(int n) const {
    mask out;
    for (int i = 0; i < int(N); ++i)
      if (i - n >= 0 && i - n < int(N) && test(unsigned(i - n))) out.set(unsigned(i));
    return out;
  }
};

#define NPUSIM_COMPARE(NAME, OP)                                                            \
  template <typename A, typename B>                                                         \
    requires npusim_host::Operands<A, B>                                                    \
  auto NAME(const A &a, const B &b) {                                                       \
    using V = npusim_host::the_vector<A, B>;                                                \
    const V x = npusim_host::as_vector<V>(a), y = npusim_host::as_vector<V>(b);             \
    npusim_host::vector_issues(npusim_host::issues(V::bytes(), npusim_host::vector_width)); \
    mask<V::size()> out;                                                                    \
    for (unsigned i = 0; i < V::size(); ++i)                                                \
      if (x.data[i] OP y.data[i]) out.set(i);                                               \
    return out;                                                                             \
  }
NPUSIM_COMPARE(lt, <)
NPUSIM_COMPARE(le, <=)
NPUSIM_COMPARE(gt, >)
NPUSIM_COMPARE(ge, >=)
NPUSIM_COMPARE(eq, ==)
NPUSIM_COMPARE(neq, !=)
#undef NPUSIM_COMPARE

template <Vector A, Vector B>
  requires std::is_same_v<A, B>
bool equal(const A &a, const B &b) {
  return eq(a, b).full();
}

template <Vector A, Vector B>
  requires std::is_same_v<A, B>
bool not_equal(const A &a, const B &b) {
  return !equal(a, b);
}

// Lane i of b where bit i of m is set, else of a.
template <typename A, typename B, unsigned N>
  requires npusim_host::Operands<A, B>
auto select(const A &a, const B &b, const mask<N> &m) {
  using V = npusim_host::the_vector<A, B>;
  static_assert(V::size() == N, "the mask has as many bits as the vector lanes");
  const V x = npusim_host::as_vector<V>(a), y = npusim_host::as_vector<V>(b);
  return npusim_host::lanewise<typename V::value_type, N>(
      npusim_host::issues(V::bytes(), npusim_host::vector_width),
      [&](unsigned i) { return m.test(i) ? y.data[i] : x.data[i]; });
}
template <typename T, unsigned N>
  requires Elem<T>
auto select(T a, T b, const mask<N> &m) {
  return select(npusim_host::splat<T, N>(a), b, m);
}

// The extreme and whether it came from the second operand.
template <Vector V> auto max_cmp(const V &a, const V &b) { return std::make_tuple(max(a, b), lt(a, b)); }
template <Vector V> auto min_cmp(const V &a, const V &b) { return std::make_tuple(min(a, b), lt(b, a)); }

} // namespace aie

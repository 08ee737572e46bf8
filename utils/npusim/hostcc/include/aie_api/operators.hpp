// Operators for vectors and accumulators, after `using namespace aie::operators` (Xilinx/aie_api
// include/aie_api/operators.hpp).

#pragma once

#include "aie.hpp"

namespace aie::operators {

template <typename T>
concept Lanes = Vector<T> || Accum<T>;

template <Lanes A> auto operator-(const A &a) { return aie::neg(a); }
template <typename A, typename B>
  requires(Lanes<A> || Lanes<B>)
auto operator+(const A &a, const B &b) {
  return aie::add(a, b);
}
template <typename A, typename B>
  requires(Lanes<A> || Lanes<B>)
auto operator-(const A &a, const B &b) {
  return aie::sub(a, b);
}
template <Lanes A, typename B> A &operator+=(A &a, const B &b) { return a = aie::add(a, b); }
template <Lanes A, typename B> A &operator-=(A &a, const B &b) { return a = aie::sub(a, b); }

#define NPUSIM_OPERATOR(OP, NAME)            \
  template <typename A, typename B>          \
    requires(Vector<A> || Vector<B>)         \
  auto operator OP(const A &a, const B &b) { \
    return aie::NAME(a, b);                  \
  }
NPUSIM_OPERATOR(<, lt)
NPUSIM_OPERATOR(<=, le)
NPUSIM_OPERATOR(>, gt)
NPUSIM_OPERATOR(>=, ge)
NPUSIM_OPERATOR(==, eq)
NPUSIM_OPERATOR(!=, neq)
NPUSIM_OPERATOR(&, bit_and)
NPUSIM_OPERATOR(|, bit_or)
NPUSIM_OPERATOR(^, bit_xor)
#undef NPUSIM_OPERATOR

template <Vector A> A operator~(const A &a) { return aie::bit_not(a); }
template <Vector A> A operator<<(const A &a, unsigned shift) { return aie::upshift(a, shift); }
template <Vector A> A operator>>(const A &a, unsigned shift) { return aie::downshift(a, shift); }

} // namespace aie::operators

// y = gelu(x + bias) on bf16 elements, for AIE2 and AIE2P.
//
// Layout: x, bias and y are FEATURES contiguous bf16 elements, 64-byte aligned (the buffer allocator aligns them).
// Arithmetic: gelu(z) = z * share(z), where share is the probability that a standard normal number is below z. From -2.75
// to 2.75 a polynomial approximates it, beyond it is 0 or 1. Every product and every sum is formed in float and rounded
// to bf16, to nearest even. The result is within 0.012 of GELU, or of one rounding.

#include <aie_api/aie.hpp>
#include <stdint.h>

#ifndef FEATURES
#error "compile with -DFEATURES=<elements of one row>"
#endif

namespace {

constexpr unsigned lanes = 32; // 64 bytes: one vector register of bf16 on either generation
constexpr unsigned turn = 2 * lanes;
static_assert(FEATURES % turn == 0, "FEATURES must be a multiple of two vectors");

using Vector = aie::vector<bfloat16, lanes>;
using Sums = aie::accum<accfloat, lanes>;

// A constant in all lanes; all that are used are bf16 numbers.
inline Vector all(float x) { return aie::broadcast<bfloat16, lanes>(static_cast<bfloat16>(x)); }

// a * b + c
inline Vector multiply_add(const Vector &a, const Vector &b, float c) {
  Sums sum;
  sum.from_vector(all(c));
  return aie::mac(sum, a, b).to_vector<bfloat16>();
}

inline Vector gelu(const Vector &z) {
  const Vector u = aie::max(aie::min(z, all(2.75f)), all(-2.75f));
  const Vector square = aie::mul(u, u).to_vector<bfloat16>();
  Vector slope = multiply_add(square, all(5.f / 2048), -179.f / 4096);
  slope = multiply_add(square, slope, 0.375f);
  Vector share = multiply_add(u, slope, 0.5f);
  share = aie::max(aie::min(share, all(1.f)), all(0.f));
  return aie::mul(z, share).to_vector<bfloat16>();
}

} // namespace

extern "C" void bias_gelu_bf16(const bfloat16 *__restrict x, const bfloat16 *__restrict bias, bfloat16 *__restrict y) {
  ::aie::set_rounding(aie::rounding_mode::conv_even);
  for (unsigned i = 0; i < FEATURES; i += turn) { // two vectors a turn: one is computed while the other's results are due
    const Vector first = aie::add(aie::load_v<lanes>(x + i), aie::load_v<lanes>(bias + i));
    const Vector second = aie::add(aie::load_v<lanes>(x + i + lanes), aie::load_v<lanes>(bias + i + lanes));
    aie::store_v(y + i, gelu(first));
    aie::store_v(y + i + lanes, gelu(second));
  }
}

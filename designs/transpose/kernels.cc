// b = alpha * a, each 8 x 8 micro tile transposed: bf16 elements, for AIE2 and AIE2P.
//
// Layout: a and b are ELEMENTS contiguous bf16 elements, 64-byte aligned: micro tiles of 8 x 8, one after the other, each
// row by row. Where a micro tile belongs is the DMA's business; the kernel leaves them in their order.
// Arithmetic: the product is formed in float and rounded to bf16, to nearest even. alpha is rounded to bf16 first.

#include <aie_api/aie.hpp>
#include <stdint.h>

#ifndef ELEMENTS
#error "compile with -DELEMENTS=<elements of one tile>"
#endif

namespace {
constexpr unsigned side = 8;
constexpr unsigned micro = side * side; // 128 bytes
constexpr unsigned half = micro / 2;    // what fits into one register
static_assert(ELEMENTS % micro == 0, "a tile must consist of whole micro tiles");
} // namespace

extern "C" void transpose_bf16(const bfloat16 *__restrict a,
                               bfloat16 *__restrict b, float alpha) {
  ::aie::set_rounding(aie::rounding_mode::conv_even);
  const auto factor =
      aie::broadcast<bfloat16, half>(static_cast<bfloat16>(alpha));
  for (unsigned i = 0; i < ELEMENTS; i += micro) {
    const auto whole = aie::load_v<micro>(a + i);
    const auto turned = aie::transpose(whole, side, side);
    for (unsigned j = 0; j < 2; ++j) {
      const auto product = aie::mul(turned.extract<half>(j), factor);
      aie::store_v(b + i + j * half, product.to_vector<bfloat16>());
    }
  }
}

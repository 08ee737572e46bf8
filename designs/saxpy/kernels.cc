// y = a*x + y on bf16 elements, for AIE2 and AIE2P.
//
// Layout: x, y and out are TILE contiguous bf16 elements, 64-byte aligned (the buffer allocator aligns them).
// Arithmetic: the product of two bf16 numbers and the sum are formed in a float accumulator; one rounding, to nearest even,
// gives the bf16 result. a is rounded to bf16 first.

#include <aie_api/aie.hpp>
#include <stdint.h>

#ifndef TILE
#error "compile with -DTILE=<elements of one object>"
#endif

namespace {
constexpr unsigned lanes = 32; // 64 bytes: one vector register of bf16 on either generation
static_assert(TILE % lanes == 0, "TILE must be a multiple of the vector length");
} // namespace

extern "C" void saxpy_bf16(const bfloat16 *__restrict x,
                           const bfloat16 *__restrict y,
                           bfloat16 *__restrict out, float a) {
  ::aie::set_rounding(aie::rounding_mode::conv_even);
  const aie::vector<bfloat16, lanes> factor =
      aie::broadcast<bfloat16, lanes>(static_cast<bfloat16>(a));
  for (unsigned i = 0; i < TILE; i += lanes) {
    aie::accum<accfloat, lanes> sum;
    sum.from_vector(aie::load_v<lanes>(y + i));
    sum = aie::mac(sum, aie::load_v<lanes>(x + i), factor);
    aie::store_v(out + i, sum.to_vector<bfloat16>());
  }
}

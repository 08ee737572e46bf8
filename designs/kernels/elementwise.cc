// Loops over -DN contiguous bf16 elements, 32 at a time (COUNT a multiple of 32). Sums and products are formed in float and
// rounded once, to nearest even.

#include "panels.h"

using namespace panels;
static_assert(COUNT % lanes == 0, "COUNT must be a multiple of the vector length, 32");

extern "C" {

// z = x + y
void add_bf16(const bfloat16 *__restrict x, const bfloat16 *__restrict y, bfloat16 *__restrict z) {
  round_to_even();
  for (unsigned i = 0; i < COUNT; i += lanes) aie::store_v(z + i, aie::add(aie::load_v<lanes>(x + i), aie::load_v<lanes>(y + i)));
}

// z = x * y
void mul_bf16(const bfloat16 *__restrict x, const bfloat16 *__restrict y, bfloat16 *__restrict z) {
  round_to_even();
  for (unsigned i = 0; i < COUNT; i += lanes)
    aie::store_v(z + i, aie::mul(aie::load_v<lanes>(x + i), aie::load_v<lanes>(y + i)).to_vector<bfloat16>());
}

// z = max(x, 0)
void relu_bf16(const bfloat16 *__restrict x, bfloat16 *__restrict z) {
  for (unsigned i = 0; i < COUNT; i += lanes)
    aie::store_v(z + i, aie::max(aie::load_v<lanes>(x + i), aie::zeros<bfloat16, lanes>()));
}

// z = x * factor, the factor rounded to bf16
void scale_bf16(const bfloat16 *__restrict x, bfloat16 *__restrict z, float factor) {
  round_to_even();
  const Vector all = rounded(factor);
  for (unsigned i = 0; i < COUNT; i += lanes) aie::store_v(z + i, aie::mul(aie::load_v<lanes>(x + i), all).to_vector<bfloat16>());
}

// z = x
void passthrough_bf16(const bfloat16 *__restrict x, bfloat16 *__restrict z) { copy(x, z, COUNT); }

} // extern "C"

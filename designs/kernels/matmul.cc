// The matmul chapter's kernels: C [M, N] += A [M, K] B [K, N], operands in micro tiles of aie::mmul's shape (r, s, t).
//
// A lies as [M/r][K/s][r][s], B as [K/s][N/t][s][t], C as [M/r][N/t][r][t]: tiles, and the elements of a tile, row by row.
// -DDIM_M, -DDIM_K, -DDIM_N, multiples of 2r, s and 2t. Whole numbers are summed in 32 bits, bf16 in float (in BFP16 products on XDNA 2 if
// compiled with -DAIE_API_EMULATE_BFLOAT16_MMUL_WITH_BFP16).

#include <aie_api/aie.hpp>
#include <stdint.h>

namespace {

// Four tiles of C at a time, each tile of A and B used twice.
template <unsigned r, unsigned s, unsigned t, typename In, typename Out>
inline void multiply(const In *__restrict a, const In *__restrict b,
                     Out *__restrict c) {
  using Tile = aie::mmul<r, s, t, In, In, accauto>;
  constexpr unsigned size_A = r * s, size_B = s * t, size_C = r * t;
  constexpr unsigned rows = DIM_M / r, inner = DIM_K / s;
  constexpr unsigned columns = DIM_N / t;
  static_assert(DIM_M % (2 * r) == 0 && DIM_K % s == 0, "whole steps");
  static_assert(DIM_N % (2 * t) == 0, "whole steps of 2x2 micro tiles");
  for (unsigned i = 0; i < rows; i += 2)
    for (unsigned j = 0; j < columns; j += 2) {
      Out *upper = c + (i * columns + j) * size_C;
      Out *lower = upper + columns * size_C;
      Tile c00(aie::load_v<size_C>(upper));
      Tile c01(aie::load_v<size_C>(upper + size_C));
      Tile c10(aie::load_v<size_C>(lower));
      Tile c11(aie::load_v<size_C>(lower + size_C));
      for (unsigned k = 0; k < inner; ++k) {
        const In *left = a + (i * inner + k) * size_A;
        const In *right = b + (k * columns + j) * size_B;
        const auto a0 = aie::load_v<size_A>(left);
        const auto a1 = aie::load_v<size_A>(left + inner * size_A);
        const auto b0 = aie::load_v<size_B>(right);
        const auto b1 = aie::load_v<size_B>(right + size_B);
        c00.mac(a0, b0);
        c01.mac(a0, b1);
        c10.mac(a1, b0);
        c11.mac(a1, b1);
      }
      aie::store_v(upper, c00.template to_vector<Out>());
      aie::store_v(upper + size_C, c01.template to_vector<Out>());
      aie::store_v(lower, c10.template to_vector<Out>());
      aie::store_v(lower + size_C, c11.template to_vector<Out>());
    }
}

template <typename T> inline void zero(T *__restrict c) {
  constexpr unsigned lanes = 16; // 64 bytes
  static_assert(DIM_M * DIM_N % lanes == 0, "C is whole vectors");
  for (unsigned i = 0; i < DIM_M * DIM_N; i += lanes) aie::store_v(c + i, aie::zeros<T, lanes>());
}

} // namespace

extern "C" {

void matmul_i16_i32(const int16 *__restrict a, const int16 *__restrict b, int32 *__restrict c) {
#if __AIE_ARCH__ == 21
  multiply<4, 4, 8>(a, b, c);
#else
  multiply<4, 4, 4>(a, b, c);
#endif
}

void matmul_bf16_f32(const bfloat16 *__restrict a, const bfloat16 *__restrict b, float *__restrict c) {
  ::aie::set_rounding(aie::rounding_mode::conv_even); // for the conversion to BFP16
#if __AIE_ARCH__ == 21
  multiply<8, 8, 8>(a, b, c);
#else
  multiply<4, 8, 4>(a, b, c);
#endif
}

void zero_i32(int32 *__restrict c) { zero(c); }
void zero_f32(float *__restrict c) { zero(c); }

} // extern "C"

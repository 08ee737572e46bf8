// Products of attention's tiles (bf16 in panels, see panels.h): S += Q Kᵀ and O += P V.
//
// Sums are kept in float for the whole of k; the result tile is loaded and stored once, in bf16, to nearest even.
// XDNA 2 multiplies 8x8x8 blocks, in BFP16 if compiled with -DAIE_API_EMULATE_BFLOAT16_MMUL_WITH_BFP16 (eight values along k
// share an exponent); XDNA 1 multiplies 4x8 by 8x4, exactly.
//
// -DBQ, -DBK: queries and keys of a block; -DDK, -DDV: head dimensions. All multiples of 16.

#include "panels.h"

using namespace panels;

namespace {

#if __AIE_ARCH__ == 21

// Four 8x8 results at a time: two rows of blocks by two panels.
struct Product {
  using Block = aie::mmul<8, 8, 8, bfloat16, bfloat16, accauto>;
  static constexpr unsigned rows = 16, columns = 16, size = 64;
  Block c00, c01, c10, c11;

  Product(const bfloat16 *c, unsigned panel)
      : c00(aie::load_v<size>(c)), c01(aie::load_v<size>(c + panel)), c10(aie::load_v<size>(c + size)),
        c11(aie::load_v<size>(c + panel + size)) {}

  // a: two blocks of rows, one below the other. b0, b1: the blocks of eight k by eight columns of the two panels.
  void add(const bfloat16 *a, const aie::vector<bfloat16, size> &b0, const aie::vector<bfloat16, size> &b1) {
    const auto a0 = aie::load_v<size>(a), a1 = aie::load_v<size>(a + size);
    c00.mac(a0, b0);
    c01.mac(a0, b1);
    c10.mac(a1, b0);
    c11.mac(a1, b1);
  }

  void store(bfloat16 *c, unsigned panel) const {
    aie::store_v(c, c00.to_vector<bfloat16>());
    aie::store_v(c + panel, c01.to_vector<bfloat16>());
    aie::store_v(c + size, c10.to_vector<bfloat16>());
    aie::store_v(c + panel + size, c11.to_vector<bfloat16>());
  }
};

// Eight rows by eight columns of k, to eight of k by eight columns.
inline aie::vector<bfloat16, 64> transposed(const bfloat16 *b) { return aie::transpose(aie::load_v<64>(b), 8, 8); }

template <unsigned M, unsigned K, unsigned N, bool transpose>
inline void multiply(const bfloat16 *__restrict a, const bfloat16 *__restrict b, bfloat16 *__restrict c) {
  static_assert(M % Product::rows == 0 && N % Product::columns == 0 && K % width == 0, "whole steps of 2x2 blocks");
  constexpr unsigned a_panel = M * width, b_panel = (transpose ? N : K) * width, c_panel = M * width;
  for (unsigned j = 0; j < N; j += Product::columns)
    for (unsigned i = 0; i < M; i += Product::rows) {
      bfloat16 *at = c + j / width * c_panel + i * width;
      Product sums(at, c_panel);
      for (unsigned k = 0; k < K; k += width) {
        const bfloat16 *left = a + k / width * a_panel + i * width;
        if constexpr (transpose) {
          const bfloat16 *right = b + k / width * b_panel + j * width; // rows j of B, columns k
          sums.add(left, transposed(right), transposed(right + 64));
        } else {
          const bfloat16 *right = b + j / width * b_panel + k * width; // rows k of B, columns j
          sums.add(left, aie::load_v<64>(right), aie::load_v<64>(right + b_panel));
        }
      }
      sums.store(at, c_panel);
    }
}

#else

// Eight 4x4 results at a time: four rows of blocks by the two halves of one panel.
struct Product {
  using Block = aie::mmul<4, 8, 4, bfloat16, bfloat16, accauto>;
  static constexpr unsigned rows = 16, columns = 8, size = 32;
  Block left0, left1, left2, left3, right0, right1, right2, right3;

  explicit Product(const bfloat16 *c) {
    load(c, left0, right0);
    load(c + size, left1, right1);
    load(c + 2 * size, left2, right2);
    load(c + 3 * size, left3, right3);
  }

  // a: four blocks of 4x8, one below the other. b_left, b_right: eight of k by four columns each.
  void add(const bfloat16 *a, const Vector &b_left, const Vector &b_right) {
    const Vector a0 = aie::load_v<size>(a), a1 = aie::load_v<size>(a + size);
    const Vector a2 = aie::load_v<size>(a + 2 * size), a3 = aie::load_v<size>(a + 3 * size);
    left0.mac(a0, b_left);
    right0.mac(a0, b_right);
    left1.mac(a1, b_left);
    right1.mac(a1, b_right);
    left2.mac(a2, b_left);
    right2.mac(a2, b_right);
    left3.mac(a3, b_left);
    right3.mac(a3, b_right);
  }

  void store(bfloat16 *c) const {
    store(c, left0, right0);
    store(c + size, left1, right1);
    store(c + 2 * size, left2, right2);
    store(c + 3 * size, left3, right3);
  }

private:
  // Four rows of eight are taken apart into two blocks of 4x4, and put together again.
  static void load(const bfloat16 *c, Block &left, Block &right) {
    const Vector four = aie::load_v<size>(c);
    const auto halves = aie::interleave_unzip(four.extract<16>(0), four.extract<16>(1), 4);
    left = Block(halves.first);
    right = Block(halves.second);
  }
  static void store(bfloat16 *c, const Block &left, const Block &right) {
    const auto four = aie::interleave_zip(left.to_vector<bfloat16>(), right.to_vector<bfloat16>(), 4);
    aie::store_v(c, aie::concat(four.first, four.second));
  }
};

template <unsigned M, unsigned K, unsigned N, bool transpose>
inline void multiply(const bfloat16 *__restrict a, const bfloat16 *__restrict b, bfloat16 *__restrict c) {
  static_assert(M % Product::rows == 0 && N % Product::columns == 0 && K % width == 0, "whole steps of 4x2 blocks");
  constexpr unsigned a_panel = M * width, b_panel = (transpose ? N : K) * width, c_panel = M * width;
  for (unsigned j = 0; j < N; j += Product::columns)
    for (unsigned i = 0; i < M; i += Product::rows) {
      bfloat16 *at = c + j / width * c_panel + i * width;
      Product sums(at);
      for (unsigned k = 0; k < K; k += width) {
        const bfloat16 *left = a + k / width * a_panel + i * width;
        // Eight by eight of B: rows j and columns k if transposed, else rows k and columns j.
        const bfloat16 *right = transpose ? b + k / width * b_panel + j * width : b + j / width * b_panel + k * width;
        const Vector upper = aie::load_v<lanes>(right), lower = aie::load_v<lanes>(right + lanes);
        if constexpr (transpose) {
          sums.add(left, aie::transpose(upper, 4, 8), aie::transpose(lower, 4, 8));
        } else {
          const auto halves = aie::interleave_unzip(upper, lower, 4);
          sums.add(left, halves.first, halves.second);
        }
      }
      sums.store(at);
    }
}

#endif

} // namespace

extern "C" {

// S [BQ, BK] += Q [BQ, DK] K [BK, DK]ᵀ, unscaled
void matmul_qk(const bfloat16 *__restrict q, const bfloat16 *__restrict k, bfloat16 *__restrict s) {
  round_to_even();
  multiply<BQ, DK, BK, true>(q, k, s);
}

// O [BQ, DV] += P [BQ, BK] V [BK, DV]
void matmul_pv(const bfloat16 *__restrict p, const bfloat16 *__restrict v, bfloat16 *__restrict o) {
  round_to_even();
  multiply<BQ, BK, DV, false>(p, v, o);
}

} // extern "C"

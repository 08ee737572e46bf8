// aie::mmul<M, K, N>: C (M x N) += A (M x K) B (K x N), each row-major in a vector, in the shapes that the device has.
//
// Order of the sums, which hosts and models must share:
//   integers        exact;
//   bfloat16        k upwards, each product (exact in fp32) added to the fp32 accumulator; the core's order within its
//                   4x8x4 instruction is not published;
//   bfloat16 with AIE_API_EMULATE_BFLOAT16_MMUL_WITH_BFP16 (AIE2P, 8x8x8 and 4x8x8)
//                   A's rows and B's columns become blocks of eight along k (bfp16.hpp), the eight products of a block
//                   are summed exactly, scaled in double precision, rounded to fp32, and added to the accumulator in
//                   fp32;
//   float           as bfloat16, with products rounded to fp32 (the core emulates them with bfloat16 products).

#pragma once

#include "arithmetic.hpp"
#include "bfp16.hpp"

namespace npusim_host {

struct Shape {
  unsigned m, k, n;
  constexpr bool operator==(const Shape &) const = default;
};
template <unsigned Count> constexpr bool among(Shape shape, const Shape (&shapes)[Count]) {
  for (const Shape &s : shapes)
    if (s == shape) return true;
  return false;
}

#if AIE_API_EMULATE_BFLOAT16_MMUL_WITH_BFP16
constexpr bool emulates_with_bfp16 = aie2p;
#else
constexpr bool emulates_with_bfp16 = false;
#endif

// The shapes of Xilinx/aie_api, include/aie_api/detail/aie2/mmul_*.hpp and aie2p/mmul_*.hpp.
template <typename A, typename B, typename Tag, unsigned M, unsigned K, unsigned N> constexpr void check_shape() {
  constexpr Shape shape{M, K, N};
  constexpr bool same_sort = is_float<A> == is_float<B> && (!is_float<A> || std::is_same_v<A, B>);
  static_assert(same_sort, "aie::mmul: the element types are integers, or both bfloat16, or both float");
#define NPUSIM_SHAPES(TYPES, DEVICE, LIST, ...)                                                                        \
  {                                                                                                                    \
    constexpr Shape shapes[] = {__VA_ARGS__};                                                                          \
    static_assert(!same_sort || among(shape, shapes), "aie::mmul of " TYPES " has these shapes on " DEVICE ": " LIST); \
  }
  if constexpr (!aie2p && is_bf16<A>)
    NPUSIM_SHAPES("bfloat16", "AIE2", "4x8x4, 4x8x8, 8x8x4, 8x8x8, 4x16x4, 4x16x8, 8x1x8", {4, 8, 4}, {4, 8, 8},
                  {8, 8, 4}, {8, 8, 8}, {4, 16, 4}, {4, 16, 8}, {8, 1, 8})
  else if constexpr (aie2p && is_bf16<A>)
    NPUSIM_SHAPES("bfloat16", "AIE2P", "4x8x8, 8x8x8, 4x8x4, 8x8x4, 8x1x8", {4, 8, 8}, {8, 8, 8}, {4, 8, 4}, {8, 8, 4},
                  {8, 1, 8})
  else if constexpr (is_float<A>)
    NPUSIM_SHAPES("float", "AIE2 and AIE2P", "4x8x4, 4x1x4, 4x1x8", {4, 8, 4}, {4, 1, 4}, {4, 1, 8})
  else if constexpr (!aie2p && sizeof(A) == 1 && sizeof(B) == 1)
    NPUSIM_SHAPES("int8 x int8", "AIE2",
                  "4x8x8, 4x8x4, 4x16x4, 8x8x8, 8x8x4, 2x8x8, 1x16x8, 2x16x8, 4x16x8, 8x16x8, 4x16x16", {4, 8, 8},
                  {4, 8, 4}, {4, 16, 4}, {8, 8, 8}, {8, 8, 4}, {2, 8, 8}, {1, 16, 8}, {2, 16, 8}, {4, 16, 8},
                  {8, 16, 8}, {4, 16, 16})
  else if constexpr (aie2p && sizeof(A) == 1 && sizeof(B) == 1)
    NPUSIM_SHAPES("int8 x int8", "AIE2P", "8x8x8, 4x8x8, 2x8x8, 4x16x8, 8x16x8", {8, 8, 8}, {4, 8, 8}, {2, 8, 8},
                  {4, 16, 8}, {8, 16, 8})
  else if constexpr (!aie2p && sizeof(A) == 2 && sizeof(B) == 1)
    NPUSIM_SHAPES("int16 x int8", "AIE2", "4x8x4, 4x4x8, 8x4x4, 8x4x8, 4x4x4, 2x8x8, 2x16x8, 4x16x8", {4, 8, 4},
                  {4, 4, 8}, {8, 4, 4}, {8, 4, 8}, {4, 4, 4}, {2, 8, 8}, {2, 16, 8}, {4, 16, 8})
  else if constexpr (aie2p && sizeof(A) == 2 && sizeof(B) == 1)
    NPUSIM_SHAPES("int16 x int8", "AIE2P", "4x8x8, 4x4x8, 8x4x8, 2x16x8, 4x16x8", {4, 8, 8}, {4, 4, 8}, {8, 4, 8},
                  {2, 16, 8}, {4, 16, 8})
  else if constexpr (!aie2p && sizeof(A) == 1 && sizeof(B) == 2)
    NPUSIM_SHAPES("int8 x int16", "AIE2", "4x4x8, 4x4x4", {4, 4, 8}, {4, 4, 4})
  else if constexpr (aie2p && sizeof(A) == 1 && sizeof(B) == 2)
    NPUSIM_SHAPES("int8 x int16", "AIE2P", "8x2x8, 4x4x8", {8, 2, 8}, {4, 4, 8})
  else if constexpr (!aie2p && sizeof(A) == 2 && sizeof(B) == 2)
    NPUSIM_SHAPES("int16 x int16", "AIE2", "4x4x4, 4x4x8, 2x4x8, 4x2x8, 8x2x8, 2x8x8, 4x8x8, 2x8x16, 8x1x8", {4, 4, 4},
                  {4, 4, 8}, {2, 4, 8}, {4, 2, 8}, {8, 2, 8}, {2, 8, 8}, {4, 8, 8}, {2, 8, 16}, {8, 1, 8})
  else if constexpr (aie2p && sizeof(A) == 2 && sizeof(B) == 2)
    NPUSIM_SHAPES("int16 x int16", "AIE2P", "4x4x8, 2x4x8, 4x2x8, 8x2x8, 2x8x8, 4x8x8, 8x1x8", {4, 4, 8}, {2, 4, 8},
                  {4, 2, 8}, {8, 2, 8}, {2, 8, 8}, {4, 8, 8}, {8, 1, 8})
  else if constexpr (!aie2p && sizeof(A) == 4 && sizeof(B) == 2)
    NPUSIM_SHAPES("int32 x int16", "AIE2", "4x2x4, 4x4x4, 2x4x8, 4x4x8, 4x1x8", {4, 2, 4}, {4, 4, 4}, {2, 4, 8},
                  {4, 4, 8}, {4, 1, 8})
  else if constexpr (aie2p && sizeof(A) == 4 && sizeof(B) == 2)
    NPUSIM_SHAPES("int32 x int16", "AIE2P", "4x2x8, 2x4x8, 4x4x8, 4x1x8", {4, 2, 8}, {2, 4, 8}, {4, 4, 8}, {4, 1, 8})
  else if constexpr (!aie2p && sizeof(A) == 2 && sizeof(B) == 4)
    NPUSIM_SHAPES("int16 x int32", "AIE2", "4x4x4, 2x4x8", {4, 4, 4}, {2, 4, 8})
  else if constexpr (aie2p && sizeof(A) == 2 && sizeof(B) == 4)
    NPUSIM_SHAPES("int16 x int32", "AIE2P", "4x4x8", {4, 4, 8})
  else if constexpr (!aie2p && sizeof(A) == 4 && sizeof(B) == 4)
    NPUSIM_SHAPES("int32 x int32", "AIE2", "4x2x4, 4x4x4, 8x2x4, 4x1x8", {4, 2, 4}, {4, 4, 4}, {8, 2, 4}, {4, 1, 8})
  else if constexpr (aie2p && sizeof(A) == 4 && sizeof(B) == 4)
    NPUSIM_SHAPES("int32 x int32", "AIE2P", "4x2x8, 4x4x8, 4x4x4, 8x2x8, 4x1x8", {4, 2, 8}, {4, 4, 8}, {4, 4, 4},
                  {8, 2, 8}, {4, 1, 8})
  else
    static_assert(!same_sort, "aie::mmul: these element types are not served");
#undef NPUSIM_SHAPES
}

// Products that one issue of the multiplier forms.
template <typename A, typename B> constexpr unsigned products_per_issue() {
  if constexpr (is_bf16<A>)
    return aie2p ? 32 : 128; // AIE2P: eight mac_elem_32 for a 4x8x8 (aie_api detail/aie2p/emulated_mmul_intrinsics.hpp)
  else if constexpr (is_float<A>)
    return aie2p ? 32 : 128;
  else
    return (aie2p ? 512 : 256) / unsigned(sizeof(A) * sizeof(B));
}

template <typename A, typename B, unsigned M, unsigned K, unsigned N>
void multiplier_issues(bool first_a, bool first_b) {
  constexpr unsigned work = issues(M * K * N, products_per_issue<A, B>());
  if constexpr (emulates_with_bfp16 && is_bf16<A> && K == 8 && N == 8) {
    // One instruction; A is widened and converted; B is transposed (two shuffles), multiplied by one, converted.
    vector_issues(1 + (first_b ? 1 : 0));
    move_issues((first_a ? 3 : 0) + (first_b ? 3 : 0));
  } else if constexpr (aie2p && is_bf16<A> && K == 8) {
    vector_issues(work);
    // Eight columns of A and rows of B are spread over 32 lanes; A is transposed first.
    move_issues((first_a ? 17 * issues(M, N == 8 ? 4 : 8) : 0) + (first_b ? 8 : 0));
  } else if constexpr (std::is_same_v<A, float>) {
    vector_issues(work * float_multiply);
  } else {
    vector_issues(work);
  }
}

} // namespace npusim_host

namespace aie {

template <unsigned M, unsigned K, unsigned N, typename A, typename B = A, typename Tag = accauto> class mmul {
  static constexpr bool checked = (npusim_host::check_shape<A, B, Tag, M, K, N>(), true);
  static_assert(checked);

public:
  static constexpr unsigned M_ = M, K_ = K, N_ = N;
  static constexpr unsigned size_A = M * K, size_B = K * N, size_C = M * N;
  using tag = npusim_host::tag_or_product<Tag, A, B>;
  using accum_type = accum<tag, size_C>;
  using vector_A_type = vector<A, size_A>;
  using vector_B_type = vector<B, size_B>;

  mmul() = default; // the first mac starts from zero
  mmul(const accum_type &start) : sums_(start), empty_(false) {}
  template <typename T> mmul(const vector<T, size_C> &start, int shift = 0) : sums_(start, shift), empty_(false) {}

  void mac(const vector_A_type &a, const vector_B_type &b) {
    if (empty_) clear();
    onto(a, b);
  }
  void mul(const vector_A_type &a, const vector_B_type &b) {
    clear();
    onto(a, b);
  }
  accum_type to_accum() const { return sums_; }
  operator accum_type() const { return sums_; }
  template <typename T> vector<T, size_C> to_vector(int shift = 0) const { return sums_.template to_vector<T>(shift); }

private:
  accum_type sums_;
  bool empty_ = true;

  void clear() {
    for (unsigned i = 0; i < size_C; ++i) sums_.data[i] = 0;
    empty_ = false;
  }
  template <typename V> static bool first_use(const V &v) {
    if constexpr (npusim_host::aie2p && npusim_host::is_bf16<A>)
      return !std::exchange(v.done, true);
    else
      return true;
  }
  void onto(const vector_A_type &a, const vector_B_type &b) {
    const bool first_a = first_use(a), first_b = first_use(b);
    npusim_host::multiplier_issues<A, B, M, K, N>(first_a, first_b);
    if constexpr (npusim_host::emulates_with_bfp16 && npusim_host::is_bf16<A> && K == 8 && N == 8)
      in_blocks(a, b);
    else
      one_by_one(a, b);
  }
  void one_by_one(const vector_A_type &a, const vector_B_type &b) {
    using lane = typename accum_type::lane;
    using Wide = std::conditional_t<std::is_same_v<lane, float>, float, lane>;
    Wide x[size_A], y[size_B];
    for (unsigned i = 0; i < size_A; ++i) x[i] = Wide(a.data[i]);
    for (unsigned i = 0; i < size_B; ++i) y[i] = Wide(b.data[i]);
    for (unsigned i = 0; i < M; ++i)
      for (unsigned k = 0; k < K; ++k)
        for (unsigned j = 0; j < N; ++j)
          sums_.data[i * N + j] =
              npusim_host::wrapped_add(sums_.data[i * N + j], npusim_host::product<lane>(x[i * K + k], y[k * N + j]));
  }
  void in_blocks(const vector_A_type &a, const vector_B_type &b) {
    npusim_host::Block rows[M], columns[N];
    float eight[npusim_host::block];
    for (unsigned i = 0; i < M; ++i) {
      for (unsigned k = 0; k < K; ++k) eight[k] = float(a.data[i * K + k]);
      rows[i] = npusim_host::to_block(eight);
    }
    for (unsigned j = 0; j < N; ++j) {
      for (unsigned k = 0; k < K; ++k) eight[k] = float(b.data[k * N + j]);
      columns[j] = npusim_host::to_block(eight);
    }
    for (unsigned i = 0; i < M; ++i)
      for (unsigned j = 0; j < N; ++j) {
        const double scale = double(rows[i].step) * double(columns[j].step);
        sums_.data[i * N + j] += float(double(npusim_host::dot(rows[i], columns[j])) * scale);
      }
  }
};

} // namespace aie

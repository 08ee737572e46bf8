// All lanes of a vector to one number. Integers wrap round. Floats are added in the order of the AIE API's own
// reductions (Xilinx/aie_api include/aie_api/detail/aie2/add_reduce.hpp): in fp32, rounded once at the end.

#pragma once

#include "arithmetic.hpp"

namespace npusim_host {

template <unsigned N> float halving_sum(float *lanes) { // lane i and lane i + N/2, and so on
  for (unsigned half = N / 2; half; half /= 2)
    for (unsigned i = 0; i < half; ++i) lanes[i] += lanes[i + half];
  return lanes[0];
}

// Pieces of P lanes are added up one after another, the last one by halving.
template <unsigned P, typename T, unsigned N> float piecewise_sum(const aie::vector<T, N> &v) {
  constexpr unsigned lanes = N < P ? N : P;
  float sums[lanes];
  for (unsigned i = 0; i < lanes; ++i) sums[i] = float(v.data[i]);
  for (unsigned i = lanes; i < N; ++i) sums[i % lanes] += float(v.data[i]);
  return halving_sum<lanes>(sums);
}

// AIE2 multiplies bf16 as a 4x8 matrix by ones: sums of eight neighbours, four of them added crosswise.
template <unsigned N> float matrix_sum(const aie::vector<bfloat16, N> &v) {
  constexpr unsigned rows = N / 8 < 4 ? N / 8 : 4;
  float sums[rows] = {};
  for (unsigned i = 0; i < N; ++i) sums[i / 8 % rows] += float(v.data[i]);
  return halving_sum<rows>(sums);
}

template <unsigned N> float half_and_half(const aie::vector<float, N> &v) { // AIE2, float: two halves, piece by piece
  if constexpr (N <= 32) {
    return piecewise_sum<16>(v);
  } else {
    float sums[16];
    for (unsigned i = 0; i < 16; ++i) {
      float first = v.data[i], second = v.data[N / 2 + i];
      for (unsigned j = 16; j < N / 2; j += 16) first += v.data[i + j], second += v.data[N / 2 + i + j];
      sums[i] = first + second;
    }
    return halving_sum<16>(sums);
  }
}

template <typename T, unsigned N> float float_sum(const aie::vector<T, N> &v) {
  if constexpr (aie2p)
    return piecewise_sum<32>(v);
  else if constexpr (std::is_same_v<T, bfloat16>)
    return matrix_sum(v);
  else
    return half_and_half(v);
}

constexpr unsigned log2_of(unsigned n) { return n < 2 ? 0 : 1 + log2_of(n / 2); }

} // namespace npusim_host

namespace aie {

template <Vector V> auto reduce_add(const V &v) {
  using T = typename V::value_type;
  constexpr unsigned folds = npusim_host::log2_of(V::size());
  npusim_host::vector_issues(npusim_host::simple_issues<T, V::size()>() - 1 + folds);
  npusim_host::move_issues(folds);
  if constexpr (std::is_same_v<T, bfloat16>) {
    const auto mode = npusim_host::Mode(npusim_host::rounding);
    return bfloat16::from_bits(npusim_host::bf16_bits(npusim_host::float_sum(v), mode));
  } else if constexpr (std::is_same_v<T, float>) {
    return npusim_host::float_sum(v);
  } else {
    T sum = 0;
    for (unsigned i = 0; i < V::size(); ++i) sum = npusim_host::wrapped_add(sum, v.data[i]);
    return sum;
  }
}

// Lane k of the result is the sum of the k-th vector; the other lanes are undefined.
template <Vector V, typename... Vs> V reduce_add_v(const V &first, const Vs &...others) {
  V out;
  out.data[0] = reduce_add(first);
  unsigned lane = 1;
  ((out.data[lane++] = reduce_add(others)), ...);
  return out;
}

template <Vector V, typename... Vs> V add_reduce_v(const V &first, const Vs &...others) {
  return reduce_add_v(first, others...);
}

template <Vector V> auto reduce_max(const V &v) {
  constexpr unsigned folds = npusim_host::log2_of(V::size());
  npusim_host::vector_issues(folds);
  npusim_host::move_issues(folds);
  auto best = v.data[0];
  for (unsigned i = 1; i < V::size(); ++i)
    if (best < v.data[i]) best = v.data[i];
  return best;
}
template <Vector V> auto reduce_min(const V &v) {
  constexpr unsigned folds = npusim_host::log2_of(V::size());
  npusim_host::vector_issues(folds);
  npusim_host::move_issues(folds);
  auto best = v.data[0];
  for (unsigned i = 1; i < V::size(); ++i)
    if (v.data[i] < best) best = v.data[i];
  return best;
}
template <Vector V>
  requires(!std::is_same_v<typename V::value_type, bfloat16>)
auto reduce_mul(const V &v) {
  using T = typename V::value_type;
  constexpr unsigned folds = npusim_host::log2_of(V::size());
  npusim_host::vector_issues(folds);
  npusim_host::move_issues(folds);
  T out = v.data[0];
  for (unsigned i = 1; i < V::size(); ++i) out = npusim_host::product<T>(out, v.data[i]);
  return out;
}

// The API's older names.
template <Vector V> auto add_reduce(const V &v) { return reduce_add(v); }
template <Vector V> auto max_reduce(const V &v) { return reduce_max(v); }
template <Vector V> auto min_reduce(const V &v) { return reduce_min(v); }
template <Vector V> auto mul_reduce(const V &v) { return reduce_mul(v); }

} // namespace aie

// Lanes moved within and between vectors: zip, filter, shift, transpose, reverse.

#pragma once

#include <utility>

#include "mask.hpp"

namespace npusim_host {

// A vector whose lane i is from(i); `registers` says how many shuffles of 64 bytes it takes.
template <typename T, unsigned N, typename F> aie::vector<T, N> shuffled(F from) {
  move_issues(issues(N * sizeof(T), vector_width));
  aie::vector<T, N> out;
  for (unsigned i = 0; i < N; ++i) out.data[i] = from(i);
  return out;
}
template <unsigned N> void check_chunk(unsigned chunk, const Where &where) {
  if (chunk == 0 || chunk > N || (chunk & (chunk - 1)))
    fail("chunk size %u: it must be a power of two up to the %u lanes (%s:%u, kernel %s)", chunk, N,
         base_name(where.file_name()), unsigned(where.line()), kernel);
}

} // namespace npusim_host

namespace aie {

// Chunks of a and b by turns; the first result has the first half of them.
template <typename T, unsigned N>
auto interleave_zip(const vector<T, N> &a, const vector<T, N> &b, unsigned chunk, Where where = Where::current()) {
  npusim_host::check_chunk<N>(chunk, where);
  auto zipped = [&](unsigned i) { return ((i / chunk) % 2 ? b : a).data[i / (2 * chunk) * chunk + i % chunk]; };
  const auto low = npusim_host::shuffled<T, N>(zipped);
  const auto high = npusim_host::shuffled<T, N>([&](unsigned i) { return zipped(i + N); });
  return std::pair(low, high);
}
// The inverse: even chunks of a, then of b; odd chunks of a, then of b.
template <typename T, unsigned N>
auto interleave_unzip(const vector<T, N> &a, const vector<T, N> &b, unsigned chunk, Where where = Where::current()) {
  npusim_host::check_chunk<N>(chunk, where);
  auto both = [&](unsigned i) { return i < N ? a.data[i] : b.data[i - N]; };
  const auto even = npusim_host::shuffled<T, N>([&](unsigned i) { return both(i / chunk * 2 * chunk + i % chunk); });
  const auto odd =
      npusim_host::shuffled<T, N>([&](unsigned i) { return both(i / chunk * 2 * chunk + chunk + i % chunk); });
  return std::pair(even, odd);
}
template <typename T, unsigned N>
auto filter_even(const vector<T, N> &v, unsigned chunk = 1, Where where = Where::current()) {
  npusim_host::check_chunk<N>(chunk, where);
  return npusim_host::shuffled<T, N / 2>([&](unsigned i) { return v.data[i / chunk * 2 * chunk + i % chunk]; });
}
template <typename T, unsigned N>
auto filter_odd(const vector<T, N> &v, unsigned chunk = 1, Where where = Where::current()) {
  npusim_host::check_chunk<N>(chunk, where);
  return npusim_host::shuffled<T, N / 2>([&](unsigned i) { return v.data[i / chunk * 2 * chunk + chunk + i % chunk]; });
}

template <typename T, unsigned N> vector<T, N> reverse(const vector<T, N> &v) {
  return npusim_host::shuffled<T, N>([&](unsigned i) { return v.data[N - 1 - i]; });
}

// A row-major rows x cols matrix becomes its transpose, cols x rows.
template <typename T, unsigned N>
vector<T, N> transpose(const vector<T, N> &v, unsigned rows, unsigned cols, Where where = Where::current()) {
  if (rows * cols != N)
    npusim_host::fail("transpose: %u x %u are not the %u elements of the vector (%s:%u, kernel %s)", rows, cols, N,
                      npusim_host::base_name(where.file_name()), unsigned(where.line()), npusim_host::kernel);
  return npusim_host::shuffled<T, N>([&](unsigned i) { return v.data[i % rows * cols + i / rows]; });
}

// Up: lane i goes to lane i + n. What comes in is undefined, or wraps round, repeats the end lane, or is the end of
// `fill`.
template <typename T, unsigned N> vector<T, N> shuffle_up(const vector<T, N> &v, unsigned n) {
  const vector<T, N> undefined;
  return npusim_host::shuffled<T, N>([&](unsigned i) { return i < n ? undefined.data[i] : v.data[i - n]; });
}
template <typename T, unsigned N> vector<T, N> shuffle_up_rotate(const vector<T, N> &v, unsigned n) {
  return npusim_host::shuffled<T, N>([&](unsigned i) { return v.data[(i + N - n % N) % N]; });
}
template <typename T, unsigned N> vector<T, N> shuffle_up_replicate(const vector<T, N> &v, unsigned n) {
  return npusim_host::shuffled<T, N>([&](unsigned i) { return i < n ? v.data[0] : v.data[i - n]; });
}
template <typename T, unsigned N>
vector<T, N> shuffle_up_fill(const vector<T, N> &v, const vector<T, N> &fill, unsigned n) {
  return npusim_host::shuffled<T, N>([&](unsigned i) { return i < n ? fill.data[i + N - n] : v.data[i - n]; });
}
template <typename T, unsigned N> vector<T, N> shuffle_down(const vector<T, N> &v, unsigned n) {
  const vector<T, N> undefined;
  return npusim_host::shuffled<T, N>([&](unsigned i) { return i + n < N ? v.data[i + n] : undefined.data[i]; });
}
template <typename T, unsigned N> vector<T, N> shuffle_down_rotate(const vector<T, N> &v, unsigned n) {
  return npusim_host::shuffled<T, N>([&](unsigned i) { return v.data[(i + n) % N]; });
}
template <typename T, unsigned N> vector<T, N> shuffle_down_replicate(const vector<T, N> &v, unsigned n) {
  return npusim_host::shuffled<T, N>([&](unsigned i) { return v.data[i + n < N ? i + n : N - 1]; });
}
template <typename T, unsigned N>
vector<T, N> shuffle_down_fill(const vector<T, N> &v, const vector<T, N> &fill, unsigned n) {
  return npusim_host::shuffled<T, N>([&](unsigned i) { return i + n < N ? v.data[i + n] : fill.data[i + n - N]; });
}

} // namespace aie

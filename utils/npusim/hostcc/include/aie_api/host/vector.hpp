// aie::vector: N elements in a vector register. A new one holds garbage on the core; here it holds all ones (NaN, -1),
// so that a result made of it shows.

#pragma once

#include <tuple>
#include <utility>

#include "types.hpp"

namespace npusim_host {

// bf16 operands of aie::mmul on AIE2P are rearranged first; the compiler does that once a register, so it is counted
// once.
struct Rearranged {
  mutable bool done = false;
};
struct Nothing {};
template <typename T>
using Rearrangement = std::conditional_t<aie2p && std::is_same_v<T, bfloat16>, Rearranged, Nothing>;

} // namespace npusim_host

namespace aie {

template <typename T, unsigned N> class vector : public npusim_host::Rearrangement<T> {
  static_assert(Elem<T>, "element types served here: int8, uint8, int16, uint16, int32, uint32, bfloat16, float");
  static_assert(N * sizeof(T) >= 16 && (N & (N - 1)) == 0,
                "a vector has a power of two of elements and at least 128 bits");

public:
  using value_type = T;
  using native_type = vector;
  using storage_t = vector;

  alignas(N * sizeof(T) < 64 ? N * sizeof(T) : 64) T data[N];

  static constexpr unsigned size() { return N; }
  static constexpr unsigned type_bits() { return 8 * sizeof(T); }
  static constexpr unsigned bits() { return 8 * sizeof(T) * N; }
  static constexpr unsigned bytes() { return sizeof(T) * N; }
  static constexpr bool is_signed() { return std::is_signed_v<T> || npusim_host::is_float<T>; }
  static constexpr bool is_complex() { return false; }
  static constexpr bool is_real() { return true; }
  static constexpr bool is_integral() { return std::is_integral_v<T>; }
  static constexpr bool is_floating_point() { return npusim_host::is_float<T>; }

  vector() { std::memset(static_cast<void *>(data), 0xff, sizeof data); }
  template <typename... Values>
    requires(sizeof...(Values) < N)
  explicit vector(T first, Values... values) : vector() {
    const T given[] = {first, T(values)...};
    for (unsigned i = 0; i <= sizeof...(Values); ++i) data[i] = given[i];
  }
  // An accumulator of floats converts by itself, rounded as the mode says.
  template <unsigned M>
    requires(M == N && npusim_host::is_float<T>)
  vector(const accum<accfloat, M> &acc) : vector(acc.template to_vector<T>()) {}

  const vector &to_native() const { return *this; }

  T get(unsigned i, Where where = Where::current()) const {
    npusim_host::check_index("vector element", i, N, where);
    return data[i];
  }
  void set(T value, unsigned i, Where where = Where::current()) {
    npusim_host::check_index("vector element", i, N, where);
    changed();
    data[i] = value;
  }
  T operator[](unsigned i) const { return get(i); }
  T &operator[](unsigned i) {
    npusim_host::check_index("vector element", i, N, Where::current());
    changed();
    return data[i];
  }
  vector &push(T value) { // the new element is the first, the last one falls out
    npusim_host::move_issues(1);
    changed();
    for (unsigned i = N - 1; i > 0; --i) data[i] = data[i - 1];
    data[0] = value;
    return *this;
  }

  template <unsigned M> vector<T, M> extract(unsigned part, Where where = Where::current()) const {
    static_assert(M <= N, "extract a part, not more");
    npusim_host::check_index("part of a vector", part, N / M, where);
    if constexpr (M * sizeof(T) < 32) npusim_host::move_issues(1); // parts of registers have names of their own
    vector<T, M> out;
    for (unsigned i = 0; i < M; ++i) out.data[i] = data[part * M + i];
    return out;
  }
  template <unsigned M> vector &insert(unsigned part, const vector<T, M> &v, Where where = Where::current()) {
    static_assert(M <= N, "insert a part, not more");
    npusim_host::check_index("part of a vector", part, N / M, where);
    if constexpr (M * sizeof(T) < 32) npusim_host::move_issues(1);
    changed();
    for (unsigned i = 0; i < M; ++i) data[part * M + i] = v.data[i];
    return *this;
  }
  template <unsigned M> vector<T, M> grow(unsigned part = 0) const { // the rest is undefined
    vector<T, M> out;
    out.insert(part, *this);
    return out;
  }
  template <unsigned M> vector<T, M> grow_replicate() const {
    vector<T, M> out;
    for (unsigned part = 0; part < M / N; ++part) out.insert(part, *this);
    return out;
  }
  template <unsigned M> vector<T, M> grow_extract(unsigned part) const {
    if constexpr (M > N)
      return grow<M>();
    else
      return extract<M>(part);
  }
  template <unsigned M> auto split() const {
    return [this]<unsigned... I>(std::integer_sequence<unsigned, I...>) {
      return std::make_tuple(extract<M>(I)...);
    }(std::make_integer_sequence<unsigned, N / M>());
  }
  template <typename... Parts> vector &upd_all(const Parts &...parts) {
    unsigned part = 0;
    (insert(part++, parts), ...);
    return *this;
  }

  // The same bits as elements of U.
  template <typename U> vector<U, N * sizeof(T) / sizeof(U)> cast_to() const {
    vector<U, N * sizeof(T) / sizeof(U)> out;
    std::memcpy(static_cast<void *>(out.data), data, sizeof data);
    return out;
  }
  // Integers of twice, or half, the width.
  template <typename U = npusim_host::wider<T>> vector<U, N> unpack() const {
    npusim_host::move_issues(npusim_host::issues(N * sizeof(U), npusim_host::vector_width));
    vector<U, N> out;
    for (unsigned i = 0; i < N; ++i) out.data[i] = U(data[i]);
    return out;
  }
  template <typename U = npusim_host::narrower<T>> vector<U, N> pack() const {
    npusim_host::move_issues(npusim_host::issues(N * sizeof(T), npusim_host::vector_width));
    vector<U, N> out;
    for (unsigned i = 0; i < N; ++i) out.data[i] = npusim_host::narrowed<U>(data[i], npusim_host::saturation);
    return out;
  }

private:
  void changed() {
    if constexpr (npusim_host::aie2p && std::is_same_v<T, bfloat16>) this->done = false;
  }
};

template <Vector V, Vector... Vs> auto concat(const V &first, const Vs &...others) {
  vector<typename V::value_type, V::size() * (1 + sizeof...(Vs))> out;
  out.upd_all(first, others...);
  return out;
}

template <typename U, Vector V> auto vector_cast(const V &v) { return v.template cast_to<U>(); }
template <Vector V> auto unpack(const V &v) { return v.unpack(); }
template <Vector V> auto pack(const V &v) { return v.pack(); }

template <typename T, unsigned N, typename E>
  requires ScalarFor<E, T>
vector<T, N> broadcast(E value) {
  npusim_host::move_issues(npusim_host::issues(N * sizeof(T), npusim_host::vector_width));
  vector<T, N> out;
  const T element(value);
  for (unsigned i = 0; i < N; ++i) out.data[i] = element;
  return out;
}

template <typename T, unsigned N>
  requires Elem<T>
vector<T, N> zeros() {
  return broadcast<T, N>(T(0));
}

} // namespace aie

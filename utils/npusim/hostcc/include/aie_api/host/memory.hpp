// Loads, stores and iterators over memory. Each access is checked: inside its argument, and aligned.

#pragma once

#include "vector.hpp"

namespace npusim_host {

template <typename T> using bare = std::remove_cv_t<T>;

template <unsigned N, typename T> aie::vector<bare<T>, N> load(const T *at, unsigned align, const Where &where) {
  constexpr unsigned bytes = N * sizeof(T);
  check_access("a vector load", at, bytes, align, where);
  count(&Counters::loads, issues(bytes, load_width) + (align < vector_align(bytes) ? 1 : 0));
  aie::vector<bare<T>, N> out;
  std::memcpy(static_cast<void *>(out.data), at, bytes);
  return out;
}

template <typename T, unsigned N> void store(T *at, const aie::vector<T, N> &v, unsigned align, const Where &where) {
  constexpr unsigned bytes = N * sizeof(T);
  check_access("a vector store", at, bytes, align, where);
  count(&Counters::stores, issues(bytes, store_width) + (align < vector_align(bytes) ? 1 : 0));
  std::memcpy(static_cast<void *>(at), v.data, bytes);
}

template <typename T> constexpr unsigned native_elements = vector_width / sizeof(T);

} // namespace npusim_host

namespace aie {

template <unsigned N, aie_dm_resource = aie_dm_resource::none, typename T>
auto load_v(const T *at, Where where = Where::current()) {
  return npusim_host::load<N>(at, npusim_host::vector_align(N * sizeof(T)), where);
}
template <aie_dm_resource = aie_dm_resource::none, typename T>
auto load_v(const T *at, Where where = Where::current()) {
  return load_v<npusim_host::native_elements<T>>(at, where);
}
template <aie_dm_resource = aie_dm_resource::none, typename T, unsigned N>
T *store_v(T *at, const vector<T, N> &v, Where where = Where::current()) {
  npusim_host::store(at, v, npusim_host::vector_align(N * sizeof(T)), where);
  return at;
}
// The address is a multiple of `aligned_elements` elements.
template <unsigned N, aie_dm_resource = aie_dm_resource::none, typename T>
auto load_unaligned_v(const T *at, unsigned aligned_elements = 1, Where where = Where::current()) {
  return npusim_host::load<N>(at, aligned_elements * sizeof(T), where);
}
template <aie_dm_resource = aie_dm_resource::none, typename T, unsigned N>
T *store_unaligned_v(T *at, const vector<T, N> &v, unsigned aligned_elements = 1, Where where = Where::current()) {
  npusim_host::store(at, v, aligned_elements * sizeof(T), where);
  return at;
}

// Iterators that step whole vectors. Reading one loads, assigning to one stores; a mistake names the line that made it.
template <typename T, unsigned N> class vector_iterator {
  T *at_;
  Where where_;

public:
  using value_type = vector<std::remove_cv_t<T>, N>;
  using difference_type = std::ptrdiff_t;

  class reference {
    T *at_;
    Where where_;

  public:
    reference(T *at, Where where) : at_(at), where_(where) {}
    operator value_type() const { return load_v<N>(at_, where_); }
    const reference &operator=(const value_type &v) const {
      store_v(at_, v, where_);
      return *this;
    }
    const reference &operator=(const reference &other) const { return *this = value_type(other); }
  };

  vector_iterator(T *at, Where where) : at_(at), where_(where) {}
  auto operator*() const {
    if constexpr (std::is_const_v<T>)
      return load_v<N>(at_, where_);
    else
      return reference(at_, where_);
  }
  auto operator[](std::ptrdiff_t i) const { return *(*this + i); }
  vector_iterator &operator++() { return *this += 1; }
  vector_iterator &operator--() { return *this -= 1; }
  vector_iterator operator++(int) { return std::exchange(*this, *this + 1); }
  vector_iterator operator--(int) { return std::exchange(*this, *this - 1); }
  vector_iterator &operator+=(std::ptrdiff_t n) {
    at_ += n * std::ptrdiff_t(N);
    return *this;
  }
  vector_iterator &operator-=(std::ptrdiff_t n) { return *this += -n; }
  vector_iterator operator+(std::ptrdiff_t n) const { return vector_iterator(*this) += n; }
  vector_iterator operator-(std::ptrdiff_t n) const { return vector_iterator(*this) -= n; }
  bool operator==(const vector_iterator &other) const { return at_ == other.at_; }
};

template <unsigned N, aie_dm_resource = aie_dm_resource::none, typename T>
auto begin_vector(T *at, Where where = Where::current()) {
  return vector_iterator<T, N>(at, where);
}
template <unsigned N, aie_dm_resource = aie_dm_resource::none, typename T>
auto cbegin_vector(const T *at, Where where = Where::current()) {
  return vector_iterator<const T, N>(at, where);
}
template <unsigned N, aie_dm_resource = aie_dm_resource::none, typename T>
auto begin_restrict_vector(T *at, Where where = Where::current()) {
  return vector_iterator<T, N>(at, where);
}
template <unsigned N, aie_dm_resource = aie_dm_resource::none, typename T>
auto cbegin_restrict_vector(const T *at, Where where = Where::current()) {
  return vector_iterator<const T, N>(at, where);
}

} // namespace aie

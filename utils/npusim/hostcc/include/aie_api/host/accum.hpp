// aie::accum: N accumulators. Floats are fp32; integers have 32 or 64 bits and wrap round.

#pragma once

#include "vector.hpp"

namespace aie {

template <typename Tag, unsigned N> class accum {
  static_assert(npusim_host::is_tag<Tag>,
                "accumulators served here: acc32, acc40, acc48, acc56, acc64, acc72, acc80, accfloat");
  static_assert((N & (N - 1)) == 0 && N * npusim_host::tag_bits<Tag> >= 128,
                "an accumulator has a power of two of lanes");

public:
  using value_type = Tag;
  using storage_t = accum;
  using lane = npusim_host::accumulated<Tag>;

  alignas(64) lane data[N];

  static constexpr unsigned size() { return N; }
  static constexpr unsigned accum_bits() { return npusim_host::tag_bits<Tag>; }
  static constexpr unsigned bits() { return N * accum_bits(); }
  static constexpr bool is_complex() { return false; }
  static constexpr bool is_real() { return true; }
  static constexpr bool is_floating_point() { return std::is_same_v<Tag, accfloat>; }

  accum() { std::memset(static_cast<void *>(data), 0xff, sizeof data); } // garbage on the core
  template <typename Other>
    requires(!std::is_same_v<Other, Tag> && std::is_same_v<npusim_host::accumulated<Other>, lane>)
  accum(const accum<Other, N> &other) {
    std::memcpy(data, other.data, sizeof data);
  }
  template <typename T> explicit accum(const vector<T, N> &v, int shift = 0) { from_vector(v, shift); }
  template <typename T> accum &operator=(const vector<T, N> &v) {
    from_vector(v);
    return *this;
  }
  const accum &to_native() const { return *this; }

  // Floats in integers of as many bits are not converted, there or back: a cast on the core (detail/aie2p/accum.hpp).
  template <typename T> static constexpr bool keeps_bits() {
    return std::is_same_v<T, float> && !is_floating_point() && accum_bits() == 32;
  }

  // Widens v: integers are multiplied by 2^shift.
  template <typename T> void from_vector(const vector<T, N> &v, int shift = 0) {
    static_assert(npusim_host::is_float<T> == is_floating_point() || keeps_bits<T>(),
                  "float vectors go to accfloat, integers to the others");
    if constexpr (!std::is_same_v<T, float>) npusim_host::move_issues(conversions());
    for (unsigned i = 0; i < N; ++i) {
      if constexpr (is_floating_point())
        data[i] = float(v.data[i]);
      else if constexpr (keeps_bits<T>())
        data[i] = std::bit_cast<lane>(v.data[i]);
      else
        data[i] = lane(npusim_host::shifted(v.data[i], -shift, npusim_host::Mode::floor));
    }
  }
  // Narrows to T: integers are divided by 2^shift, rounded and saturated as the modes say; floats are rounded.
  template <typename T> vector<T, N> to_vector(int shift = 0) const {
    static_assert(npusim_host::is_float<T> == is_floating_point() || keeps_bits<T>(),
                  "accfloat goes to float vectors, the others to integers");
    vector<T, N> out;
    if constexpr (std::is_same_v<T, float>) {
      std::memcpy(out.data, data, sizeof data);
    } else if constexpr (std::is_same_v<T, bfloat16>) {
      npusim_host::move_issues(conversions());
      to_bf16(out.data);
    } else {
      npusim_host::move_issues(conversions());
      const auto mode = npusim_host::Mode(npusim_host::rounding);
      const unsigned saturation = npusim_host::saturation;
      for (unsigned i = 0; i < N; ++i)
        out.data[i] = npusim_host::narrowed<T>(npusim_host::shifted(data[i], shift, mode), saturation);
    }
    return out;
  }
  vector<float, N> to_vector() const
    requires(std::is_same_v<Tag, accfloat>)
  {
    return to_vector<float>();
  }

  template <unsigned M> accum<Tag, M> extract(unsigned part) const {
    static_assert(M <= N, "extract a part, not more");
    npusim_host::check_index("part of an accumulator", part, N / M, npusim_host::Where::current());
    accum<Tag, M> out;
    for (unsigned i = 0; i < M; ++i) out.data[i] = data[part * M + i];
    return out;
  }
  template <unsigned M, typename Other> accum &insert(unsigned part, const accum<Other, M> &acc) {
    static_assert(M <= N, "insert a part, not more");
    npusim_host::check_index("part of an accumulator", part, N / M, npusim_host::Where::current());
    for (unsigned i = 0; i < M; ++i) data[part * M + i] = lane(acc.data[i]);
    return *this;
  }
  template <unsigned M> accum<Tag, M> grow() const {
    accum<Tag, M> out;
    out.insert(0, *this);
    return out;
  }
  template <unsigned M> accum<Tag, M> grow_extract(unsigned part) const {
    if constexpr (M > N)
      return grow<M>();
    else
      return extract<M>(part);
  }
  template <unsigned M> accum<Tag, M> grow_replicate() const {
    accum<Tag, M> out;
    for (unsigned part = 0; part < M / N; ++part) out.insert(part, *this);
    return out;
  }
  template <typename... Parts> accum &upd_all(const Parts &...parts) {
    unsigned part = 0;
    (insert(part++, parts), ...);
    return *this;
  }
  // The same bits as lanes of another sort.
  template <typename Other> auto cast_to() const {
    constexpr unsigned lanes = N * accum_bits() / npusim_host::tag_bits<Other>;
    accum<Other, lanes> out;
    std::memcpy(out.data, data, sizeof data);
    return out;
  }

private:
  static constexpr unsigned conversions() { return npusim_host::issues(N, npusim_host::float_lanes); }
  void to_bf16(bfloat16 *out) const {
    const auto mode = npusim_host::Mode(npusim_host::rounding);
    if (mode == npusim_host::Mode::conv_even)
      for (unsigned i = 0; i < N; ++i) out[i].bits = npusim_host::bf16_bits_even(data[i]);
    else
      for (unsigned i = 0; i < N; ++i) out[i].bits = npusim_host::bf16_bits(data[i], mode);
  }
};

template <Accum A, Accum... As> auto concat(const A &first, const As &...others) {
  accum<typename A::value_type, A::size() * (1 + sizeof...(As))> out;
  out.upd_all(first, others...);
  return out;
}

template <typename T, Accum A> auto to_vector(const A &acc, int shift = 0) { return acc.template to_vector<T>(shift); }

template <typename Tag = accauto, Vector V> auto from_vector(const V &v, int shift = 0) {
  return accum<npusim_host::tag_or_product<Tag, typename V::value_type>, V::size()>(v, shift);
}

template <typename Tag, unsigned N>
  requires npusim_host::is_tag<Tag>
accum<Tag, N> zeros() {
  npusim_host::move_issues(npusim_host::issues(N, npusim_host::float_lanes));
  accum<Tag, N> out;
  for (unsigned i = 0; i < N; ++i) out.data[i] = 0;
  return out;
}

} // namespace aie

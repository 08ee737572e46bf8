// Names below the AIE API that kernels use beside it: the compiler's vector types and a few of its intrinsics. Here the
// vector types are those of the API.

#pragma once

#include "elementary.hpp"

#define NPUSIM_NATIVE_TYPE(NAME, T, N) \
  using NAME = aie::vector<T, N>;      \
  inline NAME undef_##NAME() { return {}; }

NPUSIM_NATIVE_TYPE(v16int8, int8, 16)
NPUSIM_NATIVE_TYPE(v32int8, int8, 32)
NPUSIM_NATIVE_TYPE(v64int8, int8, 64)
NPUSIM_NATIVE_TYPE(v16uint8, uint8, 16)
NPUSIM_NATIVE_TYPE(v32uint8, uint8, 32)
NPUSIM_NATIVE_TYPE(v64uint8, uint8, 64)
NPUSIM_NATIVE_TYPE(v8int16, int16, 8)
NPUSIM_NATIVE_TYPE(v16int16, int16, 16)
NPUSIM_NATIVE_TYPE(v32int16, int16, 32)
NPUSIM_NATIVE_TYPE(v8uint16, uint16, 8)
NPUSIM_NATIVE_TYPE(v16uint16, uint16, 16)
NPUSIM_NATIVE_TYPE(v32uint16, uint16, 32)
NPUSIM_NATIVE_TYPE(v4int32, int32, 4)
NPUSIM_NATIVE_TYPE(v8int32, int32, 8)
NPUSIM_NATIVE_TYPE(v16int32, int32, 16)
NPUSIM_NATIVE_TYPE(v32int32, int32, 32)
NPUSIM_NATIVE_TYPE(v4uint32, uint32, 4)
NPUSIM_NATIVE_TYPE(v8uint32, uint32, 8)
NPUSIM_NATIVE_TYPE(v16uint32, uint32, 16)
NPUSIM_NATIVE_TYPE(v8bfloat16, bfloat16, 8)
NPUSIM_NATIVE_TYPE(v16bfloat16, bfloat16, 16)
NPUSIM_NATIVE_TYPE(v32bfloat16, bfloat16, 32)
NPUSIM_NATIVE_TYPE(v64bfloat16, bfloat16, 64)
NPUSIM_NATIVE_TYPE(v4float, float, 4)
NPUSIM_NATIVE_TYPE(v8float, float, 8)
NPUSIM_NATIVE_TYPE(v16float, float, 16)
NPUSIM_NATIVE_TYPE(v32float, float, 32)
#undef NPUSIM_NATIVE_TYPE

using v16acc32 = aie::accum<acc32, 16>;
using v32acc32 = aie::accum<acc32, 32>;
using v8acc64 = aie::accum<acc64, 8>;
using v16acc64 = aie::accum<acc64, 16>;
using v8accfloat = aie::accum<accfloat, 8>;
using v16accfloat = aie::accum<accfloat, 16>;
using v32accfloat = aie::accum<accfloat, 32>;

template <typename T, unsigned N> T ext_elem(const aie::vector<T, N> &v, unsigned i) { return v.get(i); }
template <typename T, unsigned N, typename E> aie::vector<T, N> upd_elem(aie::vector<T, N> v, unsigned i, E value) {
  v.set(T(value), i);
  return v;
}

// floor(x * 2^shift) of 16 lanes.
inline v16int32 bfloat16_to_int(const v16bfloat16 &v, int shift = 0) { return aie::to_fixed<int32>(v, shift); }

// ---- cascade: words of 64 bytes to the next core, and from the one before. `enable` = 0 does nothing on the core.

extern "C" {
__attribute__((noinline)) inline void npusim_cascade_put(const void *word) {
  using namespace npusim_host;
  if (counters.cascade_out + cascade_word > cascade_room)
    fail("kernel %s puts more than %lu bytes on the cascade in one call", kernel,
         static_cast<unsigned long>(cascade_room));
  std::memcpy(cascade_outbox + counters.cascade_out, word, cascade_word);
  counters.cascade_out += cascade_word;
}
__attribute__((noinline)) inline void npusim_cascade_get(void *word) {
  using namespace npusim_host;
  if (counters.cascade_in + cascade_word > cascade_available)
    fail("kernel %s gets more than the %lu bytes that the cascade brought", kernel,
         static_cast<unsigned long>(cascade_available));
  std::memcpy(word, cascade_inbox + counters.cascade_in, cascade_word);
  counters.cascade_in += cascade_word;
}
}

template <typename V>
  requires(aie::Vector<V> || aie::Accum<V>)
void put_mcd(const V &v, int enable = 1) {
  static_assert(sizeof v.data == npusim_host::cascade_word,
                "put_mcd takes 512 bits: a vector of 64 bytes, or 16 float accumulators");
  if (enable) npusim_cascade_put(v.data);
}
namespace npusim_host {
template <typename V> V cascade_get(int enable) {
  V v;
  static_assert(sizeof v.data == cascade_word);
  if (enable) npusim_cascade_get(v.data);
  return v;
}
} // namespace npusim_host

#define NPUSIM_GET_SCD(V) \
  inline V get_scd_##V(int enable = 1) { return npusim_host::cascade_get<V>(enable); }
NPUSIM_GET_SCD(v64int8)
NPUSIM_GET_SCD(v64uint8)
NPUSIM_GET_SCD(v32int16)
NPUSIM_GET_SCD(v32uint16)
NPUSIM_GET_SCD(v16int32)
NPUSIM_GET_SCD(v16uint32)
NPUSIM_GET_SCD(v32bfloat16)
NPUSIM_GET_SCD(v16acc32)
NPUSIM_GET_SCD(v8acc64)
NPUSIM_GET_SCD(v16accfloat)
#if __AIE_ARCH__ == 21
NPUSIM_GET_SCD(v16float)
#endif
#undef NPUSIM_GET_SCD

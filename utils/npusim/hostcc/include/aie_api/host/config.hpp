// The device, the compiler's words, and how many elements one issue of a slot handles.

#pragma once

// What the real header brings with it: kernels use assert, std::min and the like without including them.
#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <tuple>
#include <type_traits>
#include <utility>

#include "npusim_host/state.hpp"

#if __AIE_ARCH__ != 20 && __AIE_ARCH__ != 21
#error "compile with -D__AIE_ARCH__=20 (AIE2, XDNA 1) or -D__AIE_ARCH__=21 (AIE2P, XDNA 2)"
#endif

// Words of Peano and chess that mean nothing to a host.
#define __aie_inline inline __attribute__((always_inline))
#define __aie_noinline __attribute__((noinline))
#define __aie_dm_resource_a
#define __aie_dm_resource_b
#define __aie_dm_resource_c
#define __aie_dm_resource_d
#define __aie_dm_resource_stack
#define restrict __restrict
#define chess_alignof(...)
#define chess_copy(...) (__VA_ARGS__)
#define chess_flatten_loop
#define chess_loop_count(...)
#define chess_loop_range(...)
#define chess_manifest(...) (__VA_ARGS__)
#define chess_no_hw_loop
#define chess_pipeline_initiation_interval(...)
#define chess_prepare_for_pipelining
#define chess_protect_access
#define chess_separator(...)
#define chess_separator_scheduler(...)
#define chess_storage(...)
#define chess_unroll_loop(...)

using int8 = std::int8_t;
using int16 = std::int16_t;
using int32 = std::int32_t;
using int64 = std::int64_t;
using uint8 = std::uint8_t;
using uint16 = std::uint16_t;
using uint32 = std::uint32_t;
using uint64 = std::uint64_t;

namespace aie {
inline constexpr unsigned vector_decl_align = __AIE_ARCH__ == 20 ? 32 : 64; // bytes
enum class aie_dm_resource { none, a, b, c, d, stack };
} // namespace aie
using aie::aie_dm_resource;

// Rates of one core; npusim.hostcc.rates says where they come from, and a test holds the two together.
namespace npusim_host {
constexpr bool aie2p = __AIE_ARCH__ == 21;
constexpr unsigned load_width = aie2p ? 64 : 32;  // bytes a load unit takes in one issue; there are two
constexpr unsigned store_width = aie2p ? 64 : 32; // bytes
constexpr unsigned vector_width = 64;             // bytes that an integer operation, a comparison or a shuffle handles
constexpr unsigned float_lanes = aie2p ? 32 : 16; // of an addition in the accumulators, and of a conversion
constexpr unsigned accumulator_bits = aie2p ? 2048 : 1024;
constexpr unsigned float_multiply = 9; // bf16 products that emulate one of float

constexpr unsigned vector_align(unsigned bytes) { // what a load or store of that size wants
  return bytes <= 16 ? 16 : bytes <= 32 || !aie2p ? 32 : 64;
}
} // namespace npusim_host

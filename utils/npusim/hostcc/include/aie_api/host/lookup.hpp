// Tables in memory that several lanes look up at once: aie::lut, aie::parallel_lookup, aie::linear_approx.
//
// A table for four lookups a cycle has its values four times: `ab` and `cd` each hold them twice, in turns of 16 bytes
// (values 0..7 of bfloat16, again 0..7, 8..15, again 8..15, ...). The host reads all four copies and refuses a table
// whose copies differ.

#pragma once

#include "native.hpp"

namespace aie {

enum class lut_oor_policy { saturate, truncate };

template <unsigned Parallel, typename Offset, typename Slope = Offset> struct lut {
  static_assert(Parallel == 4, "aie::lut is served for 4 parallel accesses, as in the AIE API on these devices");
  using offset_type = Offset;
  using slope_type = Slope;
  unsigned elements;
  const unsigned char *ab, *cd;

  lut(unsigned elements, const void *ab, const void *cd)
      : elements(elements), ab(static_cast<const unsigned char *>(ab)), cd(static_cast<const unsigned char *>(cd)) {
    for (const void *table : {ab, cd})
      if (reinterpret_cast<std::uintptr_t>(table) % vector_decl_align)
        npusim_host::fail("misaligned: a lookup table must be aligned to aie::vector_decl_align = %u bytes (kernel %s)",
                          vector_decl_align, npusim_host::kernel);
  }
  // `bytes` bytes that begin at byte `at` of the values, were they stored once.
  void read(void *into, unsigned at, unsigned bytes) const {
    const unsigned first = at / 16 * 32 + at % 16;
    const unsigned char *copies[] = {ab + first, ab + first + 16, cd + first, cd + first + 16};
    for (const unsigned char *copy : copies)
      if (std::memcmp(copy, copies[0], bytes))
        npusim_host::fail(
            "a lookup table's four copies differ at byte %u of its values: the layout is wrong (kernel %s)", at,
            npusim_host::kernel);
    std::memcpy(into, copies[0], bytes);
  }
};

namespace detail {

// The index of a table entry from an input: the bits above step_bits, plus bias, brought into the table. The core
// shifts the input to `extra` bits below the index first, and rounds there as the mode says.
template <typename T, lut_oor_policy policy>
unsigned table_index(T input, unsigned elements, unsigned step_bits, int bias, unsigned bytes) {
  const int extra = bytes <= 2 ? 2 : bytes == 4 ? 3 : 4;
  const auto shifted =
      npusim_host::shifted(std::int64_t(input), int(step_bits) - extra, npusim_host::Mode(npusim_host::rounding));
  const std::int64_t index = (shifted >> extra) + bias;
  if (policy == lut_oor_policy::truncate) return unsigned(((index % elements) + elements) % elements);
  return unsigned(index < 0 ? 0 : index >= std::int64_t(elements) ? elements - 1 : index);
}

} // namespace detail

template <typename T, typename Table, lut_oor_policy policy = lut_oor_policy::saturate> class parallel_lookup {
  using Value = typename Table::offset_type;
  Table table_;
  unsigned step_bits_;
  int bias_;

public:
  parallel_lookup(const Table &table, unsigned step_bits = 0, unsigned bias = 0)
      : table_(table), step_bits_(step_bits), bias_(int(bias)) {}
  template <unsigned N> vector<Value, N> fetch(const vector<T, N> &input) const {
    // Four entries of 64 bits a load; the index is widened, shifted and masked.
    npusim_host::count(&npusim_host::Counters::loads, 2 * npusim_host::issues(N, 4));
    npusim_host::move_issues(npusim_host::issues(N, 16) * 2);
    npusim_host::vector_issues(npusim_host::issues(N, 16));
    vector<Value, N> out;
    for (unsigned i = 0; i < N; ++i) {
      const unsigned index =
          detail::table_index<T, policy>(input.data[i], table_.elements, step_bits_, bias_, sizeof(Value));
      table_.read(&out.data[i], index * sizeof(Value), sizeof(Value));
    }
    return out;
  }
};

// slope * x + offset, the pair looked up by x. Served for bfloat16 inputs with pairs of 32-bit words: slope, then
// offset.
template <typename T, typename Table> class linear_approx {
  static_assert(std::is_same_v<T, bfloat16> && std::is_same_v<typename Table::offset_type, float>,
                "aie::linear_approx is served for bfloat16 inputs with float offsets");
  Table table_;
  int step_bits_, bias_;

public:
  linear_approx(const Table &table, int step_bits, int bias = 0, int = 0)
      : table_(table), step_bits_(step_bits), bias_(bias) {}
  template <unsigned N> accum<accfloat, N> compute(const vector<bfloat16, N> &input) const {
    npusim_host::count(&npusim_host::Counters::loads, 2 * npusim_host::issues(N, 4));
    npusim_host::move_issues(npusim_host::issues(N, 16) * 3);
    npusim_host::vector_issues(npusim_host::issues(N, 16) * 2);
    accum<accfloat, N> out;
    for (unsigned i = 0; i < N; ++i) {
      const float x = input.data[i];
      const double whole = std::floor(std::ldexp(double(x), -step_bits_)) + bias_;
      const unsigned index = whole < 0 ? 0 : whole >= table_.elements ? table_.elements - 1 : unsigned(whole);
      float pair[2];
      table_.read(pair, index * 8, 8);
      out.data[i] = pair[0] * x + pair[1];
    }
    return out;
  }
};

} // namespace aie

// One function for each thing of the host header that test_header.py compares with numpy.

#include <aie_api/aie.hpp>
#include <aie_api/operators.hpp>

extern "C" {

// ---- rounding: 64 floats to bfloat16, 32 accumulators of 64 bits to int16, under a mode

void float_to_bf16(const float *in, bfloat16 *out, int32 mode) {
  aie::set_rounding(aie::rounding_mode(mode));
  aie::store_v(out, aie::accum<accfloat, 64>(aie::load_v<64>(in)).to_vector<bfloat16>());
}
void float_to_bf16_by_default(const float *in, bfloat16 *out) {
  aie::store_v(out, aie::accum<accfloat, 64>(aie::load_v<64>(in)).to_vector<bfloat16>());
}
void shift_down(const int32 *in, int16 *out, int32 shift, int32 mode, int32 saturation) {
  aie::set_rounding(aie::rounding_mode(mode));
  aie::set_saturation(aie::saturation_mode(saturation));
  aie::store_v(out, aie::accum<acc64, 32>(aie::load_v<32>(in)).to_vector<int16>(shift));
}
void scalar_bf16(const float *in, bfloat16 *out) {
  for (int i = 0; i < 64; ++i) out[i] = in[i];
}

// ---- element by element

#define BINARY(NAME, T, N, CALL)                                                                                         \
  void NAME(const T *pa, const T *pb, T *out) {                                                                          \
    aie::set_rounding(aie::rounding_mode::conv_even);                                                                    \
    const aie::vector<T, N> a = aie::load_v<N>(pa), b = aie::load_v<N>(pb);                                              \
    aie::store_v(out, CALL);                                                                                             \
  }
BINARY(add_bf16, bfloat16, 32, aie::add(a, b))
BINARY(sub_bf16, bfloat16, 32, aie::sub(a, b))
BINARY(max_bf16, bfloat16, 32, aie::max(a, b))
BINARY(min_bf16, bfloat16, 32, aie::min(a, b))
BINARY(mul_bf16, bfloat16, 32, aie::mul(a, b).to_vector<bfloat16>())
BINARY(negmul_bf16, bfloat16, 32, aie::negmul(a, b).to_vector<bfloat16>())
BINARY(neg_bf16, bfloat16, 32, aie::neg(a))
BINARY(abs_bf16, bfloat16, 32, aie::abs(a))
BINARY(select_bf16, bfloat16, 32, aie::select(a, b, aie::lt(a, b)))
BINARY(add_float, float, 16, aie::add(a, b))
BINARY(mul_float, float, 16, aie::mul(a, b).to_vector<float>())
BINARY(add_int16, int16, 32, aie::add(a, b))
BINARY(sub_uint8, uint8, 64, aie::sub(a, b))
BINARY(saturating_add_int8, int8, 64, aie::saturating_add(a, b))
BINARY(xor_int32, int32, 16, aie::bit_xor(a, b))
BINARY(max_int32, int32, 16, aie::max(a, b))
BINARY(abs_int32, int32, 16, aie::abs(a))
BINARY(logical_int32, int32, 16, aie::logical_downshift(a, 5))
BINARY(arithmetic_int32, int32, 16, aie::downshift(a, 5))

void mac_msc_bf16(const bfloat16 *pa, const bfloat16 *pb, float *out) {
  const auto a = aie::load_v<32>(pa), b = aie::load_v<32>(pb);
  auto acc = aie::mul(a, b);
  acc = aie::mac(acc, a, bfloat16(2.5f));
  acc = aie::msc(acc, bfloat16(0.5f), b);
  aie::store_v(out, acc.to_vector<float>());
}
void mul_int16(const int16 *pa, const int16 *pb, int32 *out, int32 shift) {
  const auto product = aie::mul<acc64>(aie::load_v<16>(pa), aie::load_v<16>(pb));
  aie::store_v(out, product.to_vector<int32>(shift));
}
void mul_int16_wraps(const int16 *pa, const int16 *pb, int32 *out) {
  auto acc = aie::mul(aie::load_v<16>(pa), aie::load_v<16>(pb)); // acc32
  for (int i = 0; i < 7; ++i) acc = aie::mac(acc, aie::load_v<16>(pa), aie::load_v<16>(pb));
  aie::store_v(out, acc.to_vector<int32>());
}
uint32 compared(const int32 *a, const int32 *b, int32 *out) {
  const auto x = aie::load_v<16>(a), y = aie::load_v<16>(b);
  const aie::mask<16> masks[] = {aie::lt(x, y), aie::le(x, y), aie::gt(x, y), aie::ge(x, y), aie::eq(x, y), aie::neq(x, y)};
  for (int i = 0; i < 6; ++i) out[i] = int32(masks[i].to_uint32());
  out[6] = int32((masks[0] | masks[2]).count());
  out[7] = int32((~masks[0] & masks[3]).to_uint32());
  out[8] = int32((masks[0] << 3 ^ masks[0] >> 2).to_uint32());
  return 0;
}

// ---- reductions

void reduce_bf16(const bfloat16 *in, bfloat16 *out) {
  aie::set_rounding(aie::rounding_mode::conv_even);
  out[0] = aie::reduce_add(aie::load_v<8>(in));
  out[1] = aie::reduce_add(aie::load_v<16>(in));
  out[2] = aie::reduce_add(aie::load_v<32>(in));
  out[3] = aie::reduce_add(aie::load_v<64>(in));
  out[4] = aie::reduce_max(aie::load_v<64>(in));
  out[5] = aie::reduce_min(aie::load_v<64>(in));
}
void reduce_float(const float *in, float *out) {
  out[0] = aie::reduce_add(aie::load_v<8>(in));
  out[1] = aie::reduce_add(aie::load_v<16>(in));
  out[2] = aie::reduce_add(aie::load_v<32>(in));
  out[3] = aie::reduce_add(aie::load_v<64>(in));
  out[4] = aie::reduce_max(aie::load_v<16>(in));
}
void reduce_int32(const int32 *in, int32 *out) {
  const auto v = aie::load_v<16>(in);
  out[0] = aie::reduce_add(v);
  out[1] = aie::reduce_max(v);
  out[2] = aie::reduce_min(v);
  const auto sums = aie::reduce_add_v(v, aie::neg(v), v, v);
  for (int i = 0; i < 4; ++i) out[3 + i] = sums[i];
}

// ---- lanes

void reshaped(const int16 *pa, const int16 *pb, int16 *out, int32 n) {
  const auto a = aie::load_v<32>(pa), b = aie::load_v<32>(pb);
  auto it = aie::begin_vector<32>(out);
  const auto [zip_low, zip_high] = aie::interleave_zip(a, b, n);
  *it++ = zip_low;
  *it++ = zip_high;
  const auto [even, odd] = aie::interleave_unzip(a, b, n);
  *it++ = even;
  *it++ = odd;
  *it++ = aie::concat(aie::filter_even(a, n), aie::filter_odd(a, n));
  *it++ = aie::reverse(a);
  *it++ = aie::transpose(a, n, 32 / n);
  *it++ = aie::shuffle_up_rotate(a, n);
  *it++ = aie::shuffle_down_rotate(a, n);
  *it++ = aie::shuffle_up_fill(a, b, n);
  *it++ = aie::shuffle_down_fill(a, b, n);
  *it++ = aie::shuffle_up_replicate(a, n);
  *it++ = aie::shuffle_down_replicate(a, n);
  *it++ = aie::shuffle_up(a, n);
  *it++ = aie::shuffle_down(a, n);
}
void parts(const int16 *in, int16 *out, int32 at) {
  const auto v = aie::load_v<32>(in);
  aie::vector<int16, 32> w; // undefined: all ones
  w.insert(at, v.extract<8>(3 - at));
  w[at] = 7;
  w.push(9);
  aie::store_v(out, w);
  aie::store_v(out + 32, v.extract<16>(1).grow<32>());
  aie::store_v(out + 64, v.cast_to<int8>().cast_to<int16>());
  aie::store_v(out + 96, aie::concat(v.extract<16>(0), v.extract<16>(0)).cast_to<uint16>().cast_to<int16>());
}
void widths(const int8 *in, int16 *wide, int8 *narrow) {
  aie::set_saturation(aie::saturation_mode::saturate);
  const auto v = aie::load_v<32>(in);
  aie::store_v(wide, v.unpack());
  const auto doubled = aie::add(v.unpack(), v.unpack());
  aie::store_v(narrow, doubled.pack());
}
void copy_with_iterators(const bfloat16 *in, bfloat16 *out, int32 n) {
  auto from = aie::cbegin_restrict_vector<16>(in);
  auto to = aie::begin_restrict_vector<16>(out);
  for (int i = 0; i < n / 16; ++i) *to++ = *from++;
}
void copy_unaligned(const int16 *in, int16 *out, int32 off) {
  aie::store_unaligned_v(out + off, aie::load_unaligned_v<16>(in + off));
}

// ---- functions

void functions(const bfloat16 *in, bfloat16 *inverse, float *inverse_float, bfloat16 *root, int32 *fixed, float *back) {
  aie::set_rounding(aie::rounding_mode::conv_even);
  const auto v = aie::load_v<32>(in);
  const auto wide = aie::accum<accfloat, 32>(v).to_vector<float>();
  aie::store_v(inverse, aie::inv(v));
  aie::store_v(inverse_float, aie::inv(wide));
  aie::store_v(root, aie::invsqrt(v));
  const auto whole = aie::to_fixed<int32>(v, 8);
  aie::store_v(fixed, whole);
  aie::store_v(back, aie::to_float(whole, 8));
}
#if __AIE_ARCH__ == 21
void powers(const float *in, bfloat16 *out, int32 n) {
  for (int i = 0; i < n; i += 16) aie::store_v(out + i, aie::exp2<bfloat16>(aie::load_v<16>(in + i)));
}
#else
void powers(const float *, bfloat16 *, int32) {}
#endif

// ---- scalars of bfloat16

void scalar_arithmetic(const bfloat16 *a, const bfloat16 *b, bfloat16 *out, float *wide) {
  for (int i = 0; i < 32; ++i) {
    bfloat16 sum = a[i] + b[i];
    sum *= 3;
    out[i] = a[i] < b[i] ? -sum : sum / bfloat16(7);
    wide[i] = a[i] * 2.5f + b[i];
  }
  constexpr bfloat16 third = 1.0f / 3;
  static_assert(third > 0.33 && third < 1 && std::numeric_limits<bfloat16>::lowest() < -3e38f);
  const uint16 bits = 0xff7f;
  out[0] = *(const bfloat16 *)&bits;
  out[1] = third;
}

// ---- the operators, and every sort of loop

void operators(const int32 *pa, const int32 *pb, int32 *out) {
  using namespace aie::operators;
  const auto a = aie::load_v<16>(pa), b = aie::load_v<16>(pb);
  auto sum = a + b - (a & b) + (a ^ 3) - (-b);
  sum += a << 2;
  sum -= b >> 1;
  aie::store_v(out, aie::select(sum, ~sum, (a < b) | (a == b)));
}
void loops(const int32 *in, int32 *out, int32 n) {
  int i = 0, total = 0;
  while (i < n) total += in[i++];
  do
    total -= 1;
  while (--i);
  for (const int k : {1, 2, 3})
    if (k == 2) continue;
    else total += k;
  for (;;) {
    if (++i == 5) break;
  }
  for (int j = 0, k = 10; j < k; ++j, --k) total += 100;
  out[0] = total;
  out[1] = i;
}

} // extern "C"

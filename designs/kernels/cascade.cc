// Tiles and row vectors over the cascade, 32 bf16 (512 bits) a word; a put waits while the link is full, a get while it is
// empty. -DBQ, -DBK, -DDV as for online_softmax.cc.
//
// A partial result goes as m, l, then O by groups of eight rows (all panels of a group before the next), so that the
// receiver merges it as it arrives and needs no second tile.

#include "merge.h"

using namespace panels;

namespace {

inline void put(const bfloat16 *at) {
  const v32bfloat16 word = aie::load_v<lanes>(at);
  put_mcd(word);
}
inline Vector get() { return get_scd_v32bfloat16(); }

inline void put_all(const bfloat16 *__restrict from, unsigned elements) {
  for (unsigned i = 0; i < elements; i += lanes) put(from + i);
}
inline void get_all(bfloat16 *__restrict to, unsigned elements) {
  for (unsigned i = 0; i < elements; i += lanes) aie::store_v(to + i, get());
}

} // namespace

extern "C" {

// A tile [BQ, DV], in the order of memory
void cascade_put_output(const bfloat16 *__restrict o) { put_all(o, BQ * DV); }
void cascade_get_output(bfloat16 *__restrict o) { get_all(o, BQ * DV); }

// A value a row [BQ]
void cascade_put_rows(const bfloat16 *__restrict v) { put_all(v, BQ); }
void cascade_get_rows(bfloat16 *__restrict v) { get_all(v, BQ); }

// A partial result
void cascade_put_partial(const bfloat16 *__restrict o, const bfloat16 *__restrict m, const bfloat16 *__restrict l) {
  put_all(m, BQ);
  put_all(l, BQ);
  for (unsigned row = 0; row < BQ; row += group)
    for (unsigned j = 0; j < DV / width; ++j) put_all(o + j * BQ * width + row * width, group * width);
}

// The merge of a partial result with the one that arrives
void cascade_merge_partial(bfloat16 *__restrict o, bfloat16 *__restrict m, bfloat16 *__restrict l, float scale) {
  round_to_even();
  alignas(aie::vector_decl_align) bfloat16 m_in[BQ], l_in[BQ];
  get_all(m_in, BQ);
  get_all(l_in, BQ);
  const Weights weights(m_in, l_in, m, l, rounded(scale));
  for (unsigned row = 0; row < BQ; row += group) merge_rows(weights, row, o, [](unsigned) { return get(); });
}

} // extern "C"

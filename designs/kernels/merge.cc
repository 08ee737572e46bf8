// (O, m, l) becomes the merge of itself and (O_in, m_in, l_in). -DBQ, -DBK, -DDV as for online_softmax.cc.

#include "merge.h"

using namespace panels;

extern "C" void merge_partials(const bfloat16 *__restrict o_in, const bfloat16 *__restrict m_in, const bfloat16 *__restrict l_in,
                               bfloat16 *__restrict o, bfloat16 *__restrict m, bfloat16 *__restrict l, float scale) {
  round_to_even();
  const Weights weights(m_in, l_in, m, l, rounded(scale));
  for (unsigned row = 0; row < BQ; row += group)
    merge_rows(weights, row, o, [&](unsigned at) { return Vector(aie::load_v<lanes>(o_in + at)); });
}

// Between a matrix that lies row by row and the same in panels of eight columns. -DROWS, -DCOLS, multiples of 4 and 8.
//
// A DMA does this on the way for nothing; in a core it costs a pass over the tile.

#include "panels.h"

using namespace panels;
static_assert(ROWS % 4 == 0 && COLS % width == 0, "four rows of a panel make a vector");

extern "C" {

// y = x in panels
void pack_panels(const bfloat16 *__restrict x, bfloat16 *__restrict y) {
  for (unsigned j = 0; j < COLS; j += width)
    for (unsigned i = 0; i < ROWS; i += 4) {
      const bfloat16 *from = x + i * COLS + j;
      aie::store_v(y, aie::concat(aie::load_v<width>(from), aie::load_v<width>(from + COLS), aie::load_v<width>(from + 2 * COLS),
                                  aie::load_v<width>(from + 3 * COLS)));
      y += lanes;
    }
}

// y = x row by row
void unpack_panels(const bfloat16 *__restrict x, bfloat16 *__restrict y) {
  for (unsigned j = 0; j < COLS; j += width)
    for (unsigned i = 0; i < ROWS; i += 4) {
      const Vector four = aie::load_v<lanes>(x);
      bfloat16 *to = y + i * COLS + j;
      aie::store_v(to, four.extract<width>(0));
      aie::store_v(to + COLS, four.extract<width>(1));
      aie::store_v(to + 2 * COLS, four.extract<width>(2));
      aie::store_v(to + 3 * COLS, four.extract<width>(3));
      x += lanes;
    }
}

} // extern "C"

// All of attention's kernels in one object, for designs that link one: -DBQ, -DBK, -DDK, -DDV.

#include "cascade.cc"
#include "masks.cc"
#include "matmul_block.cc"
#include "merge.cc"
#include "online_softmax.cc"
#include "tiles.cc"

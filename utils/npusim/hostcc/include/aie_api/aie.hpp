// The AIE API for a host: what kernels of this tutorial use of it, with the same names, types and results, so that a
// kernel's C++ can be compiled with g++ or clang++ (C++20), run on a PC and compared with its numpy model.
// All code here is our own; names and signatures are those of Xilinx/aie_api (include/aie_api/aie.hpp).
//
// Checked: vector sizes and aie::mmul shapes of the device (-D__AIE_ARCH__=20 for AIE2, 21 for AIE2P), bounds and
// alignment of each vector load and store, element and part indices, the rounding and saturation modes that the kernel
// sets (floor and none until it does), what an uninitialised register gives (all ones, so NaN or -1).
//
// Not checked:
//   - the core's own arithmetic where it is not published: the order of sums within one matrix instruction, denormals
//     (kept here), the sign of zero of a maximum, the last bits of tanh and of products of float (emulated on the
//     core). exp2 and the conversion to block floating point follow rules inferred from published results
//     (elementary.hpp, bfp16.hpp);
//   - Peano's code: registers, stack, program size, pipelining, `restrict` promises that do not hold;
//   - scalar float code: on the host it is IEEE fp32, as Peano's library has it;
//   - bank conflicts, and anything between cores.
// Operations are counted per slot (npusim_host::Counters); npusim.hostcc.rates turns the counts into an estimate of
// cycles.

#pragma once

// Loops in here are not the kernel's: see npusim_host/loops_begin.hpp.
#pragma push_macro("for")
#pragma push_macro("while")
#undef for
#undef while

#include "host/config.hpp"

#include "host/accum.hpp"
#include "host/arithmetic.hpp"
#include "host/bfloat16.hpp"
#include "host/bfp16.hpp"
#include "host/elementary.hpp"
#include "host/lookup.hpp"
#include "host/mask.hpp"
#include "host/memory.hpp"
#include "host/mmul.hpp"
#include "host/native.hpp"
#include "host/reduce.hpp"
#include "host/reshape.hpp"
#include "host/rounding.hpp"
#include "host/types.hpp"
#include "host/vector.hpp"

inline void event0() {}
inline void event1() {}

#pragma pop_macro("while")
#pragma pop_macro("for")

// The loop hints of mlir-aie's aie_kernels/aie_kernel_utils.h. They guide the core's compiler; on the host they say
// nothing.

#ifndef NPUSIM_AIE_KERNEL_UTILS_H
#define NPUSIM_AIE_KERNEL_UTILS_H

#define AIE_ALLOCATE(x)
#define AIE_KEEP_FREE_FOR_PIPELINING(x)
#define AIE_KEEP_SW_LOOP
#define AIE_LOOP_FLATTEN
#define AIE_LOOP_MAX_ITERATION_COUNT(x)
#define AIE_LOOP_MIN_ITERATION_COUNT(x)
#define AIE_LOOP_NO_UNROLL
#define AIE_LOOP_RANGE(...)
#define AIE_LOOP_UNROLL(x)
#define AIE_LOOP_UNROLL_FULL
#define AIE_MODULO_SCHEDULING_BUDGET_RATIO(x)
#define AIE_NO_HW_LOOP
#define AIE_NO_PREPARE_FOR_PIPELINING
#define AIE_PEEL_PIPELINED_LOOP(x)
#define AIE_PREPARE_FOR_PIPELINING
#define AIE_PREPARE_FOR_POSTPIPELINING
#define AIE_TRY_INITIATION_INTERVAL(x)

#endif

"""Kernels in C++ for the simulated NPU: compiled for the host against our own ``aie_api`` header, run in their own
process.

A kernel that has a source but no numpy model is compiled with g++ or clang++ (:mod:`npusim.hostcc.build`, cached) and
serves as the data model; its cycles are an estimate from the operations that the header counts
(:mod:`npusim.hostcc.rates`). A mistake in it, an access out of bounds, an endless loop or a crash, is an error that
names it, never a dead Python. What the header checks and what it cannot is said at the top of
``include/aie_api/aie.hpp``.
"""

from npusim.hostcc.compiler import available
from npusim.hostcc.model import HostKernel, compile_kernel, host_model

__all__ = ["HostKernel", "available", "compile_kernel", "host_model"]

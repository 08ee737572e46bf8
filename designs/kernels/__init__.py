"""The kernels that the designs share: C++ for the cores, numpy models that round alike, and what each costs.

A kernel is three things that agree: a function in a ``.cc`` file, written with the AIE API for XDNA 1 and XDNA 2; a numpy
model (:mod:`designs.kernels.models`), which is what the simulated NPU computes with; and a cost in cycles
(:mod:`designs.kernels.cycles`), as a bound and as calibrated on published measurements.

Roles in attention: queries ``q``, keys ``k``, values ``v``, scores ``s``, probabilities ``p``, output ``o``, running
maximum ``m``, running sum ``l``, correction ``r``. Shapes are macros: BQ queries by BK keys a block, head dimensions DK and
DV. Every two-dimensional tile of attention lies in panels of eight columns (:mod:`designs.kernels.layout`).
"""

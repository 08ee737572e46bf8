"""Cycles of a compiled kernel, estimated from what the host header counted.

The rule: each slot of the core's instruction word issues one operation a cycle, so a call takes as long as its
busiest slot; a loop turn without any vector operation is scalar code and costs
:data:`~npusim.kernel_models.timing.SCALAR_ELEMENT` cycles; around it come the call's and the pipeline's start and end
(:data:`~npusim.kernel_models.timing.START_AND_END`).

Counted are issues, not calls: a load of 128 bytes on AIE2 is four of 32. The widths are those of the device
(npusim.devices); what one product, conversion or shuffle takes is read from the AIE API's own implementation
(Xilinx/aie_api include/aie_api/detail/aie2, aie2p) and from scalable-analyses/xdna isa.rst, and stands in
include/aie_api/host/config.hpp, types.hpp and mmul.hpp. Dependences, latencies, register pressure and bank conflicts
are not in it, so it is an estimate, and for long loops of independent operations rather a lower bound.
"""

from __future__ import annotations

from dataclasses import dataclass

from npusim.devices import Device
from npusim.kernel_models.timing import SCALAR_ELEMENT, START_AND_END

SOURCE = "estimate: operations counted by the host header (npusim.hostcc.rates)"
LOAD_UNITS = 2  # AM020 and AM027, chapter 4


@dataclass(frozen=True)
class Counts:
    """Issues of one call: ``loads`` of both load units, ``stores``, ``vector`` (products, sums, comparisons), ``moves``
    (shuffles, broadcasts, conversions), ``turns`` of scalar loops; cascade bytes taken and sent."""

    loads: int
    stores: int
    vector: int
    moves: int
    turns: int
    issued: int
    cascade_in: int
    cascade_out: int

    def slots(self) -> dict[str, int]:
        """Cycles each slot is busy."""
        return {
            "load": -(-self.loads // LOAD_UNITS),
            "store": self.stores,
            "vector": self.vector,
            "move": self.moves,
        }


def bound(counts: Counts, device: Device) -> int:
    """Cycles if only the load, store and vector slots count."""
    slots = counts.slots()
    return max(slots["load"], slots["store"], slots["vector"])


def cycles(counts: Counts, device: Device) -> int:
    """Cycles by the rule above."""
    return START_AND_END + max(counts.slots().values()) + counts.turns * SCALAR_ELEMENT

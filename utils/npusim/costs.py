"""The cost model: every constant of the simulated time in one table, each with unit, source and confidence.

Three layers, each replaceable: kernel cycles (npusim.kernels), transfers (stream width, DDR server) and fixed costs
(descriptor, lock, task). Not modelled: bank conflicts, program memory, instruction fetch, arbitration inside a tile.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from fractions import Fraction
from math import lcm

from npusim.devices import Device, Fact
from npusim.errors import DesignError


def _cycles(value: int, source: str, confidence: str, note: str = "") -> Fact[int]:
    return Fact(value, "cycles", source, confidence, note)  # type: ignore[arg-type]


_ASSUMED = "assumed: order of magnitude of a handful of core cycles, no published figure"


@dataclass(frozen=True)
class Costs:
    """Constants in core cycles (or as their unit says). Replace one with :meth:`having`."""

    lock_acquire: Fact[int] = _cycles(7, _ASSUMED, "L", "a granted request; waiting comes on top")
    lock_release: Fact[int] = _cycles(4, _ASSUMED, "L")
    kernel_call: Fact[int] = _cycles(10, "call, return and argument moves of the VLIW core; assumed", "L")
    bd_switch: Fact[int] = _cycles(8, "load of the next buffer descriptor and its lock; assumed", "L")
    shim_read_start: Fact[int] = _cycles(
        747, "FIM43-Redeye/xdna-emu findings 2026-05-25: shim MM2S cold start on npu1", "H", "npu2: taken over, L"
    )
    shim_write_start: Fact[int] = _cycles(
        171, "FIM43-Redeye/xdna-emu findings 2026-05-25: shim S2MM cold start on npu1", "H", "npu2: taken over, L"
    )
    task_push: Fact[int] = _cycles(200, "host controller writing a descriptor and the queue register; assumed", "L")
    task_token: Fact[int] = _cycles(100, "task-complete token back to the host controller; assumed", "L")
    register_write: Fact[int] = _cycles(40, "one 32-bit register write of the host controller; assumed", "L")
    stream_hop: Fact[int] = _cycles(2, "AM020: registered switchbox ports; latency only, paid once a transfer", "M")
    queue_depth: Fact[int] = Fact(4, "tasks", "mlir-aie architecture.md: DMA task queue, beside the running one", "M")
    scalar: dict[str, int] = field(
        default_factory=lambda: {
            "load": 2,
            "store": 1,
            "int": 1,
            "mul": 2,
            "div": 35,
            "float": 8,
            "fdiv": 40,
            "cast": 1,
            "branch": 6,
            "loop": 3,
        }
    )  # cycles a scalar operation; see SCALAR_SOURCE

    def having(self, **cycles: int) -> Costs:
        """The same table with some constants replaced, for a what-if; DesignError for an unknown name."""
        for name in cycles:
            if not isinstance(getattr(self, name, None), Fact):
                raise DesignError(f"no cost constant {name!r}")
        return replace(self, **{k: replace(getattr(self, k), value=v, note="chosen by the caller") for k, v in cycles.items()})


SCALAR_SOURCE = (
    "scalable-analyses/xdna isa.rst: in-order VLIW, load latency 7 (pipelined in a loop: assumed 2 a load); floating point "
    "on the scalar side is emulated or goes through the vector unit: assumed",
    "L",
)


@dataclass(frozen=True)
class Clockwork:
    """Integer time of one device under one cost table: ``ticks_per_cycle`` makes every duration a whole number."""

    device: Device
    costs: Costs
    ticks_per_cycle: int
    stream: int  # ticks a byte on one stream
    ddr_read: int  # ticks a byte
    ddr_write: int
    ddr_total: int

    @classmethod
    def of(cls, device: Device, costs: Costs) -> Clockwork:
        """The coarsest exact time base: the least common multiple of the denominators of cycles a byte."""
        clock = Fraction(device.clock_hz).limit_denominator(1)
        rates = {
            "stream": Fraction(1, device.stream_bytes_per_cycle),
            "ddr_read": clock / Fraction(device.ddr_read.value).limit_denominator(1),
            "ddr_write": clock / Fraction(device.ddr_write.value).limit_denominator(1),
            "ddr_total": clock / Fraction(device.ddr_total.value).limit_denominator(1),
        }
        ticks = lcm(*(rate.denominator for rate in rates.values()))
        return cls(device, costs, ticks, *(int(rate * ticks) for rate in rates.values()))

    def cycles(self, n: int) -> int:
        """Ticks of n core cycles."""
        return n * self.ticks_per_cycle

"""The cost model: every constant of the simulated time in one table, each with unit, source and confidence.

Three layers, each replaceable: kernel cycles (npusim.kernels), transfers (stream width, DDR server) and fixed costs
(descriptor, lock, task). What the cores and streams do is counted in core cycles; what memory and the controller outside
of the array do takes its time whatever the array's clock is, and is given in nanoseconds. Not modelled: bank conflicts,
program memory, instruction fetch, arbitration inside a tile, the words that wait in DMA and switch FIFOs, and the host's
own time before and after the sequence.

EMU = FIM43-Redeye/xdna-emu, whose docs/superpowers/findings hold traces of a Phoenix NPU (XDNA 1) at 1.028 GHz; GUIDE =
mlir-aie programming_guide section-4c; TNZR = scalable-analyses/xdna isa.rst and xdna1_kernel.rst.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from fractions import Fraction
from math import ceil, lcm
from typing import Any

from npusim.devices import Confidence, Device, Fact
from npusim.errors import DesignError


def _cycles(value: int, source: str, confidence: Confidence, note: str = "") -> Fact[int]:
    return Fact(value, "cycles", source, confidence, note)


def _ns(cycles: float, source: str, confidence: Confidence, note: str = "") -> Fact[int]:
    """A time that was measured in cycles of 1.028 GHz, in whole nanoseconds."""
    measured = f"{cycles:g} cycles of 1.028 GHz" + (f"; {note}" if note else "")
    return Fact(round(cycles / 1.028), "ns", source, confidence, measured)


_COLD = "EMU 2026-05-25 shim-throughput: intercept of transfers of 1,024 to 16,384 words"
_WARM = "EMU 2026-05-27 phase-2c: last of 8 transfers of 64 words, median of 50 runs"
_PUSHES = "EMU 2026-05-30 phase-2d: from one task's start to the next one's, median of 50 runs"
_GUIDE_LOOP = "GUIDE: a scalar loop of load, multiply, store takes 12.0 cycles a turn; the split is assumed"
_NO_FLOAT = "assumed: floating point on the scalar side goes through the vector unit"

SCALAR: dict[str, Fact[int]] = {
    "load": _cycles(6, _GUIDE_LOOP, "M", "its latency is 7 (TNZR), of which little is hidden without unrolling"),
    "store": _cycles(1, _GUIDE_LOOP, "M"),
    "int": _cycles(1, _GUIDE_LOOP, "M"),
    "mul": _cycles(2, _GUIDE_LOOP, "M"),
    "loop": _cycles(3, _GUIDE_LOOP, "M", "count, compare, jump"),
    "branch": _cycles(6, "TNZR: a jump has five delay slots", "M"),
    "div": _cycles(35, "assumed: integer division is a loop in software", "L"),
    "float": _cycles(8, _NO_FLOAT, "L"),
    "fdiv": _cycles(40, _NO_FLOAT, "L"),
    "cast": _cycles(1, "assumed: one operation", "L"),
}
"""Cycles of one scalar operation of a core, by kind."""


@dataclass(frozen=True)
class Costs:
    """Constants in core cycles or nanoseconds, as their unit says. Replace one with :meth:`having`.

    Measured on XDNA 1; for XDNA 2 they are taken over, with one step less confidence.
    """

    lock_acquire: Fact[int] = _cycles(
        14, "EMU 2026-06-16 port-cadence, disassembled: 13 for the call of the lock function, 1 for arbitration", "H",
        "a granted request; waiting comes on top",
    )  # fmt: skip
    lock_release: Fact[int] = _cycles(14, "EMU 2026-06-16 port-cadence, as lock_acquire", "H")
    kernel_call: Fact[int] = _cycles(
        15, "TNZR: call and return with five delay slots each; three for arguments assumed", "M"
    )
    bd_switch: Fact[int] = _cycles(
        1, "EMU 2026-06-27 relay-fill: the stream port pauses one cycle at each descriptor; the load is hidden", "H"
    )
    shim_read_start: Fact[int] = _ns(747, _COLD, "H", "a channel's first read of a run, from task to data")
    shim_write_start: Fact[int] = _ns(171, _COLD, "H", "a channel's first write of a run")
    shim_read_next: Fact[int] = _ns(305, _WARM, "H", "a later task on an idle channel; queued tasks follow at once")
    shim_write_next: Fact[int] = _ns(185, _WARM, "H", "a later task on an idle channel")
    task_push_first: Fact[int] = _ns(1086, _PUSHES, "M", "each of the first two tasks of a run")
    task_push: Fact[int] = _ns(
        3050, _PUSHES, "M",
        "each later task; agrees with the 67 us that a launch of 24 tasks costs mlir-air's fused attention on XDNA 2",
    )  # fmt: skip
    task_token: Fact[int] = _ns(
        100.5, "assumed: as one register write", "L", "from a task's end to the next instruction"
    )
    register_write: Fact[int] = _ns(100.5, "EMU 2026-05-04 control-path: one 32-bit write of the controller", "H")
    stream_hop: Fact[int] = _cycles(
        4, "AM020 chapter 2: two cycles into and two out of a switch; latency only, paid once a transfer", "M"
    )
    queue_depth: Fact[int] = Fact(
        4, "tasks", "aie-rt xaie_dma.c XAIE_DMA_MAX_QUEUE_SIZE; mlir-aie architecture.md: beside the running one", "H"
    )
    scalar: dict[str, int] = field(default_factory=lambda: {kind: fact.value for kind, fact in SCALAR.items()})

    def having(self, **values: int) -> Costs:
        """The same table with some constants replaced (in their own unit), for a what-if; DesignError for an unknown name."""
        for name in values:
            if not isinstance(getattr(self, name, None), Fact):
                raise DesignError(f"no cost constant {name!r}")
        return replace(
            self, **{k: replace(getattr(self, k), value=v, note="chosen by the caller") for k, v in values.items()}
        )

    def in_cycles(self, clock_hz: float) -> Costs:
        """The same table with times in whole cycles of a clock, rounded up."""
        clock = Fraction(clock_hz).limit_denominator(1)
        times: dict[str, Any] = {k: v for k, v in self.facts() if v.unit == "ns"}
        for name, fact in times.items():
            times[name] = replace(fact, value=ceil(fact.value * clock / 10**9), unit="cycles")
        return replace(self, **times)

    def facts(self) -> list[tuple[str, Fact[int]]]:
        """Every constant of the table but the scalar ones (see SCALAR), with its name."""
        return [(f.name, getattr(self, f.name)) for f in fields(self) if f.name != "scalar"]


@dataclass(frozen=True)
class Clockwork:
    """Integer time of one device under one cost table: ``ticks_per_cycle`` makes every duration a whole number.

    ``costs`` has all times in cycles of the device's clock.
    """

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
        return cls(device, costs.in_cycles(device.clock_hz), ticks, *(int(rate * ticks) for rate in rates.values()))

    def cycles(self, n: int) -> int:
        """Ticks of n core cycles."""
        return n * self.ticks_per_cycle

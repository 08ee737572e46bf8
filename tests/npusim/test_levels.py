"""The reference designs as generated and as the real compilers lower them: the same results, nearly the same cycles.

Where the cycles differ, and why (``low``: fifos lowered dynamically, ``static``: unrolled):

=============================================  ==========================================  ==================================
what the compiled form has                     what the form as generated has              costs
=============================================  ==========================================  ==================================
the host writes each scratchpad parameter      one operation that reads the parameter      a register write each: 98 cycles of
into every core that reads it (two writes      without saying how it got there             npu1, 177 of npu2 (100.5 ns)
and a lock), before anything else
the core shifts such a parameter by two bits   nothing                                     some 10 cycles a read
a counter in the core's memory picks the       acquire and release, which know the         some 10 cycles an object
buffer of the next object (``low``)            buffer
turns unrolled, one copy for each buffer       one loop                                    -3 to +4 cycles in all
(``static``)
a loop in a loop as blocks, with a test        ``scf.for``                                 2 cycles each time that the inner
before its first turn                                                                      loop begins
=============================================  ==========================================  ==================================
"""

from __future__ import annotations

import copy
import importlib.util
import sys
from pathlib import Path

import pytest

from npusim.costs import Clockwork, Costs
from npusim.ir import walk
from npusim.mlir import read_high, read_low
from npusim.run import simulate
from tests.reference_adapter import models

DATA = Path(__file__).parents[1] / "data" / "reference"


def _oracle():
    spec = importlib.util.spec_from_file_location("reference_oracle", DATA / "oracle.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # its dataclass looks itself up
    spec.loader.exec_module(module)
    return module


oracle = _oracle()
NAMES = sorted(path.name.split(".")[0] for path in (DATA / "mlir").glob("iron_*.npu1.high.mlir"))
TOLERANCE = 0.10
REGISTER_WRITES, COUNTERS = "the host's register writes", "counters of the dynamic lowering"
CAUSES = {"iron_shared_buffer": REGISTER_WRITES, "iron_sliding_window": COUNTERS, "iron_split_join4": COUNTERS}
"""Designs of which a form differs by more than 1%, and the cause."""


def run(name: str, device: str, level: str):
    case = oracle.CASES[name]
    args = [copy.deepcopy(a) for a in case.args]
    folder = DATA / "mlir" / ("static" if level == "static" else "")
    text = (folder / f"{name}.{device}.{'high' if level == 'high' else 'low'}.mlir").read_text()
    report = simulate((read_high if level == "high" else read_low)(text), args, kernels=models(case.kernels))
    oracle.verify(name, args)
    return report


def test_there_are_twenty_designs():
    assert len(NAMES) == 20


@pytest.mark.parametrize("device", ["npu1", "npu2"])
@pytest.mark.parametrize("name", NAMES)
def test_compiled_forms_give_the_same_results_in_nearly_the_same_cycles(name, device):
    high = run(name, device, "high")
    for level in ("low", "static"):
        low = run(name, device, level)
        assert low.cycles == pytest.approx(high.cycles, rel=TOLERANCE), level
        assert low.traffic["ddr"] == high.traffic["ddr"]
    for use in high.cores:
        assert 0 <= use.busy + use.stall <= high.ticks
        assert all(ticks >= 0 for ticks in use.stalled.values())


def extra_writes(high, low) -> int:
    """Register writes that only the compiled host sequence has."""
    names = ("aiex.npu.rtp_write", "aiex.npu.update_from_scratchpad", "aiex.set_lock")
    return sum(op.name in names for op in walk(low.machine.sequence)) - sum(
        op.name in names for op in walk(high.machine.sequence)
    )


@pytest.mark.parametrize("device", ["npu1", "npu2"])
@pytest.mark.parametrize("name", NAMES)
def test_what_differs_by_more_than_a_hundredth_has_a_known_cause(name, device):
    high, low, static = (run(name, device, level) for level in ("high", "low", "static"))
    differ = any(abs(form.cycles - high.cycles) > 0.01 * high.cycles for form in (low, static))
    assert differ == (name in CAUSES)
    if CAUSES.get(name) == COUNTERS:  # without them there is next to no difference
        assert static.cycles == pytest.approx(high.cycles, rel=0.001)
    if CAUSES.get(name) == REGISTER_WRITES:
        clock = Clockwork.of(high.machine.device, Costs())
        expected = extra_writes(high, static) * clock.cycles(clock.costs.register_write.value)
        assert expected > 0
        assert static.ticks - expected == pytest.approx(high.ticks, rel=0.002)

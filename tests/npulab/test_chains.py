"""Chains of runs: sums of time, cycles and bytes, and what they refuse."""

from __future__ import annotations

import numpy as np
import pytest

import npulab
from npulab.record import Run
from npusim.devices import NPU1, NPU2
from npusim.report import Traffic


def run(seconds: float = 1.0, **more: object) -> Run:
    traffic = {"ddr": Traffic(read=10, written=5), "memtile": Traffic(), "l1": Traffic(read=1, written=2)}
    given = {"kind": "simulated", "device": NPU2, "cycles": 100.0, "traffic": traffic, "flops": 7.0, "name": "one"} | more
    return Run(seconds=seconds, **given)  # type: ignore[arg-type]


def test_sums_time_cycles_bytes_and_work() -> None:
    last = run(0.5, name="last", outputs=(np.arange(3),))
    whole = npulab.chain([(run(2.0), 3), last], name="both")
    assert (whole.seconds, whole.cycles, whole.flops) == (6.5, 400.0, 28.0)
    assert whole.traffic == {"ddr": Traffic(read=40, written=20), "memtile": Traffic(), "l1": Traffic(read=4, written=8)}
    assert np.array_equal(whole.output, np.arange(3))
    assert [(part.run.name, part.times) for part in whole.parts] == [("one", 3), ("last", 1)]
    assert whole.busy() is None
    text = str(whole)
    assert "both (simulated)" in text and "2 s x 3, 92% of the time (simulated)" in text and "500 ms, 8% of the time" in text


def test_what_a_part_does_not_know_the_chain_does_not_know() -> None:
    measured = run(kind="measured", cycles=None, traffic=None, flops=None)
    whole = npulab.chain([measured, measured], flops=20)
    assert (whole.kind, whole.seconds, whole.cycles, whole.traffic, whole.flops) == ("measured", 2.0, None, None, 20)
    assert npulab.chain([measured, run(kind="measured")]).flops is None


def test_refuses_nothing_and_mixtures() -> None:
    with pytest.raises(ValueError, match="at least one run"):
        npulab.chain([])
    with pytest.raises(ValueError, match="simulated on npu2 and simulated on npu1"):
        npulab.chain([run(), run(device=NPU1)])
    with pytest.raises(ValueError, match="simulated on npu2 and measured on npu2"):
        npulab.chain([run(), run(kind="measured")])

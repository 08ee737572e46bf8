"""The reference designs as generated and as the real compilers lower them: the same results, nearly the same cycles."""

from __future__ import annotations

import copy
import importlib.util
import sys
from pathlib import Path

import pytest

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

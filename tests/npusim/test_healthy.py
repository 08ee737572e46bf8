"""No healthy design is refused or warned about: the reference designs, of IRON and of MLIR-AIR, traced and compiled, on both
devices. Our own designs are held to it in tests/designs/conftest.py."""

from __future__ import annotations

import copy
import warnings

import pytest

from npusim.errors import DesignWarning
from npusim.load import load_design
from npusim.mlir import read_low
from npusim.run import simulate
from tests.npusim.test_levels import DATA, NAMES, oracle
from tests.reference_adapter import models, refuse

DEVICES = ["npu1", "npu2"]


def run(name, design):
    case = oracle.CASES[name]
    args = [copy.deepcopy(a) for a in case.args]
    report = simulate(design, args, kernels=models(case.kernels))
    oracle.verify(name, args)
    return report


@pytest.fixture(autouse=True)
def _warnings_are_errors():
    with warnings.catch_warnings():
        warnings.simplefilter("error", DesignWarning)
        yield


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", NAMES)
def test_a_traced_design_has_no_warning(name, device):
    assert run(name, load_design(DATA / "designs" / f"{name}.py", device)).warnings == []


@pytest.mark.parametrize("folder", [".", "static"])
@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", NAMES)
def test_a_compiled_design_has_no_warning(name, device, folder):
    assert run(name, read_low((DATA / "mlir" / folder / f"{name}.{device}.low.mlir").read_text())).warnings == []


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("path", sorted((DATA / "designs").glob("*.py")), ids=lambda path: path.stem)
def test_a_design_whose_kernels_do_nothing_has_none_either(path, device):
    assert refuse(path, device) == (None, [])

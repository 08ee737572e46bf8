"""An AIR design beside its compiled form: nearly the same cycles, the same bytes, the same data."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from npusim.air.__main__ import main
from npusim.air.compare import compare
from npusim.errors import DesignError
from npusim.load import load_design
from npusim.mlir import read_low

DATA = Path(__file__).parents[2] / "data" / "reference"
DEVICES = ["npu1", "npu2"]
RUN = {"air_herd1_dma": 0.04, "air_segment_l2": 0.01, "air_two_herds": 0.10, "air_herd2x2_broadcast": 0.03}
"""Designs whose compiled form runs here, and how far its cycles may differ. The others need vector instructions."""


def compiled(name, device):
    return read_low((DATA / "mlir" / f"{name}.{device}.low.mlir").read_text())


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", RUN)
def test_the_compiled_form_takes_nearly_as_long(name, device):
    found = compare(load_design(DATA / "designs" / f"{name}.py", device), compiled(name, device))
    assert found.agree
    assert found.ratio == pytest.approx(1, abs=RUN[name])
    assert found.air.traffic == found.compiled.traffic


def test_the_text_has_both_and_says_what_is_idealised():
    text = str(compare(load_design(DATA / "designs" / "air_segment_l2.py", "npu1"), compiled("air_segment_l2", "npu1")))
    assert re.search(r"cycles +[\d,.]+ +[\d,.]+", text)
    assert "AIR, idealised" in text
    assert "note: MLIR-AIR: timing of an idealised compilation" in text
    assert "data: the same" in text


def test_modules_of_other_arrays_are_refused():
    with pytest.raises(DesignError, match="are not those of the module"):
        compare(load_design(DATA / "designs" / "air_herd1_dma.py", "npu1"), compiled("air_cascade_rows", "npu1"))
    with pytest.raises(DesignError, match=r"none of MLIR-AIR"):
        compare(load_design(DATA / "designs" / "iron_broadcast4.py", "npu1"), compiled("air_herd1_dma", "npu1"))


def test_the_command(capsys):
    low = DATA / "mlir" / "air_two_herds.npu1.low.mlir"
    assert main(["compare", str(DATA / "designs" / "air_two_herds.py"), str(low)]) == 0
    assert "simulated npu1" in capsys.readouterr().out
    vectors = DATA / "mlir" / "air_api_scale.npu1.low.mlir"
    assert main(["compare", str(DATA / "designs" / "air_api_scale.py"), str(vectors)]) == 1
    assert "aievec.ups" in capsys.readouterr().err


@pytest.mark.parametrize("device", DEVICES)
def test_packets_in_each_others_buffers_are_warned_of(device):
    found = compare(
        load_design(DATA / "designs" / "air_herd2x2_broadcast.py", device), compiled("air_herd2x2_broadcast", device)
    )
    assert any("when its descriptor was the one for packets of id" in w for w in found.compiled.warnings)
    assert not found.air.warnings

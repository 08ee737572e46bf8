"""The shared closed formulas of the fused mapping's traffic against its simulation, to the byte."""

from __future__ import annotations

import pytest

from designs.attention import formulas
from designs.attention.parameters import Parameters
from tests.designs.attention_fused.test_fused import run


@pytest.mark.parametrize("device", ["npu1", "npu2"])
@pytest.mark.parametrize(
    ("lq", "heads", "kv_heads", "d"), [(256, 2, 2, 64), (512, 4, 2, 64), (512, 2, 1, 128), (1024, 2, 2, 64)]
)
def test_formulas_are_exact(device, lq, heads, kv_heads, d):
    _, _, report = run(device, lq, heads, kv_heads, data=False, dk=d, dv=d)
    p = Parameters(lq=lq, lk=lq, num_heads=heads, num_kv_heads=kv_heads, dk=d, dv=d).of_mapping("fused", device)
    said = formulas.traffic("fused", p)
    assert report.traffic == said

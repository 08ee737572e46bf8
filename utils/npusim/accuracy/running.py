"""Build a design and run it for its time."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from npusim.devices import Device
from npusim.frontends.finder import simulated
from npusim.frontends.iron.current import get_current_device, set_current_device
from npusim.graph import Design
from npusim.kernels import KernelModel
from npusim.load import as_design
from npusim.report import Report
from npusim.run import simulate
from npusim.types import MemRefType


def built(build: Callable[[Any], Any], device: Device) -> Design:
    """The design of a function that gets the IRON device and returns the resolved program; it runs with the simulated
    packages behind ``import aie``. ``device`` is a whole NPU, perhaps with options."""
    before = get_current_device(probe_runtime=False)
    with simulated():
        from aie.iron.device import NPU1, NPU2

        iron_device = {"npu1": NPU1, "npu2": NPU2}[device.name]()
        set_current_device(iron_device)
        try:
            design = as_design(build(iron_device))
        finally:
            set_current_device(before)
    design.device = device
    return design


def timed(design: Design, *, kernels: Mapping[str, KernelModel] | None = None, trace: bool = False) -> Report:
    """What a run without data reports."""
    assert design.sequence is not None
    types = [value.type for value in design.sequence.body.entry.args]
    args = [np.empty(each.shape, each.dtype) for each in types if isinstance(each, MemRefType)]
    return simulate(design, args, kernels=kernels, data=False, trace=trace)

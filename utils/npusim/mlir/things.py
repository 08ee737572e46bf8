"""What the readers of both forms take from operations in the same way: devices, types of fifos, initial values."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from npusim.devices import Device, device
from npusim.errors import DesignError, UnsupportedError
from npusim.ir import walk
from npusim.mlir.bodies import refuse_unknown
from npusim.mlir.enums import DEVICES
from npusim.mlir.generic import RawOp, ops_of
from npusim.mlir.values import make_type
from npusim.types import MemRefType

_FIFO_TYPE = re.compile(r"!aie\.objectfifo<(memref<.*>)>")


def one_device(module: RawOp) -> tuple[RawOp, list[RawOp]]:
    """The only device of a module and the scratchpad parameters beside it.

    DesignError: there is no module. UnsupportedError: it has other operations, or not one device.
    """
    if module.name != "builtin.module":
        raise DesignError(f"{module.loc}: expected builtin.module, found {module.name}")
    for op in (op for region in module.regions for op in walk(region) if op.name.startswith("air.")):
        raise UnsupportedError(f"{op.loc}: dialect 'air' (operation {op.name}) is not read here")
    devices = [op for op in ops_of(module) if op.name == "aie.device"]
    if len(devices) != 1:
        raise UnsupportedError(f"{module.loc}: a module with {len(devices)} aie.device operations; one is read")
    rest = [op for op in ops_of(module) if op is not devices[0]]
    for op in rest:
        if op.name != "aiex.scratchpad_parameter":
            refuse_unknown(frozenset())(op)
            raise UnsupportedError(f"{op.loc}: operation {op.name} is not read outside a device")
    return devices[0], rest


def device_of(op: RawOp) -> Device:
    """The device that ``aie.device`` names; UnsupportedError if it is not an NPU."""
    number = op.need("device")
    if number not in DEVICES:
        raise UnsupportedError(f"{op.loc}: device {number} is not an NPU (known: {', '.join(DEVICES.values())})")
    return device(DEVICES[number])


def fifo_type(op: RawOp, name: str) -> MemRefType:
    """The memref inside ``!aie.objectfifo<...>``."""
    match = _FIFO_TYPE.fullmatch(str(op.need(name)))
    element = make_type(match.group(1)) if match else None
    if not isinstance(element, MemRefType):
        raise UnsupportedError(f"{op.loc}: {name} {op.prop(name)} of a fifo")
    return element


def initial(op: RawOp, type: MemRefType) -> np.ndarray[Any, Any] | None:
    """The initial value of an ``aie.buffer``."""
    value = op.prop("initial_value")
    if value is None:
        return None
    if not isinstance(value, np.ndarray):
        raise UnsupportedError(f"{op.loc}: an initial value {value!s:.60}")
    if value.size != type.size:
        raise DesignError(f"{op.loc}: {value.size} initial values for a buffer of type {type}")
    return value.reshape(type.shape)

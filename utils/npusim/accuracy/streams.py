"""Two designs that only move data: a copy of memory by all columns, and one transfer each way through a MemTile."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from npusim.accuracy.running import built, timed
from npusim.devices import Device
from npusim.frontends.iron.kernel_library.common import array
from npusim.report import Report

OBJECT = 1024
"""Words of the objects that a copy is made in: 4 KiB."""
FITTED = (1024, 2048, 4096, 8192, 16384)
"""Words of the transfers that the start-up is fitted to, as in the measurement."""


def copy_rate(device: Device, words: int = 2**24) -> float:
    """Bytes a second, read and written, of copying ``words`` words on one channel each way of every column.

    The default is that of mlir-aie's memcpy example.
    """
    report = timed(built(partial(copy, words=words), device))
    return 2 * 4 * words / report.seconds


def copy(iron_device: Any, words: int) -> Any:
    """The resolved program; each column's share goes through its MemTile. Host arguments: source and target, i32."""
    from aie.helpers.taplib import TensorTiler2D
    from aie.iron import ObjectFifo, Program, Runtime

    columns, share = iron_device.cols, words // iron_device.cols
    host, piece = array(words, np.int32), array(OBJECT, np.int32)
    shares = TensorTiler2D.simple_tiler((columns, share), (1, share))
    incoming = [ObjectFifo(piece, name=f"in{col}") for col in range(columns)]
    outgoing = [fifo.cons().forward(name=f"out{col}") for col, fifo in enumerate(incoming)]

    def sequence(source: Any, target: Any, fills: Any, drains: Any) -> None:
        for fill, part in zip(fills, shares, strict=True):
            fill.fill(source, tap=part)
        for drain, part in zip(drains, shares, strict=True):
            drain.drain(target, tap=part, wait=True)

    ends = [[fifo.prod() for fifo in incoming], [fifo.cons() for fifo in outgoing]]
    return Program(iron_device, Runtime(sequence, [host, host, *ends])).resolve_program()


def start_up(device: Device, direction: str) -> float:
    """Cycles that a shim channel's first transfer takes beside its data: the intercept of its time over its words.

    The MemTile takes all that is read before anything is written, so that no direction waits for the other.
    """
    reports = [timed(built(partial(_there_and_back, words=words), device), trace=True) for words in FITTED]
    return float(np.polyfit(FITTED, [_first_transfer(report, direction) for report in reports], 1)[1])


def _there_and_back(iron_device: Any, words: int) -> Any:
    """One transfer into a MemTile and, after it, one out."""
    from aie.iron import ObjectFifo, Program, Runtime

    host = array(words, np.int32)
    there = ObjectFifo(host, name="there")
    back = there.cons().forward(name="back")

    def sequence(source: Any, target: Any, fill: Any, drain: Any) -> None:
        fill.fill(source, wait=True, managed=False).await_()
        drain.drain(target, wait=True)

    return Program(iron_device, Runtime(sequence, [host, host, there.prod(), back.cons()])).resolve_program()


def _first_transfer(report: Report, direction: str) -> float:
    """Cycles from the task's push (where the host begins to wait for it) to the last word."""
    (moving,) = (e for e in report.trace if e.kind == "transfer" and e.track == f"{direction} 0 of tile (0,0)")
    (waiting,) = (e for e in report.trace if e.track == "host" and e.name == f"await {moving.name}")
    return (moving.start + moving.duration - waiting.start) / report.ticks_per_cycle

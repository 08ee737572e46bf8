"""Reads, compares and prints MLIR in generic form: the language between the NPU toolchain and npusim."""

from __future__ import annotations

from npusim.mlir.compare import compare
from npusim.mlir.emit import print_design
from npusim.mlir.generic import Module, RawOp, parse
from npusim.mlir.high import read_high
from npusim.mlir.low import read_low
from npusim.mlir.printer import print_module

__all__ = ["Module", "RawOp", "compare", "parse", "print_design", "print_module", "read_high", "read_low"]

"""What a kernel is to the rest: name, parameters with their shapes in macros, numpy model and cost; and the check of both.

A prototype such as ``q[BQ,DK] k[BK,DK] s[BQ,BK] scale:f32`` names the C++ function's parameters in order. Elements are bf16
unless said. A design declares two-dimensional tiles with their logical shape (rows, columns), whatever their layout in
memory; it may flatten them if the kernel's compile flags (``-DBQ=64``) give the shape.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from designs.kernels.arithmetic import AIE2P, EMULATION, Arithmetic, arithmetic_of
from designs.kernels.cycles import Cost
from npusim.devices import Device
from npusim.errors import DesignError, UnsupportedError
from npusim.graph import KernelDecl
from npusim.kernels import KernelModel
from npusim.types import MemRefType

Array = np.ndarray[Any, np.dtype[Any]]
Dims = Mapping[str, int]

_PARAMETER = re.compile(r"(\w+)(?:\[([\w,]+)\])?(?::(\w+))?")
_FLAG = re.compile(r"-D(\w+)=(\d+)$")


@dataclass(frozen=True)
class Parameter:
    """``dims`` are macro names, outermost first; none for a scalar. ``element`` is MLIR's name of the type."""

    name: str
    dims: tuple[str, ...]
    element: str


def prototype(text: str) -> tuple[Parameter, ...]:
    """Parameters of a prototype."""
    parts = [_PARAMETER.fullmatch(word) for word in text.split()]
    assert all(parts), text
    return tuple(Parameter(p[1], tuple(p[2].split(",")) if p[2] else (), p[3] or "bf16") for p in parts if p)


@dataclass(frozen=True)
class Kernel:
    """One kernel. ``compute(arithmetic, *arguments)`` works in place on arrays of the logical shapes; ``cost(dims, device)``
    is cycles as bound and as calibrated. ``moved(dims)`` is how many bytes a kernel gets from the cascade and puts on it; its
    ``compute`` then takes ``cascade``.
    """

    name: str
    source: str  # the .cc file
    parameters: tuple[Parameter, ...]
    compute: Callable[..., None]
    cost: Callable[[Dims, Device], Cost]
    moved: Callable[[Dims], tuple[int, int]] | None = None
    summary: str = field(default="", repr=False)

    def model(self) -> KernelModel:
        """For the simulated NPU: computes as XDNA 2 does until bound to a device and a declaration."""
        return KernelModel(
            compute=partial(self._run, AIE2P, {}),
            cycles=lambda *types, device: self._cost({}, types, device).calibrated,
            bound=lambda *types, device: self._cost({}, types, device).bound,
            uses_cascade=self.moved is not None,
            source="designs/kernels/cycles.py",
            confidence="M",
            cascade_bytes=None if self.moved is None else lambda *types: self._moved({}, types),
            bind=self._bind,
        )

    def _bind(self, decl: KernelDecl, device: Device) -> KernelModel:
        """The model for a declaration: shapes checked against its compile flags, arithmetic of the device."""
        flags = macros(decl.compile_flags)
        self.dims(decl.arg_types, flags)
        # A declaration without flags (an object file, or MLIR) is taken to be compiled as the designs compile.
        arithmetic = arithmetic_of(device, decl.compile_flags or (EMULATION,))
        flags = {**flags, "EMULATED": int(arithmetic.blocks)}
        return replace(
            self.model(),
            compute=partial(self._run, arithmetic, flags),
            cycles=lambda *types, device: self._cost(flags, types, device).calibrated,
            bound=lambda *types, device: self._cost(flags, types, device).bound,
            cascade_bytes=None if self.moved is None else lambda *types: self._moved(flags, types),
            bind=None,
        )

    def dims(self, arguments: tuple[Any, ...], flags: Dims) -> dict[str, int]:
        """The macros' values, from compile flags and from argument types or arrays; DesignError where they disagree."""
        if len(arguments) != len(self.parameters):
            raise DesignError(f"kernel {self.name} takes {len(self.parameters)} arguments, {len(arguments)} are declared")
        found = dict(flags)
        for parameter, argument in zip(self.parameters, arguments, strict=True):
            self._match(parameter, argument, found)
        return found

    def _match(self, parameter: Parameter, argument: Any, found: dict[str, int]) -> None:
        if not parameter.dims:
            return
        shape = tuple(getattr(argument, "shape", ()))
        where = f"kernel {self.name}: {parameter.name} is [{', '.join(parameter.dims)}]"
        if len(shape) != len(parameter.dims):
            missing = [d for d in parameter.dims if d not in found]
            if len(parameter.dims) == 1:
                shape = (math.prod(shape),)
            elif missing:
                raise DesignError(f"{where}, declared as {shape}; declare its two sizes, or compile with -D{missing[0]}=...")
            else:
                shape = self._unflattened(where, parameter, shape, found)
        for name, size in zip(parameter.dims, shape, strict=True):
            if found.setdefault(name, size) != size:
                raise DesignError(f"{where} with {name}={found[name]}, declared as {shape}")
        element = getattr(argument, "element", parameter.element)
        if element != parameter.element:
            raise DesignError(f"{where} of {parameter.element}, declared with elements of {element}")

    def _unflattened(self, where: str, parameter: Parameter, shape: tuple[int, ...], found: Dims) -> tuple[int, ...]:
        wanted = tuple(found[d] for d in parameter.dims)
        if math.prod(shape) != math.prod(wanted):
            raise DesignError(f"{where} = {wanted}, declared as {shape}")
        return wanted

    def _run(self, arithmetic: Arithmetic, flags: Dims, *arguments: Any, **rest: Any) -> None:
        dims = self.dims(arguments, flags) if flags else {}
        shaped = [self._shaped(p, a, dims) for p, a in zip(self.parameters, arguments, strict=True)]
        self.compute(arithmetic, *shaped, **rest)

    def _shaped(self, parameter: Parameter, argument: Any, dims: Dims) -> Any:
        if not parameter.dims:
            return argument
        if not argument.flags.c_contiguous:
            raise UnsupportedError(f"kernel {self.name}: {parameter.name} is a strided view; kernels take whole tiles")
        shape = tuple(dims[d] for d in parameter.dims) if dims else argument.shape
        return argument if argument.shape == shape else argument.reshape(shape)

    def _cost(self, flags: Dims, types: tuple[MemRefType | Any, ...], device: Device) -> Cost:
        return self.cost(self.dims(types, flags), device)

    def _moved(self, flags: Dims, types: tuple[Any, ...]) -> tuple[int, int]:
        assert self.moved is not None
        return self.moved(self.dims(types, flags))


def macros(flags: tuple[str, ...]) -> dict[str, int]:
    """Whole-number macros of compile flags: ``-DBQ=64`` -> {"BQ": 64}."""
    return {m[1]: int(m[2]) for flag in flags if (m := _FLAG.match(flag))}

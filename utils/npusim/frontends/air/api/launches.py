"""Launches of ``air.api``: a kernel's arguments and body, traced into a module when it is built."""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Callable
from typing import Any

import numpy as np

from npusim.errors import DesignError, UnsupportedError
from npusim.frontends.air.api.types import DType
from npusim.frontends.air.api.values import Tensor
from npusim.frontends.air.backend import XRTBackend
from npusim.frontends.air.context import InsertionPoint, Module
from npusim.frontends.air.dialect_func import FuncOp
from npusim.frontends.air.types import MemRefType
from npusim.frontends.iron.current import runtime_name
from npusim.frontends.tracing import DesignTypeError

_tensors: list[Tensor] = []
_symbols: list[Symbol] = []
_launches: list[LaunchContext] = []


def arity(fn: Callable[..., Any]) -> int:
    """How many positional arguments a body takes."""
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return sum(p.kind in kinds for p in inspect.signature(fn).parameters.values())


def tracing_launch(what: str) -> LaunchContext:
    """The launch being traced. DesignError outside of one."""
    if not _launches:
        raise DesignError(f"{what} belongs into the body of a launch: decorate it with @launch.body")
    return _launches[-1]


class Symbol:
    """A number that the design leaves open; here it is its hint, its first choice or its default."""

    _numbers = itertools.count()

    def __init__(self, choices: Any = None, hint: Any = None, default: int = 64, name: Any = None) -> None:
        if hint is not None and choices is not None and hint not in choices:
            raise DesignError(f"the hint {hint} of a symbol is none of its choices {list(choices)}")
        self.choices, self.hint, self.name = choices, hint, name or f"sym{next(Symbol._numbers)}"
        self.value = int(hint if hint is not None else next(iter(choices)) if choices else default)
        _symbols.append(self)

    def __index__(self) -> int:
        return self.value

    def __int__(self) -> int:
        return self.value

    def __add__(self, o: Any) -> int:
        return self.value + int(o)

    __radd__ = __add__

    def __sub__(self, o: Any) -> int:
        return self.value - int(o)

    def __rsub__(self, o: Any) -> int:
        return int(o) - self.value

    def __mul__(self, o: Any) -> int:
        return self.value * int(o)

    __rmul__ = __mul__

    def __floordiv__(self, o: Any) -> int:
        return self.value // int(o)

    def __rfloordiv__(self, o: Any) -> int:
        return int(o) // self.value

    def __mod__(self, o: Any) -> int:
        return self.value % int(o)

    def __eq__(self, o: object) -> bool:
        return isinstance(o, (int, Symbol)) and self.value == int(o)

    def __hash__(self) -> int:
        return hash(self.value)


class LaunchContext:
    """A kernel: the tensors declared before it are its arguments."""

    def __init__(self, grid: Any = None, name: str = "kernel", target: Any = None) -> None:
        if grid is not None:
            raise UnsupportedError(
                "grid= of air.launch is not served in air.api; air.dialects.air has launches with sizes"
            )
        self.name, self.target = name, target
        self.tensors, self.symbols = list(_tensors), list(_symbols)
        _tensors.clear()
        _symbols.clear()
        self._body: Callable[..., Any] | None = None
        self._module: Module | None = None

    def __enter__(self) -> LaunchContext:
        return self

    def __exit__(self, *args: object) -> None:
        pass

    @property
    def body(self) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        """Decorator: the function is kept, and traced when the kernel is built."""

        def decorator(fn: Callable[..., Any]) -> Callable[..., Any]:
            if self._body is not None:
                raise DesignError("the launch has a body already")
            self._body = fn
            return fn

        return decorator

    @property
    def generation(self) -> str:
        """npu1 or npu2."""
        name = runtime_name() if self.target in (None, "auto") else str(self.target)
        found = name.partition("_")[0]
        if found not in ("npu1", "npu2"):
            raise DesignError(f"unknown target {self.target!r}: it is 'auto', 'npu1' or 'npu2'")
        return found

    @property
    def search_space(self) -> dict[str, int]:
        """The values of the symbols."""
        return {symbol.name: symbol.value for symbol in self.symbols}

    @property
    def inputs(self) -> list[Tensor]:
        return [t for t in self.tensors if not t.is_output]

    @property
    def outputs(self) -> list[Tensor]:
        return [t for t in self.tensors if t.is_output]

    def build(self, target: Any = None) -> Module:
        """The module (made once)."""
        if self._module is None:
            self.target = target or self.target
            self.target = self.generation
            self._module = self._trace()
        return self._module

    def _trace(self) -> Module:
        if self._body is None or not self.tensors:
            raise DesignError("a launch needs air.tensor(...) declared before it and a body (@launch.body)")
        if arity(self._body):
            raise DesignTypeError(
                f"the body of a launch without a grid takes no coordinate arguments, got {arity(self._body)}"
            )
        body, module = self._body, Module.create()
        types = [MemRefType.get(list(t.shape), t.dtype.mlir()) for t in self.tensors]

        def kernel(*args: Any) -> None:
            for t, value in zip(self.tensors, args, strict=True):
                t.value = value
            body()

        _launches.append(self)
        try:
            with InsertionPoint(module.body):
                FuncOp.from_py_func(*types, name=self.name)(kernel)
        finally:
            _launches.pop()
            for t in self.tensors:
                t.value = None
        module.target = self.target
        first = next((i for i, t in enumerate(self.tensors) if t.is_output), None)
        if first is None:
            raise DesignError("the kernel writes no output: ops.store(...) into a tensor makes it one")
        if not all(t.is_output for t in self.tensors[first:]):
            raise DesignError("tensors that are written must be declared behind all that are only read")
        return module

    def mlir(self) -> str:
        """The module's text."""
        return str(self.build())

    def compile(
        self, target: Any = None, verbose: bool = False, output_format: str = "xclbin", **kwargs: Any
    ) -> CompiledKernel:
        """Something to call with the inputs."""
        module = self.build(target=target)
        kwargs.setdefault("instance_name", self.name)
        backend = XRTBackend(verbose=verbose, output_format=output_format, target_device=self.target, **kwargs)
        return CompiledKernel(self, backend, backend.compile(module))


class CompiledKernel:
    """Called with the inputs it returns the output (a tuple of several)."""

    def __init__(self, launch_ctx: LaunchContext, backend: XRTBackend, compiled: Any) -> None:
        self.launch, self.backend, self.compiled = launch_ctx, backend, compiled
        self.search_space = launch_ctx.search_space

    def __call__(self, *args: Any) -> Any:
        inputs, outputs = self.launch.inputs, self.launch.outputs
        if len(args) != len(inputs):
            raise DesignTypeError(f"the kernel takes {len(inputs)} inputs, got {len(args)}")
        for given, t in zip(args, inputs, strict=True):
            if tuple(given.shape) != t.shape or given.dtype != np.dtype(t.dtype.np_dtype):
                raise DesignError(f"input {t.name!r} is {t.shape} of {t.dtype}, got {given.shape} of {given.dtype}")
        if not self.backend.currently_loaded:
            self._run = self.backend.load(self.compiled)
        results = self._run(*args, *(np.zeros(t.shape, t.dtype.np_dtype) for t in outputs))
        shaped = [r.reshape(t.shape) for r, t in zip(results[len(args) :], outputs, strict=True)]
        return shaped[0] if len(shaped) == 1 else tuple(shaped)

    def unload(self) -> None:
        self.backend.unload()


def launch(grid: Any = None, name: str = "kernel", target: Any = None) -> LaunchContext:
    """A kernel over the tensors declared since the last one."""
    return LaunchContext(grid=grid, name=name, target=target)


def compile(launch_ctx: LaunchContext, **kwargs: Any) -> CompiledKernel:
    """``launch_ctx.compile(...)``."""
    return launch_ctx.compile(**kwargs)


def tensor(shape: Any, dtype: DType, name: Any = None) -> Tensor:
    """An array of the host: an argument of the next launch."""
    _tensors.append(Tensor(shape, dtype, name=name or f"t{len(_tensors)}"))
    return _tensors[-1]


def symbol(choices: Any = None, hint: Any = None, default: int = 64, name: Any = None) -> Symbol:
    """A number that the design leaves open."""
    return Symbol(choices, hint, default, name)

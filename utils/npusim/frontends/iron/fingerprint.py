"""What a function would do, as a hashable key: code, defaults, captured values and the globals it names.

``@iron.jit`` keeps the designs it made under such keys. Two functions of one source that captured different values have
different keys, and so has one function after a captured value or a global it uses has changed: a notebook that changes a
constant and calls again gets a new design.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from types import BuiltinFunctionType, CodeType, FunctionType, GenericAlias, ModuleType
from typing import Any, get_args, get_origin

import numpy as np


def fingerprint(value: Any) -> Hashable:
    """A key that is equal for values that mean the same to a design. Objects of other kinds count by identity.

    Functions are looked into if they live in the same module as ``value``; a library's count by identity.
    """
    home = value.__globals__ if isinstance(value, FunctionType) else None
    return _Fingerprint(home).of(value)


class _Same:
    """An object as a key by identity. Holding it keeps its address from being given to another."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __hash__(self) -> int:
        return id(self.value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and self.value is other.value


class _Fingerprint:
    """One pass over what a value holds; what is met again is named by when it was met first."""

    def __init__(self, home: dict[str, Any] | None) -> None:
        self.home = home
        self.met: dict[int, int] = {}

    def of(self, value: Any) -> Hashable:
        if value is None or isinstance(value, (int, float, complex, str, bytes)):
            return type(value), repr(value)
        if isinstance(value, (type, ModuleType, BuiltinFunctionType, np.dtype)):
            return value
        if isinstance(value, np.generic):
            return str(value.dtype), value.tobytes()
        if isinstance(value, np.ndarray):
            return "array", value.shape, str(value.dtype), value.tobytes()
        if id(value) in self.met:
            return "met", self.met[id(value)]
        self.met[id(value)] = len(self.met)
        return self._compound(value)

    def _compound(self, value: Any) -> Hashable:
        if isinstance(value, (list, tuple)):
            return type(value), tuple(self.of(item) for item in value)
        if isinstance(value, (set, frozenset)):
            return type(value), frozenset(self.of(item) for item in value)
        if isinstance(value, GenericAlias):  # np.ndarray[(n,), np.dtype[np.int32]]
            return get_origin(value), tuple(self.of(arg) for arg in get_args(value))
        if isinstance(value, Mapping):
            return "mapping", tuple((self.of(k), self.of(v)) for k, v in value.items())
        if isinstance(value, FunctionType) and value.__globals__ is self.home:
            return self._function(value)
        return _Same(value)

    def _function(self, function: FunctionType) -> Hashable:
        names = sorted(_global_names(function.__code__) & function.__globals__.keys())
        return (
            "function",
            _code(function.__code__),
            self.of(function.__defaults__),
            self.of(function.__kwdefaults__),
            tuple(self._cell(cell) for cell in function.__closure__ or ()),
            tuple((name, self.of(function.__globals__[name])) for name in names),
        )

    def _cell(self, cell: Any) -> Hashable:
        try:
            return self.of(cell.cell_contents)
        except ValueError:
            return "empty cell"


def _code(code: CodeType) -> Hashable:
    """What the bytecode does, without where it was written: a cell that is run again unchanged is the same."""
    constants = tuple(_code(c) if isinstance(c, CodeType) else (type(c), repr(c)) for c in code.co_consts)
    return code.co_code, constants, code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars


def _global_names(code: CodeType) -> set[str]:
    """The names that a function, or one defined in it, may look up in its module."""
    names = set(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            names |= _global_names(constant)
    return names

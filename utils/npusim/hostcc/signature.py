"""The arguments of a C++ function against those that the design declares.

On the core nothing checks this: the function takes from the registers what it expects. A difference that changes
sizes or counts is refused; another element type of the same size is a warning, since kernels do reinterpret bits.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass

from npusim.errors import DesignError, DesignWarning
from npusim.graph import KernelDecl
from npusim.types import MemRefType, numpy_dtype

_SORTS = {"i": "signed integer", "u": "unsigned integer", "f": "float", "b": "bfloat16"}


@dataclass(frozen=True)
class Argument:
    """One argument of a C++ function. ``sort``: i, u, f, b (bfloat16), v (void) or x; ``size`` in bytes of its element."""

    pointer: bool
    constant: bool
    sort: str
    size: int
    text: str

    @classmethod
    def parse(cls, field: str) -> Argument:
        """From ``pb2 bfloat16*``, as worker.cc prints it."""
        code, text = field.split(" ", 1)
        return cls(code[0] != "s", code[0] == "c", code[1], int(code[2:]), text)


@dataclass(frozen=True)
class Function:
    """A kernel as compiled: name, whether its symbol is the plain C one, arguments."""

    name: str
    plain: bool
    arguments: tuple[Argument, ...]

    @classmethod
    def parse(cls, line: str) -> Function:
        """From a line that worker.cc prints."""
        name, linkage, *fields = line.split("|")
        return cls(name, linkage == "C", tuple(map(Argument.parse, fields)))

    def __str__(self) -> str:
        return f"{self.name}({', '.join(a.text for a in self.arguments)})"


def _sort(element: str) -> tuple[str, int]:
    dtype = numpy_dtype(element)
    if element == "bf16":
        return "b", 2
    return ("f" if dtype.kind == "f" else "u" if dtype.kind in "ub" else "i"), dtype.itemsize


def check(decl: KernelDecl, function: Function) -> None:
    """DesignError unless ``function`` can be called with what ``decl`` declares; DesignWarning for another element type."""
    who = f"kernel {decl.name!r}"
    if not function.plain:
        raise DesignError(
            f'{who} is not visible to the linker under that name: declare it extern "C" and not static, since C++ '
            f"mangles the names of its functions ({function})"
        )
    if len(decl.arg_types) != len(function.arguments):
        raise DesignError(
            f"{who}: the design declares {len(decl.arg_types)} arguments, the C++ function takes "
            f"{len(function.arguments)}: {function}"
        )
    for i, (kind, argument) in enumerate(zip(decl.arg_types, function.arguments)):
        _check_one(f"{who}, argument {i}", kind, argument)


def _check_one(who: str, kind: MemRefType | str, argument: Argument) -> None:
    array = isinstance(kind, MemRefType)
    if array != argument.pointer:
        raise DesignError(f"{who}: the design declares {kind}, the C++ function takes {argument.text}")
    sort, size = _sort(kind.element if isinstance(kind, MemRefType) else kind)
    if argument.sort in "vx" and array:
        return  # void *, or a struct laid over the array
    if not array and {sort, argument.sort} <= {"i", "u"} and (max(size, argument.size) <= 4 or kind == "index"):
        return  # a register of 32 bits, whatever the width; an index is one, too
    if not array and argument.sort != sort and {argument.sort, sort} & {"f", "b"}:
        raise DesignError(f"{who}: the design declares {kind}, the C++ function takes {argument.text}")
    if argument.size != size:
        what = f"{kind}, whose elements have {size} bytes" if array else f"{kind}"
        raise DesignError(f"{who}: the design declares {what}, the C++ function takes {argument.text}")
    if argument.sort != sort and {argument.sort, sort} != {"i", "u"}:
        warnings.warn(
            f"{who}: the design declares {kind}, the C++ function takes {argument.text}: the same bits are read as "
            f"{_SORTS.get(argument.sort, argument.text)}",
            DesignWarning,
            stacklevel=2,
        )

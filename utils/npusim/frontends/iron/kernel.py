"""``Kernel`` and ``ExternalFunction``: functions compiled elsewhere, declared with their types and called by workers.

Their C++ never runs here; :mod:`npusim.kernels` says what a kernel computes and how long it takes.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from npusim import graph
from npusim.errors import DesignError, UnsupportedError
from npusim.frontends import operators as ops
from npusim.frontends.iron.buffer import Buffer
from npusim.frontends.iron.context import design
from npusim.frontends.iron.layouts import array_type
from npusim.frontends.iron.resolvable import Resolvable
from npusim.frontends.tracing import emit, here, need
from npusim.frontends.values import MemRefValue
from npusim.frontends.views import contiguous, strides_of
from npusim.ir import Value
from npusim.messages import explain
from npusim.types import MemRefType, element_name


class BaseKernel(Resolvable):
    """A function of a name and argument types: ``np.ndarray[...]`` types for arrays, numpy dtypes for scalars."""

    def __init__(self, name: str, arg_types: list[type[np.ndarray] | np.dtype] | None = None) -> None:
        self._loc = here()
        if not name:
            raise DesignError("a kernel needs a name: that of the function in its object file")
        self._name = name
        self._arg_types: list[Any] = [] if arg_types is None else arg_types
        self._op: graph.KernelDecl | None = None
        self._home: graph.Design | None = (
            None  # the design that _op is in; a kernel may serve several, one after another
        )

    def _argument(self, index: int) -> Any:
        if not self._arg_types:
            raise DesignError(f"kernel {self._name!r} has no arguments")
        if index >= len(self._arg_types):
            raise DesignError(f"kernel {self._name!r} has {len(self._arg_types)} arguments, there is no number {index}")
        return self._arg_types[index]

    def _array(self, index: int) -> MemRefType:
        kind = argument_type(self._argument(index), self._name)
        if not isinstance(kind, MemRefType):
            raise DesignError(f"argument {index} of kernel {self._name!r} is the scalar {kind}, not an array")
        return kind

    def arg_shape(self, arg_index: int = 0) -> tuple[int, ...]:
        """Sizes of an array argument in elements."""
        return self._array(arg_index).shape

    def arg_dtype(self, arg_index: int = 0) -> Any:
        """The dtype of an array argument."""
        return self._array(arg_index).dtype

    def tile_size(self, arg_index: int = 0) -> int:
        """First size of an array argument in elements."""
        return self.arg_shape(arg_index)[0]

    def arg_types(self) -> list[Any]:
        """A copy of the argument types."""
        return list(self._arg_types)

    def tiles(self) -> list[Any]:
        return []

    def __call__(self, *args: Any, **kwargs: Any) -> None:
        """Call the kernel from a core function. DesignError if number, type or shape of an argument is not the declared one."""
        if kwargs:
            raise UnsupportedError(f"kernel {self._name!r} takes positional arguments only, got {', '.join(kwargs)}=")
        need(f"calling kernel {self._name!r}", "core")
        if len(args) != len(self._arg_types):
            raise DesignError(
                explain(
                    f"kernel {self._name!r} (declared at {self._loc}) expects {len(self._arg_types)} arguments, got "
                    f"{len(args)}.",
                    details=[f"argument {i}: {kind}" for i, kind in enumerate(self._op.arg_types if self._op else ())],
                    phrase=f"Kernel {self._name!r} expects {len(self._arg_types)} argument(s), but {len(args)} were "
                    "provided.",
                    hint="call it with what its declaration lists.",
                    loc=here(),
                )
            )
        if self._op is None or self._home is not design(f"kernel {self._name!r}"):
            raise DesignError(
                f"kernel {self._name!r} must be resolved before it can be called: pass it to the Worker in fn_args"
            )
        operands = [self._operand(i, arg, kind) for i, (arg, kind) in enumerate(zip(args, self._op.arg_types))]
        emit("func.call", operands, callee=self._op.name)

    def _operand(self, index: int, arg: Any, kind: MemRefType | str) -> Value:
        if isinstance(arg, Buffer):
            arg = arg.op
        if isinstance(arg, (int, float)) and isinstance(kind, str):
            return ops.constant(arg, kind).value
        if ops.is_scalar(arg) and isinstance(kind, str):
            if arg.dtype == "index" and ops.is_integer(kind) and kind != "index":
                arg = ops.cast("index_cast", arg, kind)
            if arg.dtype == kind:
                return arg.value  # type: ignore[no-any-return]
        if isinstance(arg, MemRefValue) and isinstance(kind, MemRefType):
            if arg.memref == kind:
                return arg.value
            if _collapses(arg.memref, kind):
                groups = (tuple(range(arg.rank)),)
                return emit("memref.collapse_shape", (arg.value,), (kind,), reassociation=groups).result
        raise DesignError(self._mismatch(index, arg, kind))

    def _mismatch(self, index: int, arg: Any, kind: MemRefType | str) -> str:
        got = str(arg.type) if hasattr(arg, "type") and not isinstance(arg, type) else f"{arg!r}"
        elements, hint = "", "declare the kernel with the type that it is called with."
        if isinstance(arg, np.generic):
            hint = "convert the numpy scalar with int() or float()."
        elif isinstance(arg, MemRefValue) and isinstance(kind, MemRefType):
            elements = f" ({arg.memref.size} elements for {kind.size})"
            hint += " A contiguous array is flattened to a 1-D argument of the same element type and count, nothing else."
        return explain(
            f"argument {index} of kernel {self._name!r} (declared at {self._loc}) is {kind}, got {got}{elements}.",
            phrase=f"operand type mismatch: expected operand type '{kind}', but provided '{got}' for operand number "
            f"{index}",
            hint=hint,
            loc=here(),
        )

    def resolve(self, loc: Any = None, ip: Any = None) -> None:
        into = design(f"kernel {self._name!r}")
        if self._home is not into:
            self._op, self._home = self._declaration(), into
            into.kernels.append(self._op)

    def _declaration(self) -> graph.KernelDecl:
        kinds = tuple(argument_type(t, self._name) for t in self._arg_types)
        return graph.KernelDecl(self._name, kinds, loc=self._loc)


def argument_type(spelled: Any, name: str) -> MemRefType | str:
    """The type of a kernel's argument from IRON's spelling."""
    if getattr(spelled, "__args__", None):
        return array_type(spelled, f"kernel {name!r}")
    if isinstance(spelled, (MemRefType, str)):
        return spelled
    if isinstance(spelled, (type, np.dtype)):
        return element_name(spelled)
    raise DesignError(
        f"kernel {name!r}: {spelled!r} is no argument type; give np.ndarray[(n,), np.dtype[t]] or a dtype"
    )


def _collapses(arg: MemRefType, kind: MemRefType) -> bool:
    """Whether an array is flattened for a 1-D argument: contiguous at offset 0, same element type and count."""
    return (
        len(kind.shape) == 1
        and arg.element == kind.element
        and arg.size == kind.size
        and arg.offset == 0
        and not arg.dynamic_offset
        and strides_of(arg) == contiguous(arg.shape)
    )


class Kernel(BaseKernel):
    """A kernel in an object file that is compiled beforehand."""

    def __init__(
        self,
        name: str,
        object_file_name: str,
        arg_types: list[type[np.ndarray] | np.dtype] | None = None,
        *,
        link_with_mode: str | None = None,
    ) -> None:
        super().__init__(name, arg_types)
        if link_with_mode not in (None, "merge"):
            raise DesignError(f"kernel {name!r}: link_with_mode is 'merge' or None, got {link_with_mode!r}")
        self._object_file_name = object_file_name
        self._link_with_mode = link_with_mode

    @property
    def object_file_name(self) -> str:
        """Name of the object file."""
        return self._object_file_name

    @property
    def link_with_mode(self) -> str | None:
        return self._link_with_mode

    def _declaration(self) -> graph.KernelDecl:
        """With the source of the ExternalFunction that is compiled to the same object file, if there is one."""
        declared = super()._declaration()
        declared.object_file = self._object_file_name
        beside = next((f for f in ExternalFunction._instances if f._object_file_name == self._object_file_name), None)
        if beside is not None:
            beside.lend_source(declared)
        return declared


class ExternalFunction(Kernel):
    """A kernel compiled from C++ source when the design is built. Equal if name, types, flags and source are."""

    _instances: ClassVar[set[ExternalFunction]] = set()

    mac_dims: tuple[int, ...]
    zero: Kernel
    get_only: Kernel
    put_only: Kernel
    put_get: Kernel

    def __init__(
        self,
        name: str,
        object_file_name: str | None = None,
        source_file: str | None = None,
        source_string: str | None = None,
        arg_types: list[type[np.ndarray] | np.dtype] | None = None,
        include_dirs: list[str] | None = None,
        compile_flags: list[str] | None = None,
        *,
        symbol_prefix: str | None = None,
        use_chess: bool = False,
        inline: bool = False,
    ) -> None:
        _check_inline(name, object_file_name, symbol_prefix, use_chess, inline)
        if source_file is None and source_string is None:
            raise DesignError(f"ExternalFunction {name!r} needs its C++: give source_file or source_string")
        symbol = f"{symbol_prefix}_{name}" if symbol_prefix else name
        super().__init__(
            symbol,
            object_file_name or f"{symbol}.{'ll' if inline else 'o'}",
            arg_types,
            link_with_mode="merge" if inline else None,
        )
        self._original_name = name
        self._symbol_prefix = symbol_prefix
        self._source_file = source_file
        self._source_string = source_string if source_file is None else None
        self._include_dirs = list(include_dirs or [])
        self._compile_flags = list(compile_flags or [])
        self._use_chess = use_chess
        self._inline = inline
        self._digest: str | None = None
        self._settle_collision(explicit=object_file_name is not None)
        ExternalFunction._instances.add(self)

    def _settle_collision(self, explicit: bool) -> None:
        """Two functions of one name and different content must not share an object file."""
        for other in ExternalFunction._instances:
            clash = other._name == self._name and other._object_file_name == self._object_file_name
            if clash and other._content_digest() != self._content_digest():
                if explicit:
                    raise DesignError(
                        f"ExternalFunction {self._name!r} has the object file {self._object_file_name!r} of another "
                        "one with "
                        "different source or flags: give a distinct object_file_name or name"
                    )
                path = Path(self._object_file_name)
                suffixed = f"{path.stem}_{self._content_digest()[:8]}{path.suffix}"
                self._object_file_name = str(path.with_name(suffixed))
                return

    def _content_digest(self) -> str:
        """What makes two functions the same: name, types, flags and source, as 16 hex digits."""
        if self._digest is None:
            source = self._source_string
            if source is None:
                path = Path(str(self._source_file))
                source = path.read_text() if path.exists() else f"missing {path}"
            parts = [self._name, str(self._arg_types), str(self._include_dirs), str(sorted(self._compile_flags))]
            parts += [str(self._use_chess), str(self._inline), source]
            self._digest = hashlib.sha256("|".join(parts).encode()).hexdigest()[:16]
        return self._digest

    def __call__(self, *args: Any, **kwargs: Any) -> None:
        """See :meth:`BaseKernel.__call__`."""
        super().__call__(*args, **kwargs)

    def __hash__(self) -> int:
        return int(self._content_digest(), 16)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ExternalFunction):
            return NotImplemented
        return self._content_digest() == other._content_digest()

    def __repr__(self) -> str:
        return f"ExternalFunction({self._name!r}, digest={self._content_digest()})"

    def _declaration(self) -> graph.KernelDecl:
        declared = BaseKernel._declaration(self)
        declared.object_file = self._object_file_name
        declared.source_name = self._original_name
        self.lend_source(declared)
        return declared

    def lend_source(self, declared: graph.KernelDecl) -> None:
        """Write into a declaration where its code comes from and how it is compiled."""
        declared.source_file = None if self._source_file is None else str(self._source_file)
        declared.source_string = self._source_string
        declared.compile_flags = tuple(self._compile_flags)
        declared.include_dirs = tuple(map(str, self._include_dirs))


def _check_inline(name: str, object_file: str | None, prefix: str | None, chess: bool, inline: bool) -> None:
    if inline and chess:
        raise DesignError(
            f"ExternalFunction {name!r}: inline=True needs Peano and cannot be combined with use_chess=True"
        )
    if inline and prefix:
        raise UnsupportedError(f"ExternalFunction {name!r}: inline=True with symbol_prefix is not served (nor by IRON)")
    if inline and object_file and Path(object_file).suffix.lower() not in (".ll", ".bc"):
        raise DesignError(
            f"ExternalFunction {name!r}: inline=True emits LLVM IR, so object_file_name must end in .ll or .bc, got "
            f"{object_file!r}"
        )

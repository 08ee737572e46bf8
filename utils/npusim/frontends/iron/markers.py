"""How a generator of ``@iron.jit`` says what its parameters are, and what it sees while it makes a design.

``In``, ``Out`` and ``InOut`` mark host tensors, which exist only when the design runs: while it is made they are
:class:`RuntimeTensor` sentinels. ``CompileTime[T]`` marks values that the design is made from.
"""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Annotated, Any, NamedTuple, NoReturn, TypeVar, get_args, get_origin

from npusim.errors import DesignError

T = TypeVar("T")


class _CompileTimeTag:
    """Tells ``CompileTime[T]`` apart from other annotated types."""


_TAG = _CompileTimeTag()
CompileTime = Annotated[T, _TAG]
"""A parameter that the design is made from: another value makes another design."""


class In:
    """A tensor that the design reads."""


class Out:
    """A tensor that the design writes."""


class InOut:
    """A tensor that the design reads and writes."""


class Parameters(NamedTuple):
    """A generator's parameters by kind, each in the order of its signature; ``outputs`` are the tensors that are only written."""

    signature: inspect.Signature
    compile_time: tuple[str, ...]
    tensors: tuple[str, ...]
    scalars: tuple[str, ...]
    outputs: tuple[str, ...] = ()


def parameters_of(generator: Callable[..., Any]) -> Parameters:
    """The parameters of a generator by their annotations, also where those are strings."""
    try:
        hints = typing.get_type_hints(generator, include_extras=True)
    except Exception:
        hints = {}  # a name that cannot be looked up: judge by what the signature holds
    signature = inspect.signature(generator)
    kinds: dict[str, list[str]] = {"compile_time": [], "tensors": [], "scalars": []}
    annotations = {name: hints.get(name, p.annotation) for name, p in signature.parameters.items()}
    for name, annotation in annotations.items():
        kinds[_kind(annotation)].append(name)
    outputs = tuple(name for name, annotation in annotations.items() if annotation is Out)
    return Parameters(signature, **{kind: tuple(names) for kind, names in kinds.items()}, outputs=outputs)


def _kind(annotation: Any) -> str:
    if annotation in (In, Out, InOut):
        return "tensors"
    return "compile_time" if _is_compile_time(annotation) else "scalars"


def _is_compile_time(annotation: Any) -> bool:
    if get_origin(annotation) is Annotated:
        return any(extra is _TAG for extra in get_args(annotation)[1:])
    # Python 3.10 and older turn `CompileTime[T] = None` into Optional[CompileTime[T]]; people also write it.
    return any(_is_compile_time(arg) for arg in get_args(annotation))


class RuntimeTensorError(DesignError, RuntimeError):
    """A generator looked at a tensor that does not exist yet."""


class RuntimeTensor:
    """Stands for an In, Out or InOut tensor while the design is made; looking into it raises RuntimeTensorError."""

    def __init__(self, name: str) -> None:
        object.__setattr__(self, "_name", name)

    def _refuse(self, what: str) -> NoReturn:
        name = object.__getattribute__(self, "_name")
        raise RuntimeTensorError(
            f"Generator parameter {name!r} is a runtime tensor (In/Out/InOut) and is not available at compile time: "
            f"{what}. Use CompileTime[T] parameters for shape/dtype information instead."
        )

    def __getattr__(self, name: str) -> NoReturn:
        self._refuse(f".{name}")

    def __setattr__(self, name: str, value: Any) -> NoReturn:
        self._refuse(f".{name} = ...")

    def __getitem__(self, key: Any) -> NoReturn:
        self._refuse(f"[{key!r}]")

    def __repr__(self) -> str:
        return f"<runtime tensor {object.__getattribute__(self, '_name')!r}>"


_context: ContextVar[dict[str, Any]] = ContextVar("compile_context", default={})  # noqa: B039  # never written to


@contextmanager
def compile_context(**kwargs: Any) -> Iterator[dict[str, Any]]:
    """Make values readable by :func:`get_compile_arg` within the block; inner blocks add to and shadow outer ones."""
    merged = {**_context.get(), **kwargs}
    token = _context.set(merged)
    try:
        yield merged
    finally:
        _context.reset(token)


def get_compile_arg(key: str, default: Any = None) -> Any:
    """A value of the surrounding :func:`compile_context`; inside a generator, its CompileTime arguments are there, too."""
    return _context.get().get(key, default)

"""``func``: kernels written in Python (``aie.helpers.dialects.func``).

The real tools compile such a function once and call it; here its body is traced where it is called, which computes the
same. The cost of the call itself is not modelled.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import update_wrapper
from typing import Any

from npusim.errors import DesignError, UnsupportedError
from npusim.frontends import operators as ops
from npusim.frontends.iron.buffer import Buffer
from npusim.frontends.iron.kernel import argument_type
from npusim.frontends.tracing import here, need
from npusim.frontends.values import MemRefValue
from npusim.types import MemRefType


def _signature(body: Callable[..., Any]) -> inspect.Signature:
    """With annotations looked up, where they are strings."""
    try:
        return inspect.signature(body, eval_str=True)
    except NameError as error:
        raise DesignError(f"@func {body.__name__!r}: the type of an argument cannot be looked up ({error})") from None


class PythonKernel:
    """A function whose annotations are its argument types; called from core functions."""

    def __init__(self, body: Callable[..., Any]) -> None:
        self._loc = here()
        self.body_builder = body
        self.func_name = body.__name__
        update_wrapper(self, body)
        parameters = _signature(body).parameters.values()
        missing = [p.name for p in parameters if p.annotation is inspect.Parameter.empty]
        if missing:
            raise DesignError(f"@func {self.func_name!r}: argument(s) {', '.join(missing)} need a type as annotation")
        self.input_types = [argument_type(p.annotation, self.func_name) for p in parameters]

    def emit(self, *call_args: Any, force: bool = False) -> PythonKernel:
        """The function itself; its body is written down where it is called."""
        return self

    def __call__(self, *call_args: Any) -> Any:
        """Trace the body with these arguments. DesignError if one does not have its declared type."""
        need(f"calling @func {self.func_name!r}", "core")
        if len(call_args) != len(self.input_types):
            raise DesignError(
                f"@func {self.func_name!r} expects {len(self.input_types)} argument(s), got {len(call_args)}"
            )
        given = [self._argument(i, a, t) for i, (a, t) in enumerate(zip(call_args, self.input_types))]
        return self.body_builder(*given)

    def _argument(self, index: int, arg: Any, kind: MemRefType | str) -> Any:
        arg = arg.op if isinstance(arg, Buffer) else arg
        if isinstance(kind, str) and isinstance(arg, (int, float)):
            return ops.constant(arg, kind)
        if isinstance(kind, str) and ops.is_scalar(arg) and arg.dtype == "index" and ops.is_integer(kind):
            return ops.cast("index_cast", arg, kind) if kind != "index" else arg
        fits = (ops.is_scalar(arg) and arg.dtype == kind) or (isinstance(arg, MemRefValue) and arg.memref == kind)
        if not fits:
            got = arg.type if hasattr(arg, "type") else repr(arg)
            raise DesignError(f"argument {index} of @func {self.func_name!r} is {kind}, got {got}")
        return arg


def func(f: Callable[..., Any] | None = None, **options: Any) -> Any:
    """Decorator that makes a kernel of a Python function with annotated arguments."""
    given = {name: value for name, value in options.items() if value not in (None, False)}
    if given:
        raise UnsupportedError(f"func({', '.join(f'{name}=' for name in given)}) is not served")
    return PythonKernel if f is None else PythonKernel(f)

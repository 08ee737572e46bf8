"""The ``func`` dialect: the function of the module, external kernels and calls of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from npusim import graph, ir
from npusim.errors import DesignError, UnsupportedError
from npusim.frontends import tracing
from npusim.frontends.air.attributes import Attribute, AttributeMap
from npusim.frontends.air.context import building
from npusim.frontends.air.types import FunctionType, Type
from npusim.frontends.air.values import OpView, emit, value_of, wrap
from npusim.frontends.control import refuse_placement
from npusim.frontends.tracing import DesignTypeError
from npusim.graph import KernelDecl


class _KernelAttributes(AttributeMap):
    """``func.attributes``; of those, ``link_with`` says which object file a kernel is in."""

    def __init__(self, op: ir.Op, kernel: KernelDecl) -> None:
        super().__init__(op)
        self._kernel = kernel

    def __setitem__(self, name: str, value: Any) -> None:
        super().__setitem__(name, value)
        if name == "link_with":
            self._kernel.object_file = str(self._op.attrs[name])


class FuncOp(OpView):
    """An external kernel: ``FuncOp(name, FunctionType.get(inputs, []), visibility="private")``. A function with a body is
    made with :meth:`from_py_func`."""

    def __init__(
        self, name: Any, type: Any, *, visibility: Any = None, body_builder: Any = None, loc: Any = None, ip: Any = None
    ) -> None:
        refuse_placement(loc, ip)
        if body_builder is not None:
            raise UnsupportedError("body_builder of FuncOp is not served; use @FuncOp.from_py_func(...)")
        inputs, results = (type.inputs, type.results) if isinstance(type, FunctionType) else type
        if results:
            raise UnsupportedError(f"kernel {name!r} returns a value; a kernel here writes into its arguments")
        self.kernel = _declare(str(name), inputs)
        self.type = FunctionType.get(inputs, results)
        self.op = ir.Op("func.func", attrs={"sym_name": str(name), "sym_visibility": visibility}, loc=self.kernel.loc)

    @property
    def attributes(self) -> Any:
        return _KernelAttributes(self.op, self.kernel)

    @property
    def name(self) -> Any:  # as in the bindings: an attribute that holds the name
        return Attribute(self.kernel.name)

    @property
    def is_external(self) -> bool:
        return True

    @classmethod
    def from_py_func(FuncOp, *inputs: Any, results: Any = None, name: str | None = None) -> Callable[..., Any]:
        """Decorator: run a Python function once to write the module's function; its parameters are the host's arrays."""
        if results:
            raise UnsupportedError("a function with results is not served; pass an array to write into")

        def decorator(f: Callable[..., Any]) -> Any:
            module = building("a function")
            if module.function is not None:
                raise UnsupportedError(f"a second function ({f.__name__!r}) in one module; one is served")
            symbol = name or f.__name__
            with tracing.tracing("sequence", f"function {symbol!r}", *(_plain(t, symbol) for t in inputs)) as scope:
                given = [wrap(v) for v in scope.region.entry.args]
                if f(*given) is not None:
                    raise UnsupportedError(f"function {symbol!r} returns a value; pass an array to write into")
                emit("func.return")
            module.function = graph.Sequence(scope.region, symbol, tracing.here())
            return f

        return decorator


def _plain(type: Any, symbol: str) -> Any:
    if not isinstance(type, Type):
        raise DesignTypeError(f"function {symbol!r}: {type!r} is no type")
    return type.plain


def _declare(name: str, inputs: Sequence[Type]) -> KernelDecl:
    module = building(f"kernel {name!r}")
    decl = KernelDecl(name, tuple(_plain(t, name) for t in inputs), loc=tracing.here())
    if name in module.kernels:
        raise DesignError(f"kernel {name!r} is declared twice: at {module.kernels[name].loc} and {decl.loc}")
    module.kernels[name] = decl
    return decl


class CallOp(OpView):
    """A call of a kernel: ``CallOp(func, [args])`` or ``CallOp([], "name", [args])``."""

    def __init__(
        self, calleeOrResults: Any, argumentsOrCallee: Any, arguments: Any = None, *, loc: Any = None, ip: Any = None
    ) -> None:
        refuse_placement(loc, ip)
        if isinstance(calleeOrResults, FuncOp):
            callee, given = calleeOrResults.kernel.name, argumentsOrCallee
        else:
            if calleeOrResults:
                raise UnsupportedError("a call that returns a value is not served")
            target = argumentsOrCallee
            callee = target.kernel.name if isinstance(target, FuncOp) else str(getattr(target, "value", target))
            given = arguments
        operands = [value_of(x, f"a call of {callee!r}") for x in given or ()]
        _check(callee, operands)
        self.op = emit("func.call", operands, callee=callee)


def _check(callee: str, operands: Sequence[ir.Value]) -> None:
    """The kernel must be declared, with these argument types."""
    decl = building(f"a call of {callee!r}").kernels.get(callee)
    if decl is None:
        raise DesignError(
            f"kernel {callee!r} is called at {tracing.here()} but not declared: FuncOp(name={callee!r}, ...)"
        )
    got, want = [str(v.type) for v in operands], [str(t) for t in decl.arg_types]
    if got != want:
        raise DesignError(
            f"kernel {callee!r} is declared at {decl.loc} with ({', '.join(want)}), but called at {tracing.here()} with "
            f"({', '.join(got)})"
        )


def call(
    result: Any,
    callee: Any,
    operands_: Any,
    *,
    arg_attrs: Any = None,
    res_attrs: Any = None,
    no_inline: Any = None,
    loc: Any = None,
    ip: Any = None,
) -> CallOp:
    """``func.call``."""
    refuse_placement(loc, ip)
    return CallOp(result, callee, operands_)

"""Launches, segments and herds: bodies with an iteration space, isolated from what is around them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal

from npusim.errors import DesignError, UnsupportedError
from npusim.frontends import tracing
from npusim.frontends.air.attributes import plain
from npusim.frontends.air.values import OpView, emit, index_of, value_of, wrap
from npusim.frontends.control import refuse_placement
from npusim.frontends.operators import is_scalar

Kind = Literal["launch", "segment", "herd"]


class Hierarchy(OpView):
    """Common to the three. The block gets an id and a size for each dimension, then what ``operands`` passes in."""

    KIND: Kind

    def _write(self, name: str | None, sizes: Sequence[Any], operands: Sequence[Any], more: dict[str, Any]) -> None:
        self.label = f"{self.KIND} {name!r}" if name else self.KIND
        self.loc = tracing.here()
        bounds = [index_of(s, f"a size of the {self.label}") for s in sizes]
        passed = [value_of(x, f"an operand of the {self.label}") for x in operands]
        self.types = [*["index"] * 2 * len(bounds), *(v.type for v in passed)]
        attrs = {k: plain(v) for k, v in more.items() if v is not None}
        if name is not None:
            attrs["sym_name"] = name
        self.op = emit(f"air.{self.KIND}", (*bounds, *passed), segments=(0, len(bounds), len(passed)), **attrs)

    def trace(self, body: Callable[..., Any]) -> None:
        """Run the body once to write down what it does."""
        with tracing.tracing(self.KIND, self.label, *self.types, owner=self) as scope:
            given = [wrap(v) for v in scope.region.entry.args]
            _call(body, given, self.label)
            emit(f"air.{self.KIND}_terminator", loc=self.loc)
        self.op.regions.append(scope.region)


def _call(body: Callable[..., Any], given: list[Any], label: str) -> None:
    try:
        body(*given)
    except TypeError as error:
        if error.__traceback__ is not None and error.__traceback__.tb_next is None:
            raise DesignError(
                f"the body of the {label} must take {len(given)} arguments (an id and a size for each dimension, then one "
                f"for each operand): {error}"
            ) from error
        raise


def refuse_async(async_token: Any, async_dependencies: Any) -> None:
    """Explicit tokens are the compiler's business here, too."""
    if async_token is not None or async_dependencies:
        raise UnsupportedError(
            "async_token= and async_dependencies= are not served: transfers are ordered by the data they touch, as MLIR-AIR's "
            "own dependency analysis does"
        )


class Launch(Hierarchy):
    """The host's iteration space; its iterations run one after the other."""

    KIND: Kind = "launch"

    def __init__(
        self,
        name: Any = None,
        sizes: Any = [],  # noqa: B006 - the recorded signatures have these defaults
        async_token: Any = None,
        async_dependencies: Any = [],  # noqa: B006
        operands: Any = [],  # noqa: B006
        attributes: Any = {},  # noqa: B006
        loc: Any = None,
        ip: Any = None,
    ) -> None:
        refuse_placement(loc, ip)
        refuse_async(async_token, async_dependencies)
        self._write(name, sizes, operands, dict(attributes or {}))


class Segment(Hierarchy):
    """A region of the array; with sizes, that many regions beside each other, running at the same time."""

    KIND: Kind = "segment"

    def __init__(
        self,
        name: Any = None,
        sizes: Any = [],  # noqa: B006
        async_token: Any = None,
        async_dependencies: Any = [],  # noqa: B006
        operands: Any = [],  # noqa: B006
        attributes: Any = {},  # noqa: B006
        loc: Any = None,
        ip: Any = None,
    ) -> None:
        refuse_placement(loc, ip)
        refuse_async(async_token, async_dependencies)
        self._write(name, sizes, operands, dict(attributes or {}))


class Herd(Hierarchy):
    """Compute tiles, columns by rows, that run the same body. Herds of one name in a segment are one herd, in turn."""

    KIND: Kind = "herd"

    def __init__(
        self,
        name: Any = None,
        sizes: Any = [1, 1],  # noqa: B006
        async_token: Any = None,
        async_dependencies: Any = [],  # noqa: B006
        operands: Any = [],  # noqa: B006
        link_with: Any = None,
        attributes: Any = {},  # noqa: B006
        loc: Any = None,
        ip: Any = None,
    ) -> None:
        refuse_placement(loc, ip)
        refuse_async(async_token, async_dependencies)
        if len(sizes) != 2:
            raise DesignError(f"a herd has two sizes, columns and rows; got {len(sizes)}")
        more = dict(attributes or {})
        self._write(name, sizes, operands, more | {"link_with": link_with})


class Rank(OpView):
    """Several NPUs; not served."""

    def __init__(
        self,
        name: Any = None,
        sizes: Any = [],  # noqa: B006
        async_token: Any = None,
        async_dependencies: Any = [],  # noqa: B006
        operands: Any = [],  # noqa: B006
        universe: Any = None,
        attributes: Any = {},  # noqa: B006
        loc: Any = None,
        ip: Any = None,
    ) -> None:
        raise UnsupportedError("air.rank (several devices) is not served")


def region_op(op_constructor: Callable[..., Any], terminator: Any = None) -> Callable[..., Any]:
    """The decorator form of an operation with a body: ``@herd(sizes=[2, 2])`` above the body's function."""

    def outer(*args: Any, **kwargs: Any) -> Any:
        def decorate(body: Callable[..., Any]) -> Any:
            made = op_constructor(*args, **kwargs)
            made.trace(body)
            return made

        return decorate

    return outer


def _decorator(made: type[Hierarchy]) -> Callable[..., Any]:
    def decorator(*args: Any, **kwargs: Any) -> Callable[[Callable[..., Any]], Any]:
        if len(args) == 1 and not kwargs and callable(args[0]) and not is_scalar(args[0]):
            op = made()
            op.trace(args[0])
            return op  # type: ignore[return-value]
        return region_op(made)(*args, **kwargs)  # type: ignore[no-any-return]

    decorator.__name__ = decorator.__qualname__ = made.KIND
    decorator.__doc__ = f"Decorator: the function below is the body of the {made.KIND}; see {made.__name__}."
    return decorator


launch, segment, herd = _decorator(Launch), _decorator(Segment), _decorator(Herd)


def rank(*args: Any, **kwargs: Any) -> Any:
    """Several NPUs; not served."""
    return Rank(*args, **kwargs)

"""The ``scf`` and ``affine`` dialects: loops and branches of traced code, and index arithmetic by affine maps."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from npusim import ir
from npusim.air.affine import AffineMap, IntegerSet
from npusim.errors import DesignError, UnsupportedError
from npusim.frontends import tracing
from npusim.frontends.air.attributes import plain
from npusim.frontends.air.types import IndexType
from npusim.frontends.air.values import OpView, ScalarOp, emit, index_of, value_of, wrap
from npusim.frontends.control import refuse_placement
from npusim.frontends.tracing import DesignTypeError
from npusim.ir import Op, Region


def for_(
    start: Any,
    stop: Any = None,
    step: Any = None,
    iter_args: Any = None,
    *,
    loc: Any = None,
    ip: Any = None,
) -> Iterator[Any]:
    """``for i in for_(n):``, a loop that stays a loop; its body must end with ``yield_([])``.

    With ``iter_args`` it gives ``(i, args, results)``; ``yield_`` then has the values for the next turn.
    """
    refuse_placement(loc, ip)
    return _loop(start, stop, step, list(iter_args or ()), tracing.here())


def _loop(start: Any, stop: Any, step: Any, carried: list[Any], at: ir.Loc) -> Iterator[Any]:
    start, stop = (0, start) if stop is None else (start, stop)
    op = _for(start, stop, step, carried, at)
    into = tracing.need("for_")
    induction, *inner = (wrap(v) for v in op.regions[0].entry.args)
    results = [wrap(v) for v in op.results]
    with tracing.inside(op, op.regions[0]):
        finished = False
        try:
            if not inner:
                yield induction
            elif len(inner) == 1:
                yield induction, inner[0], results[0]
            else:
                yield induction, tuple(inner), tuple(results)
            finished = True
        finally:
            if not finished:
                tracing.abandon(into, op)
        _check_end(op)


def _for(start: Any, stop: Any, step: Any, carried: Sequence[Any], at: ir.Loc) -> Op:
    by = 1 if step is None else step
    if isinstance(by, int) and by <= 0:
        raise DesignError(f"for_ with step {by} at {at}: a loop counts upwards")
    bounds = [index_of(b, "a bound of for_") for b in (start, stop, by)]
    values = [value_of(x, "iter_args of for_") for x in carried]
    region = Region.single("index", *(v.type for v in values))
    return emit("scf.for", (*bounds, *values), [v.type for v in values], regions=[region], loc=at)


def _check_end(op: Op) -> None:
    """A loop's body ends with one yield of what it carries."""
    ops = op.regions[0].entry.ops
    if not ops or ops[-1].name != "scf.yield":
        raise DesignError(
            f"the body of the loop at {op.loc} does not end with yield_([]): MLIR needs it, after everything else in the body"
        )
    want, got = [str(v.type) for v in op.results], [str(v.type) for v in ops[-1].operands]
    if want != got or any(o.name == "scf.yield" for o in ops[:-1]):
        raise DesignError(
            f"the loop at {op.loc} carries ({', '.join(want)}) but yields ({', '.join(got)}): end its body with one yield_ of "
            "as many values of these types"
        )


class ForOp(OpView):
    """``scf.for`` with its body filled through ``InsertionPoint(op.body)``."""

    def __init__(
        self, lower_bound: Any, upper_bound: Any, step: Any, iter_args: Any = None, *, loc: Any = None, ip: Any = None
    ) -> None:
        refuse_placement(loc, ip)
        carried = [] if iter_args is None else list(iter_args)
        self.op = _for(lower_bound, upper_bound, step, carried, tracing.here())
        self.body = self.op.regions[0].entry
        self.induction_variable = wrap(self.body.args[0])
        self.inner_iter_args = [wrap(v) for v in self.body.args[1:]]


class YieldOp(OpView):
    """The end of a loop's body or of a branch."""

    def __init__(self, results_: Any = (), *, loc: Any = None, ip: Any = None) -> None:
        refuse_placement(loc, ip)
        self.op = emit("scf.yield", [value_of(x, "yield_") for x in results_])


def yield_(results_: Any, *, loc: Any = None, ip: Any = None) -> YieldOp:
    """The end of a loop's body or of a branch: ``yield_([])``."""
    return YieldOp(results_, loc=loc, ip=ip)


class IfOp(OpView):
    """``scf.if``; its branches are filled through ``InsertionPoint(op.then_block)`` and ``op.else_block``."""

    def __init__(
        self, cond: Any, results_: Any = None, *, has_else: Any = False, loc: Any = None, ip: Any = None
    ) -> None:
        refuse_placement(loc, ip)
        if results_:
            raise UnsupportedError("scf.IfOp with results is not served; write through a buffer, or use arith.SelectOp")
        condition = value_of(cond, "scf.IfOp")
        if condition.type != "i1":
            raise DesignTypeError(
                f"scf.IfOp needs a condition (i1), got a {condition.type}: compare it with arith.CmpIOp"
            )
        regions = [Region.single(), Region.single() if has_else else Region()]
        self.op = emit("scf.if", (condition,), regions=regions)

    @property
    def then_block(self) -> ir.Block:
        return self.op.regions[0].entry

    @property
    def else_block(self) -> ir.Block | None:
        return self.op.regions[1].entry if self.op.regions[1].blocks else None


class ForallOp(OpView):
    """``scf.forall``: turns without an order among them; filled through ``InsertionPoint(op.body)``."""

    def __init__(
        self,
        lower_bounds: Any,
        upper_bounds: Any,
        steps: Any,
        shared_outs: Any = None,
        *,
        mapping: Any = None,
        loc: Any = None,
        ip: Any = None,
    ) -> None:
        refuse_placement(loc, ip)
        if shared_outs or mapping is not None:
            raise UnsupportedError("shared_outs= and mapping= of scf.ForallOp are not served")
        bounds = [
            tuple(plain(n) if not isinstance(n, int) else n for n in part)
            for part in (lower_bounds, upper_bounds, steps)
        ]
        if not all(isinstance(n, int) for part in bounds for n in part) or len({len(part) for part in bounds}) != 1:
            raise UnsupportedError("scf.ForallOp needs as many lower bounds, upper bounds and steps, all of them ints")
        region = Region.single(*["index"] * len(bounds[0]))
        low, high, step = bounds
        self.op = emit("scf.forall", regions=[region], staticLowerBound=low, staticUpperBound=high, staticStep=step)
        self.body = region.entry
        self.induction_variables = [wrap(v) for v in self.body.args]

    @property
    def rank(self) -> int:
        return len(self.body.args)

    def terminator(self) -> Any:
        return self.body.ops[-1] if self.body.ops else None


class InParallelOp(OpView):
    """The end of the body of a ``ForallOp``."""

    def __init__(self, *, loc: Any = None, ip: Any = None) -> None:
        refuse_placement(loc, ip)
        self.op = emit("scf.forall.in_parallel", regions=[Region.single()])


class AffineIfOp(OpView):
    """``affine.if``: a branch on where index values lie in an integer set."""

    def __init__(
        self,
        cond: Any,
        results_: Any = None,
        *,
        cond_operands: Any = None,
        has_else: bool = False,
        loc: Any = None,
        ip: Any = None,
    ) -> None:
        refuse_placement(loc, ip)
        if results_:
            raise UnsupportedError("affine.AffineIfOp with results is not served")
        condition = plain(cond)
        if not isinstance(condition, IntegerSet):
            raise DesignTypeError(f"AffineIfOp needs an IntegerSet, got {cond!r}")
        operands = [index_of(x, "cond_operands of AffineIfOp") for x in cond_operands or ()]
        if len(operands) != condition.n_dims + condition.n_symbols:
            raise DesignError(
                f"{condition} needs {condition.n_dims + condition.n_symbols} operands, got {len(operands)}"
            )
        regions = [Region.single(), Region.single() if has_else else Region()]
        self.op = emit("affine.if", operands, regions=regions, condition=condition)

    @property
    def then_block(self) -> ir.Block:
        return self.op.regions[0].entry

    @property
    def else_block(self) -> ir.Block | None:
        return self.op.regions[1].entry if self.op.regions[1].blocks else None


class AffineYieldOp(OpView):
    """The end of a branch of ``AffineIfOp``."""

    def __init__(self, operands_: Any = (), *, loc: Any = None, ip: Any = None) -> None:
        refuse_placement(loc, ip)
        if list(operands_):
            raise UnsupportedError("affine.AffineYieldOp with values is not served")
        self.op = emit("affine.yield")


class AffineApplyOp(ScalarOp):
    """``affine.apply``: the value of a map with one result."""

    def __init__(self, map: Any, map_operands: Any, *, results: Any = None, loc: Any = None, ip: Any = None) -> None:
        refuse_placement(loc, ip)
        of = plain(map)
        if not isinstance(of, AffineMap) or len(of.results) != 1:
            raise DesignTypeError(f"affine.apply needs an AffineMap with one result, got {map}")
        operands = [index_of(x, "an operand of affine.apply") for x in map_operands]
        if len(operands) != of.n_dims + of.n_symbols:
            raise DesignError(f"{of} needs {of.n_dims + of.n_symbols} operands, got {len(operands)}")
        super().__init__(emit("affine.apply", operands, (IndexType.NAME,), map=of))


def apply(map: Any, map_operands: Any, *, results: Any = None, loc: Any = None, ip: Any = None) -> Any:
    """The value of an affine map with one result."""
    return AffineApplyOp(map, map_operands, loc=loc, ip=ip)

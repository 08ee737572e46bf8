"""Loops and branches, structured (``scf``) and not (``cf``)."""

from __future__ import annotations

from collections.abc import Sequence

from npusim.engine import arith
from npusim.engine.core.writer import Writer, serves
from npusim.errors import DesignError, UnsupportedError
from npusim.ir import FOREVER, UNKNOWN, Block, Op, Region, Value, walk

_MEMORY = {"memref.load": "load", "memref.store": "store", "aiex.read_scratchpad_parameter": "load"}
_FREE = frozenset({"scf.yield", "arith.constant"}) | {
    f"memref.{n}" for n in ("subview", "collapse_shape", "expand_shape", "cast", "reinterpret_cast")
}


@serves("scf.for")
def loop(w: Writer, op: Op, depth: int) -> None:
    """A counted loop. The time of a loop of scalar code is known beforehand and added after it in one go."""
    total = None if w.free else _total(w, op)
    w.settle(depth)
    if total is not None and not _evaluates_inside(w, op):
        w.interval(depth, "scalar code", "scalar", str(total))
        return
    w.free += total is not None
    _write_loop(w, op, depth)
    w.free -= total is not None
    if total is not None:
        w.interval(depth, "scalar code", "scalar", str(total))


def _write_loop(w: Writer, op: Op, depth: int) -> None:
    lower, upper, step = op.operands[:3]
    body = op.regions[0].entry
    kept = [i for i, r in enumerate(op.results) if w.has(r) or w.has(body.args[1 + i])]
    names = [w.new(op.results[i]) for i in kept]
    for i, name in zip(kept, names, strict=True):
        w.names[body.args[1 + i]] = name
    _assign(w, names, [op.operands[3 + i] for i in kept], depth)
    w.starts[body.args[0]] = w.constant(lower) if w.constant(lower) is not None else -1
    by = w.constant(step)
    if by is not None and by <= 0:
        raise DesignError(f"the loop at {op.loc} has step {by}: a core's loop counts up")
    bounds = ", ".join(w.name(v) for v in (lower, upper, step))
    w.line(depth, f"for {w.new(body.args[0])} in range({bounds}):")
    w.block(body, depth + 1)
    if kept:
        _assign(w, names, [body.ops[-1].operands[i] for i in kept], depth + 1)
    w.charge("loop")
    w.settle(depth + 1)
    if w.constant(upper) == FOREVER:
        w.turn(depth + 1)
        if not any(body.args[0] in inner.operands for inner in walk(op.regions[0])):
            w.run.uncounted.add(w.names[body.args[0]])


def _assign(w: Writer, names: Sequence[str], values: Sequence[Value], depth: int) -> None:
    """All at once, so that names may swap."""
    if names:
        w.line(depth, f"{', '.join(names)} = {', '.join(w.name(v) for v in values)}")


def _evaluates_inside(w: Writer, op: Op) -> bool:
    inside = (inner for inner in walk(op.regions[0]) if inner.name not in _FREE)
    return any(w.evaluates(inner) for inner in inside)


def _total(w: Writer, op: Op) -> int | None:
    """The ticks of a whole loop of scalar code; None if it does more than that or its bounds are open."""
    bounds = [w.constant(v) for v in op.operands[:3]]
    if any(b is None for b in bounds) or bounds[1] == FOREVER or bounds[2] <= 0:
        return None
    once = _straight(w, op.regions[0].entry)
    if once is None:
        return None
    return len(range(*(int(b) for b in bounds))) * (once + w.ticks(w.around.clock.costs.scalar["loop"]))


def _straight(w: Writer, block: Block) -> int | None:
    ticks = 0
    for op in block.ops:
        inner = _total(w, op) if op.name == "scf.for" else _ticks_of(w, op)
        if inner is None:
            return None
        ticks += inner
    return ticks


def _ticks_of(w: Writer, op: Op) -> int | None:
    scalar = w.around.clock.costs.scalar
    if op.name in _FREE:
        return 0
    if op.name in _MEMORY:
        return w.ticks(scalar[_MEMORY[op.name]])
    if op.name in arith.SERVED:
        return w.ticks(scalar.get(arith.cost_class(op), 0))
    return None


@serves("scf.if")
def branch(w: Writer, op: Op, depth: int) -> None:
    """if / else, with results."""
    w.charge("branch")
    w.settle(depth)
    kept = [i for i, r in enumerate(op.results) if w.has(r)]
    names = [w.new(op.results[i]) for i in kept]
    condition = w.name(op.operands[0])
    for keyword, region in zip((f"if {condition}:", "else:"), op.regions, strict=False):
        if region.blocks and region.entry.ops:
            w.line(depth, keyword)
            w.block(region.entry, depth + 1)
            if kept:
                _assign(w, names, [region.entry.ops[-1].operands[i] for i in kept], depth + 1)


@serves("scf.while")
def while_loop(w: Writer, op: Op, depth: int) -> None:
    """A loop with its condition computed in the first region."""
    before, after = (region.entry for region in op.regions)
    condition = before.ops[-1]
    w.settle(depth)
    state = [w.new(a) for a in before.args]
    _assign(w, state, op.operands, depth)
    w.line(depth, "while True:")
    w.block(before, depth + 1)
    passed = [w.new(a) for a in after.args]
    _assign(w, passed, condition.operands[1:], depth + 1)
    w.line(depth + 1, f"if not {w.name(condition.operands[0])}: break")
    w.block(after, depth + 1)
    w.charge("loop")
    w.settle(depth + 1)
    _assign(w, state, after.ops[-1].operands, depth + 1)
    w.names.update(zip(op.results, passed, strict=True))


def write_blocks(w: Writer, region: Region, depth: int) -> None:
    """Unstructured control flow: a dispatch on the number of the block."""
    number = {block: i for i, block in enumerate(region.blocks)}
    headers = _headers(number)
    for block in region.blocks[1:]:
        for argument in block.args:
            w.new(argument)
    w.line(depth, "b = 0")
    w.line(depth, "while True:")
    for block, i in number.items():
        w.line(depth + 1, f"{'elif' if i else 'if'} b == {i}:")
        for op in block.ops[:-1]:
            w.op(op, depth + 2)
        _charge_branch(w, block.ops[-1], block in headers)
        _terminator(w, block.ops[-1], number, i, depth + 2)


def _headers(number: dict[Block, int]) -> set[Block]:
    """The blocks that later ones jump back to: where a loop asks whether to go on."""
    return {
        target
        for block, i in number.items()
        for target, _ in (block.ops[-1].successors if block.ops else ())
        if number[target] <= i
    }


def _charge_branch(w: Writer, op: Op, heads_loop: bool) -> None:
    """A loop costs the same whether it is written as ``scf.for`` or as blocks, whose count and compare are operations."""
    if heads_loop and op.name == "cf.cond_br":
        scalar = w.around.clock.costs.scalar
        w.spend(max(0, scalar["loop"] - 2 * scalar["int"]))
    elif op.name in ("cf.cond_br", "cf.switch"):
        w.charge("branch")


def _terminator(w: Writer, op: Op, number: dict[Block, int], here: int, depth: int) -> None:
    w.loc = op.loc if op.loc != UNKNOWN else w.loc
    if op.name in ("aie.end", "func.return"):
        w.settle(depth)
        w.line(depth, "break")
        return
    w.settle(depth)
    for test, (block, operands) in zip(_tests(w, op), op.successors, strict=True):
        w.line(depth, test)
        _jump(w, block, operands, number, here, depth + 1)


def _tests(w: Writer, op: Op) -> list[str]:
    """The Python line in front of each successor, in their order."""
    if op.name == "cf.br":
        return ["if True:"]
    flag = w.name(op.operands[0])
    if op.name == "cf.cond_br":
        return [f"if {flag}:", "else:"]
    if op.name == "cf.switch":
        cases = [int(case) for case in op.attrs.get("case_values", ())]
        return [f"if {flag} not in {tuple(cases)}:", *(f"elif {flag} == {case}:" for case in cases)]
    raise UnsupportedError(f"operation {op.name} in core {w.core.name!r} at {op.loc} is not served")


def _jump(
    w: Writer, block: Block, operands: Sequence[Value], number: dict[Block, int], here: int, depth: int
) -> None:
    kept = [(a, v) for a, v in zip(block.args, operands, strict=True) if w.has(a)]
    _assign(w, [w.names[a] for a, _ in kept], [v for _, v in kept], depth)
    if number[block] <= here:
        w.turn(depth)
    w.line(depth, f"b = {number[block]}")

"""Tracing: a core body or a host sequence is run once, as Python, and what it does is written down as operations.

A :class:`Scope` is one isolated body being traced; scopes nest as the calls that open them do, and every operation goes
to the current block of the innermost one. The rules that make traced code differ from Python are checked here: a value
may only be used where it is defined (not after the loop that computed it, not in another core), and a loop may not be
left early. Both frontends use this module; what values can do is in :mod:`npusim.frontends.values`.
"""

from __future__ import annotations

import contextlib
import re
import sys
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any, Literal

from npusim.errors import DesignError, NpuError
from npusim.ir import UNKNOWN, Block, Loc, Op, Region, Value
from npusim.messages import explain
from npusim.types import Type

Kind = Literal["core", "sequence", "launch", "segment", "herd"]

_OURS = str(Path(__file__).resolve().parents[1])
_SKIPPED = (_OURS, contextlib.__file__)
_FRONTENDS = str(Path(__file__).resolve().parent)
_LINE = re.compile(r"(\.py|In\[\d+\]):\d+")


class DesignTypeError(DesignError, TypeError):
    """A rule of traced code broken where Python itself would raise a ``TypeError``."""


def here() -> Loc:
    """The innermost line that is not npusim's own: the learner's."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith(_SKIPPED):
        frame = frame.f_back
    return UNKNOWN if frame is None else Loc(frame.f_code.co_filename, frame.f_lineno)


def add_line(error: NpuError) -> None:
    """Put the learner's line under the message of an error that came up in a frontend, unless it names one already. (Python's
    traceback shows it too, but the message may be all that is seen.)"""
    frames = [(frame.f_code, line) for frame, line in traceback.walk_tb(error.__traceback__)]
    if not frames or not frames[-1][0].co_filename.startswith(_FRONTENDS) or _LINE.search(str(error)):
        return
    theirs = [i for i, (code, _) in enumerate(frames) if not code.co_filename.startswith(_SKIPPED)]
    if theirs and frames[theirs[-1] + 1][0].co_name != "resolve_program":  # which says nothing about where the mistake is
        code, line = frames[theirs[-1]]
        error.args = (f"{error}\n({Loc(code.co_filename, line)})", *error.args[1:])


@dataclass(eq=False)
class Scope:
    """One body being traced: ``what`` names it in messages (``worker 'core'``), ``owner`` is the thing it belongs to."""

    kind: Kind
    what: str
    region: Region
    owner: Any = None
    stack: list[Block] = field(default_factory=list)
    homes: dict[Op, Block] = field(default_factory=dict)  # the block that each operation with results is in
    unfinished: list[Op] = field(default_factory=list)  # structured operations whose body is being traced
    later: set[Op] = field(default_factory=set)  # operations behind the one whose else_ is being traced
    problem: DesignError | None = None  # found where Python cannot raise; raised at the next operation

    @property
    def block(self) -> Block:
        return self.stack[-1]


_scopes: list[Scope] = []


def current() -> Scope | None:
    """The innermost scope, or None outside of any trace."""
    return _scopes[-1] if _scopes else None


def need(why: str, *kinds: Kind) -> Scope:
    """The innermost scope, of one of these kinds (any if none are given); ``why`` names what needs it."""
    found = current()
    if found is None:
        raise DesignError(
            f"{why} works only while Program.resolve_program() traces your code: "
            f"{_PLACES[kinds[0] if kinds else 'core']}"
        )
    if kinds and found.kind not in kinds:
        raise DesignError(f"{why} does not belong in the {found.what}: {_PLACES[kinds[0]]}")
    return found


_PLACES: dict[Kind, str] = {
    "core": "call it in the core function given to Worker",
    "sequence": "call it in the sequence function given to Runtime",
    "launch": "call it in the body of the launch",
    "segment": "call it in the body of the segment",
    "herd": "call it in the body of the herd",
}


@contextmanager
def tracing(kind: Kind, what: str, *arg_types: Type, owner: Any = None) -> Iterator[Scope]:
    """Trace a body with block arguments of the given types; its operations are in ``scope.region`` afterwards."""
    opened = Scope(kind, what, Region.single(*arg_types), owner)
    opened.stack.append(opened.region.entry)
    _scopes.append(opened)
    try:
        yield opened
        _raise_pending(opened)
    finally:
        _scopes.remove(opened)


def _raise_pending(of: Scope) -> None:
    if of.problem is not None:
        problem, of.problem = of.problem, None
        raise problem


def emit(
    name: str,
    operands: Sequence[Value] = (),
    results: Sequence[Type] = (),
    *,
    regions: Sequence[Region] = (),
    loc: Loc | None = None,
    **attrs: Any,
) -> Op:
    """Append an operation to the current block, after checking that its operands may be used there."""
    into = need(f"what becomes {name}")
    _raise_pending(into)
    loc = here() if loc is None else loc
    for operand in operands:
        check_use(operand, into, loc)
    op = Op.make(name, operands, results, loc, regions, **attrs)
    into.block.ops.append(op)
    if op.results:
        into.homes[op] = into.block
    return op


def check_use(value: Value, into: Scope, loc: Loc) -> None:
    """A value may be used after its definition in the block that defines it, and in the blocks inside that."""
    owner = value.owner
    if isinstance(owner, Op):
        home = into.homes.get(owner)
        if owner in into.unfinished:
            raise DesignError(
                f"the result of the loop at {owner.loc} is used at {loc} inside that loop, but exists only after it: "
                "inside, use the value of iter_args"
            )
        if home is None:
            raise DesignError(_captured(f"computed at {owner.loc}", into, loc))
        if home not in into.stack or owner in into.later:
            raise DesignError(_not_dominated(f"computed at {owner.loc}", loc))
    elif isinstance(owner, Block) and owner not in into.stack:
        known = any(owner is block for block in _blocks(into.region))
        raise DesignError(
            _not_dominated("of a range_ loop", loc) if known else _captured("given to another body", into, loc)
        )


def _not_dominated(which: str, loc: Loc) -> str:
    return explain(
        f"a value {which}, inside a range_ loop or if_, is used at {loc} outside of it. Python names outlive a traced "
        "loop, values do "
        "not.",
        phrase="operand #0 does not dominate this use",
        hint="carry it out with range_(..., iter_args=[...]) and yield_, or through an element of a buffer.",
    )


def _captured(which: str, into: Scope, loc: Loc) -> str:
    return explain(
        f"a value {which} is used in the {into.what}, to which it is captured from outside; every body is isolated.",
        phrase="using value defined outside the region",
        hint=f"{_WAY_IN.get(into.kind, 'pass data through an ObjectFifo, a Buffer or a run-time parameter')}.",
        loc=loc,
    )


_OPERANDS = "pass it with operands=[...] and use the argument that the body gets for it"
_WAY_IN: dict[Kind, str] = {"launch": _OPERANDS, "segment": _OPERANDS, "herd": _OPERANDS}


def _blocks(region: Region) -> Iterator[Block]:
    for block in region.blocks:
        yield block
        for op in block.ops:
            for inner in op.regions:
                yield from _blocks(inner)


@contextmanager
def inside(op: Op, region: Region) -> Iterator[Block]:
    """Trace into a region of a structured operation that was just emitted."""
    into = need(op.name)
    block = region.entry
    into.stack.append(block)
    into.unfinished.append(op)
    try:
        yield block
    finally:
        del into.stack[into.stack.index(block) :]
        into.unfinished.remove(op)


@contextmanager
def before_terminator(op: Op, region: Region) -> Iterator[None]:
    """Trace into a region of an operation already emitted, in front of the region's terminator."""
    into = need(op.name)
    if op not in into.block.ops:
        raise DesignError(f"the else_ at {here()} does not stand beside its if_ (at {op.loc}): put both in one block")
    block = region.entry
    behind = into.block.ops[into.block.ops.index(op) + 1 :]
    terminator = block.ops.pop() if block.ops else None
    into.stack.append(block)
    into.later.update(behind)
    try:
        yield
    finally:
        into.later.difference_update(behind)
        del into.stack[into.stack.index(block) :]
        if terminator is not None:
            block.ops.append(terminator)


def abandon(into: Scope, op: Op) -> None:
    """Note that a loop's body was left early (``break``, ``return``); raised at the next operation of the scope."""
    if into.problem is None:
        into.problem = DesignError(
            f"the loop at {op.loc} was left early (break or return): a traced loop always runs all its turns; "
            "put the condition into the loop's bounds, or guard the rest of its body with if_"
        )

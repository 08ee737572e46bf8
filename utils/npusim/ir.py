"""The small IR of core bodies and host sequences: MLIR's structure, plain Python values as attributes.

Both frontends' tracers and the MLIR readers produce it; the core compiler, the printer and the graph comparison consume
it. Operation and attribute names are MLIR's (``scf.for``, ``memref.load``, ``aie.objectfifo.acquire`` with
``objFifo_name``, ``port``, ``size``), attribute values are Python ints, floats, bools, strings (symbols without ``@``)
and tuples.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from npusim.types import Type


class Loc(NamedTuple):
    """Where in the learner's source an operation was written."""

    file: str
    line: int

    def __str__(self) -> str:
        return f"{_cell(self.file) or self.file.rsplit('/', 1)[-1]}:{self.line}"


def _cell(file: str) -> str | None:
    """How Jupyter shows the cell behind a file name that it made up, such as ``In[5]``."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    found = None if shell is None else shell.compile.format_code_name(file)
    return None if found is None else str(found[1])


UNKNOWN = Loc("?", 0)


@dataclass(eq=False)
class Value:
    """An SSA value: an operation's result, a block's argument, or a thing of the design (buffer, lock)."""

    type: Type
    owner: Any = None  # the Op, the Block, or the graph.Buffer / graph.Lock that it stands for


@dataclass(eq=False)
class Op:
    """One operation."""

    name: str
    operands: tuple[Value, ...] = ()
    attrs: dict[str, Any] = field(default_factory=dict)
    results: list[Value] = field(default_factory=list)
    regions: list[Region] = field(default_factory=list)
    successors: list[tuple[Block, tuple[Value, ...]]] = field(default_factory=list)
    loc: Loc = UNKNOWN

    @classmethod
    def make(
        cls,
        name: str,
        operands: Sequence[Value] = (),
        results: Sequence[Type] = (),
        loc: Loc = UNKNOWN,
        regions: Sequence[Region] = (),
        **attrs: Any,
    ) -> Op:
        """An operation with fresh results of the given types."""
        op = cls(name, tuple(operands), attrs, regions=list(regions), loc=loc)
        op.results = [Value(t, op) for t in results]
        return op

    @property
    def result(self) -> Value:
        return self.results[0]


@dataclass(eq=False)
class Block:
    """Straight-line operations with block arguments."""

    args: list[Value] = field(default_factory=list)
    ops: list[Op] = field(default_factory=list)


@dataclass(eq=False)
class Region:
    """Blocks, the first being the entry; structured operations have one block a region."""

    blocks: list[Block] = field(default_factory=list)

    @property
    def entry(self) -> Block:
        return self.blocks[0]

    @classmethod
    def single(cls, *arg_types: Type) -> Region:
        """A region of one block with arguments of the given types."""
        block = Block()
        block.args = [Value(t, block) for t in arg_types]
        return cls([block])


def walk(region: Region) -> Iterator[Op]:
    """Every operation of a region, outer before inner, in order."""
    for block in region.blocks:
        for op in block.ops:
            yield op
            for inner in op.regions:
                yield from walk(inner)


VIEWS = frozenset(
    f"memref.{n}" for n in ("subview", "collapse_shape", "expand_shape", "cast", "reinterpret_cast", "memory_space_cast")
)
"""Operations that give another view of the same memory."""


def base_of(value: Value) -> Value:
    """The memref that a chain of views starts from."""
    while isinstance(value.owner, Op) and value.owner.name in VIEWS:
        value = value.owner.operands[0]
    return value


FOREVER = 9223372036854775807
"""The upper bound that IRON gives the loop of a ``while_true`` worker (2**63 - 1)."""

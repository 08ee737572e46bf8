"""Writes the source of a core's generator: names, lines, costs. What each operation becomes is in the sibling modules."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from npusim.costs import Clockwork
from npusim.engine import arith
from npusim.engine.cascade import CascadePorts
from npusim.engine.control import Needed, Touched
from npusim.engine.core.running import CoreRun, Step
from npusim.engine.loop import Loop
from npusim.engine.state import LockState, Memory
from npusim.errors import UnsupportedError
from npusim.ir import UNKNOWN, Block, Op, Value, base_of
from npusim.kernels import KernelModel
from npusim.machine import CoreProgram, FifoPort, Machine, MachineLock, MemBuffer
from npusim.report import CoreUse

HORIZON = 20_000  # core cycles that a core may run ahead of what is shared
ENDS = frozenset({"scf.yield", "scf.condition"})  # written by the operation around them


@dataclass
class Surroundings:
    """What a core is compiled against."""

    machine: Machine
    loop: Loop
    clock: Clockwork
    memory: Memory
    locks: dict[MachineLock, LockState]
    models: dict[str, KernelModel]
    cascades: CascadePorts
    scratchpad: dict[str, Any]
    touched: Touched
    common: set[MemBuffer]  # looked at in the order of time
    trace: list[Any] | None
    data: bool
    air: Any = None  # of an MLIR-AIR design: what its operations need, by core

    def stalled(self, run: CoreRun, at: int, since: int, until: int) -> int:
        """Account for a core's wait at a site; gives ``until``, from which the core goes on."""
        site = run.sites[at]
        name = site.port.fifo if site.port else site.lock.name
        run.stall(name, since, until, self.loop.now)
        if self.trace is not None:
            self.trace.append((run.track, name, "stall", since, until - since))
        return until


Handler = Callable[["Writer", Op, int], None]
SERVED: dict[str, Handler] = {}


def serves(*names: str) -> Callable[[Handler], Handler]:
    """Decorator: this function writes these operations."""

    def register(handler: Handler) -> Handler:
        SERVED.update(dict.fromkeys(names, handler))
        return handler

    return register


class Writer:
    """Gathers the lines of one core's generator."""

    def __init__(self, program: CoreProgram, around: Surroundings) -> None:
        self.core, self.around = program, around
        self.run = CoreRun(program, CoreUse(program.tile, program.name))
        self.lines: list[str] = []
        self.names: dict[Value, str] = {}
        self.constants: dict[Value, Any] = {}
        self.starts: dict[Value, int] = {}  # induction variables: where they start
        self.needed = None if around.data else Needed(program, around.touched)
        self.cost = 0  # ticks of straight-line code not yet written
        self.free = 0  # > 0 inside a loop whose whole cost is added after it
        self.loc = UNKNOWN
        self.ports = self.run.ends
        self.windows: dict[Value, tuple[str, FifoPort]] = {}
        self.rings: dict[FifoPort, tuple[Any, ...]] = {}
        trace = around.trace
        self.env: dict[str, Any] = dict(arith.HELPERS) | {
            "S": around.loop,
            "ME": self.run,
            "KEY": self.run.key,
            "HORIZON": around.clock.cycles(HORIZON),
            "wake": around.loop.wake,
            "stalled": around.stalled,
            "T": None if trace is None else trace.append,
        }

    def model(self, op: Op) -> KernelModel:
        """The model of the kernel that a ``func.call`` calls."""
        return self.around.models[str(op.attrs["callee"])]

    def program(self) -> str:
        """The whole source."""
        from npusim.engine.core.control import write_blocks

        self.line(0, "def core():")
        self.line(1, "t = S.now")
        start = len(self.lines)
        if len(self.core.body.blocks) > 1:
            write_blocks(self, self.core.body, 1)
        else:
            self.block(self.core.body.entry, 1)
        self.line(1, "ME.clock = t; ME.final = locals()")
        self.line(1, "if False: yield")
        states = [" z = -1", *(f" h{i}, p{i}, n{i}, s{i} = 0, 0, 0, -1" for i in self.ports.values())]
        self.run.uncounted |= {"z", *(f"{kept}{i}" for i in self.ports.values() for kept in "ns")}
        self.lines[start:start] = states
        self.run.locs[start:start] = [UNKNOWN] * len(states)
        self.run.source = "\n".join(self.lines)
        return self.run.source

    def block(self, block: Block, depth: int) -> None:
        """The operations of a block but its structured end, and ``pass`` so that it may be empty."""
        for op in block.ops:
            if op.name not in ENDS:
                self.op(op, depth)
        self.settle(depth)
        self.line(depth, "pass")

    def op(self, op: Op, depth: int) -> None:
        """One operation."""
        self.loc = op.loc if op.loc != UNKNOWN else self.loc
        handler = SERVED.get(op.name)
        if handler is None:
            raise UnsupportedError(f"operation {op.name} in core {self.core.name!r} at {op.loc} is not served")
        handler(self, op, depth)

    def evaluates(self, op: Op) -> bool:
        """Whether the operation's value is there in this mode."""
        return self.needed is None or op in self.needed

    def has(self, value: Value) -> bool:
        """Whether the value is there in this mode."""
        return self.needed is None or self.needed.needs(value)

    # -- lines, names

    def step(self, verb: str, amount: int | None, what: str) -> int:
        """The number of something that the operation being written does."""
        self.run.steps.append(Step(verb, amount, what, self.loc))
        return len(self.run.steps) - 1

    def done(self, depth: int, verb: str, amount: int | None, what: str) -> None:
        """Note that it has been done."""
        self.line(depth, f"z = {self.step(verb, amount, what)}")

    def line(self, depth: int, text: str) -> None:
        self.lines.append(" " * depth + text)
        self.run.locs.append(self.loc)

    def bind(self, prefix: str, thing: Any) -> str:
        """A name in the generated code for a Python object."""
        for name, known in self.env.items():
            if known is thing and name.startswith(prefix):
                return name
        name = f"{prefix}{len(self.env)}"
        self.env[name] = thing
        return name

    def new(self, value: Value) -> str:
        """A fresh name for a value."""
        self.names[value] = f"v{len(self.names)}"
        return self.names[value]

    def name(self, value: Value) -> str:
        """The Python name (or literal) of a value."""
        if value not in self.names:
            self.names[value] = self._outside(value)
        return self.names[value]

    def _outside(self, value: Value) -> str:
        constant = self.constant(value)
        if constant is not None:
            return repr(constant) if isinstance(constant, int) else self.bind("K", constant)
        if value in self.core.buffers:
            return self.bind("B", self.around.memory[self.core.buffers[value]])
        raise UnsupportedError(f"core {self.core.name!r} at {self.loc} uses a value of type {value.type} from outside it")

    def constant(self, value: Value) -> Any:
        """What a value is if it is a constant, else None."""
        if value not in self.constants and isinstance(value.owner, Op) and value.owner.name == "arith.constant":
            self.constants[value] = arith.constant(value.owner)
        return self.constants.get(value)

    # -- time

    def ticks(self, cycles: int) -> int:
        return self.around.clock.cycles(cycles)

    def spend(self, cycles: int) -> None:
        """Add core cycles to the straight-line cost."""
        if not self.free:
            self.cost += self.ticks(cycles)

    def charge(self, kind: str) -> None:
        """Add the cost of one scalar operation of this kind ('' is free)."""
        if kind:
            self.spend(self.around.clock.costs.scalar[kind])

    def settle(self, depth: int) -> None:
        """Write the straight-line cost gathered so far."""
        if self.cost:
            self.line(depth, f"t += {self.cost}")
            self.cost = 0

    def in_turn(self, depth: int, memref: Value) -> None:
        """Before a buffer that others use, too: wait until everything earlier has happened."""
        if self.core.buffers.get(base_of(memref)) in self.around.common:
            self.settle(depth)
            self.line(depth, "ME.clock = t; yield (t, KEY)")

    def turn(self, depth: int) -> None:
        """At the end of an endless loop's turn: do not run ahead without end."""
        self.line(depth, "if t - S.now > HORIZON: ME.clock = t; yield (t, KEY, True)")

    def interval(self, depth: int, name: str, kind: str, ticks: str) -> None:
        """Count work of ``ticks`` (an expression), trace it and add it to the core's time."""
        counts = self.bind("N", self.run.counts.setdefault(name, [0, 0]))
        if self.around.trace is not None:
            self.line(depth, f"T(({self.run.track!r}, {name!r}, {kind!r}, t, {ticks}))")
        self.line(depth, f"{counts}[0] += 1; {counts}[1] += {ticks}; t += {ticks}")

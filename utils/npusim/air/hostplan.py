"""What the host does in an AIR design: for each launch, push its transfers in order, then wait for what comes back.

Transfers of one operation that follow each other on a channel are one task: the compiler folds loops of them into the
descriptor. A transfer that touches what an earlier one writes, or writes what an earlier one touches, is pushed when that is
done.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from npusim.air.machine import host_buffer
from npusim.air.moves import Moved, Walk
from npusim.air.order import overlap
from npusim.air.parts import End, check_reach
from npusim.air.transfers import DIMENSIONS
from npusim.engine.channel import Task
from npusim.engine.plan import Action, Await, Start
from npusim.engine.state import Array
from npusim.engine.transfer import Transfer
from npusim.errors import DesignError
from npusim.ir import Op, Value
from npusim.machine import BufferDescriptor, HostBuffer
from npusim.types import MemRefType

if TYPE_CHECKING:
    from npusim.air.simulator import AirSimulator


@dataclass(eq=False)
class _Task:
    """A task being gathered: consecutive transfers of one operation on one channel."""

    end: End
    op: Op
    move: Moved
    memref: Value
    walks: list[Walk] = field(default_factory=list)


class HostPlan:
    """The actions of one run over the host's arrays."""

    def __init__(self, sim: AirSimulator, args: list[Any]) -> None:
        self._sim, self._parties = sim, sim.parties
        entry = sim.parties.program.function.entry
        if len(args) != len(entry.args):
            raise DesignError(f"the function takes {len(entry.args)} arguments, {len(args)} were given")
        self._arrays = {
            value: _array(i, value, given, sim.data) for i, (value, given) in enumerate(zip(entry.args, args))
        }
        self._hosts: dict[Value, HostBuffer] = {}
        moves: list[Moved] = [op.attrs["move"] for op in self._parties.host.projection.moves]
        self._written = {move.memref for move in moves if move.side == "get"}
        self._open: dict[Value, list[tuple[int, _Task]]] = defaultdict(
            list
        )  # started, not known to be done: (action, task)
        self._chains: dict[Any, list[Transfer]] = {}
        self.actions: list[Action] = []
        self.boundaries: list[int] = []  # the place in ``actions`` where each launch begins

    def plan(self) -> list[Action]:
        """Every launch in turn."""
        events = self._parties.host.script()
        for ids in self._parties.launches:
            self.boundaries.append(len(self.actions))
            started: list[tuple[int, _Task]] = []
            for task in self._tasks(events, ids):
                started.append((self._start(task), task))
            for at, task in started:
                if task.end.side == "get":
                    self._await(at, task)
        return self.actions

    def _tasks(self, events: Any, ids: tuple[int, ...]) -> Iterator[_Task]:
        """The tasks of one launch, in the order in which their first transfers stand in the program."""
        order: list[_Task] = []
        latest: dict[End, _Task] = {}
        projection = self._parties.host.projection
        for event in events(deque([ids])):
            if event is None:
                break
            op = projection.moves[event[0]]
            move: Moved = op.attrs["move"]
            indices, at = move.filled(event[1:])
            check_reach(self._parties, self._parties.host, move, at)
            for end, memref, walk in self._sim.resolve(self._parties.host, move, indices, at):
                task = latest.get(end)
                if task is None or task.op is not op:
                    task = latest[end] = _Task(end, op, move, memref)
                    order.append(task)
                task.walks.append(walk)
        yield from order

    def _start(self, task: _Task) -> int:
        """Push a task, after what must be done before."""
        for at, other in list(self._open[task.memref]):
            if self._conflict(task, other):
                self._await(at, other)
        channel = self._sim.air.channel_of[task.end]
        chain = self._chain(task)
        made = Task(channel, chain, 1, True, task.end.name, task.op)
        moved = tuple((t.nbytes, t.burst) for t in chain)
        self.actions.append(Start(task.op, made, (task.end.name, moved, 1, True)))
        if task.memref in self._written:
            self._open[task.memref].append((len(self.actions) - 1, task))
        return len(self.actions) - 1

    def _chain(self, task: _Task) -> list[Transfer]:
        """The descriptors of a task. Without data they do not depend on where the task begins."""
        key = (task.memref, tuple((at.length, at.dims) for at in task.walks))
        if not self._sim.data and key in self._chains:
            return self._chains[key]
        chain = self._chains[key] = [self._transfer(task, at) for at in task.walks]
        for i, transfer in enumerate(chain[:-1]):
            transfer.next = i + 1
        return chain

    def _conflict(self, task: _Task, other: _Task) -> bool:
        """Whether two tasks touch the same elements and one writes them."""
        if task.end is other.end or "get" not in (task.end.side, other.end.side):
            return False
        return any(overlap(a, b) for a in task.walks for b in other.walks)

    def _await(self, at: int, task: _Task) -> None:
        still = self._open[task.memref]
        if (at, task) not in still:
            return
        still.remove((at, task))
        started = self.actions[at]
        assert isinstance(started, Start)
        self.actions.append(Await(started.op, started.task, at))

    def _transfer(self, task: _Task, at: Walk) -> Transfer:
        """A descriptor over the host's array. Each is made anew: a chain links its own."""
        memref = task.memref
        if memref not in self._hosts:
            self._hosts[memref] = host_buffer(self._parties.host, memref)
        bd = BufferDescriptor(self._hosts[memref], at.offset, at.length, at.dims)
        array = self._arrays[memref] if self._sim.data else None
        if array is not None and at.last >= array.size:
            array = np.append(array.reshape(-1), np.zeros(at.last + 1 - array.size, array.dtype))
        return Transfer(bd, array, {}, DIMENSIONS)


def _array(i: int, value: Value, given: Any, data: bool) -> Array:
    if not isinstance(value.type, MemRefType):
        raise DesignError(f"argument {i} of the function is a {value.type}, not an array, which is not served")
    array = np.asarray(given)
    if array.dtype != value.type.dtype or array.size != value.type.size:
        raise DesignError(
            f"host argument {i}: the design declares {value.type}, got {array.dtype} of {array.size} elements"
        )
    if data and not (array.flags.c_contiguous and array.flags.writeable):  # without data nobody touches it
        raise DesignError(f"host argument {i} must be a contiguous, writeable array")
    return array

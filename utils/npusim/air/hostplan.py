"""What the host does in an AIR design: for each launch, push its gets, then its puts, and wait for what comes back.

All that a launch moves on one channel is one task, a chain of descriptors, unless something in between must come first: a
transfer that touches what an earlier one writes, or writes what an earlier one touches, is pushed when that is done.
"""

from __future__ import annotations

from collections import defaultdict, deque
from dataclasses import dataclass
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
    """A task being gathered: transfers that follow each other on one channel."""

    end: End
    op: Op
    parts: list[tuple[Value, Walk]]

    def meets(self, end: End, memref: Value, at: Walk) -> bool:
        """Whether a later transfer must wait for it: both touch the same elements, and one writes them."""
        if self.end is end or "get" not in (self.end.side, end.side):
            return False
        return any(mine is memref and overlap(walk, at) for mine, walk in self.parts)


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
        self._open: dict[Value, list[tuple[int, _Task]]] = defaultdict(list)  # (action, task): not known to be done
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

    def _tasks(self, events: Any, ids: tuple[int, ...]) -> list[_Task]:
        """The tasks of one launch: gets before the puts that they need not wait for, as the compiler orders them."""
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
                if memref in self._written:  # what is waited for takes nothing more, and who waits begins anew
                    before = [task for task in order if task.meets(end, memref, walk)]
                    for other in (end, *(task.end for task in before)) if before else ():
                        latest.pop(other, None)
                if end not in latest:
                    latest[end] = _Task(end, op, [])
                    order.append(latest[end])
                latest[end].parts.append((memref, walk))
        gets: list[_Task] = []
        rest: list[_Task] = []
        for task in order:
            waits = any(
                before.meets(task.end, *part) for before in rest for part in task.parts if part[0] in self._written
            )
            (rest if task.end.side == "put" or waits else gets).append(task)
        return gets + rest

    def _start(self, task: _Task) -> int:
        """Push a task, after what must be done before."""
        written = [part for part in task.parts if part[0] in self._written]
        for memref, at in written:
            for begun, other in list(self._open[memref]):
                if other.meets(task.end, memref, at):
                    self._await(begun, other)
        channel = self._sim.air.channel_of[task.end]
        chain = self._chain(task)
        made = Task(channel, chain, 1, True, task.end.name, task.op)
        moved = tuple((t.nbytes, t.burst) for t in chain)
        self.actions.append(Start(task.op, made, (task.end.name, moved, 1, True)))
        for memref in dict.fromkeys(memref for memref, _ in written):
            self._open[memref].append((len(self.actions) - 1, task))
        return len(self.actions) - 1

    def _chain(self, task: _Task) -> list[Transfer]:
        """The descriptors of a task. Without data they do not depend on where the task begins."""
        key = tuple((memref, at.length, at.dims) for memref, at in task.parts)
        if not self._sim.data and key in self._chains:
            return self._chains[key]
        chain = self._chains[key] = [self._transfer(memref, at) for memref, at in task.parts]
        for i, transfer in enumerate(chain[:-1]):
            transfer.next = i + 1
        return chain

    def _await(self, at: int, task: _Task) -> None:
        """Wait for a task, unless that has been done."""
        where = [self._open[memref] for memref in dict.fromkeys(memref for memref, _ in task.parts)]
        if not any((at, task) in still for still in where):
            return
        for still in where:
            if (at, task) in still:
                still.remove((at, task))
        started = self.actions[at]
        assert isinstance(started, Start)
        self.actions.append(Await(started.op, started.task, at))

    def _transfer(self, memref: Value, at: Walk) -> Transfer:
        """A descriptor over the host's array. Each is made anew: a chain links its own."""
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

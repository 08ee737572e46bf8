"""The host sequence written out: its loops and arithmetic done, a flat list of actions left.

Nothing the host does depends on what the array computes, so the whole list is known before a run.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from npusim.engine import arith
from npusim.engine.channel import Task
from npusim.engine.state import LockState
from npusim.engine.transfer import Transfer
from npusim.errors import DesignError, UnsupportedError
from npusim.ir import Block, Op, Region, Value
from npusim.machine import BufferDescriptor, DmaChannel, HostBuffer, MemBuffer
from npusim.place.access import as_walked
from npusim.types import MemRefType

if TYPE_CHECKING:
    from npusim.engine.simulator import Simulator

_DYNAMIC = -(2**62)


@dataclass(slots=True)
class Start:
    """Push a task on its channel's queue."""

    op: Op
    task: Task
    tail: tuple[Any, ...]  # what its time depends on

    def signature(self, at: int) -> tuple[Any, ...]:
        """What the time of the actions from here on can depend on; ``at`` is the action's place in the list."""
        return self.tail


@dataclass(slots=True)
class Await:
    """Wait for the token of the task that action ``since`` starts (-1: none does)."""

    op: Op
    task: Task
    since: int

    def signature(self, at: int) -> tuple[Any, ...]:
        return ("await", at - self.since)


@dataclass(slots=True)
class Write:
    """Write one element of a run-time parameter, or (``add``) add to it."""

    op: Op
    buffer: MemBuffer
    index: int
    value: Any
    add: bool = False

    def signature(self, at: int) -> tuple[Any, ...]:
        return ("write", self.buffer.name, self.index, self.value, self.add)


@dataclass(slots=True)
class SetLock:
    """Give a lock a value."""

    op: Op
    lock: LockState
    value: int

    def signature(self, at: int) -> tuple[Any, ...]:
        return ("lock", self.lock.lock.name, self.value)


Action = Start | Await | Write | SetLock


def plan(sim: Simulator, region: Region, args: list[Any]) -> list[Action]:
    """The actions of a host sequence over its arguments (arrays and scalars, in the order of its block arguments).

    DesignError for arguments that do not fit the declared ones and for what the sequence may not do, UnsupportedError for an
    operation that is not served.
    """
    writer = _Planner(sim)
    writer.bind(region.entry, args)
    writer.block(region.entry)
    return writer.actions


class _Planner:
    def __init__(self, sim: Simulator) -> None:
        self._sim = sim
        self._env: dict[Value, Any] = {}
        self._chains: dict[Op, tuple[DmaChannel, list[Transfer], tuple[Any, ...]]] = {}
        self._started: dict[int, int] = {}  # id of a task -> the action that starts it
        self.actions: list[Action] = []

    def bind(self, entry: Block, args: list[Any]) -> None:
        """Check the arguments and give them to the block."""
        if len(args) != len(entry.args):
            raise DesignError(f"the host sequence takes {len(entry.args)} arguments, {len(args)} were given")
        for i, (value, given) in enumerate(zip(entry.args, args, strict=True)):
            self._env[value] = given
            if isinstance(value.type, MemRefType):
                self._env[value] = (HostBuffer(i, value.type), _array(i, value.type, given, self._sim.data))

    def block(self, block: Block) -> None:
        """Write out the operations of a block."""
        for op in block.ops:
            handler = _HANDLERS.get(op.name)
            if handler is not None:
                handler(self, op)
            elif op.name == "arith.constant":
                self._env[op.result] = arith.constant(op)
            elif op.name in arith.SERVED:
                self._env[op.result] = _evaluate(op, [self._env[v] for v in op.operands])
            elif op.name not in _SILENT:
                raise UnsupportedError(f"operation {op.name} of the host sequence at {op.loc} is not served")

    # -- transfers

    def _configure(self, op: Op) -> None:
        if op not in self._chains:  # its attributes are fixed and its operands host arrays: the same in every turn
            self._chains[op] = self._chain(op)
        channel, chain, signature = self._chains[op]
        token = bool(op.attrs.get("issue_token", False))
        self._env[op.result] = Task(channel, chain, signature[2], token, str(op.attrs["alloc"]), op)

    def _chain(self, op: Op) -> tuple[DmaChannel, list[Transfer], tuple[Any, ...]]:
        name = str(op.attrs["alloc"])
        channel = self._sim.machine.host_channels.get(name)
        if channel is None:
            raise DesignError(f"the host sequence at {op.loc} moves data on {name!r}, which reaches no shim channel")
        described = [
            self._descriptor(bd) for block in op.regions[0].blocks for bd in block.ops if bd.name == "aie.dma_bd"
        ]
        chain = []
        for i, (bd, array) in enumerate(described):
            bd.next = i + 1 if i + 1 < len(described) else None
            chain.append(Transfer(bd, array if self._sim.data else None, self._sim.locks, 4))
        passes = int(op.attrs.get("repeat_count", 0) or 0) + 1
        if passes > 1 and all(bd.dims and bd.dims[0][0] == passes for bd, _ in described):
            passes = 1  # the outermost size of the pattern says it already: each pass takes its next step
        moved = tuple((transfer.nbytes, transfer.burst) for transfer in chain)
        return channel, chain, (name, moved, passes, bool(op.attrs.get("issue_token", False)))

    def _descriptor(self, op: Op) -> tuple[BufferDescriptor, Any]:
        if len(op.operands) != 1 or any(n < _DYNAMIC for n in op.attrs.get("static_sizes", ())):
            raise UnsupportedError(f"a host transfer with sizes known only at run time, at {op.loc}, is not served")
        if op.attrs.get("offset_parameter") is not None:
            raise UnsupportedError(f"a host transfer with an offset_parameter, at {op.loc}, is not served")
        buffer, array = self._env[op.operands[0]]
        sizes, strides = op.attrs.get("static_sizes", ()), op.attrs.get("static_strides", ())
        dims = tuple(zip(map(int, sizes), map(int, strides), strict=True))
        offset = int(op.attrs.get("static_offset", 0) or 0)
        total = int(np.prod([size for size, _ in dims])) if dims else buffer.type.size
        length = int(op.attrs.get("static_len", total) or total)
        if dims and dims[0][0] > 1 and length * dims[0][0] == total:
            length = total  # the outermost of four is the iteration: the length counts one pass
        walked, packet = as_walked(dims, buffer.type.dtype.itemsize), str(op.attrs.get("packet") or "")
        number = int(packet.rpartition("pkt_id = ")[2].rstrip(">")) if packet else None
        return BufferDescriptor(buffer, offset, length, walked, packet_id=number), array

    def _start(self, op: Op) -> None:
        task: Task = self._env[op.operands[0]]
        self._started[id(task)] = len(self.actions)
        self.actions.append(Start(op, task, self._chains[task.op][2]))

    def _await(self, op: Op) -> None:
        task: Task = self._env[op.operands[0]]
        if not task.token:
            raise DesignError(
                f"the host sequence at {op.loc} awaits a transfer of {task.name!r} that gives no token: start it with "
                "wait=True"
            )
        if task.awaited:
            raise DesignError(f"the host sequence at {op.loc} awaits the same transfer of {task.name!r} a second time")
        task.awaited = True
        self.actions.append(Await(op, task, self._started.get(id(task), -1)))

    # -- registers

    def _write(self, op: Op) -> None:
        name = str(op.attrs["buffer"])
        buffer = self._sim.machine.sequence_buffers.get(name)
        if buffer is None:
            raise DesignError(
                f"the host sequence at {op.loc} writes to buffer {name!r}, which the design does not have"
            )
        self.actions.append(Write(op, buffer, int(op.attrs["index"]), self._env[op.operands[0]]))

    def _update(self, op: Op) -> None:
        """Add a scratchpad parameter to a word of a buffer. Its lowest two bits are lost on the way, so that the host
        gives it four times and the core divides by four."""
        buffer = self._sim.machine.sequence_buffers[str(op.attrs["buffer"])]
        value = int(self._sim.scratchpad[str(op.attrs["parameter"])]) << 2
        self.actions.append(Write(op, buffer, int(op.attrs["address"]), value, add=True))

    def _set_lock(self, op: Op) -> None:
        lock = self._sim.locks[self._sim.machine.sequence_locks[op.operands[0]]]
        self.actions.append(SetLock(op, lock, int(op.attrs["value"])))

    # -- control

    def _for(self, op: Op) -> None:
        body = op.regions[0].entry
        carried = [self._env[v] for v in op.operands[3:]]
        for i in range(*(int(self._env[v]) for v in op.operands[:3])):
            self._env[body.args[0]] = i
            self._env.update(zip(body.args[1:], carried, strict=True))
            self.block(body)
            carried = [self._env[v] for v in body.ops[-1].operands] if carried else []
        self._env.update(zip(op.results, carried, strict=True))

    def _if(self, op: Op) -> None:
        region = op.regions[0 if self._env[op.operands[0]] else 1]
        if region.blocks:
            self.block(region.entry)
            if op.results:
                values = [self._env[v] for v in region.entry.ops[-1].operands]
                self._env.update(zip(op.results, values, strict=True))


def _array(index: int, wanted: MemRefType, given: Any, data: bool) -> Any:
    """A host argument as the design declares it; without data nobody touches it, so it may be no memory at all."""
    array = np.asarray(given)
    if array.dtype != wanted.dtype or array.size != wanted.size:
        raise DesignError(
            f"host argument {index}: the design declares {wanted}, got {array.dtype} of {array.size} elements"
        )
    if data and not (array.flags.c_contiguous and array.flags.writeable):
        raise DesignError(f"host argument {index} must be a contiguous, writeable array")
    return array


_SILENT = frozenset({"aie.end", "scf.yield", "aiex.dma_free_task", "aiex.npu.create_scratchpad"}) | {
    "aiex.sync_scratchpad_parameters_from_host"  # cores read what the host set, see Simulator.scratchpad
}
_HANDLERS = {
    "aiex.dma_configure_task_for": _Planner._configure,
    "aiex.dma_start_task": _Planner._start,
    "aiex.dma_await_task": _Planner._await,
    "aiex.npu.rtp_write": _Planner._write,
    "aiex.npu.update_from_scratchpad": _Planner._update,
    "aiex.set_lock": _Planner._set_lock,
    "scf.for": _Planner._for,
    "scf.if": _Planner._if,
}


@lru_cache(maxsize=256)
def _code(text: str) -> Any:
    return compile(text, "<host sequence>", "eval")


def _evaluate(op: Op, operands: list[Any]) -> Any:
    names = [f"a{i}" for i in range(len(operands))]
    try:
        return eval(_code(arith.expression(op, names)), arith.HELPERS, dict(zip(names, operands, strict=True)))
    except DesignError as error:
        raise DesignError(f"the host sequence at {op.loc}: {error}") from error


def signatures(actions: list[Action]) -> Iterator[tuple[Any, ...]]:
    """What the time of each action can depend on."""
    return (action.signature(i) for i, action in enumerate(actions))

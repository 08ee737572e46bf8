"""The host sequence: the operations that the NPU's controller runs, in order.

``aiex.dma_configure_task_for`` describes a transfer on the shim channel of a fifo, ``dma_start_task`` pushes it on the
channel's queue, ``dma_await_task`` waits for its token. A channel holds the running task and ``queue_depth`` waiting ones;
hardware loses what is pushed beyond that without a word, so here it is an error.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from npusim.devices import Fact
from npusim.engine import arith
from npusim.engine.channel import Task
from npusim.engine.findings import readers
from npusim.engine.loop import Key, Process
from npusim.engine.transfer import Transfer
from npusim.errors import DesignError, UnsupportedError
from npusim.ir import Block, Op, Region, Value
from npusim.machine import BufferDescriptor, HostBuffer, MemBuffer
from npusim.place.access import as_walked
from npusim.types import MemRefType

if TYPE_CHECKING:
    from npusim.engine.core import CoreRun
    from npusim.engine.simulator import Simulator

_DYNAMIC = -(2**62)
KEY = (2,)
"""The host acts after every core and stream of the same tick."""


class Host:
    """One run of the host sequence over the given arguments (arrays and scalars, in the order of its block arguments)."""

    def __init__(self, simulator: Simulator, region: Region, args: list[Any]) -> None:
        self._sim, self._region = simulator, region
        self.tasks: list[Task] = []
        self.waiting: tuple[Op, Task] | None = None
        self.now = simulator.loop.now  # its own tick
        self.too_late: list[tuple[CoreRun, MemBuffer]] = []  # parameters read before the host first wrote them
        self._env: dict[Value, Any] = {}
        self._bind(region.entry, args)

    def _bind(self, entry: Block, args: list[Any]) -> None:
        if len(args) != len(entry.args):
            raise DesignError(f"the host sequence takes {len(entry.args)} arguments, {len(args)} were given")
        for i, (value, given) in enumerate(zip(entry.args, args, strict=True)):
            if not isinstance(value.type, MemRefType):
                self._env[value] = given
                continue
            array = np.asarray(given)
            if array.dtype != value.type.dtype or array.size != value.type.size:
                raise DesignError(
                    f"host argument {i}: the design declares {value.type}, got {array.dtype} of {array.size} elements"
                )
            if not (array.flags.c_contiguous and array.flags.writeable):
                raise DesignError(f"host argument {i} must be a contiguous, writeable array")
            self._env[value] = (HostBuffer(i, value.type), array)

    def process(self) -> Process:
        """The whole sequence; the run ends with it."""
        yield from self._block(self._region.entry)
        yield (self.now, KEY)
        self._sim.loop.stopped = True

    def _block(self, block: Block) -> Process:
        for op in block.ops:
            handler = _HANDLERS.get(op.name)
            if handler is not None:
                yield from handler(self, op)
            elif op.name == "aiex.dma_configure_task_for":
                self._env[op.result] = self._configure(op)
            elif op.name == "arith.constant":
                self._env[op.result] = arith.constant(op)
            elif op.name in arith.SERVED:
                self._env[op.result] = _evaluate(op, [self._env[v] for v in op.operands])
            elif op.name not in _SILENT:
                raise UnsupportedError(f"operation {op.name} of the host sequence at {op.loc} is not served")

    def _spend(self, cycles: Fact[int]) -> tuple[int, Key]:
        """Let time pass, and wait until everything earlier has happened."""
        self.now += self._sim.clock.cycles(cycles.value)
        return self.now, KEY

    # -- transfers

    def _configure(self, op: Op) -> Task:
        name = str(op.attrs["alloc"])
        channel = self._sim.machine.host_channels.get(name)
        if channel is None:
            raise DesignError(f"the host sequence at {op.loc} moves data on {name!r}, which reaches no shim channel")
        chain = [self._descriptor(bd) for block in op.regions[0].blocks for bd in block.ops if bd.name == "aie.dma_bd"]
        transfers = []
        for i, (bd, array) in enumerate(chain):
            bd.next = i + 1 if i + 1 < len(chain) else None
            transfers.append(Transfer(bd, array if self._sim.data else None, self._sim.locks, 4))
        passes = int(op.attrs.get("repeat_count", 0) or 0) + 1
        if passes > 1 and all(bd.dims and bd.dims[0][0] == passes for bd, _ in chain):
            passes = 1  # the outermost size of the pattern says it already: each pass takes its next step
        return Task(channel, transfers, passes, bool(op.attrs.get("issue_token", False)), name, op)

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
        return BufferDescriptor(buffer, offset, length, as_walked(dims, buffer.type.dtype.itemsize)), array

    def _start(self, op: Op) -> Process:
        task: Task = self._env[op.operands[0]]
        costs = self._sim.clock.costs
        push = costs.task_push_first if len(self.tasks) < 2 else costs.task_push  # its first instructions are at hand
        begun = self.now
        yield self._spend(push)
        self._sim.record("host", f"push {task.name}", "task", begun, self.now)
        end = self._sim.ends[task.channel]
        waiting = end.waiting(self.now)
        if waiting > costs.queue_depth.value or (waiting == costs.queue_depth.value and end.busy(self.now)):
            raise DesignError(
                f"the host sequence at {op.loc} starts a transfer of {task.name!r} while {waiting} others wait on "
                f"{task.channel}: its queue holds {costs.queue_depth.value} beside the running one, and the hardware "
                "would lose this one silently; await an earlier one first, or say it as one larger transfer"
            )
        task.pushed_at = self.now
        self.tasks.append(task)
        end.tasks.append(task)
        self._sim.loop.wake(end.arrived)

    def _await(self, op: Op) -> Process:
        task: Task = self._env[op.operands[0]]
        if not task.token:
            raise DesignError(
                f"the host sequence at {op.loc} awaits a transfer of {task.name!r} that gives no token: start it with "
                "wait=True"
            )
        if task.awaited:
            raise DesignError(f"the host sequence at {op.loc} awaits the same transfer of {task.name!r} a second time")
        task.awaited = True
        begun = self.now
        while task.done_at is None:
            self.waiting = (op, task)
            yield task
        self.waiting = None
        self.now = max(self.now, task.done_at)
        yield self._spend(self._sim.clock.costs.task_token)
        self._sim.record("host", f"await {task.name}", "stall", begun, self.now)

    # -- registers

    def _write_parameter(self, op: Op) -> Process:
        yield self._spend(self._sim.clock.costs.register_write)
        name = str(op.attrs["buffer"])
        buffer = self._sim.machine.sequence_buffers.get(name)
        if buffer is None:
            raise DesignError(
                f"the host sequence at {op.loc} writes to buffer {name!r}, which the design does not have"
            )
        if buffer not in self._sim.written:
            self._sim.written.add(buffer)
            self.too_late += [(run, buffer) for run in readers(self._sim, buffer)]
        self._sim.memory[buffer].reshape(-1)[int(op.attrs["index"])] = self._env[op.operands[0]]

    def _update_parameter(self, op: Op) -> Process:
        """Add a scratchpad parameter to a word of a buffer. Its lowest two bits are lost on the way, so that the host
        gives it four times and the core divides by four."""
        yield self._spend(self._sim.clock.costs.register_write)
        words = self._sim.memory[self._sim.machine.sequence_buffers[str(op.attrs["buffer"])]].reshape(-1)
        words[int(op.attrs["address"])] += int(self._sim.scratchpad[str(op.attrs["parameter"])]) << 2

    def _set_lock(self, op: Op) -> Process:
        yield self._spend(self._sim.clock.costs.register_write)
        state = self._sim.locks[self._sim.machine.sequence_locks[op.operands[0]]]
        state.value = int(op.attrs["value"])
        self._sim.loop.wake(state)

    # -- control

    def _for(self, op: Op) -> Process:
        body = op.regions[0].entry
        carried = [self._env[v] for v in op.operands[3:]]
        for i in range(*(int(self._env[v]) for v in op.operands[:3])):
            self._env[body.args[0]] = i
            self._env.update(zip(body.args[1:], carried, strict=True))
            yield from self._block(body)
            carried = [self._env[v] for v in body.ops[-1].operands] if carried else []
        self._env.update(zip(op.results, carried, strict=True))

    def _if(self, op: Op) -> Process:
        region = op.regions[0 if self._env[op.operands[0]] else 1]
        if region.blocks:
            yield from self._block(region.entry)
            if op.results:
                values = [self._env[v] for v in region.entry.ops[-1].operands]
                self._env.update(zip(op.results, values, strict=True))

    def unfinished(self) -> list[Task]:
        """Tasks that were still running or waiting when the sequence ended."""
        return [task for task in self.tasks if task.done_at is None or task.done_at > self.now]


_SILENT = frozenset({"aie.end", "scf.yield", "aiex.dma_free_task", "aiex.npu.create_scratchpad"}) | {
    "aiex.sync_scratchpad_parameters_from_host"  # cores read what the host set, see Simulator.scratchpad
}
_HANDLERS: dict[str, Callable[[Host, Op], Process]] = {
    "aiex.dma_start_task": Host._start,
    "aiex.dma_await_task": Host._await,
    "aiex.npu.rtp_write": Host._write_parameter,
    "aiex.npu.update_from_scratchpad": Host._update_parameter,
    "aiex.set_lock": Host._set_lock,
    "scf.for": Host._for,
    "scf.if": Host._if,
}


@lru_cache(maxsize=256)
def _code(text: str) -> Any:
    return compile(text, "<host sequence>", "eval")


def _evaluate(op: Op, operands: list[Any]) -> Any:
    names = [f"a{i}" for i in range(len(operands))]
    return eval(_code(arith.expression(op, names)), arith.HELPERS, dict(zip(names, operands, strict=True)))

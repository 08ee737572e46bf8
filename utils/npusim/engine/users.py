"""Who uses what: which locks can be queues of tokens, and which buffers are looked at in the order of time."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable

from npusim.ir import Op, base_of, walk
from npusim.machine import CoreProgram, LockUse, Machine, MachineLock, MemBuffer

_RELEASE = 1
_EXACT = 0


class Users:
    """The processes that take and give each lock: a core, or the stream that a DMA channel belongs to."""

    def __init__(self, machine: Machine) -> None:
        self.takers: dict[MachineLock, set[Hashable]] = defaultdict(set)
        self.givers: dict[MachineLock, set[Hashable]] = defaultdict(set)
        self.exact = set(_set_by_host(machine))
        for core in machine.cores:
            self._core(core)
        for route in machine.routes:
            for channel in (route.source, *route.dests):
                for bd in channel.descriptors:
                    self._descriptor(route, bd.acquires, bd.releases)

    def _core(self, core: CoreProgram) -> None:
        for port in core.ports.values():
            if port.acquire_lock is not None:
                self.takers[port.acquire_lock].add(core)
            if port.release_lock is not None:
                self.givers[port.release_lock].add(core)
        for op in walk(core.body):
            if op.name == "aie.use_lock" and op.operands[0] in core.locks:
                self._use(core, op)

    def _use(self, core: CoreProgram, op: Op) -> None:
        lock, action = core.locks[op.operands[0]], int(op.attrs["action"])
        (self.givers if action == _RELEASE else self.takers)[lock].add(core)
        if action == _EXACT:
            self.exact.add(lock)

    def _descriptor(self, route: Hashable, acquires: tuple[LockUse, ...], releases: tuple[LockUse, ...]) -> None:
        for use in acquires:
            self.takers[use.lock].add(route)
            if use.equal:
                self.exact.add(use.lock)
        for use in releases:
            self.givers[use.lock].add(route)

    def shared(self, lock: MachineLock) -> bool:
        """Whether the lock needs the common clock."""
        return lock in self.exact or len(self.takers[lock]) > 1 or len(self.givers[lock]) > 1


def _set_by_host(machine: Machine) -> list[MachineLock]:
    sequence = walk(machine.sequence) if machine.sequence is not None else ()
    return [machine.sequence_locks[op.operands[0]] for op in sequence if op.name == "aiex.set_lock"]


def common_buffers(machine: Machine) -> set[MemBuffer]:
    """Buffers that one party writes and another uses (cores, and the host for run-time parameters): what a core sees in them
    depends on the time, unless a lock or a fifo orders the two."""
    users: dict[MemBuffer, set[Hashable]] = defaultdict(set)
    written: set[MemBuffer] = set()
    for buffer in machine.sequence_buffers.values():
        users[buffer].add("host")
        written.add(buffer)
    for core in machine.cores:
        for op in walk(core.body):
            for i, value in enumerate(op.operands):
                used = core.buffers.get(base_of(value))
                if used is not None and op.name in ("memref.load", "memref.store", "func.call"):
                    users[used].add(core)
                    if op.name == "func.call" or (op.name == "memref.store" and i == 1):
                        written.add(used)
    return {buffer for buffer in written if len(users[buffer]) > 1}

"""``WorkerRuntimeBarrier``: a lock through which the host sequence lets workers go on."""

from __future__ import annotations

from typing import Any

from npusim import graph
from npusim.errors import DesignError
from npusim.frontends.iron.context import design, warn
from npusim.frontends.iron.enums import LockAction
from npusim.frontends.iron.lock import use_lock
from npusim.frontends.tracing import emit, here, need
from npusim.messages import explain


class WorkerRuntimeBarrier:
    """One lock on each worker that gets the barrier in its fn_args. ``wait_for_value`` waits for exactly that value."""

    def __init__(self, initial_value: int = 0) -> None:
        self._loc = here()
        self.initial_value = initial_value
        self.worker_locks: list[graph.Lock] = []
        self._home: graph.Design | None = None

    def _add_worker_lock(self, lock: graph.Lock, into: graph.Design) -> None:
        if self._home is not into:
            self._home, self.worker_locks = into, []
        if self.initial_value:
            warn(
                f"WorkerRuntimeBarrier(initial_value={self.initial_value}) at {self._loc}: the real tools do not use "
                "the "
                "initial value, the lock starts at 0; set it in the sequence with set()"
            )
        self.worker_locks.append(lock)
        into.locks.append(lock)

    def _lock(self, what: str) -> graph.Lock:
        need(f"{what} of a WorkerRuntimeBarrier", "core")
        if self._home is not design("a barrier") or not self.worker_locks:
            raise DesignError(
                explain(
                    f"{what} of a barrier (made at {self._loc}) that was not given to the worker.",
                    phrase="No workers have been registered for this barrier. Need to pass the barrier as an "
                    "argument to the worker.",
                    hint="list the barrier in the Worker's fn_args, and take it as a parameter of the core function.",
                    loc=here(),
                )
            )
        return self.worker_locks[-1]

    def wait_for_value(self, value: int) -> None:
        """In a core function: wait until the lock has exactly this value, and leave it."""
        use_lock(self._lock("wait_for_value()"), LockAction.Acquire, value)

    def release_with_value(self, value: int) -> None:
        """In a core function: add ``value`` to the lock."""
        use_lock(self._lock("release_with_value()"), LockAction.Release, value)

    def set(self, value: int) -> None:
        """In the host sequence: set the lock of every worker to ``value``."""
        need("set() of a WorkerRuntimeBarrier", "sequence")
        for lock in self.worker_locks:
            set_lock_value(lock, value)


def set_lock_value(lock: Any, value: int) -> None:
    """In the host sequence: set a lock to a value."""
    need("set_lock_value", "sequence")
    if not isinstance(lock, graph.Lock):
        lock = lock.op
    emit("aiex.set_lock", (lock.value,), value=int(value))

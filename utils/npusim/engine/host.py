"""The host: the NPU's controller, running the actions of the host sequence in order.

It pushes transfers on the queues of shim channels, waits for their tokens, writes run-time parameters and sets locks. A
channel holds the running task and ``queue_depth`` waiting ones; hardware loses what is pushed beyond that without a word,
so here it is an error, except where a compiler decides what is pushed when (``patient``): then the host waits.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from npusim.devices import Fact
from npusim.engine.channel import End, Task
from npusim.engine.findings import readers
from npusim.engine.loop import Key, Process
from npusim.engine.plan import Action, Await, SetLock, Start, Write
from npusim.errors import DesignError
from npusim.ir import Op
from npusim.machine import MemBuffer

if TYPE_CHECKING:
    from npusim.engine.core import CoreRun
    from npusim.engine.periodic import Periodicity
    from npusim.engine.simulator import Simulator

KEY = (2,)
"""The host acts after every core and stream of the same tick."""


class Host:
    """One run of a list of actions. With ``periodicity`` it may leave out rounds that repeat exactly (timing only)."""

    def __init__(self, simulator: Simulator, actions: list[Action], periodicity: Periodicity | None = None) -> None:
        self._sim, self.actions, self.periodicity = simulator, actions, periodicity
        self.at = 0  # the next action
        self.now = simulator.loop.now  # its own tick
        self.tasks: dict[int, Task] = {}  # started, by the place of the action
        self.waiting: tuple[Op, Task] | None = None
        self.too_late: list[tuple[CoreRun, MemBuffer]] = []  # parameters read before the host first wrote them
        self._started = 0

    def process(self) -> Process:
        """The whole sequence; the run ends with it."""
        actions = self.actions
        while self.at < len(actions):
            action = actions[self.at]
            if isinstance(action, Start):
                yield from self._start(action)
            elif isinstance(action, Await):
                yield from self._await(action)
            elif isinstance(action, Write):
                yield self._spend(self._sim.clock.costs.register_write)
                self._write(action)
            else:
                yield self._spend(self._sim.clock.costs.register_write)
                self._set_lock(action)
            self.at += 1
            if self.periodicity is not None and isinstance(action, Await):
                self.at = self.periodicity.skip(self.at)
        yield (self.now, KEY)
        self._sim.loop.stopped = True

    def _spend(self, cycles: Fact[int]) -> tuple[int, Key]:
        """Let time pass, and wait until everything earlier has happened."""
        self.now += self._sim.clock.cycles(cycles.value)
        return self.now, KEY

    def _start(self, action: Start) -> Process:
        task, costs, begun = action.task, self._sim.clock.costs, self.now
        yield self._spend(costs.task_push_first if self._started < 2 else costs.task_push)
        self._sim.record("host", f"push {task.name}", "task", begun, self.now)
        end = self._sim.ends[task.channel]
        while self._full(end):
            if not self._sim.patient:
                raise DesignError(
                    f"the host sequence at {action.op.loc} starts a transfer of {task.name!r} while {end.waiting(self.now)} "
                    f"others wait on {task.channel}: its queue holds {costs.queue_depth.value} beside the running one, and the "
                    "hardware would lose this one silently; await an earlier one first, or say it as one larger transfer"
                )
            yield from self._room(action, end)
        task.pushed_at = self.now
        self._started += 1
        self.tasks[self.at] = task
        end.tasks.append(task)
        self._sim.loop.wake(end.arrived)

    def _full(self, end: End) -> bool:
        """Whether a channel can take no further task now."""
        waiting, depth = end.waiting(self.now), self._sim.clock.costs.queue_depth.value
        return waiting > depth or (waiting == depth and end.busy(self.now))

    def _room(self, action: Start, end: End) -> Process:
        """Wait until the next of a channel's tasks has begun or the running one has ended."""
        if end.recent:  # the stream has taken it up, later than the host's present
            self.now = max(self.now, end.recent[0].started_at)
        elif end.task is not None:
            self.waiting = (action.op, end.task)
            running = end.task
            while running.done_at is None:
                yield running
            self.waiting = None
            self.now = max(self.now, running.done_at)
        else:
            self.now = max(self.now, end.finished_at)
        yield (self.now, KEY)

    def _await(self, action: Await) -> Process:
        task, begun = self._task(action), self.now
        while task.done_at is None:
            self.waiting = (action.op, task)
            yield task
        self.waiting = None
        self.now = max(self.now, task.done_at)
        yield self._spend(self._sim.clock.costs.task_token)
        self._sim.record("host", f"await {task.name}", "stall", begun, self.now)

    def _task(self, action: Await) -> Task:
        """The task that is awaited: of a round that was left out, its like in the round that was run."""
        since = action.since
        if self.periodicity is not None:
            since = self.periodicity.really(since)
        return self.tasks.get(since, action.task)

    def _write(self, action: Write) -> None:
        words = self._sim.memory[action.buffer].reshape(-1)
        if action.add:
            words[action.index] += action.value
            return
        if action.buffer not in self._sim.written:
            self._sim.written.add(action.buffer)
            self.too_late += [(run, action.buffer) for run in readers(self._sim, action.buffer)]
        words[action.index] = action.value

    def _set_lock(self, action: SetLock) -> None:
        action.lock.value = action.value
        self._sim.loop.wake(action.lock)

    def unfinished(self) -> list[Task]:
        """Tasks that were still running or waiting when the sequence ended."""
        return [t for t in self.tasks.values() if t.done_at is None or t.done_at > self.now]

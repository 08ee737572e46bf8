"""The host sequence being traced: its task groups and what it has started."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from npusim.errors import DesignError
from npusim.frontends.iron.hosttasks import dma_await_task, dma_free_task
from npusim.frontends.tracing import current, here
from npusim.frontends.values import wrap
from npusim.ir import Op
from npusim.messages import explain

if TYPE_CHECKING:
    from npusim.frontends.iron.runtime import Runtime
    from npusim.frontends.iron.task import TaskGroup

_active: list[ActiveSequence] = []


def active(what: str) -> ActiveSequence:
    """The sequence being traced; DesignError that names ``what`` if there is none."""
    scope = current()
    if not _active or (scope is not None and scope.kind != "sequence"):
        raise DesignError(
            explain(
                f"{what} is called outside of the host sequence.",
                phrase="No active runtime sequence: fill()/drain() and TaskGroup() must be called from within the "
                "function passed to "
                "Runtime(seq_fn, fn_args).",
                hint="call it in the sequence function given to Runtime(seq_fn, fn_args), which resolve_program() "
                "runs.",
                loc=here(),
            )
        )
    return _active[-1]


def running() -> ActiveSequence | None:
    """The sequence being traced, or None."""
    return _active[-1] if _active else None


def result(task: Op) -> Any:
    """A task's value, as traced code sees it."""
    return wrap(task.result)


def _check_still_there(task: Op) -> None:
    """A task started in a loop's body or a branch exists only there."""
    scope = current()
    if scope is not None and scope.homes.get(task) not in scope.stack:
        raise DesignError(
            f"the transfer of {task.attrs['alloc']!r} started at {task.loc} inside a range_ loop or if_ would be "
            "freed outside "
            "of it: make a TaskGroup in that body and finish() it there, or start it with managed=False and free() it"
        )


def _transfer(task: Op) -> str:
    return f"the transfer of {task.attrs['alloc']!r} at {task.loc}"


class ActiveSequence:
    """Bookkeeping of one sequence: an implicit group for transfers that name none, and the explicit ones."""

    def __init__(self, runtime: Runtime) -> None:
        from npusim.frontends.iron.task import TaskGroup

        self.runtime = runtime
        self._open: list[TaskGroup] = []
        self._used_default = self._used_explicit = False
        self._default = TaskGroup(next(runtime._task_group_index))

    @contextmanager
    def activated(self) -> Iterator[ActiveSequence]:
        """While the sequence function runs."""
        _active.append(self)
        try:
            yield self
        finally:
            _active.pop()

    def register(self, group: TaskGroup) -> None:
        self._open.append(group)

    def enroll(self, task: Op, wait: bool, group: TaskGroup | None) -> None:
        """Let a group await (if it is waited for) and free a task when it finishes."""
        if group is None:
            self._used_default, group = True, self._default
        else:
            self._used_explicit = True
        group._tasks.append((task, wait))

    def finish(self, group: TaskGroup) -> None:
        """Await the waited tasks of a group, then free all of them, each in the order of their start. At the sequence's end,
        which has no line of its own, the wait stands where the transfer was started."""
        if group in self._open:
            self._open.remove(group)
        tasks, group._tasks = group._tasks, []
        for task, _ in tasks:
            _check_still_there(task)
        for task, wait in tasks:
            if wait:
                dma_await_task(task)
                scope = current()
                if group is self._default and scope is not None:
                    scope.block.ops[-1].loc = task.loc
        for task, _ in tasks:
            dma_free_task(task)

    def finalize(self) -> None:
        """End of the sequence: no open groups, no mixture; the implicit group finishes."""
        if self._open:
            names = ", ".join(f"{g} (made at {g._loc})" for g in self._open)
            raise DesignError(
                explain(
                    f"the host sequence ends with a task group that was never finished: {names}.",
                    phrase=f"Failed to close task groups: {', '.join(map(str, self._open))}",
                    hint="call finish() on every TaskGroup; that is where its transfers are waited for.",
                )
            )
        if self.runtime._strict_task_groups and self._used_default and self._used_explicit:
            raise DesignError(
                explain(
                    "the host sequence mixes transfers with group= and without.",
                    details=[f"without: {_transfer(self._default._tasks[0][0])}"] if self._default._tasks else [],
                    phrase="Mixing explicit task groups and the default task group is prohibited. Please assign all "
                    "tasks to a task "
                    "group.",
                    hint="put every fill() and drain() into a TaskGroup, or none.",
                )
            )
        self.finish(self._default)

    def parameter(self, given: Any) -> str | None:
        """The name of a scratchpad parameter used as an offset, which becomes one of the design's."""
        from npusim.frontends.iron.scratchpad import ScratchpadParameter

        if isinstance(given, ScratchpadParameter):
            self.runtime._scratchpad_parameters.setdefault(given.name, given)
            return given.name
        return None if given is None else str(given)

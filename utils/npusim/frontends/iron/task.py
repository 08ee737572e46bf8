"""``Task`` and ``TaskGroup``: transfers in flight, and groups of them that finish together."""

from __future__ import annotations

from typing import Any

from npusim.errors import DesignError
from npusim.frontends.iron import sequence
from npusim.frontends.iron.hosttasks import dma_await_task, dma_free_task
from npusim.frontends.tracing import here
from npusim.ir import Op


class Task:
    """A transfer in flight. One started with ``managed=False`` is awaited and freed by hand."""

    def __init__(self, handle: Any) -> None:
        self._handle = handle

    @property
    def handle(self) -> Any:
        """The task's run-time value (an index), which a loop can carry."""
        return self._handle

    def free(self) -> None:
        """Give the transfer's buffer descriptor back."""
        dma_free_task(self._handle)

    def await_(self) -> None:
        """Wait until the transfer is done; it must have been started with ``wait=True``."""
        dma_await_task(self._handle)


class TaskGroup:
    """Transfers that are awaited and freed together; made and finished inside the sequence function."""

    def __init__(self, id: int | None = None) -> None:
        running = sequence.running()
        self._loc = here()
        self._tasks: list[tuple[Op, bool]] = []
        if id is None:
            if running is None:
                raise DesignError(
                    "TaskGroup() must be made inside the sequence function given to Runtime(seq_fn, fn_args)"
                )
            id = next(running.runtime._task_group_index)
        self._group_id = id
        if running is not None:
            running.register(self)

    @property
    def group_id(self) -> int:
        return self._group_id

    def finish(self) -> None:
        """Await the group's waited transfers, then free all of them; the group may be filled again."""
        sequence.active("TaskGroup.finish()").finish(self)

    def __eq__(self, other: object) -> bool:
        return self is other

    def __hash__(self) -> int:
        return id(self)

    def __str__(self) -> str:
        return f"TaskGroup({self.group_id})"

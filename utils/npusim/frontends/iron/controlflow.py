"""``aie.iron.controlflow``: ``range_`` and ``yield_``, which also carry Tasks from one turn to the next."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from npusim.frontends import control
from npusim.frontends.iron.task import Task


def range_(*args: Any, iter_args: Any = None, insert_yield: bool = True, **kwargs: Any) -> Iterator[Any]:
    """A loop that stays rolled, in a core function or the host sequence; see :func:`npusim.frontends.control.for_`."""
    carried = list(iter_args or ())
    tasks = [isinstance(a, Task) for a in carried]
    plain = [a.handle if isinstance(a, Task) else a for a in carried] or None
    given: dict[str, Any] = {**kwargs, "iter_args": plain, "insert_yield": insert_yield}
    turns = control.for_(*args, **given)
    return _rewrapped(turns, tasks) if any(tasks) else turns


def _rewrapped(turns: Iterator[Any], tasks: list[bool]) -> Iterator[Any]:
    """The turns of a loop with its carried tasks as Task again."""

    def again(values: Any) -> Any:
        if isinstance(values, tuple):
            return tuple(Task(v) if is_task else v for v, is_task in zip(values, tasks))
        return Task(values)

    for induction, inner, results in turns:
        yield induction, again(inner), again(results)


def yield_(values: Any) -> None:
    """End a loop's body with what it carries into the next turn."""
    control.yield_([v.handle if isinstance(v, Task) else v for v in values])

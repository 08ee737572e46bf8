"""Functions of ``aie.dialects.aiex`` for the host sequence that are not in :mod:`npusim.frontends.iron.hosttasks`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from npusim import graph
from npusim.errors import DesignError, UnsupportedError
from npusim.frontends.iron.enums import DMAChannelDir
from npusim.frontends.iron.flow import shim_end
from npusim.frontends.tracing import DesignTypeError, emit, inside, need
from npusim.ir import Op, Region


def dma_configure_task(*args: Any, **kwargs: Any) -> Op:
    """``(tile.op, direction, channel)``: a task on a channel of a shim tile, to be filled in with ``bds``; the channel is one
    end of an explicit Flow."""
    if len(args) != 3:
        raise DesignTypeError(
            f"dma_configure_task takes a tile, a direction and a channel, got {len(args)} argument(s)"
        )
    tile, direction, channel = args
    if not isinstance(tile, graph.LogicalTile):
        raise DesignTypeError(f"dma_configure_task needs tile.op of an IRON Tile, got {tile!r}")
    return dma_configure_task_for(shim_end(tile, DMAChannelDir(direction), int(channel)), **kwargs)


def dma_configure_task_for(alloc: Any, *args: Any, **kwargs: Any) -> Op:
    """A task on the shim channel of a fifo or of a named Flow, to be filled in with ``bds``."""
    if args:
        raise UnsupportedError("dma_configure_task_for: positional arguments behind the first are not served")
    need("dma_configure_task_for", "sequence")
    token, repeat = bool(kwargs.pop("issue_token", False)), int(kwargs.pop("repeat_count", 0))
    if kwargs:
        raise UnsupportedError(f"dma_configure_task: the argument(s) {', '.join(kwargs)} are not served")
    name = alloc if isinstance(alloc, str) else alloc.name
    return emit(
        "aiex.dma_configure_task_for",
        (),
        ("index",),
        regions=[Region.single()],
        alloc=name,
        issue_token=token,
        repeat_count=repeat,
    )


class TaskBlocks:
    """The blocks of a host task; only the first is served."""

    def __init__(self, task: Op) -> None:
        self._task = task

    def __getitem__(self, key: Any) -> Any:
        if key != 0:
            raise UnsupportedError("a host task of several buffer descriptors is not served: start one task for each")
        return self._first()

    @contextmanager
    def _first(self) -> Iterator[None]:
        with inside(self._task, self._task.regions[0]):
            yield


@contextmanager
def task_blocks(parent: Any) -> Iterator[TaskBlocks]:
    """See :func:`npusim.frontends.iron.dialects_aie.bds`."""
    if not isinstance(parent, Op) or not parent.name.startswith("aiex.dma_configure_task"):
        raise DesignTypeError(f"bds needs a task of dma_configure_task, got {parent!r}")
    yield TaskBlocks(parent)
    names = [op.name for op in parent.regions[0].entry.ops]
    if names != ["aie.dma_bd", "aie.end"]:
        raise DesignError(
            f"the task at {parent.loc} needs one shim_dma_bd and then EndOp(), has {', '.join(names) or 'nothing'}"
        )


def end_of_task() -> None:
    """The end of a host task's descriptors."""
    emit("aie.end")

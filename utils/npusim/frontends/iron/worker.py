"""``Worker``: a task on one compute tile."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from npusim import graph
from npusim.errors import DesignError
from npusim.frontends.control import traced_for
from npusim.frontends.iron.barrier import WorkerRuntimeBarrier
from npusim.frontends.iron.buffer import Buffer
from npusim.frontends.iron.context import design
from npusim.frontends.iron.device import AnyComputeTile, Tile
from npusim.frontends.iron.endpoint import ObjectFifoEndpoint
from npusim.frontends.iron.enums import AIETileType
from npusim.frontends.iron.handle import ObjectFifoHandle
from npusim.frontends.iron.layouts import flatten_fn_args
from npusim.frontends.iron.objectfifo import ObjectFifo
from npusim.frontends.tracing import DesignTypeError, emit, here, tracing
from npusim.ir import FOREVER
from npusim.messages import count, explain


class Worker(ObjectFifoEndpoint):
    """``core_fn(*fn_args)`` on a compute tile, for ever (``while_true``) or once.

    ``fn_args`` must hold every handle, buffer, kernel and barrier that the core function uses; lists may nest. Without a
    ``core_fn`` the core spins. ``stack_size`` is in bytes (None: 1024). ``trace`` and ``trace_events`` are accepted and
    change nothing: the simulated NPU always records its own trace.
    """

    def __init__(
        self,
        core_fn: Callable[..., Any] | None,
        fn_args: list[Any] | None = None,
        tile: Tile | None = AnyComputeTile,
        while_true: bool = True,
        stack_size: int | None = None,
        allocation_scheme: str | None = None,
        trace: int | None = None,
        trace_events: list[Any] | None = None,
        dynamic_objfifo_lowering: bool | None = None,
    ) -> None:
        self._loc = here()
        self._tile: Tile = _compute_tile(AnyComputeTile if tile is None else tile, allocation_scheme)
        self._while_true = while_true
        self.stack_size = stack_size
        self.allocation_scheme = allocation_scheme
        self._dynamic_objfifo_lowering = dynamic_objfifo_lowering
        self.trace = trace
        self.trace_events = trace_events
        self.core_fn = core_fn
        self.fn_args = fn_args if fn_args is not None else []
        self._fifos: list[ObjectFifoHandle] = []
        self._buffers: list[Buffer] = []
        self._barriers: list[WorkerRuntimeBarrier] = []
        self._outgoing_cascades: list[Any] = []
        if core_fn is not None and not callable(core_fn):
            raise DesignTypeError(f"a Worker's core_fn is a function, got {core_fn!r}")
        for arg in self.flat_fn_args:
            self._register(arg)

    @property
    def name(self) -> str:
        """The core function's name."""
        return "core" if self.core_fn is None else getattr(self.core_fn, "__name__", "core")

    @property
    def what(self) -> str:
        """The worker in words."""
        return f"worker {self.name!r} (made at {self._loc})"

    def _register(self, arg: Any) -> None:
        if isinstance(arg, ObjectFifoHandle):
            arg.endpoint = self
            self._fifos.append(arg)
        elif isinstance(arg, Buffer):
            self._take(arg)
        elif isinstance(arg, ObjectFifo):
            raise DesignError(
                explain(
                    f"ObjectFifo {arg.name!r} itself is in the fn_args of a Worker, which needs a handle of it.",
                    phrase="Cannot give an ObjectFifo directly to a worker; must give an ObjectFifoHandle obtained "
                    "through "
                    "ObjectFifo.prod() or ObjectFifo.cons()",
                    hint="pass its prod() to produce, or its cons() to consume.",
                    loc=self._loc,
                )
            )
        elif isinstance(arg, WorkerRuntimeBarrier):
            self._barriers.append(arg)

    def _take(self, buffer: Buffer) -> None:
        """Use a buffer; the first worker owns one without a tile, and later ones may only read a pinned one."""
        if buffer._owner_worker in (None, self):
            buffer._owner_worker = self
            buffer._tile = self._tile if buffer._tile is None else buffer._tile
        elif not buffer._explicit_tile:
            raise DesignError(
                explain(
                    f"Buffer {buffer._name!r} is shared across workers, and it is not said whose memory it is in.",
                    details=[f"used by {w.what}" for w in (buffer._owner_worker, self)],
                    phrase=f"Buffer {buffer._name!r} has no explicit tile and is shared across Workers; pin it to a "
                    "tile "
                    "(Buffer(tile=...)) so placement is unambiguous.",
                    hint="give it tile=Tile(col, row) of one of them, and pin both workers so that they are "
                    "neighbours.",
                )
            )
        self._buffers.append(buffer)

    @staticmethod
    def grid(rows: int, cols: int, factory: Callable[[int, int], Worker]) -> list[list[Worker]]:
        """Workers in rows and columns, made by ``factory(row, col)``."""
        return [[factory(r, c) for c in range(cols)] for r in range(rows)]

    @property
    def tile(self) -> Tile:
        """The compute tile of the worker."""
        return self._tile

    @property
    def flat_fn_args(self) -> list[Any]:
        """The arguments with nested lists flattened."""
        return list(flatten_fn_args(self.fn_args))

    @property
    def fifos(self) -> list[ObjectFifoHandle]:
        return list(self._fifos)

    @property
    def buffers(self) -> list[Buffer]:
        return list(self._buffers)

    def resolve(self, loc: Any = None, ip: Any = None) -> None:
        """Trace the core function once."""
        into = design(self.what)
        for barrier in self._barriers:
            barrier._add_worker_lock(graph.Lock(None, self._tile.op, loc=self._loc), into)
        with tracing("core", f"core function of {self.what}", owner=self) as scope:
            self._body()
        core = graph.Core(
            self._tile.op, scope.region, self.name, self.stack_size, self._dynamic_objfifo_lowering, self._loc
        )
        into.cores.append(core)

    def _body(self) -> None:
        for _ in traced_for(FOREVER if self._while_true else 1, None, None, None, True, self._loc):
            if self.core_fn is None:
                for _ in traced_for(FOREVER, None, None, None, True, self._loc):
                    pass
            else:
                self._call(self.core_fn)
        emit("aie.end", loc=self._loc)

    def _call(self, core_fn: Callable[..., Any]) -> None:
        try:
            core_fn(*self.fn_args)
        except TypeError as error:
            inside = error.__traceback__ and error.__traceback__.tb_next
            if inside is not None:  # not the call itself
                raise
            raise DesignTypeError(
                explain(
                    f"the core function of {self.what} cannot be called with the "
                    f"{count(len(self.fn_args), 'argument')} that fn_args "
                    "lists.",
                    phrase=str(error),
                    hint="fn_args gives the core function's parameters, one by one and in their order.",
                )
            ) from error


def _compute_tile(tile: Tile, scheme: str | None) -> Tile:
    """The worker's tile: the object given if it is a compute tile already, so that a Buffer can share it; else a copy."""
    if tile.tile_type not in (None, AIETileType.CoreTile):
        raise DesignError(f"a Worker needs a compute tile (rows 2 to 5), got {tile}")
    if tile.tile_type == AIETileType.CoreTile and scheme is None and tile is not AnyComputeTile:
        return tile
    return tile.with_type(AIETileType.CoreTile, allocation_scheme=scheme)

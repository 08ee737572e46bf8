"""``ObjectFifo``: a named ring of objects between one producer and its consumers."""

from __future__ import annotations

import itertools
import warnings
from typing import Any

import numpy as np

from npusim import graph
from npusim.errors import DesignError, DesignWarning, UnsupportedError
from npusim.frontends.iron.context import design
from npusim.frontends.iron.device import Tile
from npusim.frontends.iron.endpoint import ObjectFifoEndpoint
from npusim.frontends.iron.handle import ObjectFifoHandle
from npusim.frontends.iron.layouts import PadDims, StreamDims, array_type, pad_dims, stream_dims
from npusim.frontends.iron.link import ObjectFifoLink
from npusim.frontends.iron.resolvable import NotResolvedError, Resolvable
from npusim.frontends.tracing import here
from npusim.messages import explain
from npusim.types import MemRefType


class ObjectFifo(Resolvable):
    """Objects of one type handed in order from one producer to every consumer. Everything after ``obj_type`` is keyword-only.

    ``depth`` is the default number of objects at each end; ``prod()`` always gives the one producer handle, ``cons()``
    a new consumer each time. DesignErrors name the fifo and where it was made.
    """

    _of_index = itertools.count()

    def __init__(
        self,
        obj_type: type[np.ndarray],
        *,
        depth: int | None = 2,
        name: str | None = None,
        dims_to_stream: StreamDims | None = None,
        dims_from_stream_per_cons: StreamDims | None = None,
        plio: bool = False,
        pad_dimensions: PadDims | None = None,
        pad_value: int = 0,
        disable_synchronization: bool = False,
        repeat_count: int | None = None,
        delegate_tile: Tile | None = None,
        via_DMA: bool = False,
        init_values: list[np.ndarray] | None = None,
        consumer_obj_type: type[np.ndarray] | None = None,
        aie_stream: tuple[int, int] | None = None,
    ) -> None:
        self._loc = here()
        self.name = f"of{next(ObjectFifo._of_index)}" if name is None else name
        if depth is not None and depth < 1:
            raise DesignError(
                explain(
                    f"ObjectFifo {self.name!r} needs a depth of at least 1, got {depth}.",
                    phrase=f"Default ObjectFifo depth must be > 0, but got {depth}",
                    hint="depth 1 is a single buffer; depth 2, the default, lets both sides work at once.",
                    loc=self._loc,
                )
            )
        if plio:
            raise UnsupportedError(
                f"ObjectFifo {self.name!r}: plio=True (Versal's PL) is not served; NPUs have no PLIO"
            )
        if aie_stream is not None:
            raise UnsupportedError(
                f"ObjectFifo {self.name!r}: aie_stream (kernels that write to a stream) is not served"
            )
        self._depth = depth
        self._obj_type = obj_type
        self._dims_to_stream = dims_to_stream
        self._dims_from_stream_per_cons = dims_from_stream_per_cons
        self._pad_dimensions = pad_dimensions
        self._pad_value = pad_value
        self._disable_synchronization = disable_synchronization
        self._repeat_count = repeat_count
        self._delegate_tile = delegate_tile
        self._via_DMA = via_DMA
        self._init_values = init_values
        self._consumer_obj_type = consumer_obj_type
        self._iter_count: int | None = None
        self._prod: ObjectFifoHandle | None = None
        self._cons: list[ObjectFifoHandle] = []
        self._op: graph.Fifo | None = None

    @property
    def depth(self) -> int | None:
        """Default depth of both ends."""
        return self._depth

    @property
    def dims_to_stream(self) -> StreamDims | None:
        return self._dims_to_stream

    @property
    def dims_from_stream_per_cons(self) -> StreamDims | None:
        """The default layout transform of each consumer."""
        return self._dims_from_stream_per_cons

    @property
    def obj_type(self) -> type[np.ndarray]:
        return self._obj_type

    @property
    def shape(self) -> Any:
        """Sizes of an object in elements."""
        return self._obj_type.__args__[0]  # type: ignore[attr-defined]

    @property
    def dtype(self) -> Any:
        """Element type of an object."""
        return self._obj_type.__args__[1].__args__[0]  # type: ignore[attr-defined]

    @property
    def op(self) -> graph.Fifo:
        """The fifo in the design being resolved."""
        if self._op is None:
            raise NotResolvedError(
                f"ObjectFifo {self.name!r} (made at {self._loc}) is not part of the design: pass its prod() and cons() "
                "handles to a Worker or to Runtime"
            )
        return self._op

    def __str__(self) -> str:
        producer = self._prod.endpoint if self._prod else None
        consumers = [c.endpoint for c in self._cons]
        return (
            f"ObjectFifo({self._obj_type}, depth={self.depth}, name={self.name!r}, prod={producer}, cons={consumers})"
        )

    def set_iter_count(self, iter_count: int) -> None:
        """Let the MemTile's descriptors run ``iter_count`` times (1 to 256)."""
        if not iter_count or not 1 <= iter_count <= 256:
            raise DesignError(f"ObjectFifo {self.name!r}: iter_count must be in [1, 256], got {iter_count}")
        self._iter_count = iter_count

    def prod(self, depth: int | None = None, channel: int | None = None, tile: Tile | None = None) -> ObjectFifoHandle:
        """The producer's handle, the same on each call; a later depth is ignored, another channel or tile refused."""
        if self._prod is None:
            self._prod = ObjectFifoHandle(self, True, depth, channel=channel, tile=tile)
            return self._prod
        if depth is None and self._depth is None:
            raise DesignError(f"ObjectFifo {self.name!r} has no default depth: give prod() one")
        if depth is not None and depth < 1:
            raise DesignError(f"prod() of {self.name!r} needs a depth of at least 1, got {depth}")
        pinned = self._prod
        if depth is not None and depth != pinned.depth:
            warnings.warn(
                f"prod(depth={depth}) of ObjectFifo {self.name!r} is ignored: its producer handle was made before, with depth "
                f"{pinned.depth}, and prod() gives the same handle each time",
                DesignWarning,
                stacklevel=2,
            )
        if channel is not None and channel != pinned.channel:
            raise DesignError(
                f"the producer handle of {self.name!r} is already pinned to channel {pinned.channel}, cannot re-pin it to "
                f"{channel}: prod() gives the same handle each time, so pin it in the first call"
            )
        if tile is not None and not _same_place(pinned._shim_tile, tile):
            raise DesignError(
                f"the producer handle of {self.name!r} is already pinned to shim tile {pinned._shim_tile}, cannot re-pin it "
                f"to {tile}: prod() gives the same handle each time, so pin it in the first call"
            )
        return pinned

    def cons(
        self,
        depth: int | None = None,
        dims_from_stream: StreamDims | None = None,
        channel: int | None = None,
        tile: Tile | None = None,
    ) -> ObjectFifoHandle:
        """A new consumer on each call; every one must be used."""
        depth = self._depth if depth is None else depth
        if depth is None:
            raise DesignError(f"ObjectFifo {self.name!r} has no default depth: give cons() one")
        self._cons.append(ObjectFifoHandle(self, False, depth, dims_from_stream, channel, tile))
        return self._cons[-1]

    def endpoints(self) -> list[ObjectFifoEndpoint]:
        """Producer's end, then the consumers'; DesignError for an end that nobody uses."""
        if self._prod is None or self._prod.endpoint is None:
            raise DesignError(self._unused("Prod", "prod()", "produces into"))
        if not self._cons or any(c.endpoint is None for c in self._cons):
            raise DesignError(self._unused("Cons", "cons()", "consumes from"))
        return [self._prod.endpoint, *(c.endpoint for c in self._cons if c.endpoint is not None)]

    def _unused(self, end: str, call: str, does: str) -> str:
        problem = f"nobody {does} ObjectFifo {self.name!r}."
        hint = f"give its {call} to a Worker, to Runtime, or to forward(), split() or join()."
        if end == "Cons" and self._cons:
            problem = f"a handle that cons() of ObjectFifo {self.name!r} gave is used by nobody."
            hint = "each call of cons() makes one more consumer: call it once for each user, and keep the handle."
        return explain(problem, phrase=f"{end} endpoint not set for ObjectFifo", hint=hint, loc=self._loc)

    def tiles(self, cons_only: bool = False) -> list[Tile]:
        """The tiles of its ends."""
        ends = self.endpoints()[1 if cons_only else 0 :]
        return [end.tile for end in ends if end.tile is not None]

    def resolve(self, loc: Any = None, ip: Any = None) -> None:
        """Write the fifo down, then the links it takes part in (which write their other fifos first)."""
        if self._op is not None:
            return
        ends = self.endpoints()
        self._op = self._fifo([end.tile.op for end in ends if end.tile is not None])
        design(f"ObjectFifo {self.name!r}").fifos.append(self._op)
        for end in ends:
            if isinstance(end, ObjectFifoLink):
                end.resolve()

    def _fifo(self, tiles: list[graph.LogicalTile]) -> graph.Fifo:
        assert self._prod is not None
        what = f"ObjectFifo {self.name!r} (made at {self._loc})"
        depths = tuple(h.depth for h in (self._prod, *self._cons))
        own = array_type(self._obj_type, f"the objects of {what}")
        return graph.Fifo(
            name=self.name,
            type=own,
            producer=tiles[0],
            consumers=tiles[1:],
            depth=depths[0] if len(set(depths)) == 1 else depths,
            to_stream=stream_dims(self._dims_to_stream, f"dims_to_stream of {what}"),
            from_stream=tuple(stream_dims(c.dims_from_stream or [], f"dims_from_stream of {what}") for c in self._cons),
            via_dma=bool(self._via_DMA),
            repeat_count=self._repeats(what),
            iter_count=self._iter_count,
            pad=pad_dims(self._pad_dimensions, f"pad_dimensions of {what}"),
            pad_value=self._pad_value,
            init_values=self._initial(own, what),
            consumer_type=self._consumer_type(own, what),
            disable_synchronization=bool(self._disable_synchronization),
            delegate_tile=None if self._delegate_tile is None else self._delegate_tile.op,
            producer_channel=self._prod.channel,
            consumer_channels=self._channels(),
            loc=self._loc,
        )

    def _channels(self) -> tuple[int | None, ...]:
        channels = tuple(c.channel for c in self._cons)
        return () if all(c is None for c in channels) else channels

    def _repeats(self, what: str) -> int | None:
        if self._repeat_count is not None and self._repeat_count < 1:
            raise DesignError(f"{what}: repeat_count must be at least 1, got {self._repeat_count}")
        return self._repeat_count

    def _initial(self, own: MemRefType, what: str) -> list[np.ndarray[Any, Any]] | None:
        """One array for each of the producer's objects."""
        if self._init_values is None:
            return None
        arrays = [np.asarray(a) for a in self._init_values]
        for array in arrays:
            if array.shape != own.shape or array.dtype != own.dtype:
                raise DesignError(f"{what}: an init value has shape {array.shape} and dtype {array.dtype}, needs {own}")
        assert self._prod is not None
        if len(arrays) != self._prod.depth:
            raise DesignError(f"{what}: {len(arrays)} init_values for a producer depth of {self._prod.depth}")
        return arrays

    def _consumer_type(self, own: MemRefType, what: str) -> MemRefType | None:
        if self._consumer_obj_type is None:
            return None
        other = array_type(self._consumer_obj_type, f"consumer_obj_type of {what}")
        if other.element != own.element or own.size % other.size:
            raise DesignError(f"{what}: the producer's {own} must be a multiple of the consumer's {other}")
        return other


def _same_place(a: Tile | None, b: Tile | None) -> bool:
    if a is None or b is None:
        return a is b
    return (a.col, a.row) == (b.col, b.row)

"""``ObjectFifoHandle``: one end of a fifo, as workers and the host sequence use it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from npusim import graph
from npusim.errors import DesignError
from npusim.frontends.iron import transfers
from npusim.frontends.iron.device import AnyMemTile, Tile
from npusim.frontends.iron.endpoint import ObjectFifoEndpoint
from npusim.frontends.iron.enums import ObjectFifoPort
from npusim.frontends.iron.layouts import PadDims, StreamDims
from npusim.frontends.iron.resolvable import Resolvable
from npusim.frontends.tracing import DesignTypeError, emit, here, need
from npusim.frontends.values import wrap
from npusim.messages import explain
from npusim.types import MemRefType, SubviewType

if TYPE_CHECKING:
    from npusim.frontends.iron.objectfifo import ObjectFifo
    from npusim.frontends.iron.task import Task


class ObjectFifoHandle(Resolvable):
    """The producer's end of an ObjectFifo, or one of its consumers' ends."""

    def __init__(
        self,
        of: ObjectFifo,
        is_prod: bool,
        depth: int | None = None,
        dims_from_stream: StreamDims | None = None,
        channel: int | None = None,
        tile: Tile | None = None,
    ) -> None:
        depth = of.depth if depth is None else depth
        if depth is None:
            raise DesignError(f"ObjectFifo {of.name!r} has no default depth: give prod() or cons() one")
        if depth < 1:
            raise DesignError(f"a handle of {of.name!r} needs a depth of at least 1, got {depth}")
        if is_prod and dims_from_stream:
            raise DesignError(f"dims_from_stream belongs to a consumer of {of.name!r}; the producer has dims_to_stream")
        self._object_fifo = of
        self._is_prod = is_prod
        self._port = ObjectFifoPort.Produce if is_prod else ObjectFifoPort.Consume
        self._depth = depth
        self._channel = channel
        self._shim_tile = tile
        self._endpoint: ObjectFifoEndpoint | None = None
        self._dims_from_stream = dims_from_stream or (None if is_prod else of.dims_from_stream_per_cons)

    # -- in a core function

    def acquire(self, num_elem: int) -> Any:
        """Wait until this end holds ``num_elem`` objects in all: the object for 1, a list for more, oldest first."""
        count = self._count(num_elem, "acquire")
        self._use("acquire")
        fifo = self.op
        own = fifo.consumer_type if fifo.consumer_type is not None and not self._is_prod else fifo.type
        name, port = self.name, int(self._port)
        window = emit("aie.objectfifo.acquire", (), (SubviewType(own),), objFifo_name=name, port=port, size=count)
        found = [_element(window.result, own, i) for i in range(count)]
        return found[0] if count == 1 else found

    def release(self, num_elem: int) -> None:
        """Give the ``num_elem`` oldest objects held to the other end."""
        count = self._count(num_elem, "release")
        self._use("release")
        emit("aie.objectfifo.release", objFifo_name=self.name, port=int(self._port), size=count)

    def _count(self, num_elem: int, what: str) -> int:
        if isinstance(num_elem, bool) or not isinstance(num_elem, (int, np.integer)):
            raise DesignTypeError(f"{what}() of {self.name!r} needs an int known while tracing, got {num_elem!r}")
        if num_elem > self._depth:
            raise DesignError(
                explain(
                    f"{what}({num_elem}) on the {self.handle_type} handle of ObjectFifo {self.name!r} is more than "
                    "its depth "
                    f"{self._depth}.",
                    phrase=f"Number of elements to {what} {num_elem} must be smaller than depth {self._depth}",
                    hint=f"make that end deeper, as in {self.handle_type}(depth={num_elem}), or {what} fewer objects "
                    "at once.",
                    loc=here(),
                )
            )
        if num_elem < 1:
            raise DesignError(
                explain(
                    f"{what}({num_elem}) of ObjectFifo {self.name!r}: at least one object must be asked for.",
                    phrase="Must consume at least one element",
                    hint=f"write {what}(1).",
                    loc=here(),
                )
            )
        return int(num_elem)

    def _use(self, what: str) -> None:
        scope = need(f"{what}() of ObjectFifo {self.name!r}", "core")
        if self._endpoint is not None and self._endpoint is not scope.owner:
            raise DesignError(
                f"{what}() on the {self.handle_type} handle of {self.name!r} in the {scope.what}, which it was not "
                "given "
                "to: pass the handle in that Worker's fn_args (each consumer has its own cons() handle)"
            )

    # -- in the host sequence

    def fill(
        self,
        source: Any,
        tap: Any = None,
        wait: bool = False,
        packet: tuple[int, int] | None = None,
        offset_parameter: Any = None,
        group: Any = None,
        sizes: Any = None,
        strides: Any = None,
        offset: Any = None,
        transfer_len: Any = None,
        managed: bool = True,
    ) -> Task:
        """Move a host array into the fifo, whole or along a pattern; only on the producer's handle. See transfers."""
        pattern = transfers.Pattern(tap, sizes, strides, offset, transfer_len)
        return transfers.start(self, source, pattern, wait, packet, offset_parameter, group, managed, "fill")

    def drain(
        self,
        dest: Any,
        tap: Any = None,
        wait: bool = False,
        packet: tuple[int, int] | None = None,
        offset_parameter: Any = None,
        group: Any = None,
        sizes: Any = None,
        strides: Any = None,
        offset: Any = None,
        transfer_len: Any = None,
        managed: bool = True,
    ) -> Task:
        """Move objects of the fifo into a host array; only on a consumer's handle. See transfers."""
        pattern = transfers.Pattern(tap, sizes, strides, offset, transfer_len)
        return transfers.start(self, dest, pattern, wait, packet, offset_parameter, group, managed, "drain")

    # -- what it is

    @property
    def name(self) -> str:
        """The fifo's name."""
        return self._object_fifo.name

    @property
    def channel(self) -> int | None:
        """The DMA channel this end is pinned to, or None."""
        return self._channel

    @property
    def op(self) -> graph.Fifo:
        """The fifo in the design being resolved."""
        return self._object_fifo.op

    @property
    def obj_type(self) -> type[np.ndarray]:
        return self._object_fifo.obj_type

    @property
    def shape(self) -> Any:
        """Sizes of an object in elements."""
        return self._object_fifo.shape

    @property
    def dtype(self) -> Any:
        return self._object_fifo.dtype

    @property
    def handle_type(self) -> str:
        """``prod`` or ``cons``."""
        return "prod" if self._is_prod else "cons"

    @property
    def depth(self) -> int:
        """Depth of this end in objects."""
        return self._depth

    @property
    def dims_from_stream(self) -> StreamDims | None:
        """A consumer's layout transform."""
        if self._is_prod:
            raise DesignError(
                f"the producer's handle of {self.name!r} has no dims_from_stream; its fifo has dims_to_stream"
            )
        return self._dims_from_stream

    @property
    def endpoint(self) -> ObjectFifoEndpoint | None:
        """Who uses this end: a worker, the runtime or a link."""
        return self._endpoint

    @endpoint.setter
    def endpoint(self, endpoint: ObjectFifoEndpoint) -> None:
        if self._endpoint is not None and self._endpoint != endpoint:
            hint = (
                "a fifo has one producer, and prod() gives the same handle each time: give each worker its own fifo."
                if self._is_prod
                else "call cons() once for each consumer."
            )
            raise DesignError(
                explain(
                    f"the {self.handle_type} handle of ObjectFifo {self.name!r} is already used by "
                    f"{_who(self._endpoint)}, so it "
                    f"cannot also be used by {_who(endpoint)}.",
                    phrase=f"Endpoint already set for ObjectFifoHandle {self.name}.{self.handle_type}",
                    hint=hint,
                    loc=here(),
                )
            )
        self._endpoint = endpoint

    def __str__(self) -> str:
        dims = "" if self._is_prod else f"{self.dims_from_stream}, "
        return f"ObjectFifoHandle({self.handle_type}, {self.depth}, {dims}{self._object_fifo})"

    def all_of_endpoints(self) -> list[ObjectFifoEndpoint]:
        """All ends of the fifo, the producer's first."""
        return self._object_fifo.endpoints()

    def tiles(self) -> list[Any]:
        return []

    def resolve(self, loc: Any = None, ip: Any = None) -> None:
        self._object_fifo.resolve()

    # -- links

    def join(
        self,
        offsets: list[int],
        tile: Tile | None = AnyMemTile,
        depths: list[int] | None = None,
        obj_types: list[type[np.ndarray]] | None = None,
        names: list[str] | None = None,
        dims_to_stream: list[StreamDims] | None = None,
        dims_from_stream: list[StreamDims] | None = None,
        plio: bool = False,
        repeat_counts: list[int | None] | None = None,
    ) -> list[ObjectFifo]:
        """New fifos whose objects are put side by side, at ``offsets`` (elements), into each object of this one."""
        from npusim.frontends.iron.linking import join

        return join(
            self, offsets, tile, depths, obj_types, names, dims_to_stream, dims_from_stream, plio, repeat_counts
        )

    def split(
        self,
        offsets: list[int],
        tile: Tile | None = AnyMemTile,
        depths: list[int] | None = None,
        obj_types: list[type[np.ndarray]] | None = None,
        names: list[str] | None = None,
        dims_to_stream: list[StreamDims] | None = None,
        dims_from_stream: list[StreamDims] | None = None,
        plio: bool = False,
        repeat_counts: list[int | None] | None = None,
        pad_dimensions: list[PadDims | None] | None = None,
        pad_value: list[int] | None = None,
    ) -> list[ObjectFifo]:
        """New fifos, each of which gets the part of every object of this one that starts at its offset (elements)."""
        from npusim.frontends.iron.linking import split

        each = (depths, obj_types, names, dims_to_stream, dims_from_stream, repeat_counts, pad_dimensions, pad_value)
        return split(self, offsets, tile, plio, *each)

    def forward(
        self,
        tile: Tile | None = AnyMemTile,
        obj_type: type[np.ndarray] | None = None,
        depth: int | None = None,
        name: str | None = None,
        dims_to_stream: StreamDims | None = None,
        dims_from_stream: StreamDims | None = None,
        plio: bool = False,
        repeat_count: int | None = None,
        pad_dimensions: PadDims | None = None,
        pad_value: int = 0,
    ) -> ObjectFifo:
        """A new fifo that gets every object of this one, by way of ``tile``."""
        if self._is_prod:
            raise DesignError(f"forward() works on a consumer's handle: write {self.name}.cons().forward(...)")
        return self.split(
            [0],
            tile=tile,
            depths=[depth] if depth else None,
            obj_types=[obj_type] if obj_type else None,
            names=[name or f"{self.name}_fwd"],
            dims_to_stream=[dims_to_stream] if dims_to_stream else None,
            dims_from_stream=[dims_from_stream] if dims_from_stream else None,
            plio=plio,
            repeat_counts=None if repeat_count is None else [repeat_count],
            pad_dimensions=None if pad_dimensions is None else [pad_dimensions],
            pad_value=[pad_value] if pad_value else None,
        )[0]


def _element(window: Any, own: MemRefType, index: int) -> Any:
    return wrap(emit("aie.objectfifo.subview.access", (window,), (own,), index=index).result)


def _who(endpoint: ObjectFifoEndpoint) -> str:
    """An endpoint in words."""
    name = getattr(endpoint, "what", None)
    return (
        str(name)
        if name
        else {"RuntimeEndpoint": "the runtime sequence"}.get(type(endpoint).__name__, "a link of fifos")
    )

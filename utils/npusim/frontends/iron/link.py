"""``ObjectFifoLink``: fifos joined on a MemTile (or another tile); what ``split``, ``join`` and ``forward`` make."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from npusim import graph
from npusim.errors import DesignError
from npusim.frontends.iron.context import design
from npusim.frontends.iron.device import AnyMemTile, Tile
from npusim.frontends.iron.endpoint import ObjectFifoEndpoint
from npusim.frontends.iron.enums import AIETileType
from npusim.frontends.iron.resolvable import Resolvable
from npusim.frontends.tracing import here

if TYPE_CHECKING:
    from npusim.frontends.iron.handle import ObjectFifoHandle


class ObjectFifoLink(ObjectFifoEndpoint, Resolvable):
    """One source to many destinations, many to one, or one to one; offsets in elements of the one object that is shared."""

    def __init__(
        self,
        srcs: list[ObjectFifoHandle] | ObjectFifoHandle,
        dsts: list[ObjectFifoHandle] | ObjectFifoHandle,
        tile: Tile | None = AnyMemTile,
        src_offsets: list[int] | None = None,
        dst_offsets: list[int] | None = None,
    ) -> None:
        self._loc = here()
        self._srcs = srcs if isinstance(srcs, list) else [srcs]
        self._dsts = dsts if isinstance(dsts, list) else [dsts]
        self._src_offsets = list(src_offsets or [])
        self._dst_offsets = list(dst_offsets or [])
        self._check()
        self._op: graph.Link | None = None
        for handle in (*self._srcs, *self._dsts):
            handle.endpoint = self
        tile = AnyMemTile if tile is None else tile
        super().__init__(tile.with_type(tile.tile_type if tile.tile_type is not None else AIETileType.MemTile))

    def _check(self) -> None:
        sources, destinations = len(self._srcs), len(self._dsts)
        if not sources or not destinations:
            raise DesignError("a link of fifos needs at least one source and one destination")
        if sources > 1 and destinations > 1:
            raise DesignError(f"a link joins or splits, not both: {sources} sources and {destinations} destinations")
        for name, offsets, count in (("src", self._src_offsets, sources), ("dst", self._dst_offsets, destinations)):
            if offsets and len(offsets) != count:
                raise DesignError(
                    f"a link with {count} {name} fifo(s) needs as many {name}_offsets, got {len(offsets)}"
                )

    def resolve(self, loc: Any = None, ip: Any = None) -> None:
        """Write the link down, after all its fifos."""
        if self._op is not None:
            return
        self._op = graph.Link([], [], tuple(self._src_offsets), tuple(self._dst_offsets), self._loc)
        for handle in (*self._srcs, *self._dsts):
            handle.resolve()
        self._op.inputs[:] = [s.op for s in self._srcs]
        self._op.outputs[:] = [d.op for d in self._dsts]
        design("a link of fifos").links.append(self._op)

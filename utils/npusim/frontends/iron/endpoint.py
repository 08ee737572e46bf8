"""The ends of an ObjectFifo: a worker, the runtime (a shim tile), or a link of fifos."""

from __future__ import annotations

from npusim.errors import DesignError
from npusim.frontends.iron.device import AnyShimTile, Tile
from npusim.frontends.iron.enums import AIETileType


class ObjectFifoEndpoint:
    """One end, on a tile."""

    def __init__(self, tile: Tile | None) -> None:
        self._tile = tile

    @property
    def tile(self) -> Tile | None:
        """The tile of this end."""
        return self._tile


class RuntimeEndpoint(ObjectFifoEndpoint):
    """The host's end: a shim tile of its own."""

    def __init__(self, tile: Tile | None = AnyShimTile) -> None:
        tile = AnyShimTile if tile is None else tile
        shims = (None, AIETileType.ShimNOCTile, AIETileType.ShimPLTile)
        if tile.tile_type not in shims:
            raise DesignError(f"the host drives a fifo through a shim tile (row 0), not through {tile}")
        super().__init__(tile.with_type(tile.tile_type or AIETileType.ShimNOCTile))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, RuntimeEndpoint):
            return NotImplemented
        return self._place() == other._place()

    def _place(self) -> tuple[int | None, int | None]:
        assert self._tile is not None
        return self._tile.col, self._tile.row

    __hash__ = None  # type: ignore[assignment]  # compared by place, so not hashable, as in the real package

    def __str__(self) -> str:
        return f"RuntimeEndpoint({self._tile})"

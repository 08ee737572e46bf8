"""Tiles and devices of ``aie.iron.device``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from npusim import devices, graph
from npusim.errors import DesignError, UnsupportedError
from npusim.frontends.iron.enums import AIEArch, AIEDevice, AIETileType, kind_of
from npusim.frontends.iron.resolvable import Resolvable
from npusim.frontends.tracing import here
from npusim.messages import explain


class Tile:
    """A tile of the device, placed (col and row), partly placed or open. Two tiles are one only if they are one object."""

    def __init__(
        self,
        col: int | None = None,
        row: int | None = None,
        *,
        tile_type: AIETileType | None = None,
        allocation_scheme: str | None = None,
    ) -> None:
        self.col = col
        self.row = row
        self.tile_type = tile_type
        self.allocation_scheme = allocation_scheme
        self._op: graph.LogicalTile | None = None
        self._loc = here()

    def copy(self) -> Tile:
        """A new tile with the same coordinates and type."""
        return Tile(self.col, self.row, tile_type=self.tile_type, allocation_scheme=self.allocation_scheme)

    def with_type(
        self, tile_type: AIETileType, *, allocation_scheme: str | None = None, mismatch_msg: str | None = None
    ) -> Tile:
        """A new tile of this type at the same place; DesignError if the tile has another type already."""
        if self.tile_type is not None and self.tile_type != tile_type:
            raise DesignError(mismatch_msg or f"expected a {tile_type}, but {self} is a {self.tile_type}")
        scheme = self.allocation_scheme if allocation_scheme is None else allocation_scheme
        tile = Tile(self.col, self.row, tile_type=tile_type, allocation_scheme=scheme)
        tile._loc = self._loc
        return tile

    @property
    def op(self) -> graph.LogicalTile:
        """The tile in the design being resolved."""
        if self._op is None:
            raise DesignError(f"{self} is not part of a resolved program yet; its place is known only there")
        return self._op

    @op.setter
    def op(self, op: graph.LogicalTile) -> None:
        if self._op is not None and self._op is not op:
            raise DesignError(
                f"{self} (made at {self._loc}) belongs to a program that was resolved already: each Program needs its "
                "own tiles, fifos and workers, so build them anew (call the function that makes the design again)"
            )
        self._op = op

    def __eq__(self, other: object) -> bool:
        return self is other if isinstance(other, Tile) else NotImplemented

    def __hash__(self) -> int:
        return id(self)

    def __str__(self) -> str:
        kind = "" if self.tile_type is None else f"<{self.tile_type}>"
        col, row = ("?" if n is None else n for n in (self.col, self.row))
        return f"Tile{kind}({col}, {row})"


AnyShimTile = Tile(tile_type=AIETileType.ShimNOCTile)
AnyMemTile = Tile(tile_type=AIETileType.MemTile)
AnyComputeTile = Tile(tile_type=AIETileType.CoreTile)


class Device(Resolvable):
    """A device, or a partition of its columns. ``facts`` is npusim's table of it."""

    def __init__(self, device: AIEDevice) -> None:
        self._device = AIEDevice(device)
        if self._device.name not in devices.DEVICES:
            raise UnsupportedError(
                f"device {self._device} is not served: npusim simulates {', '.join(devices.DEVICES)}"
            )
        self.facts = devices.device(self._device.name)
        self._resolved: dict[Tile, graph.LogicalTile] = {}

    @property
    def cols(self) -> int:
        """Number of columns."""
        return self.facts.columns

    @property
    def rows(self) -> int:
        """Number of rows, shim and MemTiles included."""
        return self.facts.rows

    @property
    def arch(self) -> AIEArch:
        return AIEArch.AIE2 if self.facts.arch == "AIE2" else AIEArch.AIE2p

    def get_tile_type(self, col: int, row: int) -> AIETileType:
        """What stands at these coordinates; DesignError outside of the array."""
        if not self.facts.contains(col, row):
            raise DesignError(
                f"tile ({col}, {row}) is outside of {self._device}, which has columns 0 to {self.cols - 1} and rows 0 "
                "to "
                f"{self.rows - 1}"
            )
        kind = self.facts.kind(row)
        return {"shim": AIETileType.ShimNOCTile, "mem": AIETileType.MemTile, "core": AIETileType.CoreTile}[kind]

    def resolve(self, loc: Any = None, ip: Any = None) -> None:
        """The device writes nothing of its own."""

    def tiles(self) -> list[Any]:
        return []

    def resolve_tile(self, tile: Tile, loc: Any = None, ip: Any = None) -> None:
        """Give the tile its place in the design, one for each Tile object. DesignError if nothing like it exists."""
        if tile not in self._resolved:
            self._resolved[tile] = self._logical(tile)
        tile.op = self._resolved[tile]

    def _logical(self, tile: Tile) -> graph.LogicalTile:
        if tile.allocation_scheme not in (None, "bank-aware"):
            raise UnsupportedError(
                f"allocation_scheme={tile.allocation_scheme!r} is not served: npusim lays memory out bank-aware"
            )
        self._check_range(tile)
        tile_type = tile.tile_type
        if tile.col is not None and tile.row is not None:
            there = self.get_tile_type(tile.col, tile.row)
            if tile_type not in (None, there):
                raise DesignError(
                    explain(
                        f"{_wanted(tile)} is asked for, but {_rows(tile, there)}.",
                        phrase=f"declared logical tile type does not match the tile type at coordinates ({tile.col}, "
                        f"{tile.row})",
                        hint="a Worker needs a compute tile; leave tile= out to have one chosen.",
                        loc=tile._loc,
                    )
                )
            tile_type = there
        if tile_type is None:
            raise DesignError(f"{tile} (made at {tile._loc}) needs a tile_type or both coordinates")
        return graph.LogicalTile(kind_of(tile_type), tile.col, tile.row)

    def _check_range(self, tile: Tile) -> None:
        for name, at, limit in (("column", tile.col, self.cols), ("row", tile.row, self.rows)):
            if at is not None and not 0 <= at < limit:
                raise DesignError(
                    explain(
                        f"Tile({tile.col}, {tile.row}) does not exist: {self._device} has {name}s 0 to {limit - 1}.",
                        phrase=f"{name} index ({at}) must be less than the number of {name}s in the device ({limit})",
                        hint="Tile takes the column first, then the row: row 0 is the shim, row 1 the MemTiles, rows "
                        "2 to 5 the "
                        "compute tiles.",
                        loc=tile._loc,
                    )
                )


def _wanted(tile: Tile) -> str:
    names = {AIETileType.CoreTile: "a compute tile", AIETileType.MemTile: "a MemTile"}
    return "a shim tile" if tile.tile_type is None else names.get(tile.tile_type, "a shim tile")


def _rows(tile: Tile, there: AIETileType) -> str:
    names = {AIETileType.CoreTile: "a compute tile", AIETileType.MemTile: "a MemTile"}
    return (
        f"({tile.col}, {tile.row}) is {names.get(there, 'a shim tile')} (row 0 is the shim, row 1 the MemTiles, rows "
        "2 to "
        f"5 the compute tiles)"
    )


def _device_class(name: str, device: AIEDevice) -> Callable[[], Device]:
    def __init__(self: Device) -> None:
        Device.__init__(self, device)

    doc = f"The device {device}."
    return type(name, (Device,), {"__init__": __init__, "__doc__": doc, "__module__": __name__})


NPU1 = _device_class("NPU1", AIEDevice.npu1)
NPU1Col1 = _device_class("NPU1Col1", AIEDevice.npu1_1col)
NPU1Col2 = _device_class("NPU1Col2", AIEDevice.npu1_2col)
NPU1Col3 = _device_class("NPU1Col3", AIEDevice.npu1_3col)
NPU2 = _device_class("NPU2", AIEDevice.npu2)
NPU2Col1 = _device_class("NPU2Col1", AIEDevice.npu2_1col)
NPU2Col2 = _device_class("NPU2Col2", AIEDevice.npu2_2col)
NPU2Col3 = _device_class("NPU2Col3", AIEDevice.npu2_3col)
NPU2Col4 = _device_class("NPU2Col4", AIEDevice.npu2_4col)
NPU2Col5 = _device_class("NPU2Col5", AIEDevice.npu2_5col)
NPU2Col6 = _device_class("NPU2Col6", AIEDevice.npu2_6col)
NPU2Col7 = _device_class("NPU2Col7", AIEDevice.npu2_7col)

_CLASSES: dict[str, Callable[[], Device]] = {
    c.__name__: c
    for c in (NPU1, NPU1Col1, NPU1Col2, NPU1Col3)
    + (NPU2, NPU2Col1, NPU2Col2, NPU2Col3, NPU2Col4, NPU2Col5, NPU2Col6, NPU2Col7)
}
_FAMILIES = {"npu": "NPU1", "npu1": "NPU1", "npu2": "NPU2"}


def from_name(name: str, *, n_cols: int | None = 1) -> Device:
    """The device of that name with ``n_cols`` columns (None: all). DesignError for an unknown name or number."""
    family = _FAMILIES.get(name.lower())
    if family is None:
        if name.lower() in ("xcvc1902", "xcve2302", "xcve2802"):
            raise UnsupportedError(f"device {name!r} (Versal) is not served: npusim simulates NPUs")
        raise DesignError(f"unknown device name {name!r}; known: {', '.join(_FAMILIES)}")
    most = _CLASSES[family]().cols
    if n_cols is None or n_cols == most:
        return _CLASSES[family]()
    if not 1 <= n_cols < most:
        raise DesignError(f"n_cols must be 1 to {most} (or None for all) for {family}, got {n_cols}")
    return _CLASSES[f"{family}Col{n_cols}"]()

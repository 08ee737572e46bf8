"""``Resolvable``: what a Program asks to write itself down. Designs may derive their own classes from it."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

from npusim.errors import DesignError


class NotResolvedError(DesignError):
    """Something was asked of an object that only exists once a Program has resolved it."""

    def __init__(self, message: str = "Cannot get operation; class not resolved.") -> None:
        super().__init__(message)


@runtime_checkable
class Resolvable(Protocol):
    """An object that writes itself into the design while it is resolved."""

    def resolve(self, loc: Any = None, ip: Any = None) -> None:
        """Write the object down; called once or more, each time after the tiles are known."""
        ...

    def tiles(self) -> list[Any]:
        """Tiles that the object needs beside those of its worker."""
        return []

"""``CascadeFlow``: a cascade link from one worker to its southern or eastern neighbour."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from npusim import graph
from npusim.frontends.iron.context import design
from npusim.frontends.iron.resolvable import Resolvable
from npusim.frontends.tracing import here

if TYPE_CHECKING:
    from npusim.frontends.iron.worker import Worker


class CascadeFlow(Resolvable):
    """Declares that kernels of ``src`` put onto the cascade what kernels of ``dst`` get."""

    def __init__(self, src: Worker, dst: Worker) -> None:
        self._loc = here()
        self._src = src
        self._dst = dst
        src._outgoing_cascades.append(self)

    def tiles(self) -> list[Any]:
        return []

    def resolve(self, loc: Any = None, ip: Any = None) -> None:
        link = graph.Cascade(self._src.tile.op, self._dst.tile.op, self._loc)
        design("a CascadeFlow").cascades.append(link)

"""``use_lock`` and ``Lock``: counting locks that a design handles itself."""

from __future__ import annotations

import itertools
from typing import Any

from npusim import graph
from npusim.errors import DesignError, UnsupportedError
from npusim.frontends import operators as ops
from npusim.frontends.control import refuse_placement
from npusim.frontends.iron import dmabuilder
from npusim.frontends.iron.context import design
from npusim.frontends.iron.device import Tile
from npusim.frontends.iron.enums import LockAction
from npusim.frontends.iron.resolvable import NotResolvedError, Resolvable
from npusim.frontends.tracing import DesignTypeError, emit, here, need


def use_lock(
    lock: Any,
    action: Any,
    value: Any = None,
    *,
    blocking: Any = None,
    acq_en: Any = None,
    loc: Any = None,
    ip: Any = None,
) -> None:
    """Acquire or release a lock, in a core function or in a block of a tile's DMA program. The value defaults to 1."""
    refuse_placement(loc, ip)
    for name, given in (("blocking", blocking), ("acq_en", acq_en)):
        if given is not None:
            raise UnsupportedError(f"use_lock: the argument {name}= is not served; locks here always block")
    if not isinstance(lock, graph.Lock):
        raise DesignTypeError(
            f"use_lock needs a lock of the design (lock.op, or what aie.dialects.aie.lock gave), got {lock!r}"
        )
    action, value = LockAction(action), 1 if value is None else value
    block = dmabuilder.current_block()
    if block is not None:
        block.use_lock(lock, action, value)
        return
    need("use_lock", "core")
    if isinstance(value, int):
        value = ops.constant(value, "i32")
    emit("aie.use_lock", (lock.value, value.value), action=int(action))


class Lock(Resolvable):
    """A named lock on a tile. Its methods are for core functions; DMA programs use Acquire and Release."""

    _glock_index = itertools.count()

    def __init__(self, tile: Tile, lock_id: int | None = None, init: int = 0, name: str | None = None) -> None:
        self._loc = here()
        self._tile = tile
        self._lock_id = lock_id
        self._init = init
        self._name = name or f"lock_{next(Lock._glock_index)}"
        self._op: graph.Lock | None = None

    @property
    def tile(self) -> Tile:
        return self._tile

    @property
    def name(self) -> str:
        return self._name

    @property
    def op(self) -> graph.Lock:
        """The lock in the design being resolved."""
        if self._op is None:
            raise NotResolvedError(
                f"Lock {self._name!r} (made at {self._loc}) is not part of the design: register it with Runtime.add_lock() or "
                "pass it to a Worker in fn_args"
            )
        return self._op

    def tiles(self) -> list[Any]:
        return []

    def resolve(self, loc: Any = None, ip: Any = None) -> None:
        if self._op is None:
            if self._tile is None:
                raise DesignError(f"Lock {self._name!r} (made at {self._loc}) needs a tile")
            self._op = graph.Lock(self._name, self._tile.op, self._init, self._lock_id, self._loc)
            design(f"Lock {self._name!r}").locks.append(self._op)

    def acquire(self, value: int = 1) -> None:
        """Wait for at least ``value`` and subtract it."""
        use_lock(self.op, LockAction.AcquireGreaterEqual, value)

    def acquire_exact(self, value: int = 1) -> None:
        """Wait for exactly ``value`` and leave it."""
        use_lock(self.op, LockAction.Acquire, value)

    def release(self, value: int = 1) -> None:
        """Add ``value``."""
        use_lock(self.op, LockAction.Release, value)

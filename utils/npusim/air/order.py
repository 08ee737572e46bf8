"""The order among the transfers of a segment's MemTiles: by the data they touch, and by channel end.

A transfer that reads a buffer waits for the earlier ones that write what it reads, one that writes for the earlier ones that
touch what it writes; earlier means in the order of the program. Transfers of one channel end follow each other anyway.
Everything else runs at the same time. Transfers on different elements do not wait for each other.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np

from npusim import walk
from npusim.air.moves import Walk
from npusim.air.transfers import FedEnd, RelayTransfer
from npusim.machine import MemBuffer

EXACT = 1 << 16
"""Walks of more elements are compared by their first and last element only."""


@dataclass(eq=False)
class _Access:
    """The latest transfer of one end on one walk of a buffer."""

    end: FedEnd
    walk: Walk
    number: int  # of the end's transfers in this launch; 0: all of earlier launches


@dataclass(eq=False)
class _History:
    """Who touched a buffer so far."""

    reads: list[_Access] = field(default_factory=list)
    writes: list[_Access] = field(default_factory=list)


class Orderer:
    """Orders the transfers of one launch; called for each in the order of the program."""

    def __init__(self, earlier: dict[MemBuffer, list[tuple[FedEnd, Walk, bool]]]) -> None:
        self._histories: dict[MemBuffer, _History] = {}
        self._counts: dict[FedEnd, int] = {}
        for buffer, accesses in earlier.items():  # of the launches before
            history = self._histories[buffer] = _History()
            for end, at, writes in accesses:
                (history.writes if writes else history.reads).append(_Access(end, at, 0))

    def add(self, transfer: RelayTransfer, buffer: MemBuffer, at: Walk, writes: bool) -> None:
        """Set what a transfer waits for."""
        end = transfer.end
        number = self._counts[end] = self._counts.get(end, 0) + 1
        history = self._histories.setdefault(buffer, _History())
        needs: dict[FedEnd, int] = {}
        for access in [*history.writes, *(history.reads if writes else ())]:
            if access.end is not end and overlap(access.walk, at):
                needs[access.end] = max(needs.get(access.end, 0), access.number)
        transfer.after = list(needs.items())
        if writes:  # it comes after all that it replaces, so whoever waits for it need not wait for those
            history.writes = [a for a in history.writes if not _covers(at, a.walk)]
            history.reads = [a for a in history.reads if not _covers(at, a.walk)]
        mine = history.writes if writes else history.reads
        mine[:] = [a for a in mine if not (a.end is end and a.walk == at)]
        mine.append(_Access(end, at, number))


@lru_cache(maxsize=4096)
def overlap(a: Walk, b: Walk) -> bool:
    """Whether two walks of one buffer have an element in common."""
    if a == b:
        return True
    (low, high), (first, last) = _span(a), _span(b)
    if high < first or last < low:
        return False
    if (_dense(a) and _dense(b)) or a.length * b.length > EXACT * EXACT:
        return True
    return bool(np.intersect1d(_elements(a), _elements(b)).size)


@lru_cache(maxsize=4096)
def _covers(a: Walk, b: Walk) -> bool:
    """Whether the first walk touches all that the second does."""
    if a == b:
        return True
    (low, high), (first, last) = _span(a), _span(b)
    return low <= first and last <= high and _dense(a)


def _span(at: Walk) -> tuple[int, int]:
    return at.offset, at.offset + sum((size - 1) * stride for size, stride in at.dims)


def _dense(at: Walk) -> bool:
    low, high = _span(at)
    return high - low + 1 == at.length


def _elements(at: Walk) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return walk.indices(at.offset, [n for n, _ in at.dims], [s for _, s in at.dims])

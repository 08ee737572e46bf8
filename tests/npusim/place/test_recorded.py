"""What we make of every recorded design equals what the real tools made of it, on both devices."""

from __future__ import annotations

import functools
import warnings

import pytest

from npusim.errors import DesignWarning
from npusim.machine import Coord, Machine
from npusim.mlir import read_high
from npusim.place import place
from tests.npusim.place.recorded import MLIR, Lowered, load

NAMES = sorted(p.name.removesuffix(".high.mlir") for p in MLIR.glob("iron_*.high.mlir"))


@functools.cache
def placed(name: str) -> Machine:
    design = read_high((MLIR / f"{name}.high.mlir").read_text())
    with warnings.catch_warnings():
        warnings.simplefilter("error", DesignWarning)  # the recorded designs are healthy
        return place(design)


@functools.cache
def recorded(name: str) -> Lowered:
    return load(name)


pytestmark = pytest.mark.parametrize("name", NAMES)


def test_tiles(name: str) -> None:
    machine = placed(name)
    assert {core.tile for core in machine.cores} == recorded(name).cores
    used = {b.tile for b in machine.buffers} | {c.tile for c in machine.channels} | {k.tile for k in machine.locks}
    assert used | {core.tile for core in machine.cores} == recorded(name).tiles


def test_buffers_and_addresses(name: str) -> None:
    ours = {b.name: (b.tile, b.address, b.bank, str(b.type)) for b in placed(name).buffers}
    assert ours == recorded(name).buffers


def test_locks(name: str) -> None:
    ours = {(lock.tile, lock.lock_id): lock.init for lock in placed(name).locks}
    assert ours == {key: init for key, (_, init) in recorded(name).locks.items()}
    names = {(lock.tile, lock.lock_id): lock.name for lock in placed(name).locks}
    theirs = {key: given for key, (given, _) in recorded(name).locks.items() if given}
    assert {key: names[key] for key in theirs} == theirs


def test_descriptor_chains(name: str) -> None:
    ours = {}
    for channel in placed(name).channels:
        if channel.descriptors:
            chain = [
                (
                    d.buffer.name,
                    d.offset,
                    d.length,
                    d.dims,
                    tuple(((u.lock.tile, u.lock.lock_id), u.value) for u in d.acquires),
                    tuple(((u.lock.tile, u.lock.lock_id), u.value) for u in d.releases),
                    d.bd_id,
                    d.next,
                )
                for d in channel.descriptors
            ]
            ours[channel.tile, channel.direction, channel.index] = (channel.repeat, chain)
    theirs = {k: (repeat, [(*d[:4], *d[5:]) for d in chain]) for k, (repeat, chain) in recorded(name).chains.items()}
    assert ours == theirs


def test_padding(name: str) -> None:
    padded = {
        (c.tile, c.direction, c.index): [d.pad for d in c.descriptors]
        for c in placed(name).channels
        if any(d.pad for d in c.descriptors)
    }
    theirs = {k: chain for k, (_, chain) in recorded(name).chains.items() if any(d[4] for d in chain)}
    assert set(padded) == set(theirs)
    for key, pads in padded.items():
        for pad, descriptor in zip(pads, theirs[key], strict=True):
            for before, after in pad:
                assert f"const_pad_before = {before}, const_pad_after = {after}" in descriptor[4]


def test_shim_channels(name: str) -> None:
    ours = {k: (c.tile, c.direction, c.index) for k, c in placed(name).host_channels.items()}
    assert ours == recorded(name).host


def test_streams(name: str) -> None:
    ours = {
        (r.source.tile, r.source.direction, r.source.index): {(d.tile, d.direction, d.index) for d in r.dests}
        for r in placed(name).routes
    }
    assert ours == recorded(name).streams


def test_routes_are_as_short(name: str) -> None:
    """Ports and turns are ours to choose; no stream to one place is longer than the real one."""
    theirs = recorded(name).crossings
    for route in placed(name).routes:
        ours = sum(not hop.exit.startswith("DMA") for hop in route.hops)
        assert ours <= theirs[route.source.tile, "MM2S", route.source.index]


def test_cascades(name: str) -> None:
    """The recorded form says for each tile where its cascade comes from and goes to."""
    theirs = recorded(name).cascades
    for link in placed(name).cascades:
        assert theirs[link.source][1] == ("South" if link.dest.row < link.source.row else "East")
        assert theirs[link.dest][0] == ("North" if link.dest.row < link.source.row else "West")
    assert {t for link in placed(name).cascades for t in (link.source, link.dest)} == set(theirs)


def test_stack_is_below_the_buffers(name: str) -> None:
    stacks: dict[Coord, int] = {core.tile: core.stack_size for core in placed(name).cores}
    assert all(b.address >= stacks.get(b.tile, 0) for b in placed(name).buffers)

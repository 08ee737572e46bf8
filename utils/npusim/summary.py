"""Reports and machines in words and columns, for the command line."""

from __future__ import annotations

from collections import defaultdict

from npusim.machine import Coord, Machine
from npusim.report import Report

_LEVEL = {"ddr": "DDR (shim DMA)", "memtile": "MemTile DMA", "l1": "compute-tile DMA"}


def summary(report: Report) -> str:
    """Time, bytes at each level, and what each core and channel did. All of it simulated."""
    device = report.machine.device
    lines = [
        f"simulated {device.name} at {device.clock_hz / 1e9:g} GHz: {report.cycles:,.1f} cycles, {report.seconds * 1e6:,.2f} us",
        "",
        f"{'bytes':<18}{'read':>14}{'written':>14}",
    ]
    lines += [f"{_LEVEL[level]:<18}{t.read:>14,}{t.written:>14,}" for level, t in report.traffic.items()]
    if report.cascade_bytes:
        lines.append(f"{'cascade':<18}{report.cascade_bytes:>14,}")
    lines += ["", f"{'core':<8}{'worker':<18}{'busy':>7}{'stalled':>9}  waits for"]
    lines += [_core(report, i) for i in range(len(report.cores))]
    lines += ["", f"{'DMA channel':<26}{'fifo':<14}{'bytes':>14}{'busy':>7}"]
    for use in report.channels:
        share = use.busy / report.ticks if report.ticks else 0.0
        lines.append(f"{use.channel!s:<26}{use.channel.fifo or '':<14}{use.bytes:>14,}{share:>7.0%}")
    lines += [f"warning: {text}" for text in report.warnings]
    return "\n".join(lines)


def _core(report: Report, index: int) -> str:
    use = report.cores[index]
    total = report.ticks or 1
    waits = sorted(use.stalled.items(), key=lambda item: -item[1])[:3]
    what = ", ".join(f"{name} {ticks / total:.0%}" for name, ticks in waits if ticks)
    return f"{use.tile!s:<8}{use.name[:17]:<18}{use.busy / total:>7.0%}{use.stall / total:>9.0%}  {what}"


def explanation(machine: Machine) -> str:
    """Tiles with their memory maps, locks and channels, and the routes between them."""
    lines = [f"{machine.device.name}: {machine.device.columns} columns"]
    for tile in sorted(_tiles(machine)):
        lines += ["", *_tile(machine, tile)]
    lines += ["", "routes"]
    for route in machine.routes:
        ends = ", ".join(map(str, route.dests))
        lines.append(f"  {route.name}: {route.source} -> {ends}")
        lines += [f"    {hop.tile} {hop.entry} -> {hop.exit}" for hop in route.hops]
    lines += [f"  cascade {link.source} -> {link.dest}" for link in machine.cascades]
    lines += [f"warning: {text}" for text in machine.warnings]
    return "\n".join(lines)


def _tiles(machine: Machine) -> set[Coord]:
    tiles = {b.tile for b in machine.buffers} | {c.tile for c in machine.channels} | {c.tile for c in machine.cores}
    return tiles | {lock.tile for lock in machine.locks}


def _tile(machine: Machine, tile: Coord) -> list[str]:
    limits = machine.device.limits(tile.row)
    core = next((c for c in machine.cores if c.tile == tile), None)
    kind = {"core": "compute tile", "mem": "MemTile", "shim": "shim tile"}[machine.device.kind(tile.row)]
    buffers = sorted((b for b in machine.buffers if b.tile == tile), key=lambda b: b.address)
    locks = [lock for lock in machine.locks if lock.tile == tile]
    lines = [f"{kind} {tile}" + (f": worker {core.name!r}" if core else "")]
    if limits.memory.value:
        stack = core.stack_size if core else 0
        used = sum(b.type.nbytes for b in buffers) + stack
        lines.append(f"  memory {used:,} of {limits.memory.value:,} B")
        if core:
            lines.append(f"    0x{0:05X} {stack:>7,} B  stack")
        lines += [f"    0x{b.address:05X} {b.type.nbytes:>7,} B  {b.name}  {b.type}" for b in buffers]
    lines.append(f"  locks {len(locks)} of {limits.locks.value}")
    by_direction: dict[str, int] = defaultdict(int)
    for channel in (c for c in machine.channels if c.tile == tile):
        by_direction[channel.direction] += 1
        lines.append(f"  {channel.direction} {channel.index}: {channel.fifo or ''} ({len(channel.descriptors)} BDs)")
    counts = ", ".join(f"{n} of {_channels(machine, tile, d)} {d}" for d, n in sorted(by_direction.items()))
    return [*lines, f"  channels {counts or 'none'}"]


def _channels(machine: Machine, tile: Coord, direction: str) -> int:
    limits = machine.device.limits(tile.row)
    return limits.s2mm.value if direction == "S2MM" else limits.mm2s.value

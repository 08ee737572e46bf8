"""Reports and machines in words and columns, for the command line."""

from __future__ import annotations

from npusim.limits import limits_table
from npusim.machine import Coord, Machine
from npusim.messages import count
from npusim.place.draft import label
from npusim.place.memory_map import memory_map
from npusim.report import Report

_LEVEL = {"ddr": "DDR (shim DMA)", "memtile": "MemTile DMA", "l1": "compute-tile DMA"}


def summary(report: Report) -> str:
    """Time, bytes at each level, and what each core and channel did. All of it simulated."""
    device = report.machine.device
    lines = [
        f"simulated {device.name} at {device.clock_hz / 1e9:g} GHz: {report.cycles:,.1f} cycles, "
        f"{report.seconds * 1e6:,.2f} us",
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
    lines += [f"note: {text}" for text in report.notes]
    lines += [f"warning: {text}" for text in report.warnings]
    return "\n".join(lines)


def _core(report: Report, index: int) -> str:
    use = report.cores[index]
    total = report.ticks or 1
    waits = sorted(use.stalled.items(), key=lambda item: -item[1])[:3]
    what = ", ".join(f"{name} {ticks / total:.0%}" for name, ticks in waits if ticks)
    return f"{use.tile!s:<8}{use.name[:17]:<18}{use.busy / total:>7.0%}{use.stall / total:>9.0%}  {what}"


def explanation(machine: Machine) -> str:
    """The use of every limit, tiles with their memory maps and channels, and the routes between them."""
    device = machine.device
    lines = [
        f"{device.name}, {device.columns} columns: used/available of every tile in use",
        "",
        *limits_table(machine),
    ]
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
    """One tile: its worker, memory map, locks and channels."""
    limits = machine.device.limits(tile.row)
    core = next((c for c in machine.cores if c.tile == tile), None)
    buffers = [b for b in machine.buffers if b.tile == tile]
    lines = [label(tile) + (f": worker {core.name!r}" if core else "")]
    if limits.memory.value and (buffers or core):
        stack = core.stack_size if core else 0
        lines += [f"  {line}" for line in memory_map(stack, buffers, limits.memory.value, limits.banks.value)]
        if any(b.bank is None for b in buffers):
            lines.append("  (laid out in sequence: bank by bank there was no room)")
    if tile.row == 1:
        lines.append(f"  BDs: {_by_parity(machine, tile)}")
    names = [lock.name for lock in sorted((k for k in machine.locks if k.tile == tile), key=lambda k: k.lock_id)]
    if names:
        lines.append(f"  locks: {', '.join(names)}")
    for channel in (c for c in machine.channels if c.tile == tile):
        descriptors = count(len(channel.descriptors), "BD") if channel.descriptors else "driven by the host"
        lines.append(f"  {channel.direction} {channel.index}: {channel.fifo or ''} ({descriptors})")
    return lines


def _by_parity(machine: Machine, tile: Coord) -> str:
    """Descriptors of a MemTile's even and odd channels, which reach a half of them each."""
    half = machine.device.limits(tile.row).bds_per_channel.value
    mine = [c for c in machine.channels if c.tile == tile]
    used = [sum(len(c.descriptors) for c in mine if c.index % 2 == odd) for odd in (0, 1)]
    return f"even channels {used[0]} of {half}, odd channels {used[1]} of {half}"

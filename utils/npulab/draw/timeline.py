"""Who was busy when: cores, DMA channels and the host along the cycles of a simulated run.

A track whose events are wide enough is drawn event by event. Where events would be thinner than a pixel or two, the track
becomes a strip chart: in each column, how much of the time went to what. So 32 cores and a million events stay readable.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from npulab.draw.contents import parts
from npulab.draw.svg import Canvas, Picture, fit, number, text_width
from npusim.report import Report, TraceEvent

KINDS: dict[str, tuple[str, str]] = {
    "scalar": ("f-teal", "scalar code"),
    "cascade": ("f-pink", "cascade"),
    "transfer": ("f-green", "DMA moving data"),
    "task": ("t-purple", "host task"),
    "stall": ("t-red", "waiting"),
}
"""Kind of event other than kernels -> (class, words)."""

KERNEL_HUES = ("blue", "gold", "orange")

LEFT, PLOT, RIGHT = 164.0, 560.0, 46.0
BIN = 2.0  # px, width of a strip chart's columns
HINTS = 1500  # with more events in the window, none tells more under the mouse: it would double the picture's size
STEPS = 16  # heights that a column of a strip chart can have
TINY = 1.5  # px, below this an event is too thin to be drawn on its own
Which = Literal["auto", "cores", "dma", "all"]


def plain(name: str) -> str:
    """A kernel's name without the eight hexadecimal digits that tell variants of IRON's library kernels apart."""
    return re.sub(r"^[0-9a-f]{8}_(?=\w)", "", name)


class _Palette:
    """The colour of an event: the kernels that took most time have their own, the other kernels share one."""

    def __init__(self, events: Sequence[TraceEvent]) -> None:
        time: Counter[str] = Counter()
        for event in events:
            if event.kind == "kernel":
                time[event.name] += event.duration
        self.own = [name for name, _ in time.most_common(len(KERNEL_HUES))]
        self.looks = {f"kernel {name}": (f"f-{hue}", plain(name)) for name, hue in zip(self.own, KERNEL_HUES)}
        if len(time) > len(self.own):
            self.looks["kernel"] = ("grey", f"{len(time) - len(self.own)} other kernels")
        self.looks |= KINDS

    def of(self, event: TraceEvent) -> str:
        """The key of an event's look."""
        if event.kind != "kernel":
            return event.kind
        return f"kernel {event.name}" if event.name in self.own else "kernel"


@dataclass
class _Track:
    """One line of the picture: ``members`` tracks of the trace, their events, and how many there are."""

    label: str
    members: list[str]
    events: list[TraceEvent]

    def busy(self, start: int, stop: int) -> float:
        """The share of the window that the members, on average, spent on anything but waiting."""
        work = sum(_overlap(e, start, stop) for e in self.events if e.kind != "stall")
        return work / (max(stop - start, 1) * len(self.members))


def _overlap(event: TraceEvent, start: int, stop: int) -> int:
    return max(0, min(event.start + event.duration, stop) - max(event.start, start))


def _place(track: str) -> tuple[int, int, int, str, int]:
    """Sort key: host, then each tile from the lower left, core before its channels, S2MM before MM2S."""
    found = re.search(r"\((\d+),(\d+)\)", track)
    if not found:
        return (-1, 0, 0, track, 0)
    channel = re.match(r"(S2MM|MM2S) (\d+)", track)
    return (
        int(found[1]),
        int(found[2]),
        0 if channel is None else 1 if channel[1] == "S2MM" else 2,
        "",
        int(channel[2]) if channel else 0,
    )


def _group(track: str) -> str:
    """What a channel's track is folded into where there are too many."""
    found = re.match(r"(S2MM|MM2S) \d+ of tile \((\d+),(\d+)\)", track)
    if not found:
        return track
    row = int(found[3])
    return f"{('shim', 'MemTile', 'core')[min(row, 2)]} {found[1]}"


def _wanted(track: str, tracks: Which | Sequence[str]) -> bool:
    is_channel = track.startswith(("S2MM", "MM2S"))
    if tracks in ("auto", "all"):
        return True
    if tracks == "cores":
        return not is_channel
    if tracks == "dma":
        return is_channel or track == "host"
    return any(word in track for word in tracks)


def _tracks(report: Report, tracks: Which | Sequence[str], fold: int = 14) -> list[_Track]:
    events: dict[str, list[TraceEvent]] = defaultdict(list)
    for event in report.trace:
        if _wanted(event.track, tracks):
            events[event.track].append(event)
    channels = sum(name.startswith(("S2MM", "MM2S")) for name in events)
    folding = tracks == "auto" and channels > fold
    found: dict[str, _Track] = {}
    for name in sorted(events, key=_place):
        label = _group(name) if folding else name
        track = found.setdefault(label, _Track(label, [], []))
        track.members.append(name)
        track.events += events[name]
    order = [f"{tile} {way}" for tile in ("shim", "MemTile", "core") for way in ("MM2S", "S2MM")]
    groups = [found.pop(label) for label in order if label in found]
    return [*found.values(), *groups]


def _label(track: _Track) -> str:
    if len(track.members) > 1:
        return f"{track.label} ({len(track.members)} channels)"
    return track.label.replace(" of tile ", " ")


class _Timeline:
    """One drawing in progress; ``start`` and ``stop`` in ticks."""

    def __init__(self, report: Report, tracks: list[_Track], start: int, stop: int) -> None:
        self.report, self.tracks, self.start, self.stop = report, tracks, start, stop
        self.row = 20.0 if len(tracks) <= 16 else 15.0
        self.scale = PLOT / max(stop - start, 1)
        self.canvas = Canvas(LEFT + PLOT + RIGHT, 0)
        self.palette = _Palette([e for track in tracks for e in track.events])
        self.seen: set[str] = set()
        self.strips = 0
        inside = (e for track in tracks for e in track.events if _overlap(e, start, stop))
        self.crowded = sum(1 for _ in inside) > HINTS

    def x(self, tick: float) -> float:
        return LEFT + (min(max(tick, self.start), self.stop) - self.start) * self.scale

    def busy(self, track: _Track) -> float:
        """The share of the window that a track was busy; over the whole run, a core's as the report has it."""
        if (self.start, self.stop) == (0, self.report.ticks):
            for use in self.report.cores:
                if track.members == [f"core {use.tile}"]:
                    return use.busy / max(self.report.ticks, 1)
        return track.busy(self.start, self.stop)

    def track(self, track: _Track, y: float) -> None:
        h = self.row - 4
        base = y + h - (3.5 if h > 12 else 2)
        self.canvas.text(LEFT - 8, base, fit(_label(track), LEFT - 12, 10), "small", "end")
        self.canvas.rect(LEFT, y, PLOT, h, "well", rx=1)
        if track.label != "host":
            self.canvas.text(LEFT + PLOT + 6, base, f"{self.busy(track):.0%}", "small")
        shown = [e for e in track.events if _overlap(e, self.start, self.stop)]
        self.seen |= {self.palette.of(e) for e in shown}
        thin = sum(e.duration * self.scale < TINY for e in shown)
        if len(track.members) > 1 or thin > 0.25 * len(shown) or len(shown) > 400:
            self.strips += 1
            self.strip(track, shown, y, h)
        else:
            for event in sorted(shown, key=lambda e: e.kind != "stall"):
                self.event(event, y, h)

    def event(self, event: TraceEvent, y: float, h: float) -> None:
        x1, x2 = self.x(event.start), self.x(event.start + event.duration)
        cls, words = self.palette.looks[self.palette.of(event)]
        per = self.report.ticks_per_cycle
        hint = (
            ""
            if self.crowded
            else f"{event.name} ({words}): {event.duration / per:,.0f} cycles from {event.start / per:,.0f}"
        )
        gap = 0.7 if x2 - x1 > 4 else 0.0
        self.canvas.rect(x1, y, max(x2 - x1 - gap, 0.5), h, cls, hint=hint, stroke_width=0.6)
        name = plain(event.name)
        if event.kind != "stall" and h > 12 and text_width(name, 9) < x2 - x1 - 4:
            inside = "tiny" if cls.startswith("t-") or cls == "grey" else "tiny on"
            self.canvas.text((x1 + x2) / 2, y + h - 4.5, name, inside, "middle")

    def strip(self, track: _Track, events: list[TraceEvent], y: float, h: float) -> None:
        """Columns of ``BIN`` px, each filled from the bottom by kind in proportion to the time it took."""
        bins = int(PLOT / BIN)
        edges = np.linspace(self.start, self.stop, bins + 1)
        sorts: dict[str, list[TraceEvent]] = defaultdict(list)
        for event in events:
            sorts[self.palette.of(event)].append(event)
        filled: np.ndarray[Any, Any] = np.zeros(bins)
        low: np.ndarray[Any, Any] = np.zeros(bins, dtype=int)
        for key, (cls, _) in self.palette.looks.items():
            if not sorts[key]:
                continue
            filled = filled + _coverage(sorts[key], edges) / len(track.members)
            high = np.rint(np.clip(filled, 0, 1) * STEPS).astype(int)
            if (high > low).any():
                self.canvas.path(_strip_path(low, high, y, h / STEPS), cls, style="stroke:none")
            low = high

    def grid(self, bottom: float) -> None:
        """Cycles along the tracks, drawn before them."""
        per = self.report.ticks_per_cycle
        first, last = self.start / per, self.stop / per
        step = _nice((last - first) / 7)
        at = np.ceil(first / step) * step
        while at <= last + 1e-9:
            x = self.x(at * per)
            self.canvas.line(x, 42, x, bottom, "rule")
            self.canvas.text(x, bottom + 12, f"{at:,.0f}", "small", "middle")
            at += step
        microseconds = (last - first) / self.report.clock_hz * 1e6
        clock = f"{self.report.clock_hz / 1e9:g} GHz"
        words = f"simulated core cycles (the window is {last - first:,.0f} cycles, {microseconds:,.4g} µs at {clock})"
        self.canvas.text(LEFT + PLOT / 2, bottom + 27, words, "small faint", "middle")

    def picture(self, title: str) -> Picture:
        c = self.canvas
        c.text(8, 18, title, "head")
        c.text(LEFT + PLOT + 6, 36, "busy", "small faint")
        bottom = 44.0 + self.row * len(self.tracks)
        self.grid(bottom)
        for i, track in enumerate(self.tracks):
            self.track(track, 44.0 + self.row * i)
        entries = [look for key, look in self.palette.looks.items() if key in self.seen]
        c.height = c.legend(LEFT, bottom + 48, entries, PLOT)
        if self.strips:
            words = "Tracks with very short events are strip charts: a column is filled in proportion to the time each kind took."
            c.text(LEFT, c.height, words, "small faint")
            c.height += 14
        return c.picture(title, self.alt())

    def alt(self) -> str:
        per = self.report.ticks_per_cycle
        words = [f"Simulated cycles {self.start / per:,.0f} to {self.stop / per:,.0f}, {len(self.tracks)} tracks."]
        for track in self.tracks[:12]:
            words.append(f"{_label(track)}: busy {self.busy(track):.0%}.")
        if len(self.tracks) > 12:
            shares = [self.busy(t) for t in self.tracks[12:]]
            words.append(f"The other {len(shares)} are busy between {min(shares):.0%} and {max(shares):.0%}.")
        return " ".join(words)


def _coverage(events: list[TraceEvent], edges: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """How much of each bin the events cover, summed over events, in parts of a bin."""
    if not events:
        return np.zeros(len(edges) - 1)
    starts = np.array([e.start for e in events], float)
    stops = starts + np.array([e.duration for e in events], float)
    # the integral of "how many are running" up to each edge, as a difference of two sums over sorted ends
    return np.diff(_area(starts, edges) - _area(stops, edges)) / np.diff(edges)


def _area(points: np.ndarray[Any, Any], edges: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Sum over points p of max(edge - p, 0), for each edge."""
    points = np.sort(points)
    sums = np.concatenate([[0.0], np.cumsum(points)])
    below = np.searchsorted(points, edges)
    return below * edges - sums[below]


def _strip_path(low: np.ndarray[Any, Any], high: np.ndarray[Any, Any], y: float, unit: float) -> str:
    """One path for all columns of a kind, from ``low`` to ``high`` units above the foot of the track; equal neighbours are
    one rectangle."""
    edges = np.flatnonzero(np.diff(low) | np.diff(high)) + 1
    d = []
    for i, j in zip([0, *edges.tolist()], [*edges.tolist(), len(low)]):
        if high[i] > low[i]:
            top, tall, wide = y + unit * (STEPS - high[i]), unit * (high[i] - low[i]), (j - i) * BIN
            d.append(f"M{LEFT + i * BIN:g} {number(top)}h{wide:g}v{number(tall)}h-{wide:g}z")
    return "".join(d)


def _nice(step: float) -> float:
    """1, 2 or 5 times a power of ten, at least ``step``."""
    power = 10.0 ** np.floor(np.log10(max(step, 1e-9)))
    return float(max(next(m * power for m in (1, 2, 5, 10) if m * power >= step), 1.0))


def timeline(
    of: Any,
    *,
    start: float | None = None,
    stop: float | None = None,
    tracks: Which | Sequence[str] = "auto",
    title: str | None = None,
) -> Picture:
    """Cores, DMA channels and the host along a simulated run: pass a Run or a Report with a trace.

    ``start`` and ``stop`` (core cycles) zoom in. ``tracks`` is ``cores``, ``dma``, ``all`` (every channel on its own),
    ``auto`` (more than fourteen channels are folded, one line for each kind of tile and direction), or a list of words that a
    track's name must contain, such as ``["(0,2)", "host"]``.

    Raises:
        ValueError: if the run has no trace, no track fits, or the window is empty.
    """
    _, report = parts(of)
    if report is None or not report.trace:
        raise ValueError("no trace to draw: run with trace=True")
    chosen = _tracks(report, tracks)
    if not chosen:
        raise ValueError(f"no track's name contains any of {list(tracks)!r}")
    per = report.ticks_per_cycle
    first = 0 if start is None else int(start * per)
    last = report.ticks if stop is None else int(stop * per)
    if not first < last:
        raise ValueError(f"the window from {start} to {stop} cycles is empty")
    return _Timeline(report, chosen, first, last).picture(
        title or f"Timeline on {report.machine.device.name}, simulated"
    )

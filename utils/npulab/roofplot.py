"""The picture of a roofline: three roofs with their ridge points, and points that say how they were come by."""

from __future__ import annotations

import io
import re
from collections.abc import Mapping
from dataclasses import dataclass
from html import escape
from typing import Any, Literal

import matplotlib
import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from npulab.draw.svg import Picture, wrap
from npulab.draw.theme import FONT, HUES
from npulab.record import LEVEL_NAMES, Run, counted_text, si
from npulab.roofline import Prediction, Roofline
from npusim.report import LEVELS, Level

WIDTH, HEIGHT = 760.0, 500.0
INK = "#010203"
"""Stands for the page's own colour in what matplotlib writes."""

PointKind = Literal["predicted", "simulated", "measured", "published"]
LEVEL_HUES: dict[Level, str] = {"ddr": "blue", "memtile": "orange", "l1": "green"}
LEVEL_LINES: dict[Level, tuple[float, Any]] = {
    "ddr": (3.4, "-"),
    "memtile": (2.0, (0, (6, 2))),
    "l1": (2.0, (0, (2.5, 2))),
}
"""Width and dashes, so that roofs that coincide are all to be seen."""
LOOKS: dict[PointKind, tuple[str, str, float]] = {
    "predicted": ("none", "o", 8.5),
    "simulated": ("purple", "s", 7.0),
    "measured": ("red", "D", 7.0),
    "published": ("gold", "*", 11.0),
}
"""Kind -> (hue of the face, marker, size)."""


@dataclass(frozen=True)
class Point:
    """Something at (operational intensity at each level, FLOP/cycle)."""

    name: str
    kind: PointKind
    flops_per_cycle: float
    intensity: Mapping[Level, float]


def published(name: str, flops_per_second: float, intensity: Mapping[Level, float], clock_hz: float) -> Point:
    """A figure from the literature; put its source in ``name``. ``clock_hz`` is what it is taken to have run at."""
    return Point(name, "published", flops_per_second / clock_hz, intensity)


def point(of: Any, roof: Roofline) -> Point:
    """The point of a Run (with flops), a Prediction or a Point; TypeError for anything else, ValueError without flops."""
    if isinstance(of, Point):
        return of
    if isinstance(of, Prediction):
        levels: dict[Level, float | None] = {level: of.intensity(level) for level in LEVELS}
        return Point(of.name, "predicted", of.flops_per_cycle, {k: v for k, v in levels.items() if v})
    if isinstance(of, Run):
        if of.flops is None:
            raise ValueError(f"{of.name} has no flops: use run.having(flops=...)")
        levels = {level: of.intensity(level, roof.convention) for level in LEVELS}
        speed = of.flops_per_cycle or of.flops / of.seconds / roof.device.clock_hz
        return Point(of.name, of.kind, speed, {k: v for k, v in levels.items() if v})
    raise TypeError(f"cannot plot a {type(of).__name__}; pass a Run, a Prediction or a Point")


def number(value: float) -> str:
    """Three or four digits; whole thousands with commas."""
    return f"{value:,.0f}" if value >= 1000 else f"{value:.4g}"


class _Plot:
    """One figure in progress. ``scale`` turns FLOP/cycle into what the axis shows."""

    def __init__(self, roof: Roofline, points: list[Point], unit: Literal["cycle", "second"]) -> None:
        self.roof, self.points = roof, points
        self.scale = 1.0 if unit == "cycle" else roof.device.clock_hz / 1e9
        self.unit = "FLOP/cycle" if unit == "cycle" else "GFLOP/s"
        self.figure = Figure(figsize=(WIDTH / 72, HEIGHT / 72))
        self.axes = self.figure.subplots()
        ridges = [roof.ridge(level) for level in LEVELS]
        xs = [*ridges, *(x for p in points for x in p.intensity.values())]
        self.left, self.right = min(xs) / 6, max(xs) * 6

    def roofs(self) -> None:
        for level in LEVELS:
            ridge, colour = self.roof.ridge(level), HUES[LEVEL_HUES[level]][0]
            width = self.roof.width(level)
            xs = np.array([self.left, ridge])
            speed = (
                f"{width:.4g} B/cycle" if self.unit == "FLOP/cycle" else si(width * self.roof.device.clock_hz, "B/s")
            )
            label = f"{LEVEL_NAMES[level]}: {speed}, ridge {ridge:.3g} FLOP/B"
            thick, dashes = LEVEL_LINES[level]
            self.axes.plot(
                xs,
                xs * width * self.scale,
                color=colour,
                lw=thick,
                ls=dashes,
                label=label,
                alpha=0.55 if thick > 3 else 1,
            )
            self.axes.plot([ridge], [self.roof.ceiling * self.scale], marker="v", ms=6, color=colour, clip_on=False)
        first = min(self.roof.ridge(level) for level in LEVELS)
        top = self.roof.ceiling * self.scale
        self.axes.plot([first, self.right], [top, top], color=INK, lw=2)
        tiles = "1 tile" if self.roof.tiles == 1 else f"{self.roof.tiles} tiles"
        words = f"compute ceiling {number(top)} {self.unit} ({self.roof.dtype}, {tiles})"
        self.axes.annotate(words, (self.right, top), (-4, 6), textcoords="offset points", ha="right", color=INK)

    def marks(self) -> None:
        """Every point once a level, outlined in the level's colour, at the same height."""
        for p in self.points:
            face, marker, size = LOOKS[p.kind]
            fill = "none" if face == "none" else HUES[face][0]
            y = p.flops_per_cycle * self.scale
            xs = [p.intensity[level] for level in LEVELS if level in p.intensity]
            self.axes.plot([min(xs), max(xs)], [y, y], color=INK, lw=0.8, ls=":", zorder=2)
            for level in LEVELS:
                if level in p.intensity:
                    edge = HUES[LEVEL_HUES[level]][0]
                    style: dict[str, Any] = {"mfc": fill, "mec": edge, "mew": 1.8, "ls": "none", "zorder": 5}
                    self.axes.plot([p.intensity[level]], [y], marker=marker, ms=size, **style)
            legend: dict[str, Any] = {
                "mfc": fill,
                "mec": INK,
                "ls": "none",
                "label": f"{p.name}: {p.kind} {number(y)} {self.unit}",
            }
            self.axes.plot([], [], marker=marker, ms=size, **legend)
            beside = (8, 4) if p.kind == "predicted" else (8, -12)  # what was predicted lies above what was achieved
            self.axes.annotate(p.name, (max(xs), y), beside, textcoords="offset points", color=INK, fontsize=9)

    def dress(self) -> None:
        ax = self.axes
        lowest = min([p.flops_per_cycle for p in self.points], default=self.roof.ceiling / 100)
        ax.set(xscale="log", yscale="log", xlim=(self.left, self.right))
        ax.set_ylim(min(lowest, self.roof.ceiling / 30) * self.scale / 3, self.roof.ceiling * self.scale * 2.4)
        ax.set_xlabel(f"operational intensity (FLOP/B, bytes counted {counted_text(self.roof.convention)})", color=INK)
        ax.set_ylabel(self.unit, color=INK)
        ax.grid(True, which="major", color=INK, alpha=0.15, lw=0.8)
        ax.tick_params(which="both", colors=INK)
        for spine in ax.spines.values():
            spine.set(color=INK, alpha=0.5)
        for axis in (ax.xaxis, ax.yaxis):
            axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,g}"))
        ax.patch.set_alpha(0)
        self.figure.patch.set_alpha(0)
        at: dict[str, Any] = {"loc": "upper left", "bbox_to_anchor": (0.0, 1 - 24 / HEIGHT)}
        box = self.figure.legend(ncols=2, frameon=False, labelcolor=INK, fontsize=10, handlelength=3, **at)
        lines = -(-len(box.get_texts()) // 2)
        self.figure.subplots_adjust(left=0.09, right=0.98, bottom=0.11, top=1 - (17 * lines + 44) / HEIGHT)

    def svg(self) -> str:
        out = io.StringIO()
        with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": "npulab", "font.size": 11}):
            self.roofs()
            self.marks()
            self.dress()
            self.figure.savefig(out, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
        return out.getvalue()

    def alt(self) -> str:
        words = [f"Roofline of {self.roof.device.name}, {self.roof.scope}, bytes counted {counted_text(self.roof.convention)}."]
        words.append(f"Compute ceiling {number(self.roof.ceiling * self.scale)} {self.unit} for {self.roof.dtype}.")
        for level in LEVELS:
            width = self.roof.width(level)
            words.append(f"{LEVEL_NAMES[level]}: {width:.4g} B/cycle, ridge point {self.roof.ridge(level):.3g} FLOP/B.")
        for p in self.points:
            at = ", ".join(f"{p.intensity[k]:.3g} FLOP/B at {LEVEL_NAMES[k]}" for k in LEVELS if k in p.intensity)
            words.append(f"{p.name}, {p.kind}: {number(p.flops_per_cycle * self.scale)} {self.unit}; {at}.")
        return " ".join(words)


def adopt(svg: str) -> str:
    """The drawing inside what matplotlib wrote, with our colours, our font, ids of its own and no rule for the page."""
    body = re.search(r"<svg[^>]*>(.*)</svg>", svg, re.S)
    assert body is not None
    text = re.sub(r"<metadata>.*?</metadata>", "", body[1], flags=re.S)
    text = re.sub(r"<style type=\"text/css\">.*?</style>", "", text, flags=re.S)
    text = re.sub(r'\bid="', 'id="ID_', text)
    text = re.sub(r'(url\(#|href="#)', r"\1ID_", text.replace("xlink:href", "href"))
    text = text.replace(INK, "currentColor")
    for name, (light, _) in HUES.items():
        text = text.replace(light, f"var(--npu-{name},{light})")
    font = FONT.replace('"', "'")
    text = re.sub(r"font: ([\d.]+px) [^;\"]*", rf"font: \1 {font}", text)
    text = re.sub(r"<text style=\"", '<text style="fill: currentColor; ', text)
    return f'<g style="stroke-linejoin:round">{text}</g>'


def plot(
    *points: Any, roof: Roofline | None = None, unit: Literal["cycle", "second"] = "cycle", title: str = ""
) -> Picture:
    """The three rooflines with their ridge points, and points: Runs (with flops), Predictions, Points from :func:`published`.

    Without ``roof`` the first Prediction's is taken. ``unit`` is ``cycle`` (FLOP/cycle, B/cycle) or ``second``
    (GFLOP/s at the device's clock). The legend says of each point whether it is predicted, simulated, measured or published.

    Raises:
        ValueError: without a roofline, or for a Run without flops.
    """
    roof = roof or next((p.roofline for p in points if isinstance(p, Prediction)), None)
    if roof is None:
        raise ValueError("no roofline to plot: pass roof=roofline(...) or a Prediction")
    drawing = _Plot(roof, [point(p, roof) for p in points], unit)
    name = title or f"Roofline of {roof.device.name}, {roof.scope}"
    body = f'<text class="head" x="8" y="18">{escape(name)}</text>' + adopt(drawing.svg())
    return wrap(body, WIDTH, HEIGHT, name, drawing.alt(), figure=drawing.figure)

"""The same points on the roof of each level: three small rooflines side by side, one vertical axis.

One picture with three roofs (:mod:`npulab.roofplot`) is right for one or two points. For the steps of a design's way from one
bound to the next, each level gets a panel of its own, where a point shows its operational intensity at that level only.
"""

from __future__ import annotations

import io
from collections.abc import Mapping
from html import escape
from typing import Any, Literal

import matplotlib
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from npulab.draw.svg import Picture, text_width, wrap
from npulab.draw.theme import HUES
from npulab.record import LEVEL_NAMES, way
from npulab.roofline import Prediction, Roofline
from npulab.roofplot import INK, LEVEL_HUES, LOOKS, Point, adopt, number, point
from npusim.report import LEVELS, Level

WIDTH, HEIGHT = 760.0, 380.0


def levels(
    *points: Any,
    roof: Roofline | None = None,
    ceilings: Mapping[str, float] | None = None,
    unit: Literal["cycle", "second"] = "cycle",
    title: str = "",
    joined: bool = True,
) -> Picture:
    """Each point (Run, Prediction or Point) in a panel for every level at which it moves bytes; unless they are not steps of
    one way (``joined``), a dotted line joins the simulated or measured ones in the order given. ``ceilings`` are further compute ceilings to show, by name, in FLOP/cycle.

    Raises:
        ValueError: without a roofline, or for a Run without flops.
    """
    roof = roof or next((p.roofline for p in points if isinstance(p, Prediction)), None)
    if roof is None:
        raise ValueError("no roofline to plot: pass roof=roofline(...) or a Prediction")
    drawing = _Panels(roof, [point(p, roof) for p in points], dict(ceilings or {}), unit, joined)
    drawing.widths.update(_busier(roof, [p for p in points if isinstance(p, Prediction)]))
    name = title or f"{roof.device.name}, {roof.scope}: each level's roof"
    body = f'<text class="head" x="8" y="18">{escape(name)}</text>' + adopt(drawing.svg())
    return wrap(body, WIDTH, HEIGHT, name, drawing.alt(), figure=drawing.figure)


def _busier(roof: Roofline, predictions: list[Prediction]) -> dict[Level, float]:
    """B/cycle of the direction that limits the predictions, at levels that are counted each way."""
    found: dict[Level, float] = {}
    for level in LEVELS:
        moving = [p for p in predictions if p.bytes.get(level)]
        if way(roof.convention, level) == "each way" and moving:
            found[level] = min(p.bytes[level] / p.bounds[level] for p in moving)
    return found


class _Panels:
    """One figure in progress."""

    def __init__(self, roof: Roofline, points: list[Point], ceilings: dict[str, float], unit: str, joined: bool) -> None:
        self.joined = joined
        self.roof, self.points, self.ceilings = roof, points, ceilings
        self.scale = 1.0 if unit == "cycle" else roof.device.clock_hz / 1e9
        self.unit = "FLOP/cycle" if unit == "cycle" else "GFLOP/s"
        self.widths: dict[Level, float] = {level: roof.width(level) for level in LEVELS}
        self.figure = Figure(figsize=(WIDTH / 72, HEIGHT / 72), dpi=72)
        self.axes = dict(zip(LEVELS, self.figure.subplots(1, 3, sharey=True)))

    def ridge(self, level: Level) -> float:
        """The ridge point in FLOP/B."""
        return self.roof.ceiling / self.widths[level]

    def panel(self, level: Level) -> None:
        """A level's roof, its ridge point, and the points on it."""
        axes, roof, colour = self.axes[level], self.roof, HUES[LEVEL_HUES[level]][0]
        ridge, top = self.ridge(level), roof.ceiling * self.scale
        xs = [ridge, *(p.intensity[level] for p in self.points if level in p.intensity)]
        left, right = min(xs) / 3, max([*xs, *(c / self.widths[level] for c in self.ceilings.values())]) * 2.5
        highest = max([roof.ceiling, *self.ceilings.values()]) * self.scale
        slope_end = highest / (self.widths[level] * self.scale)
        axes.plot([left, ridge, right], [left * self.widths[level] * self.scale, top, top], color=colour, lw=2.4)
        axes.plot([ridge, slope_end], [top, highest], color=colour, lw=1.2, ls=(0, (2, 2)))
        axes.plot([ridge], [top], marker="v", ms=6, color=colour)
        room = ridge / left > (right / left) ** 0.4  # for the words, left of the ridge
        above = 12 if any(0.8 * top < p.flops_per_cycle * self.scale for p in self.points) else 4  # a point on the roof
        beside: dict[str, Any] = {"xytext": (0, 7) if room else (16, above), "ha": "right" if room else "left"}
        axes.annotate(f"ridge {number(ridge)}", (ridge, top), textcoords="offset points", color=INK, fontsize=9, **beside)
        for value in self.ceilings.values():
            axes.plot([value / self.widths[level], right], [value * self.scale] * 2, color=INK, lw=1.2, ls=(0, (5, 2)))
        self._marks(axes, level, colour)
        axes.set(xscale="log", yscale="log", xlim=(left, right))
        axes.set_title(
            f"{LEVEL_NAMES[level]}\n{self.widths[level]:.4g} B/cycle {way(roof.convention, level)}",
            color=INK,
            fontsize=10,
        )

    def _marks(self, axes: Any, level: Level, colour: str) -> None:
        ran = [
            (p.intensity[level], p.flops_per_cycle * self.scale)
            for p in self.points
            if p.kind in ("simulated", "measured") and level in p.intensity
        ]
        if self.joined:
            axes.plot([x for x, _ in ran], [y for _, y in ran], color=INK, lw=0.9, ls=":", zorder=3)
        for p in self.points:
            if level not in p.intensity:
                continue
            face, marker, size = LOOKS[p.kind]
            at = (p.intensity[level], p.flops_per_cycle * self.scale)
            fill = "none" if face == "none" else HUES[face][0]
            axes.plot(*at, marker=marker, ms=size, mfc=fill, mec=colour, mew=1.6, ls="none", zorder=5)

    def _alone(self, p: Point) -> bool:
        """Whether no run bears this prediction's name, so that the name must stand beside the prediction."""
        return not any(q.name == p.name and q.kind != "predicted" for q in self.points)

    def _names(self, axes: Any, level: Level) -> None:
        """A name beside each point, on the first side of it where no other name or mark is and the panel does not end."""
        place = axes.transData.transform
        shown = [p for p in self.points if level in p.intensity]
        taken = [tuple(place((p.intensity[level], p.flops_per_cycle * self.scale))) for p in shown]
        named = [(p, at) for p, at in zip(shown, taken) if p.kind != "predicted" or self._alone(p)]
        for p, (x, y) in named:
            wide = text_width(p.name, 10)
            for dx, dy in ((8, -11), (8, 4), (-8 - wide, -11), (-8 - wide, 4), (8, -22), (8, 15)):
                middle = (x + dx + wide / 2, y + dy + 4)
                free = all(abs(middle[0] - a) > 6 + wide / 2 or abs(middle[1] - b) > 9 for a, b in taken)
                if free and axes.bbox.x0 < x + dx and x + dx + wide < axes.bbox.x1:
                    break
            taken.append(middle)
            axes.annotate(
                p.name, (x, y), (dx, dy), xycoords="figure pixels", textcoords="offset points", color=INK, fontsize=10
            )

    def dress(self) -> None:
        """Axes, grid, legend, names."""
        tops = [self.roof.ceiling, *self.ceilings.values()]
        lowest = min([p.flops_per_cycle for p in self.points], default=self.roof.ceiling / 100)
        for level, axes in self.axes.items():
            axes.set_ylim(lowest * self.scale / 2.5, max(tops) * self.scale * 1.8)
            axes.grid(True, which="major", color=INK, alpha=0.15, lw=0.8)
            axes.tick_params(which="both", colors=INK)
            for spine in axes.spines.values():
                spine.set(color=INK, alpha=0.5)
            axes.xaxis.set_major_locator(LogLocator(subs=(1, 3)))
            axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
            for axis in (axes.xaxis, axes.yaxis):
                axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,g}"))
                axis.set_minor_formatter(NullFormatter())
            axes.patch.set_alpha(0)
            if level == "memtile":
                axes.set_xlabel("operational intensity at the level (FLOP/B)", color=INK)
        self.axes["ddr"].set_ylabel(self.unit, color=INK)
        self.figure.patch.set_alpha(0)
        self._legend()
        for level, axes in self.axes.items():
            self._names(axes, level)

    def _legend(self) -> None:
        axes = self.axes["ddr"]
        for kind in dict.fromkeys(p.kind for p in self.points):
            face, marker, size = LOOKS[kind]
            fill = "none" if face == "none" else HUES[face][0]
            axes.plot([], [], marker=marker, ms=size, mfc=fill, mec=INK, ls="none", label=kind)
        axes.plot(
            [], [], color=INK, lw=2.4, label=f"roof, ceiling {number(self.roof.ceiling * self.scale)} {self.unit}"
        )
        for name, value in self.ceilings.items():
            axes.plot([], [], color=INK, lw=1.2, ls=(0, (5, 2)), label=f"{name} {number(value * self.scale)}")
        at: dict[str, Any] = {"loc": "upper left", "bbox_to_anchor": (0.0, 1 - 22 / HEIGHT)}
        box = self.figure.legend(
            ncols=4, frameon=False, labelcolor=INK, fontsize=9.5, handlelength=2.4, columnspacing=1.4, **at
        )
        lines = -(-len(box.get_texts()) // 4)
        self.figure.subplots_adjust(left=0.09, right=0.985, bottom=0.14, top=1 - (16 * lines + 72) / HEIGHT, wspace=0.1)

    def svg(self) -> str:
        out = io.StringIO()
        with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": "npulab", "font.size": 11}):
            for level in LEVELS:
                self.panel(level)
            self.dress()
            self.figure.savefig(out, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
        return out.getvalue()

    def alt(self) -> str:
        """All numbers in words, level after level."""
        roof = self.roof
        words = [
            f"Three rooflines of {roof.device.name}, {roof.scope}, compute ceiling {number(roof.ceiling * self.scale)} {self.unit}."
        ]
        words += [f"Further ceiling, {name}: {number(value * self.scale)}." for name, value in self.ceilings.items()]
        for level in LEVELS:
            at = [
                f"{p.name} {p.kind} {number(p.flops_per_cycle * self.scale)} at {p.intensity[level]:.3g} FLOP/B"
                for p in self.points
                if level in p.intensity
            ]
            words.append(
                f"{LEVEL_NAMES[level]}, {self.widths[level]:.4g} B/cycle counted {way(roof.convention, level)}, ridge point "
                f"{self.ridge(level):.3g} FLOP/B: {'; '.join(at) or 'no points'}."
            )
        return " ".join(words)

"""What more tiles bring: runs as points over tiles (or columns), the roofline's bound as lines, published figures as stars."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from html import escape
from typing import TYPE_CHECKING, Any

from npulab.draw.svg import Picture, wrap
from npulab.draw.sweep import HEIGHT, MARKERS, WIDTH, _number, _svg
from npulab.draw.theme import FIFO_HUES, HUES
from npulab.record import Run

if TYPE_CHECKING:
    from npulab.roofline import Prediction

Value = Callable[[Any], float]
"""What is drawn of a Run or a Prediction."""


def scaling(
    runs: Mapping[str, Mapping[int, Run]],
    bounds: Mapping[str, Mapping[int, Prediction]] | None = None,
    published: Mapping[str, Mapping[int, float]] | None = None,
    *,
    base: Run | None = None,
    value: Value | None = None,
    x: str = "compute tiles",
    y: str = "",
    title: str = "Scaling",
) -> Picture:
    """A picture of ``value`` over how much of the array is used: for each label a Run for each number of tiles, under the same
    label the Predictions, and under labels of their own (put the source there) published values in the unit of ``y``.

    With ``base`` the value is the speed-up over that run, and a dotted line shows one in proportion to the tiles.

    Raises:
        ValueError: unless exactly one of ``base`` and ``value`` is given, or where a label has no runs.
    """
    if (base is None) == (value is None):
        raise ValueError("give either base, the run that speed-ups are over, or value, what to draw of a run")
    if empty := [label for label, those in runs.items() if not those]:
        raise ValueError(f"{empty[0]!r} has no runs")
    over = base.seconds if base is not None else 1.0
    of = value or (lambda run: over / run.seconds)
    words = y or ("times as fast as one" if base is not None else "value")
    kinds = {run.kind for those in runs.values() for run in those.values()} | ({"published"} if published else set())
    name = f"{title}, {' and '.join(sorted(kinds))}"
    lines = _Lines(runs, bounds or {}, published or {}, of)
    figure = lines.figure(x, words, proportional=base is not None)
    body = f'<text class="head" x="8" y="18">{escape(name)}</text>' + _svg(figure)
    return wrap(body, WIDTH, HEIGHT, name, f"{words} over {x}. {lines.alt()}", figure=figure)


class _Lines:
    """The values to draw, as (numbers of tiles, values) under labels."""

    def __init__(
        self,
        runs: Mapping[str, Mapping[int, Run]],
        bounds: Mapping[str, Mapping[int, Prediction]],
        published: Mapping[str, Mapping[int, float]],
        of: Value,
    ) -> None:
        self.kinds = {label: next(iter(those.values())).kind for label, those in runs.items()}
        self.runs = {label: {n: of(run) for n, run in sorted(those.items())} for label, those in runs.items()}
        self.bounds = {label: {n: of(p) for n, p in sorted(those.items())} for label, those in bounds.items()}
        self.published = {label: dict(sorted(those.items())) for label, those in published.items()}

    def figure(self, x: str, y: str, *, proportional: bool) -> Any:
        from matplotlib.figure import Figure

        from npulab.roofplot import INK, LOOKS

        figure = Figure(figsize=(WIDTH / 72, HEIGHT / 72))
        axes = figure.subplots()
        for i, (label, points) in enumerate(self.runs.items()):
            hue, marker = HUES[FIFO_HUES[i % len(FIFO_HUES)]][0], MARKERS[i % len(MARKERS)]
            look: dict[str, Any] = {"ls": "none", "marker": marker, "ms": 7.5, "color": hue, "zorder": 4}
            axes.plot([*points], [*points.values()], label=f"{label}: {self.kinds[label]}", **look)
            if bound := self.bounds.get(label):
                axes.plot([*bound], [*bound.values()], ls=(0, (5, 2)), lw=1.6, color=hue, label=f"{label}: predicted bound")
        hue, marker, size = LOOKS["published"]
        for label, points in self.published.items():
            star: dict[str, Any] = {"ls": "none", "marker": marker, "ms": size, "color": HUES[hue][0], "zorder": 5}
            axes.plot([*points], [*points.values()], label=f"{label}: published", **star)
        most = max(n for points in self._all() for n in points)
        top = 1.08 * max(v for points in self._all() for v in points.values())
        axes.set(xlim=(0, most * 1.03), ylim=(0, top))
        if proportional:
            axes.plot([0, most], [0, most], ls=":", lw=1.4, color=INK, alpha=0.7, label="in proportion")
        self._dress(figure, axes, x, y)
        return figure

    def _all(self) -> Iterable[Mapping[int, float]]:
        return [*self.runs.values(), *self.bounds.values(), *self.published.values()]

    def _dress(self, figure: Any, axes: Any, x: str, y: str) -> None:
        from npulab.roofplot import INK

        ticks = sorted({n for points in [*self.runs.values(), *self.published.values()] for n in points})
        axes.set_xticks(ticks, [_number(n) for n in ticks])
        axes.set_xlabel(x, color=INK)
        axes.set_ylabel(y, color=INK)
        axes.grid(True, which="major", color=INK, alpha=0.15, lw=0.8)
        axes.tick_params(which="both", colors=INK)
        for spine in axes.spines.values():
            spine.set(color=INK, alpha=0.5)
        axes.patch.set_alpha(0)
        figure.patch.set_alpha(0)
        at: dict[str, Any] = {"loc": "upper left", "bbox_to_anchor": (0.0, 1 - 24 / HEIGHT)}
        box = figure.legend(ncols=2, frameon=False, labelcolor=INK, fontsize=10, handlelength=3, **at)
        lines = -(-len(box.get_texts()) // 2)
        figure.subplots_adjust(left=0.09, right=0.97, bottom=0.13, top=1 - (17 * lines + 40) / HEIGHT)

    def alt(self) -> str:
        """Every value in words."""
        words = []
        for label, points in self.runs.items():
            line = f"{label}, {self.kinds[label]}: {_listed(points)}"
            if bound := self.bounds.get(label):
                line += f"; predicted at most {_listed(bound)}"
            words.append(f"{line}.")
        words += [f"{label}, published: {_listed(points)}." for label, points in self.published.items()]
        return " ".join(words)


def _listed(points: Mapping[int, float]) -> str:
    return ", ".join(f"{value:.3g} at {_number(n)}" for n, value in points.items())

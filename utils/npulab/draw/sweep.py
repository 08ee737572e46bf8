"""Time over the size of the problem: runs as points, what the roofline allows as lines below them."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

from npulab.draw.svg import Picture, wrap
from npulab.draw.theme import FIFO_HUES, HUES
from npulab.record import Run, si

if TYPE_CHECKING:
    from npulab.roofline import Prediction

WIDTH, HEIGHT = 760.0, 430.0
MARKERS = ("s", "o", "^", "v", "P")


def sweep(
    sizes: Sequence[float],
    runs: Mapping[str, Sequence[Run]],
    bounds: Mapping[str, Sequence[Prediction]] | None = None,
    *,
    size: str = "n (elements)",
    title: str = "Time over size",
) -> Picture:
    """A picture of how long a design takes at each of ``sizes``: for every label a Run for each size and, under the same
    label, the Prediction for each. Both axes are logarithmic, so a straight line of slope 1 is time in proportion to size.

    Raises:
        ValueError: if a label has not one run (or prediction) for each size.
    """
    bounds = bounds or {}
    for label, those in [*runs.items(), *bounds.items()]:
        if len(those) != len(sizes):
            raise ValueError(f"{label!r} has {len(those)} entries for {len(sizes)} sizes")
    kinds = {run.kind for those in runs.values() for run in those}
    name = f"{title}, {' and '.join(sorted(kinds))}"
    figure = _figure(sizes, runs, bounds, size)
    body = f'<text class="head" x="8" y="18">{escape(name)}</text>' + _svg(figure)
    return wrap(body, WIDTH, HEIGHT, name, _alt(sizes, runs, bounds, size), figure=figure)


def _figure(sizes: Sequence[float], runs: Mapping[str, Sequence[Run]], bounds: Mapping[str, Sequence[Any]], size: str) -> Any:
    from matplotlib.figure import Figure
    from matplotlib.ticker import FuncFormatter, LogLocator

    from npulab.roofplot import INK

    figure = Figure(figsize=(WIDTH / 72, HEIGHT / 72))
    axes = figure.subplots()
    for i, (label, those) in enumerate(runs.items()):
        hue, marker = HUES[FIFO_HUES[i % len(FIFO_HUES)]][0], MARKERS[i % len(MARKERS)]
        times = [run.seconds * 1e6 for run in those]
        axes.plot(sizes, times, marker=marker, ms=6.5, lw=1.2, color=hue, label=f"{label}: {those[0].kind}", zorder=4)
        if label in bounds:
            least = [bound.seconds * 1e6 for bound in bounds[label]]
            axes.plot(sizes, least, ls=(0, (5, 2)), lw=1.6, color=hue, label=f"{label}: predicted from the roofline")
    axes.set(xscale="log", yscale="log")
    axes.set_xlabel(size, color=INK)
    axes.set_ylabel("µs", color=INK)
    axes.grid(True, which="major", color=INK, alpha=0.15, lw=0.8)
    axes.tick_params(which="both", colors=INK)
    axes.set_xticks(list(sizes), [_number(n) for n in sizes])
    axes.minorticks_off()
    low, high = axes.get_ylim()
    if high < 100 * low:  # else a power of ten or two would be all there is to read
        axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,g}"))
    for spine in axes.spines.values():
        spine.set(color=INK, alpha=0.5)
    axes.patch.set_alpha(0)
    figure.patch.set_alpha(0)
    at: dict[str, Any] = {"loc": "upper left", "bbox_to_anchor": (0.0, 1 - 24 / HEIGHT)}
    box = figure.legend(ncols=2, frameon=False, labelcolor=INK, fontsize=10, handlelength=3, **at)
    lines = -(-len(box.get_texts()) // 2)
    figure.subplots_adjust(left=0.09, right=0.97, bottom=0.13, top=1 - (17 * lines + 40) / HEIGHT)
    return figure


def _svg(figure: Any) -> str:
    import matplotlib

    from npulab.roofplot import adopt

    out = io.StringIO()
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": "npulab", "font.size": 11}):
        figure.savefig(out, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    return adopt(out.getvalue())


def _alt(sizes: Sequence[float], runs: Mapping[str, Sequence[Run]], bounds: Mapping[str, Sequence[Any]], size: str) -> str:
    words = [f"Time over {size}, both axes logarithmic, from {_number(sizes[0])} to {_number(sizes[-1])}."]
    for label, those in runs.items():
        line = f"{label}, {those[0].kind}: {si(those[0].seconds, 's')} to {si(those[-1].seconds, 's')}"
        if label in bounds:
            first, last = (those[i].seconds / bounds[label][i].seconds for i in (0, -1))
            line += f", {first:.3g} times the predicted least time at the left and {last:.3g} times at the right"
        words.append(f"{line}.")
    return " ".join(words)


def _number(value: float) -> str:
    return f"{value:,.0f}" if value == int(value) else f"{value:,g}"

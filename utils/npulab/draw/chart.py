"""A plain chart: some series over one axis, each with a line and a marker of its own, in the style of the other pictures."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import Any

from npulab.draw.svg import Picture, wrap
from npulab.draw.theme import FIFO_HUES, HUES

WIDTH, HEIGHT = 760.0, 380.0
MARKERS = ("o", "s", "^", "v", "D", "P", "X")
DASHES: tuple[Any, ...] = ("-", (0, (5, 2)), (0, (2, 2)), (0, (6, 2, 1.5, 2)))

Series = tuple[Sequence[float], Sequence[float]]
"""(x values, y values), equally many."""
Band = tuple[Sequence[float], Sequence[float], Sequence[float]]
"""(x values, least and most y values), equally many."""


def chart(
    series: Mapping[str, Series],
    *,
    x: str,
    y: str,
    title: str,
    logx: bool = False,
    logy: bool = False,
    markers: bool = True,
    ticks: Sequence[float] | None = None,
    published: Mapping[str, Series] | None = None,
    published_ranges: Mapping[str, Band] | None = None,
) -> Picture:
    """Each series by its name; ``x`` and ``y`` name the axes, with units. Say in the title or the names what is simulated,
    published or computed. ``ticks`` are the x axis' own numbers; without ``markers`` lines are smooth curves. What is
    ``published`` is drawn as stars without a line, outlined in the colour of the series of the same name if there is one; of what
    ``published_ranges`` hold only the least and the most are known, and all between them is a band.

    Raises:
        ValueError: if a series has not one y for each x, or nothing to draw; if the least of a range is more than its most.
    """
    stars, bands = dict(published or {}), dict(published_ranges or {})
    for name, (xs, ys) in [*series.items(), *stars.items(), *_edges(bands)]:
        if len(xs) != len(ys) or not len(xs):
            raise ValueError(f"series {name!r} has {len(xs)} x and {len(ys)} y values")
    figure = _figure(series, stars, bands, x, y, logx, logy, markers, ticks)
    body = f'<text class="head" x="8" y="18">{escape(title)}</text>' + _svg(figure)
    words = [_alt(series, x, y, logx, logy), *(_listed(name, those) for name, those in stars.items())]
    words += [_spanned(name, band) for name, band in bands.items()]
    return wrap(body, WIDTH, HEIGHT, title, " ".join(words), figure=figure)


def _figure(
    series: Mapping[str, Series],
    stars: Mapping[str, Series],
    bands: Mapping[str, Band],
    x: str,
    y: str,
    logx: bool,
    logy: bool,
    markers: bool,
    ticks: Sequence[float] | None,
) -> Any:
    from matplotlib.figure import Figure
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter, NullLocator

    from npulab.roofplot import INK

    figure = Figure(figsize=(WIDTH / 72, HEIGHT / 72))
    axes = figure.subplots()
    for i, (name, (xs, ys)) in enumerate(series.items()):
        look: dict[str, Any] = {
            "color": HUES[FIFO_HUES[i % len(FIFO_HUES)]][0],
            "ls": DASHES[i % len(DASHES)],
            "lw": 1.7 if markers else 1.2,
        }
        if markers:
            look |= {"marker": MARKERS[i % len(MARKERS)], "ms": 5.5}
        axes.plot(xs, ys, label=name, **look)
    _stars(axes, stars, list(series))
    _bands(axes, bands)
    axes.set(xscale="log" if logx else "linear", yscale="log" if logy else "linear")
    axes.set_xlabel(x, color=INK)
    axes.set_ylabel(y, color=INK)
    if logy:
        axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axes.yaxis.set_minor_formatter(NullFormatter())
    if ticks is not None:
        axes.set_xticks(list(ticks), [_number(n) for n in ticks])
        axes.xaxis.set_minor_locator(NullLocator())
    for axis, shown in ((axes.xaxis, ticks is None), (axes.yaxis, True)):
        if shown:
            axis.set_major_formatter(FuncFormatter(lambda value, _: _number(value)))
    axes.grid(True, which="major", color=INK, alpha=0.15, lw=0.8)
    axes.tick_params(which="both", colors=INK)
    for spine in axes.spines.values():
        spine.set(color=INK, alpha=0.5)
    axes.patch.set_alpha(0)
    figure.patch.set_alpha(0)
    at: dict[str, Any] = {"loc": "upper left", "bbox_to_anchor": (0.0, 1 - 24 / HEIGHT)}
    box = figure.legend(ncols=2, frameon=False, labelcolor=INK, fontsize=10, handlelength=3, **at)
    lines = -(-len(box.get_texts()) // 2)
    figure.subplots_adjust(left=0.1, right=0.97, bottom=0.14, top=1 - (17 * lines + 40) / HEIGHT)
    return figure


def _stars(axes: Any, stars: Mapping[str, Series], names: Sequence[str]) -> None:
    from npulab.roofplot import INK, LOOKS

    own, marker, size = LOOKS["published"]
    for name, (xs, ys) in stars.items():
        edge = HUES[FIFO_HUES[names.index(name) % len(FIFO_HUES)]][0] if name in names else INK
        look: dict[str, Any] = {"ls": "none", "marker": marker, "ms": size + 3, "mfc": HUES[own][0], "mec": edge, "mew": 1.6}
        axes.plot(xs, ys, label=f"{name}, published", zorder=5, **look)


def _edges(bands: Mapping[str, Band]) -> Iterator[tuple[str, Series]]:
    """The lower and the upper edge of each band; ValueError where they cross."""
    for name, (xs, low, high) in bands.items():
        yield name, (xs, low)
        yield name, (xs, high)
        if any(least > most for least, most in zip(low, high)):
            raise ValueError(f"range {name!r}: its least value is more than its most")


def _bands(axes: Any, bands: Mapping[str, Band]) -> None:
    """Published ranges: filled between their edges, which keep a narrow one to be seen."""
    from npulab.roofplot import LOOKS

    hue = HUES[LOOKS["published"][0]][0]
    for name, (xs, low, high) in bands.items():
        axes.fill_between(xs, low, high, facecolor=hue, edgecolor=hue, lw=2.5, alpha=0.55, zorder=1, label=f"{name}, published")


def _svg(figure: Any) -> str:
    import matplotlib

    from npulab.roofplot import adopt

    out = io.StringIO()
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": "npulab", "font.size": 11}):
        figure.savefig(out, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    return adopt(out.getvalue())


def _alt(series: Mapping[str, Series], x: str, y: str, logx: bool, logy: bool) -> str:
    """Axes in words; of each series both ends and, if they lie between, the lowest and the highest value."""
    scale = {
        (True, True): ", both axes logarithmic",
        (True, False): f", {x} logarithmic",
        (False, True): f", {y} logarithmic",
    }
    words = [f"{y} over {x}{scale.get((logx, logy), '')}."]
    for name, (xs, ys) in series.items():
        pairs = [(float(a), float(b)) for a, b in zip(xs, ys)]
        line = f"{name}: {_number(pairs[0][1])} at {_number(pairs[0][0])}, {_number(pairs[-1][1])} at {_number(pairs[-1][0])}"
        low, high = min(pairs, key=lambda p: p[1]), max(pairs, key=lambda p: p[1])
        ends = {pairs[0][1], pairs[-1][1]}
        line += "".join(
            f"; {word} {_number(b)} at {_number(a)}"
            for word, (a, b) in (("lowest", low), ("highest", high))
            if b not in ends
        )
        words.append(f"{line}.")
    return " ".join(words)


def _listed(name: str, points: Series) -> str:
    """Every published value in words."""
    return f"{name}, published: {', '.join(f'{_number(b)} at {_number(a)}' for a, b in zip(*points))}."


def _spanned(name: str, band: Band) -> str:
    """A published range in words: where it is the same from end to end, once."""
    xs, low, high = band
    same = len({*zip(low, high)}) == 1
    ends = [(0, f"from {_number(xs[0])} to {_number(xs[-1])}")] if same else [(i, f"at {_number(x)}") for i, x in enumerate(xs)]
    return f"{name}, published: {', '.join(f'{_number(low[i])} to {_number(high[i])} {where}' for i, where in ends)}."


def _number(value: float) -> str:
    """Whole numbers with commas, others with three digits."""
    if value == int(value) and abs(value) < 1e15:
        return f"{value:,.0f}"
    return f"{value:.3g}"

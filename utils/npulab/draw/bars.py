"""Bars of one quantity, each with its name and its value: what a change at a time makes of it."""

from __future__ import annotations

from collections.abc import Mapping

from npulab.draw.svg import Canvas, Picture, text_width, wrap

WIDTH, ROW, TOP = 760.0, 26.0, 34.0


def bars(values: Mapping[str, float], *, unit: str, title: str, marked: Mapping[str, str] | None = None) -> Picture:
    """A bar from 0 for each name, from top to bottom. ``marked`` are names with what is to be said behind their value; their
    bars are hollow, as for what is computed and has not been run. Say in the title what is simulated.

    Raises:
        ValueError: without values, for one below 0, or where a marked name has none.
    """
    notes = dict(marked or {})
    if not values or min(values.values()) < 0:
        raise ValueError("bars need values, and none below 0")
    if unknown := [name for name in notes if name not in values]:
        raise ValueError(f"{unknown[0]!r} is marked and has no value")
    left = 20 + max(text_width(name) for name in values)
    behind = {name: f"{_number(value)} {unit}{', ' + notes[name] if name in notes else ''}" for name, value in values.items()}
    room = WIDTH - left - 20 - max(text_width(text) for text in behind.values())
    canvas, most = Canvas(WIDTH, TOP + ROW * len(values) + 8), max(values.values()) or 1.0
    canvas.text(8, 18, title, "head")
    for i, (name, value) in enumerate(values.items()):
        y = TOP + ROW * i
        canvas.text(left - 10, y + 16, name, anchor="end")
        if name in notes:
            canvas.rect(left, y + 4, room * value / most, ROW - 9, "s-purple", fill="none", stroke_width=1.6, stroke_dasharray="4 3")
        else:
            canvas.rect(left, y + 4, room * value / most, ROW - 9, "f-purple")
        canvas.text(left + room * value / most + 8, y + 16, behind[name])
    canvas.line(left, TOP, left, canvas.height - 6, "axis")
    words = "; ".join(f"{name}: {text}" for name, text in behind.items())
    return wrap("".join(canvas.parts), canvas.width, canvas.height, title, f"{words}.")


def _number(value: float) -> str:
    """Three digits, or all of a larger whole part."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"

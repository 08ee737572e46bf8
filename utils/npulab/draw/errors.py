"""How far simulated figures are from published ones: a dot for each, on one axis of percent."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from npulab.draw.svg import Canvas, Picture, wrap

WIDTH, LEFT, ROW, TOP = 760.0, 340.0, 19.0, 50.0
ROOM = 0.08
"""What the number beside a square needs, on the axis."""


class Deviation(NamedTuple):
    """A figure's name, its error (0.05 is five per cent too high), and whether a constant was taken from that very figure."""

    name: str
    error: float
    fitted: bool = False


def errors(deviations: Sequence[Deviation], title: str = "Simulated against published, error") -> Picture:
    """The deviations from top to bottom; a full square tests the model, an empty one is a figure that it was given."""
    if not deviations:
        raise ValueError("there is nothing to draw")
    ends = [-0.05, 0.05, *(d.error for d in deviations)]
    low, high = 0.1 * ((min(ends) - ROOM) // 0.1), -0.1 * ((-max(ends) - ROOM) // 0.1)
    scale = (WIDTH - LEFT - 24) / (high - low)
    bottom = TOP + ROW * len(deviations)
    canvas = Canvas(WIDTH, bottom + 26)
    canvas.text(8, 18, title, "head")
    canvas.text(8, 36, "■ tests the model    □ was given to it", "small faint")
    for tick in range(round(10 * low), round(10 * high) + 1):
        x = LEFT + scale * (tick / 10 - low)
        canvas.line(x, TOP, x, bottom, "rule" if tick else "axis")
        canvas.text(x, bottom + 16, f"{10 * tick:+d} %" if tick else "0", "small", "middle")
    for i, deviation in enumerate(deviations):
        _row(canvas, deviation, TOP + ROW * (i + 0.5), LEFT + scale * -low, LEFT + scale * (deviation.error - low))
    return wrap("".join(canvas.parts), canvas.width, canvas.height, title, _alt(deviations))


def _row(canvas: Canvas, deviation: Deviation, y: float, zero: float, x: float) -> None:
    canvas.text(LEFT - 14, y + 4, deviation.name, "", "end")
    canvas.line(zero, y, x, y, "s-purple", stroke_width=2)
    look = "s-purple" if deviation.fitted else "f-purple s-purple"
    fill = {"fill": "none"} if deviation.fitted else {}
    canvas.rect(x - 4.5, y - 4.5, 9, 9, look, stroke_width=1.6, **fill)
    side = 9 if deviation.error >= 0 else -9
    canvas.text(x + side, y + 4, f"{round(100 * deviation.error, 1) + 0.0:+.1f} %", "small", "" if side > 0 else "end")


def _alt(deviations: Sequence[Deviation]) -> str:
    tested = [d for d in deviations if not d.fitted]
    near = sum(abs(d.error) <= 0.1 for d in tested)
    far = max(tested, key=lambda d: abs(d.error), default=None)
    words = f"{near} of {len(tested)} figures that test the model are within ten per cent."
    return words if far is None else f"{words} The farthest is {far.name}, {100 * far.error:+.0f} per cent."

"""A small SVG writer, and the picture that it makes: shown by notebooks, readable without eyes.

Coordinates are pixels, x to the right and y down. Every picture has a title and a description (its text alternative); the
ids in it are unique among the pictures of one process, so many may stand on one page.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import Any

from npulab.draw.theme import STYLE

_ISSUED: Counter[str] = Counter()

_NARROW = set("iljtfrI.,:;'|![]() -/")
_WIDE = set("mwMW@%…→←×")


def text_width(text: str, size: float = 11.0) -> float:
    """About how wide a text is in a sans-serif font of ``size`` px; an estimate on the safe side."""
    units = sum(0.36 if c in _NARROW else 0.92 if c in _WIDE else 0.7 if c.isupper() else 0.6 for c in text)
    return units * size


def fit(text: str, width: float, size: float = 11.0) -> str:
    """The text, or as much of it as fits into ``width`` px followed by an ellipsis; empty if not even one letter does."""
    if text_width(text, size) <= width:
        return text
    while text and text_width(text + "…", size) > width:
        text = text[:-1]
    return text + "…" if text else ""


def size_text(nbytes: float) -> str:
    """Bytes as ``512 B``, ``2 KiB``, ``1.5 MiB``."""
    unit = "B"
    for unit in ("B", "KiB", "MiB", "GiB"):
        if nbytes < 1024 or unit == "GiB":
            break
        nbytes /= 1024
    return f"{nbytes:.3g} {unit}" if nbytes < 1000 else f"{nbytes:.0f} {unit}"


def number(value: float) -> str:
    """A coordinate with at most two decimals and no trailing zeros."""
    return f"{value:.2f}".rstrip("0").rstrip(".")


@dataclass(frozen=True)
class Picture:
    """A finished picture. ``svg`` stands alone (file, page); ``alt`` says in words what it shows; ``figure`` is the
    matplotlib figure behind it, if there is one."""

    svg: str
    title: str
    alt: str
    figure: Any = field(default=None, repr=False, compare=False)
    width: float = 0.0

    def _repr_svg_(self) -> str:
        return self.svg

    def _repr_html_(self) -> str:
        return (
            f'<div class="npulab-scroll" tabindex="0" role="group" aria-label="{escape(self.title)}">{self.svg}</div>'
        )

    def save(self, path: str | Path) -> Path:
        """Write the SVG to a file and return its path."""
        path = Path(path)
        path.write_text(self.svg, encoding="utf-8")
        return path

    def __repr__(self) -> str:
        return f"<picture: {self.title}. {self.alt}>"


def picture_id(text: str) -> str:
    """An id made from the content, counted up where one process makes the same content twice."""
    base = "npu" + hashlib.sha1(text.encode()).hexdigest()[:8]
    _ISSUED[base] += 1
    return base if _ISSUED[base] == 1 else f"{base}-{_ISSUED[base]}"


def wrap(
    body: str, width: float, height: float, title: str, alt: str, *, figure: Any = None, ids: str = "ID_"
) -> Picture:
    """A picture around SVG elements; ``ids`` is the prefix in the body that stands for the picture's own id."""
    uid = picture_id(body + title)
    shrink = min(width, max(640.0, 0.69 * width))  # on a narrow page, scroll sooner than shrink the words away
    svg = (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="npulab" id="{uid}" role="img" '
        f'aria-labelledby="{uid}-t {uid}-d" viewBox="0 0 {number(width)} {number(height)}" '
        f'width="{number(width)}" style="width:100%;max-width:{number(width)}px;min-width:{number(shrink)}px;height:auto">'
        f'<title id="{uid}-t">{escape(title)}</title><desc id="{uid}-d">{escape(alt)}</desc>'
        f"<style>{STYLE}</style>{body.replace(ids, uid + '-')}</svg>"
    )
    return Picture(svg, title, alt, figure, width)


@dataclass
class Canvas:
    """Collects elements; :meth:`picture` closes it."""

    width: float
    height: float
    parts: list[str] = field(default_factory=list)

    def add(self, tag: str, cls: str = "", hint: str = "", inner: str = "", **attrs: Any) -> None:
        """One element. ``hint`` is what a mouse pointer over it shows; ``x_y`` in a name becomes ``x-y``."""
        text = "".join(
            f' {k.rstrip("_").replace("_", "-")}="{number(v) if isinstance(v, (int, float)) else escape(str(v))}"'
            for k, v in attrs.items()
        )
        klass = f' class="{cls}"' if cls else ""
        body = (f"<title>{escape(hint)}</title>" if hint else "") + inner
        self.parts.append(f"<{tag}{klass}{text}>{body}</{tag}>" if body else f"<{tag}{klass}{text}/>")

    def rect(self, x: float, y: float, w: float, h: float, cls: str = "box", hint: str = "", **attrs: Any) -> None:
        self.add("rect", cls, hint, x=x, y=y, width=max(w, 0), height=max(h, 0), **attrs)

    def line(self, x1: float, y1: float, x2: float, y2: float, cls: str = "rule", **attrs: Any) -> None:
        self.add("line", cls, x1=x1, y1=y1, x2=x2, y2=y2, **attrs)

    def path(self, d: str, cls: str = "wire", hint: str = "", **attrs: Any) -> None:
        self.add("path", cls, hint, d=d, **attrs)

    def circle(self, x: float, y: float, r: float, cls: str = "ink", hint: str = "", **attrs: Any) -> None:
        self.add("circle", cls, hint, cx=x, cy=y, r=r, **attrs)

    def text(self, x: float, y: float, text: str, cls: str = "", anchor: str = "", **attrs: Any) -> None:
        """A line of text with its baseline at ``y``; ``anchor`` is middle or end."""
        if text:
            more = {"text_anchor": anchor} if anchor else {}
            self.add("text", cls, inner=escape(text), x=x, y=y, **more, **attrs)

    def arrow_head(self, x: float, y: float, direction: str, cls: str, size: float = 4.0) -> None:
        """A small triangle with its tip at (x, y) pointing ``up``, ``down``, ``left`` or ``right``."""
        dx, dy = {"up": (0, -1), "down": (0, 1), "left": (-1, 0), "right": (1, 0)}[direction]
        ax, ay = x - dx * size * 1.6, y - dy * size * 1.6
        points = [(x, y), (ax - dy * size, ay - dx * size), (ax + dy * size, ay + dx * size)]
        self.add("polygon", cls, points=" ".join(f"{number(px)},{number(py)}" for px, py in points))

    def block_arrow(self, start: tuple[float, float], tip: tuple[float, float], cls: str, hint: str = "") -> None:
        """A broad arrow along one of the axes, 8 px wide with a head of 14 px."""
        (x1, y1), (x2, y2) = start, tip
        length = abs(x2 - x1) + abs(y2 - y1)
        ux, uy = (x2 - x1) / length, (y2 - y1) / length
        shape = [(0, -4), (length - 7, -4), (length - 7, -7), (length, 0), (length - 7, 7), (length - 7, 4), (0, 4)]
        points = " ".join(f"{number(x1 + a * ux - b * uy)},{number(y1 + a * uy + b * ux)}" for a, b in shape)
        self.add("polygon", cls, hint, points=points)

    def legend(self, x: float, y: float, entries: list[tuple[str, str]], width: float) -> float:
        """Swatches with words, wrapped to ``width``; entries are (class of the swatch, text). Returns the y below."""
        at = x
        for cls, words in entries:
            needed = 22 + text_width(words, 10) + 8
            if at > x and at + needed > x + width:
                at, y = x, y + 16
            self.rect(at, y - 8, 14, 9, cls, rx=2)
            self.text(at + 19, y, words, "small")
            at += needed
        return y + 16

    def picture(self, title: str, alt: str) -> Picture:
        return wrap("".join(self.parts), self.width, self.height, title, alt)

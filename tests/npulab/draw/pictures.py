"""What the tests of the pictures share: reading one, and finding texts that overlap or leave it."""

from __future__ import annotations

import xml.etree.ElementTree as ET

from npulab.draw.svg import Picture, text_width

SVG = "{http://www.w3.org/2000/svg}"
SIZES = {"head": 12.0, "small": 10.0, "tiny": 9.0}


def tree(picture: Picture) -> ET.Element:
    """The picture as XML; it has unique ids, a title and a description."""
    root = ET.fromstring(picture.svg)
    ids = [e.get("id") for e in root.iter() if e.get("id")]
    assert len(ids) == len(set(ids)), "ids are not unique"
    assert root.get("role") == "img"
    desc = root.find(f"{SVG}desc")
    assert desc is not None and desc.text == picture.alt != ""
    return root


def texts(picture: Picture) -> list[str]:
    return [e.text or "" for e in tree(picture).iter(f"{SVG}text")]


def hints(picture: Picture) -> list[str]:
    """What a mouse pointer shows, without the picture's own title."""
    return [e.text or "" for e in tree(picture).iter(f"{SVG}title")][1:]


def count(picture: Picture, tag: str, cls: str) -> int:
    """How many elements have this tag and this class."""
    return sum(cls in (e.get("class") or "").split() for e in tree(picture).iter(f"{SVG}{tag}"))


def boxes(picture: Picture) -> list[tuple[str, float, float, float, float]]:
    """(text, left, top, right, bottom) of every text, by estimate without the estimate's safety margin."""
    found = []
    for e in tree(picture).iter(f"{SVG}text"):
        size = next((s for name, s in SIZES.items() if name in (e.get("class") or "").split()), 11.0)
        width = text_width(e.text or "", size) * 0.85
        x, y, anchor = float(e.get("x", 0)), float(e.get("y", 0)), e.get("text-anchor")
        left = x - width / 2 if anchor == "middle" else x - width if anchor == "end" else x
        found.append((e.text or "", left, y - size * 0.7, left + width, y + size * 0.1))
    return found


def collisions(picture: Picture) -> list[tuple[str, str]]:
    """Pairs of texts that cover each other."""
    found, every = [], boxes(picture)
    for i, (a, ax, ay, ar, ab) in enumerate(every):
        for b, bx, by, br, bb in every[i + 1 :]:
            if min(ar, br) - max(ax, bx) > 1 and min(ab, bb) - max(ay, by) > 1:
                found.append((a, b))
    return found


def outside(picture: Picture) -> list[str]:
    """Texts that stick out of the picture."""
    width, height = map(float, (tree(picture).get("viewBox") or "").split()[2:])
    return [
        t
        for t, left, top, right, bottom in boxes(picture)
        if left < -2 or right > width + 2 or top < 0 or bottom > height
    ]


def legible(picture: Picture) -> None:
    """Fail where words overlap or leave the picture."""
    assert collisions(picture) == []
    assert outside(picture) == []

"""The SVG writer: well formed, unique ids, an alternative in words, texts that fit."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import pytest

from npulab.draw.svg import Canvas, Picture, fit, number, size_text, text_width, wrap
from npulab.draw.theme import HUES, STYLE

SVG = "{http://www.w3.org/2000/svg}"


def small() -> Picture:
    c = Canvas(200, 100)
    c.rect(0, 0, 10, 10, hint='a < b & "c"')
    c.text(5, 5, "x < y & z")
    return c.picture("A <title>", 'what & "why"')


def test_a_picture_is_xml_with_role_title_and_description() -> None:
    root = ET.fromstring(small().svg)
    assert root.get("role") == "img"
    title, desc = root.find(f"{SVG}title"), root.find(f"{SVG}desc")
    assert title is not None and title.text == "A <title>"
    assert desc is not None and desc.text == 'what & "why"'
    assert root.get("aria-labelledby") == f"{title.get('id')} {desc.get('id')}"


def test_equal_pictures_get_different_ids() -> None:
    a, b = ET.fromstring(small().svg), ET.fromstring(small().svg)
    assert {e.get("id") for e in a.iter() if e.get("id")}.isdisjoint({e.get("id") for e in b.iter() if e.get("id")})


def test_ids_in_a_body_are_the_pictures_own() -> None:
    svg = wrap('<g id="ID_clip"/><use href="#ID_clip"/>', 10, 10, "t", "d").svg
    uid = ET.fromstring(svg).get("id")
    assert f'id="{uid}-clip"' in svg and f'href="#{uid}-clip"' in svg and "ID_" not in svg


def test_html_can_be_scrolled_by_keyboard_and_is_named() -> None:
    html = small()._repr_html_()
    assert 'tabindex="0"' in html and 'aria-label="A &lt;title&gt;"' in html


def test_save_writes_the_svg(tmp_path) -> None:
    picture = small()
    assert picture.save(tmp_path / "p.svg").read_text(encoding="utf-8") == picture.svg


def test_the_repr_says_what_is_to_be_seen() -> None:
    assert 'what & "why"' in repr(small())


@pytest.mark.parametrize("hue", HUES)
def test_every_hue_has_a_version_for_light_and_for_dark(hue: str) -> None:
    light, dark = HUES[hue]
    assert f"--npu-{hue}:{light};" in STYLE and f"--npu-{hue}:{dark};" in STYLE


def luminance(colour: str) -> float:
    def linear(v: float) -> float:
        return v / 12.92 if v <= 0.04045 else ((v + 0.055) / 1.055) ** 2.4

    r, g, b = (linear(int(colour[i : i + 2], 16) / 255) for i in (1, 3, 5))
    return 0.2126 * r + 0.7152 * g + 0.0722 * b


@pytest.mark.parametrize("hue", HUES)
def test_hues_stand_out_from_the_page(hue: str) -> None:
    """WCAG asks for 3:1 between graphics and what is around them; the book's pages are #ffffff and #14181e."""
    light, dark = HUES[hue]
    assert 1.05 / (luminance(light) + 0.05) >= 3
    assert (luminance(dark) + 0.05) / (luminance("#14181e") + 0.05) >= 3


def test_dark_mode_of_the_book_and_of_jupyterlab_are_served() -> None:
    for where in (
        'html[data-theme="dark"] .npulab',
        'body[data-jp-theme-light="false"] .npulab',
        "prefers-color-scheme:dark",
    ):
        assert where in STYLE


@pytest.mark.parametrize(
    ("text", "width"), [("short", 100), ("a rather long name", 40), ("wwwwwwww", 30), ("anything", 1), ("", 10)]
)
def test_fit_never_exceeds_the_width(text: str, width: float) -> None:
    fitted = fit(text, width)
    assert text_width(fitted) <= width
    assert fitted in ("", text) or (fitted.endswith("…") and text.startswith(fitted[:-1]))


@pytest.mark.parametrize(
    ("nbytes", "text"),
    [
        (0, "0 B"),
        (512, "512 B"),
        (1000, "1000 B"),
        (1023, "1023 B"),
        (1024, "1 KiB"),
        (1544, "1.51 KiB"),
        (65536, "64 KiB"),
        (1023 * 1024, "1023 KiB"),
        (3 << 20, "3 MiB"),
    ],
)
def test_size_text(nbytes: int, text: str) -> None:
    assert size_text(nbytes) == text


@pytest.mark.parametrize(("value", "text"), [(1.0, "1"), (1.5, "1.5"), (1.256, "1.26"), (0, "0"), (100, "100")])
def test_number(value: float, text: str) -> None:
    assert number(value) == text


def test_a_block_arrow_ends_at_its_tip() -> None:
    c = Canvas(100, 100)
    c.block_arrow((50, 80), (50, 20), "ink")
    assert "50,20" in c.parts[0]


def test_a_legend_wraps() -> None:
    c = Canvas(100, 100)
    below = c.legend(0, 10, [("f-blue", "first entry"), ("f-red", "second entry")], 100)
    assert below == 10 + 2 * 16

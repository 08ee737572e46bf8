"""The built site as a reader meets it: in Chromium, at desktop and phone width, light and dark, with no other host at hand."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import WebDriverWait

from npulab import book
from tests.book import axe
from tests.book.browser import Browser
from tests.book.freshness import REQUIRED, ROOT, why_not_fresh
from tests.book.reference import REFERENCE

pytestmark = pytest.mark.site

if not REQUIRED and (reason := why_not_fresh()):
    pytest.skip(reason, allow_module_level=True)

PAGES = book.toc_pages(ROOT)
NOTEBOOKS = [path.relative_to(ROOT).with_suffix("").as_posix() for path in book.chapters(ROOT)]
SIZES = {"desktop": (1280, 900), "phone": (390, 844)}


# ---------------------------------------------------------------- the files


class Links(HTMLParser):
    """The ids of a page, what it links to, and what it loads."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.ids: set[str] = set()
        self.links: list[str] = []
        self.loads: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.ids.update(given[name] for name in ("id", "name") if name in given)
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
        elif tag == "link" and given.get("rel") in ("stylesheet", "preload", "icon", "shortcut icon"):
            self.loads.append(given["href"])
        elif "src" in given:
            self.loads.append(given["src"])


@pytest.fixture(scope="module")
def parsed(html: Path) -> dict[Path, Links]:
    """Every page of the site that a reader can reach, parsed."""
    return {path: Links(path.read_text()) for path in html.rglob("*.html") if "_static" not in path.parts}


def test_every_page_of_the_toc_is_there(html: Path) -> None:
    assert book.missing_pages(ROOT) == []
    assert (html / "index.html").is_file()


def test_links_inside_the_site_lead_somewhere(html: Path, parsed: dict[Path, Links]) -> None:
    broken = []
    for page, links in parsed.items():
        for link in [*links.links, *links.loads]:
            url = urlsplit(link)
            if url.scheme or url.netloc:
                continue
            target = (page.parent / unquote(url.path)).resolve() if url.path else page
            if not target.is_file():
                broken.append(f"{page.relative_to(html)}: {link}")
            elif url.fragment and target in parsed and unquote(url.fragment) not in parsed[target].ids:
                broken.append(f"{page.relative_to(html)}: {link} (no such anchor)")
    assert broken == []


def test_nothing_is_loaded_from_elsewhere(html: Path, parsed: dict[Path, Links]) -> None:
    outside = [
        f"{page.relative_to(html)}: {load}"
        for page, links in parsed.items()
        for load in links.loads
        if urlsplit(load).netloc
    ]
    assert outside == []


@pytest.mark.parametrize("page", NOTEBOOKS)
def test_the_download_is_the_student_version(page: str, html: Path, parsed: dict[Path, Links]) -> None:
    downloads = [link for link in parsed[html / f"{page}.html"].links if link.endswith(".ipynb")]
    assert downloads, "no download button for the notebook"
    notebook = json.loads(((html / page).parent / downloads[0]).read_text())
    text = "\n".join("".join(cell["source"]) for cell in notebook["cells"])
    assert not re.search(r"BEGIN SOLUTION|\{dropdown\}|Worked answer|\{glue:|^`{3,}\{", text, re.MULTILINE)
    assert not any("solution" in cell["metadata"].get("tags", []) for cell in notebook["cells"])


# ---------------------------------------------------------------- in the browser

#: Pictures in the page's text that have no text of their own for those who cannot see them.
PICTURES_WITHOUT_TEXT = """
const name = element => element.getAttribute('aria-label') || element.getAttribute('alt') || '';
const labelled = element => (element.getAttribute('aria-labelledby') || '').split(' ')
    .map(id => id && document.getElementById(id)).some(found => found && found.textContent.trim());
const hidden = element => element.closest('[aria-hidden=true], mjx-container, .headerlink, button');
return [...document.querySelectorAll('article img, article svg')].filter(picture => !hidden(picture)).filter(picture => {
    if (picture.parentElement.closest('svg')) return false;
    const title = picture.querySelector(':scope > title');
    const text = name(picture).trim() || (title && title.textContent.trim());
    const isFileName = /\\.(png|svg|jpg)$/.test(name(picture));   // what myst-nb writes where a cell gives no text
    return isFileName || !(text || labelled(picture));
}).map(picture => picture.outerHTML.slice(0, 200));
"""
BROKEN_PICTURES = """
return [...document.querySelectorAll('img')].filter(i => i.complete && !i.naturalWidth).map(i => i.src);
"""
#: Elements that make the page itself scroll sideways (a wide table or code block should scroll by itself).
TOO_WIDE = """
const width = document.documentElement.clientWidth;
if (document.documentElement.scrollWidth <= width + 1) return [];
const scrolls = e => e && (['auto', 'scroll', 'hidden', 'clip'].includes(getComputedStyle(e).overflowX) || scrolls(e.parentElement));
return [...document.querySelectorAll('article *')]
    .filter(e => e.getBoundingClientRect().right > width + 1 && !scrolls(e.parentElement))
    .map(e => e.outerHTML.slice(0, 120)).slice(0, 5).concat(['page is ' + document.documentElement.scrollWidth + ' px wide']);
"""
#: The lowest contrast (WCAG) of text against what is behind it, half-transparent layers included, and where that is.
CONTRAST = """
const rgba = c => { const v = c.match(/[\\d.]+/g).map(Number); return v.length > 3 ? v : [...v, c === 'transparent' ? 0 : 1]; };
const over = (top, below) => below.map((x, i) => i < 3 ? top[i] * top[3] + x * (1 - top[3]) : 1);
const behind = e => {
    const layers = [];
    for (; e; e = e.parentElement) layers.push(rgba(getComputedStyle(e).backgroundColor));
    return layers.reduceRight((below, top) => over(top, below), [255, 255, 255, 1]);
};
const luminance = c => c.slice(0, 3).map(x => x / 255).map(x => x <= 0.04045 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4)
    .reduce((sum, x, i) => sum + x * [0.2126, 0.7152, 0.0722][i], 0);
const ratio = e => {
    const back = behind(e), front = over(rgba(getComputedStyle(e).color), back);
    const [high, low] = [luminance(front), luminance(back)].sort((x, y) => y - x);
    return (high + 0.05) / (low + 0.05);
};
return [...document.querySelectorAll('article p, article h1, article h2, article a, article td, article pre, article pre span')]
    .filter(e => e.textContent.trim() && e.offsetParent && !e.matches('.headerlink'))
    .map(e => [ratio(e), e.className + ': ' + e.textContent.trim().slice(0, 40)]).sort((a, b) => a[0] - b[0])[0] || [21, ''];
"""
#: Formulas that MathJax left as they were, and those in which it did not know a command (drawn in red).
FORMULAS_NOT_TYPESET = """
const bad = e => !e.querySelector('mjx-container') || e.querySelector('mjx-merror, mjx-mtext[style*="color: red"]');
return [...document.querySelectorAll('article .math')].filter(bad).map(e => e.textContent.slice(0, 60));
"""
SEARCH_RESULTS = "return [...document.querySelectorAll('#search-results li a')].map(link => link.href);"


#: Axe takes about a second a page; these two combinations see both layouts and both sets of colours.
CHECKED_BY_AXE = (("desktop", "light"), ("phone", "dark"))


@pytest.fixture(scope="module")
def checker() -> str:
    return axe.script()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("page", PAGES)
def test_page(page: str, size: str, scheme: str, browser: Browser, site: str, checker: str) -> None:
    traffic = browser.load(f"{site}/{page}.html", *SIZES[size], scheme=scheme)
    assert traffic.requested, "the browser reported no request at all"
    assert traffic.external(site) == []
    assert traffic.failed == []
    assert traffic.console == []
    assert browser.run("return document.documentElement.dataset.theme") == scheme
    assert browser.run(BROKEN_PICTURES) == []
    assert browser.run(PICTURES_WITHOUT_TEXT) == []
    assert browser.run(TOO_WIDE) == []
    worst, where = browser.run(CONTRAST)
    assert worst >= 4.5, f"contrast {worst:.1f} of {where!r}"
    assert browser.run(FORMULAS_NOT_TYPESET) == []
    if (size, scheme) in CHECKED_BY_AXE:
        assert axe.violations(browser, checker) == []


#: What cells have printed: lines that wrap, and wide ones that do not scroll or that the keyboard does not reach.
PRINTED_AMISS = """
return [...document.querySelectorAll('article .cell_output pre')].filter(e => e.offsetParent).filter(e => {
    const style = getComputedStyle(e);
    const scrolls = ['auto', 'scroll'].includes(style.overflowX) && e.tabIndex === 0;
    return style.whiteSpace !== 'pre' || (e.scrollWidth > e.clientWidth + 1 && !scrolls);
}).map(e => e.textContent.slice(0, 60));
"""


@pytest.mark.parametrize("page", NOTEBOOKS)
def test_printed_tables_scroll_on_a_phone(page: str, browser: Browser, site: str) -> None:
    browser.load(f"{site}/{page}.html", *SIZES["phone"])
    WebDriverWait(browser.driver, 5).until(lambda _: browser.run(PRINTED_AMISS) == [])


#: What cells have printed and a reader would have to scroll to read to its end.
PRINTED_CUT = """
return [...document.querySelectorAll('article .cell_output .output.stream pre')].filter(e => e.offsetParent)
    .filter(e => e.scrollWidth > e.clientWidth + 1).map(e => e.textContent.slice(0, 60));
"""


@pytest.mark.parametrize("page", NOTEBOOKS)
def test_printed_messages_wrap_on_a_wide_page(page: str, browser: Browser, site: str) -> None:
    browser.load(f"{site}/{page}.html", *SIZES["desktop"])
    WebDriverWait(browser.driver, 5).until(lambda _: browser.run(PRINTED_CUT) == [])


GAPS_BELOW_PICTURES = """
return [...document.querySelectorAll('article section > a.image-reference')].filter(a => a.nextElementSibling).map(a =>
    a.nextElementSibling.getBoundingClientRect().top - a.querySelector('img').getBoundingClientRect().bottom);
"""


@pytest.mark.parametrize("size", SIZES)
def test_the_front_picture_stands_clear_of_the_text(size: str, browser: Browser, site: str) -> None:
    browser.load(f"{site}/{PAGES[0]}.html", *SIZES[size])
    (gap,) = browser.run(GAPS_BELOW_PICTURES)
    assert 12 <= gap <= 32


def test_search_finds_a_word_of_the_text(browser: Browser, site: str) -> None:
    browser.load(f"{site}/{PAGES[0]}.html")
    browser.run("document.querySelector('.search-button-field, .search-button__button').click()")
    box = next(found for found in browser.driver.find_elements(By.CSS_SELECTOR, "input[type=search]") if found.is_displayed())
    box.send_keys("intensity", Keys.ENTER)
    wait = WebDriverWait(browser.driver, 20)
    # Results come in one by one.
    wait.until(lambda _: f"/{PAGES[0]}.html" in [urlsplit(link).path for link in browser.run(SEARCH_RESULTS)])
    traffic = browser.traffic()
    assert traffic.failed == [] and traffic.external(site) == [] and traffic.console == []


def test_theme_button_changes_the_colours_and_is_remembered(browser: Browser, site: str) -> None:
    background = "return getComputedStyle(document.body).backgroundColor"
    browser.load(f"{site}/{PAGES[0]}.html")
    before = browser.run(background)
    for _ in range(3):  # it goes round auto, light and dark
        if browser.run("return document.documentElement.dataset.theme") == "dark":
            break
        browser.run("document.querySelector('.theme-switch-button').click()")
    dark = browser.run(background)
    assert dark != before
    browser.load(f"{site}/{PAGES[0]}.html")
    assert browser.run(background) == dark
    browser.run("localStorage.clear()")


def test_phone_menu_opens(browser: Browser, site: str) -> None:
    browser.load(f"{site}/{PAGES[0]}.html", *SIZES["phone"])
    sidebar = "return document.querySelector('.bd-sidebar-primary').getBoundingClientRect().right > 0"
    assert not browser.run(sidebar)
    browser.run("document.querySelector('.primary-toggle').click()")
    WebDriverWait(browser.driver, 10).until(lambda _: browser.run(sidebar))


def test_front_page_leads_to_the_book(browser: Browser, site: str) -> None:
    browser.load(f"{site}/")
    WebDriverWait(browser.driver, 10).until(lambda driver: driver.current_url.endswith(f"{PAGES[0]}.html"))


@pytest.mark.parametrize("page", [page for page in NOTEBOOKS if Path(page).name not in REFERENCE])
def test_a_chapter_leads_to_the_glossary_once_a_word(page: str, html: Path) -> None:
    links = re.findall(r'<a class="glossary-term[^"]*" href="(glossary\.html#[^"]+)"', (html / f"{page}.html").read_text())
    assert len(links) >= 10
    assert len(links) == len(set(links))

"""axe-core, the accessibility checker, as axe-playwright-python carries it; here in the browser that the tests drive anyway."""

from __future__ import annotations

from importlib import metadata
from typing import Any

from tests.book.browser import Browser

#: Of the theme, on every page: buttons whose label is not their visible text, and content outside of landmarks.
KNOWN_OF_THE_THEME = ("label-content-name-mismatch", "region")

RUN = """
const done = arguments[arguments.length - 1], known = arguments[0];
const rules = Object.fromEntries(known.map(rule => [rule, {enabled: false}]));
axe.run(document, {resultTypes: ['violations'], rules}).then(
    found => done(found.violations.flatMap(v => v.nodes.map(n => v.id + ': ' + n.html.slice(0, 160) + ' at ' + n.target.join(' ')))),
    error => done(['axe failed: ' + error]));
"""


def script() -> str:
    """The source of axe.min.js; LookupError if the package does not hold it."""
    for file in metadata.files("axe-playwright-python") or []:
        if file.name == "axe.min.js":
            return file.read_text(encoding="utf-8")
    raise LookupError("axe-playwright-python holds no axe.min.js")


def violations(browser: Browser, source: str) -> list[str]:
    """What axe finds on the page that is loaded, a line an element: rule, element, where."""
    if not browser.run("return typeof axe === 'object'"):
        browser.run(source)
    found: Any = browser.driver.execute_async_script(RUN, list(KNOWN_OF_THE_THEME))
    return [str(line) for line in found]

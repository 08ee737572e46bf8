"""Tables: their HTML holds what they were given, escaped, and leads from a cell to its note."""

from __future__ import annotations

from html.parser import HTMLParser

import pytest

from npulab.tables import Notes, Table, rich


class Page(HTMLParser):
    def __init__(self, html: str) -> None:
        super().__init__()
        self.cells: list[str] = []
        self.ids: set[str] = set()
        self.links: list[str] = []
        self.headings: list[str] = []
        self.open = ""
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if "id" in given:
            self.ids.add(str(given["id"]))
        if tag == "a":
            self.links.append(str(given["href"]))
        if tag in ("td", "th"):
            self.open = tag
            self.cells.append("")
            if tag == "th":
                self.headings.append(str(given["scope"]))

    def handle_data(self, data: str) -> None:
        if self.open:
            self.cells[-1] += data

    def handle_endtag(self, tag: str) -> None:
        if tag in ("td", "th"):
            self.open = ""


def table() -> Table:
    notes = Notes()
    rows = [
        ["a", f"1 < 2 {notes.mark('manual')}"],
        ["b", f"2 {notes.mark('trace')}"],
        ["c", f"3 {notes.mark('manual')}"],
    ]
    return Table(("", "Value"), rows, "Things & values", notes.texts)


def test_every_cell_is_there_and_the_first_of_a_row_heads_it() -> None:
    page = Page(table()._repr_html_())
    assert page.cells == ["", "Value", "a", "1 < 2 [1]", "b", "2 [2]", "c", "3 [1]"]
    assert page.headings == ["col", "row", "row", "row"]  # an empty corner is no heading


def test_marks_lead_to_notes() -> None:
    page = Page(table()._repr_html_())
    assert len(page.links) == 3
    assert {link.removeprefix("#") for link in page.links} == page.ids


def test_text_form_says_the_same() -> None:
    lines = repr(table()).splitlines()
    assert lines[0] == "Things & values"
    assert lines[-2:] == ["[1] manual", "[2] trace"]
    assert "a  1 < 2 [1]" in lines


def test_rows_must_fit_the_header() -> None:
    with pytest.raises(ValueError, match="1 cells under 2 headings"):
        Table(("a", "b"), [["only one"]], "wrong")


def test_code_and_links() -> None:
    assert rich("`a<b` and ``c``, see :meth:`f`") == "<code>a&lt;b</code> and <code>c</code>, see <code>f</code>"
    assert rich("arXiv:2512.13282") == '<a href="https://arxiv.org/abs/2512.13282">arXiv:2512.13282</a>'
    assert 'href="https://github.com/Xilinx/mlir-aie/issues/2735"' in rich("mlir-aie issue 2735 says so")

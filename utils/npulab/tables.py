"""Tables made from the product's own data: shown by notebooks as HTML, readable as text elsewhere."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape

_CODE = re.compile(r"``([^`]+)``|`([^`]+)`|:\w+:`~?([^`]+)`")
_LINKS = (
    (re.compile(r"arXiv:(\d{4}\.\d{4,5})"), r"https://arxiv.org/abs/\1"),
    (re.compile(r"\b(mlir-a[ie]\w) (?:issue|pull request) (\d+)"), r"https://github.com/Xilinx/\1/issues/\2"),
)
_NOTE = re.compile(r"\[(\d+)\]")


class Notes:
    """Numbers the texts that stand below a table; the same text keeps its number."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    def mark(self, text: str) -> str:
        """``[3]`` for the third text."""
        if text not in self.texts:
            self.texts.append(text)
        return f"[{self.texts.index(text) + 1}]"


@dataclass(frozen=True)
class Table:
    """Rows under a header, the first cell of each naming it. In cells and notes, `code` is set as code; ``[2]`` in a cell
    leads to the second note. ``right`` are the columns of numbers."""

    header: tuple[str, ...]
    rows: Sequence[Sequence[str]]
    caption: str
    notes: Sequence[str] = ()
    notes_title: str = "Sources and notes"
    right: tuple[int, ...] = field(default=())

    def __post_init__(self) -> None:
        for row in self.rows:
            if len(row) != len(self.header):
                raise ValueError(f"{len(row)} cells under {len(self.header)} headings: {row!r}")

    def _repr_html_(self) -> str:
        uid = "tab" + hashlib.sha1(self.caption.encode()).hexdigest()[:8]
        head = "".join(self._heading(i, text) for i, text in enumerate(self.header))
        body = "".join(f"<tr>{self._row(row, uid)}</tr>" for row in self.rows)
        table = (
            f'<table class="table"><caption>{rich(self.caption)}</caption>'
            f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
        )
        scroll = (
            f'<div class="npulab-scroll" tabindex="0" role="group" aria-label="{escape(self.caption)}">{table}</div>'
        )
        return f'<div class="npulab-table">{scroll}{self._below(uid)}</div>'

    def _heading(self, column: int, text: str) -> str:
        return f'<th scope="col"{self._style(column)}>{rich(text)}</th>' if text else "<td></td>"

    def _row(self, row: Sequence[str], uid: str) -> str:
        first, *others = row
        cells = "".join(f"<td{self._style(i)}>{self._cell(text, uid)}</td>" for i, text in enumerate(others, 1))
        return f'<th scope="row">{self._cell(first, uid)}</th>{cells}'

    def _cell(self, text: str, uid: str) -> str:
        return _NOTE.sub(rf'<a href="#{uid}-\1">[\1]</a>', rich(text)) if self.notes else rich(text)

    def _style(self, column: int) -> str:
        return ' class="number"' if column in self.right else ""

    def _below(self, uid: str) -> str:
        if not self.notes:
            return ""
        items = "".join(f'<li id="{uid}-{i}">{rich(note)}</li>' for i, note in enumerate(self.notes, 1))
        return f'<p class="npulab-notes">{escape(self.notes_title)}</p><ol class="npulab-notes">{items}</ol>'

    def __repr__(self) -> str:
        rows = [list(self.header), *map(list, self.rows)]
        wide = [max(len(row[i]) for row in rows) for i in range(len(self.header))]
        lines = ["  ".join(text.ljust(n) for text, n in zip(row, wide, strict=True)).rstrip() for row in rows]
        below = [f"[{i}] {note}" for i, note in enumerate(self.notes, 1)]
        return "\n".join([self.caption, "", *lines, *([""] if below else []), *below])


def rich(text: str) -> str:
    """HTML of a text: code between backticks, and links to papers, issues and pull requests."""
    html = _CODE.sub(lambda m: f"<code>{next(filter(None, m.groups()))}</code>", escape(text))
    for pattern, address in _LINKS:
        html = pattern.sub(rf'<a href="{address}">\g<0></a>', html)
    return html

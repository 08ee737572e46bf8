"""A chapter's exercises in this process: its own cells run, with a planted wrong answer in place of a solution."""

from __future__ import annotations

import linecache
import textwrap
import warnings
from pathlib import Path
from typing import Any

import nbformat
import pytest

from npulab.check import CheckFailed
from npulab.student import solution_blocks, solution_source, student_source

BOOK = Path(__file__).resolve().parents[2] / "book"


class Chapter:
    """The notebook ``book/<name>.ipynb``. ``needed`` names the cells that its exercises build on, which are run at once;
    ``prepared`` is code that stands for other cells before them, which would take long."""

    def __init__(self, name: str, *needed: str, prepared: str = "") -> None:
        self.cells = code(name)
        self._base: dict[str, Any] = {"__name__": "__main__"}
        first, *others = needed
        _execute(self.cells[first], first, self._base)
        _execute(prepared, "prepared", self._base)
        for cell in others:
            _execute(self.cells[cell], cell, self._base)

    def prepare(self, source: str) -> None:
        """Run further code that stands for other cells."""
        _execute(source, "prepared", self._base)

    def attempt(self, exercise: str, *cells: str, **wrong: str) -> dict[str, Any]:
        """Run an exercise's cells and its check. ``wrong`` holds answers to put in place of a cell's solution (``_`` for ``-`` in
        the cell's name); the other cells have their solutions. Returns the names that the cells made."""
        names = dict(self._base)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for cell in cells or (exercise,):
                answer = wrong.pop(cell.replace("-", "_"), None)
                source = solution_source(self.cells[cell]) if answer is None else planted(self.cells[cell], answer)
                _execute(source, cell, names)
            assert not wrong, f"no such cell: {wrong}"
            check = f"check-{exercise}"
            _execute(self.cells[check], check, names)
        return names

    def untouched(self, exercise: str, *cells: str) -> None:
        """Run an exercise's cells as a student finds them, and its check."""
        names = dict(self._base)
        for cell in cells or (exercise,):
            _execute(student_source(self.cells[cell]), cell, names)
        check = f"check-{exercise}"
        _execute(self.cells[check], check, names)

    def changed(self, cell: str, old: str, new: str) -> str:
        """The solution with one thing in it replaced."""
        text = solution(self.cells[cell])
        assert text.count(old) >= 1, f"{old!r} is not in the solution of {cell}"
        return text.replace(old, new)


def code(name: str) -> dict[str, str]:
    """The code cells of ``book/<name>.ipynb``, by their names."""
    cells = nbformat.read(BOOK / f"{name}.ipynb", as_version=4)["cells"]
    return {cell["id"]: cell["source"] for cell in cells if cell["cell_type"] == "code"}


def solution(source: str) -> str:
    """The lines of a cell's solution, without their indent."""
    (block,) = solution_blocks(source)
    return textwrap.dedent("\n".join(source.splitlines()[block.first + 1 : block.last]))


def planted(source: str, wrong: str) -> str:
    """A cell with ``wrong`` in place of its solution, indented like it."""
    lines = source.splitlines()
    (block,) = solution_blocks(source)
    indent = lines[block.first][: len(lines[block.first]) - len(lines[block.first].lstrip())]
    lines[block.first : block.last + 1] = [indent + line for line in wrong.splitlines()]
    return "\n".join(lines)


def fails(words: str) -> Any:
    """The check fails, and says this (a regular expression) in its last hint."""
    return pytest.raises(CheckFailed, match=rf"(?s)not yet: .*Hint: [^\n]*(?:{words})[^\n]*\Z")


def _execute(source: str, name: str, namespace: dict[str, Any]) -> None:
    """Run a cell as a notebook does, with its lines at hand for messages."""
    file = f"<cell {name}>"
    linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
    exec(compile(source, file, "exec"), namespace)

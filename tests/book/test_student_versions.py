"""The student version of every chapter can be read in JupyterLab and holds no answers. (That it runs: ``test_teaching.py``.)"""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path
from typing import Any

import nbformat
import pytest

from npulab.handout import made
from npulab.hidden import HIDDEN_TAG
from npulab.student import is_answer, tags
from tests.book.test_teaching import PARAMETERS, read

MYST = {
    "a directive": r"^\s*(`{3,}|~{3,}|:{3,})\{",
    "an option of a directive": r"^:[\w-]+:",
    "a role": r"\{[a-z]+(:[a-z]+)?\}`",
    "a label": r"^\([\w-]+\)=$",
    "a marked word": r"\]\{[.#]",
}


@cache
def student(path: Path) -> Any:
    return made(path)


def markdown(notebook: Any) -> str:
    return "\n\n".join(cell["source"] for cell in notebook["cells"] if cell["cell_type"] == "markdown")


@pytest.mark.parametrize("path", PARAMETERS)
def test_no_answer_is_left(path: Path) -> None:
    cells = student(path)["cells"]
    assert [cell["id"] for cell in cells if is_answer(cell) or cell["id"].startswith("answer")] == []
    text = "\n".join(cell["source"] for cell in cells)
    assert not re.search(r"\{dropdown\}|Worked answer|BEGIN SOLUTION", text)


@pytest.mark.parametrize("path", PARAMETERS)
def test_hidden_cells_compute_no_solution_and_hold_no_text_against_the_reader(path: Path) -> None:
    hidden = [cell for cell in student(path)["cells"] if HIDDEN_TAG in tags(cell)]
    assert [cell["id"] for cell in hidden if re.search(r"exercises|npulab\.numbers", cell["source"])] == []
    asserts = [cell["id"] for cell in hidden if any(isinstance(node, ast.Assert) for node in ast.walk(ast.parse(cell["source"])))]
    assert asserts == []


@pytest.mark.parametrize("kind", MYST)
@pytest.mark.parametrize("path", PARAMETERS)
def test_the_text_is_plain_markdown(path: Path, kind: str) -> None:
    assert [line for line in markdown(student(path)).splitlines() if re.search(MYST[kind], line)] == []


@pytest.mark.parametrize("path", PARAMETERS)
def test_every_title_is_still_there(path: Path) -> None:
    text = markdown(student(path))
    source = markdown(read(path))
    exercises = re.findall(r"^```\{exercise\} (.+)", source, re.MULTILINE)
    assert [title for title in exercises if f"### Exercise: {title}\n" not in text] == []
    admonitions = re.findall(r"^```\{admonition\} (.+)", source, re.MULTILINE)
    assert [title for title in admonitions if f"**{title}**\n" not in text] == []


@pytest.mark.parametrize("path", PARAMETERS)
def test_links_lead_to_notebooks_beside_it(path: Path) -> None:
    links = re.findall(r"\]\((?!https?:|#)([^)#\s]+)\)", markdown(student(path)))
    assert [link for link in links if not (link.endswith(".ipynb") and (path.parent / link).is_file())] == []


@pytest.mark.parametrize("path", PARAMETERS)
def test_it_is_a_notebook(path: Path) -> None:
    nbformat.validate(student(path))

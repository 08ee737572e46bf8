"""The chapters teach: untouched exercises fail, and only they; the notebooks in git hold no outputs.

That each notebook as it is in git, with its solutions, runs from top to bottom is the other half: nbval, which this suite's
``pytest`` options apply to every notebook in ``book/``.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

from npulab import book
from npulab.student import CHECK_TAG, SOLUTION_TAG, cell_name, solution_blocks, solution_source, student_notebook, tags
from tests.book.reference import REFERENCE

ROOT = Path(__file__).resolve().parents[2]
CHAPTERS = book.chapters(ROOT)
PARAMETERS = [pytest.param(path, id=path.stem) for path in CHAPTERS]
TAUGHT = [pytest.param(path, id=path.stem) for path in CHAPTERS if path.stem not in REFERENCE]
SECTIONS = ("Overview", "Summary", "What is next", "Exercises")


def read(path: Path) -> Any:
    return nbformat.read(path, as_version=4)


def failures(notebook: Any) -> dict[int, str]:
    """The cells that raised, by position, each with its error."""
    return {
        index: f"{output['ename']}: {output['evalue']}"
        for index, cell in enumerate(notebook["cells"])
        for output in cell.get("outputs", [])
        if output["output_type"] == "error"
    }


def test_every_notebook_is_in_the_table_of_contents() -> None:
    assert sorted((ROOT / "book").glob("*.ipynb")) == sorted(CHAPTERS)


@pytest.mark.slow
@pytest.mark.parametrize("path", PARAMETERS)
def test_untouched_student_version_fails_in_its_checks_only(path: Path, tmp_path: Path) -> None:
    notebook = student_notebook(read(path), path.name)
    client = NotebookClient(
        notebook, timeout=300, kernel_name="python3", allow_errors=True, resources={"metadata": {"path": str(tmp_path)}}
    )
    client.execute()
    failed = failures(notebook)
    checks = [index for index, cell in enumerate(notebook["cells"]) if CHECK_TAG in tags(cell)]
    assert sorted(failed) == checks, "\n".join(
        f"{cell_name(path.name, index, notebook['cells'][index])}: {error}" for index, error in failed.items()
    )


@pytest.mark.parametrize("path", PARAMETERS)
def test_each_check_follows_an_exercise(path: Path) -> None:
    """A check cell tests something: between it and the check before it, there is a solution to write."""
    notebook = read(path)
    todo = 0
    for index, cell in enumerate(notebook["cells"]):
        if cell["cell_type"] != "code":
            continue
        where = cell_name(path.name, index, cell)
        blocks = solution_blocks(cell["source"], where)
        assert not (blocks and {CHECK_TAG, SOLUTION_TAG} & set(tags(cell))), f"{where} is exercise and check or solution at once"
        todo += len(blocks)
        if CHECK_TAG in tags(cell):
            assert todo, f"{where} checks nothing that the reader wrote"
            todo = 0
    assert not todo, f"the last exercise of {path.name} has no check cell"


@pytest.mark.parametrize("path", PARAMETERS)
def test_reference_pages_say_so_and_chapters_do_not(path: Path) -> None:
    notebook = read(path)
    is_reference = notebook["metadata"].get("npulab", {}).get("page") == "reference"
    assert is_reference == (path.stem in REFERENCE)
    checks = [cell for cell in notebook["cells"] if CHECK_TAG in tags(cell)]
    assert not (is_reference and checks), "a reference page has exercises: it is a chapter"


def test_works_are_listed_on_one_page() -> None:
    """Two bibliographies with one work in both are a warning, and so an error, of the build."""
    pages = [path.name for path in sorted((ROOT / "book").iterdir()) if path.suffix in (".md", ".ipynb")]
    assert [name for name in pages if "{bibliography}" in (ROOT / "book" / name).read_text()] == ["bibliography.md"]


@pytest.mark.parametrize("path", TAUGHT)
def test_chapter_follows_the_pattern(path: Path) -> None:
    """At least three exercises, the sections that every chapter has, in order, and cells that can be taken in at a glance."""
    cells = read(path)["cells"]
    checks = [cell for cell in cells if CHECK_TAG in tags(cell)]
    assert len(checks) >= 3
    headings = [
        line.removeprefix("## ").strip()
        for cell in cells
        if cell["cell_type"] == "markdown"
        for line in cell["source"].splitlines()
        if line.startswith("## ")
    ]
    assert [heading for heading in headings if heading in SECTIONS] == list(SECTIONS)
    shown = [cell for cell in cells if cell["cell_type"] == "code" and not {"remove-cell", "remove-input"} & set(tags(cell))]
    assert [cell["id"] for cell in shown if len(solution_source(cell["source"]).splitlines()) > 15] == []


def names_given(source: str) -> Iterator[str]:
    """Regular expressions of the names that a cell's calls of ``npulab.numbers`` give values to."""
    for call in ast.walk(ast.parse(source)):
        if not (isinstance(call, ast.Call) and ast.unparse(call.func) == "npulab.numbers"):
            continue
        for keyword in call.keywords:
            if keyword.arg:
                yield keyword.arg
                continue
            assert isinstance(keyword.value, ast.DictComp), f"cannot read the names of {ast.unparse(keyword.value)}"
            assert isinstance(keyword.value.key, ast.JoinedStr)
            parts = keyword.value.key.values
            yield "".join(str(part.value) if isinstance(part, ast.Constant) else r"\w+" for part in parts)


@pytest.mark.parametrize("path", PARAMETERS)
def test_every_number_of_the_text_has_a_run(path: Path) -> None:
    """Each name that the text glues is given a value by ``npulab.numbers``, and each value is used."""
    cells = read(path)["cells"]
    text = "\n".join(cell["source"] for cell in cells if cell["cell_type"] == "markdown")
    used = set(re.findall(r"\{glue:text\}`(\w+)", text))
    given = [name for cell in cells if cell["cell_type"] == "code" for name in names_given(cell["source"])]
    assert {name for name in used if not any(re.fullmatch(pattern, name) for pattern in given)} == set()
    assert [pattern for pattern in given if not any(re.fullmatch(pattern, name) for name in used)] == []


@pytest.mark.parametrize("path", PARAMETERS)
def test_notebook_in_git_is_clean(path: Path) -> None:
    """No outputs and no counts (they go stale, and bloat each change); the kernel is the one of this environment."""
    notebook = read(path)
    code = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert [cell["id"] for cell in code if cell["outputs"] or cell["execution_count"] is not None] == []
    assert notebook["metadata"]["kernelspec"]["name"] == "python3"
    nbformat.validate(notebook)

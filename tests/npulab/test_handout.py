"""`npulab student`: where student versions are written, and that none is overwritten which somebody has changed."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from npulab.__main__ import main
from tests.npulab.test_student import chapter, glued_notebook

NAMES = ("one", "two")


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with `book/one.ipynb` and `book/two.ipynb`, which is the current one."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "book").mkdir()
    for name in NAMES:
        nbformat.write(chapter(), tmp_path / "book" / f"{name}.ipynb")
    return tmp_path


def edit(path: Path, source: str) -> None:
    """Change the first code cell, as a student does."""
    notebook = nbformat.read(path, as_version=4)
    next(cell for cell in notebook.cells if cell.cell_type == "code")["source"] = source
    nbformat.write(notebook, path)


def first_code(path: Path) -> Any:
    return next(cell for cell in nbformat.read(path, as_version=4).cells if cell.cell_type == "code")


def test_command_writes_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    nbformat.write(chapter(), tmp_path / "one.ipynb")
    target = tmp_path / "new" / "out.ipynb"
    assert main(["student", str(tmp_path / "one.ipynb"), "-o", str(target)]) == 0
    assert len(nbformat.read(target, as_version=4).cells) == 4
    assert str(target) in capsys.readouterr().out


def test_command_writes_a_folder(repository: Path) -> None:
    assert main(["student", "book"]) == 0
    assert sorted(path.name for path in (repository / "student").iterdir()) == ["one.ipynb", "two.ipynb"]


def test_command_never_overwrites_the_solutions(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    nbformat.write(chapter(), tmp_path / "one.ipynb")
    text = (tmp_path / "one.ipynb").read_text()
    assert main(["student", str(tmp_path / "one.ipynb"), "-o", str(tmp_path)]) == 1
    assert (tmp_path / "one.ipynb").read_text() == text
    assert "solution version itself" in capsys.readouterr().err


def test_command_names_the_cell_with_bad_markers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bad = new_notebook(cells=[new_markdown_cell("x"), new_code_cell("### BEGIN SOLUTION\nb = 1", id="middle")])
    nbformat.write(bad, tmp_path / "bad.ipynb")
    assert main(["student", str(tmp_path / "bad.ipynb"), "-o", str(tmp_path / "out.ipynb")]) == 1
    assert "bad.ipynb, cell 2 (id middle), line 1" in capsys.readouterr().err
    assert not (tmp_path / "out.ipynb").exists()


@pytest.mark.parametrize("what", ["missing.ipynb", "."])
def test_command_says_what_it_did_not_find(
    what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["student", what]) == 1
    assert capsys.readouterr().err.startswith("npulab student: no ")


def test_a_changed_notebook_is_left_and_the_others_are_written(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["student", "book"]) == 0
    one, two = (repository / "student" / f"{name}.ipynb" for name in NAMES)
    edit(one, "mine = 1")
    for name in NAMES:
        edit(repository / "book" / f"{name}.ipynb", "a = 43")
    capsys.readouterr()
    assert main(["student", "book"]) == 0
    assert (first_code(one).source, first_code(two).source) == ("mine = 1", "a = 43")
    said = capsys.readouterr().out
    assert "student/one.ipynb: changed since it was written, so it is left as it is (--force overwrites it)\n" in said
    assert f"{Path('book/two.ipynb')} -> {Path('student/two.ipynb')}\n" in said
    assert main(["student", "book", "--force"]) == 0
    assert first_code(one).source == "a = 43"


def test_a_notebook_that_was_only_run_is_not_changed(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Its outputs stay as long as the chapter is the same; a new chapter takes its place."""
    assert main(["student", "book"]) == 0
    one = repository / "student" / "one.ipynb"
    notebook = nbformat.read(one, as_version=4)
    notebook.cells[1]["outputs"] = [new_output("stream", text="42\n")]
    nbformat.write(notebook, one)
    assert main(["student", "book"]) == 0
    assert first_code(one).outputs
    assert "one.ipynb: up to date" in capsys.readouterr().out
    edit(repository / "book" / "one.ipynb", "a = 43")
    assert main(["student", "book"]) == 0
    assert first_code(one).source == "a = 43"


@pytest.mark.parametrize("text", ["", "{}", "[]", "not a notebook"])
def test_what_was_not_written_by_it_is_left(text: str, repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one = repository / "student" / "one.ipynb"
    one.parent.mkdir()
    one.write_text(text)
    assert main(["student", "book"]) == 0
    assert one.read_text() == text
    assert "--force" in capsys.readouterr().out


def test_a_notebook_without_a_record_is_left(repository: Path) -> None:
    """Such as a student version of an earlier state of the book."""
    one = repository / "student" / "one.ipynb"
    one.parent.mkdir()
    nbformat.write(new_notebook(cells=[new_code_cell("mine = 1")]), one)
    assert main(["student", "book"]) == 0
    assert first_code(one).source == "mine = 1"


def build(repository: Path, name: str, *numbers: str) -> Path:
    """The page of a chapter as the site shows it, newer than the chapter."""
    page = repository / "_build" / "html" / "book" / f"{name}.html"
    page.parent.mkdir(parents=True, exist_ok=True)
    page.write_text("<p>" + " and ".join(f'<span class="pasted-text">{text}</span>' for text in numbers) + "</p>")
    later = (repository / "book" / f"{name}.ipynb").stat().st_mtime + 10
    os.utime(page, (later, later))
    return page


def test_numbers_of_the_text_are_those_of_the_page(repository: Path) -> None:
    source, target = repository / "book" / "one.ipynb", repository / "student.ipynb"
    nbformat.write(glued_notebook(), source)
    page = build(repository, "one", "1,234.5", "&lt;1.3", "7", "1.30")
    assert main(["student", str(source), "-o", str(target)]) == 0
    texts = [cell["source"] for cell in nbformat.read(target, as_version=4)["cells"]]
    assert texts == ["It took 1,234.5 µs, <1.3 times the bound; `{x}` and `{ref}` stay.", "'{glue:}`x`'", "1.30"]
    later = page.stat().st_mtime + 10
    os.utime(source, (later, later))
    assert main(["student", str(source), "-o", str(target)]) == 0
    assert "`time_us` µs" in target.read_text(), "an older page tells nothing"


LACKING = "no built site: numbers stand as names; `make book` first\n"


def test_without_a_site_a_line_says_what_stands_for_numbers(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["student", "book"]) == 0
    assert "numbers stand as names" not in capsys.readouterr().out, "no text takes a number"
    nbformat.write(glued_notebook(), repository / "book" / "two.ipynb")
    assert main(["student", "book"]) == 0
    assert capsys.readouterr().out.endswith(LACKING)
    build(repository, "one")
    assert main(["student", "book"]) == 0
    assert capsys.readouterr().out.endswith("\nno up-to-date page of two: numbers stand as names; `make book` first\n")
    build(repository, "two", "1", "2", "3", "4")
    assert main(["student", "book"]) == 0
    assert "numbers stand as names" not in capsys.readouterr().out

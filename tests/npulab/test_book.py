"""The build's guards: stale caches, MathJax, missing pages, downloads."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from npulab import book

TOC = (
    "format: jb-book\nroot: book/intro\nparts:\n- chapters:\n  - file: book/one\n    sections:\n    - file: book/two\n"
)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository with a source, a design, a lock file and a table of contents of three pages."""
    for name, text in {
        "utils/npusim/engine.py": "A = 1",
        "designs/saxpy/design.py": "B = 1",
        "requirements.lock": "numpy==2",
        "_config.yml": "title: x",
        "_toc.yml": TOC,
        "book/intro.md": "# Intro",
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


@pytest.mark.parametrize(
    "name",
    ["utils/npusim/engine.py", "designs/saxpy/design.py", "requirements.lock", "_config.yml", "designs/saxpy/new.cc"],
)
def test_key_changes_with_what_notebooks_run(repository: Path, name: str) -> None:
    before = book.content_key(repository)
    (repository / name).write_text("changed")
    assert book.content_key(repository) != before


def test_key_changes_when_a_file_moves(repository: Path) -> None:
    before = book.content_key(repository)
    (repository / "utils/npusim/engine.py").rename(repository / "utils/npusim/motor.py")
    assert book.content_key(repository) != before


@pytest.mark.parametrize(("variable", "value"), [("NPULAB_BACKEND", "npu"), ("NPULAB_DEVICE", "npu1")])
def test_key_changes_with_backend_and_device(
    repository: Path, monkeypatch: pytest.MonkeyPatch, variable: str, value: str
) -> None:
    before = book.build_key(repository)
    monkeypatch.setenv(variable, value)
    assert book.build_key(repository) != before


@pytest.mark.parametrize(
    "name", ["book/intro.md", "README.md", "utils/npusim/__pycache__/engine.pyc", "utils/.hidden/x.py"]
)
def test_key_ignores_text_and_products(repository: Path, name: str) -> None:
    before = book.content_key(repository)
    (repository / name).parent.mkdir(parents=True, exist_ok=True)
    (repository / name).write_text("changed")
    assert book.content_key(repository) == before


def fill_caches(root: Path) -> None:
    for cache in book.CACHES:
        (root / cache).mkdir(parents=True)
        (root / cache / "something").write_text("x")


def test_caches_are_kept_after_a_good_build_of_the_same_content(repository: Path) -> None:
    fill_caches(repository)
    (repository / book.KEY_FILE).write_text("key")
    assert not book.drop_stale_caches(repository, "key")
    assert all((repository / cache / "something").exists() for cache in book.CACHES)


@pytest.mark.parametrize("stamp", ["another key", None])
def test_caches_go_when_the_content_changed_or_the_last_build_failed(repository: Path, stamp: str | None) -> None:
    fill_caches(repository)
    if stamp:
        (repository / book.KEY_FILE).write_text(stamp)
    assert book.drop_stale_caches(repository, "key")
    assert not any((repository / cache).exists() for cache in book.CACHES)
    assert not (repository / book.KEY_FILE).exists()


def test_toc_pages_in_order(repository: Path) -> None:
    assert book.toc_pages(repository) == ["book/intro", "book/one", "book/two"]


def test_missing_pages_are_named(repository: Path) -> None:
    for page in ("intro", "two"):
        (repository / book.HTML / "book").mkdir(parents=True, exist_ok=True)
        (repository / book.HTML / f"book/{page}.html").write_text("<p>")
    assert book.missing_pages(repository) == ["book/one"]


def test_a_build_that_lacks_a_page_fails(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(book, "run_jupyter_book", lambda root: None)
    with pytest.raises(book.BookError, match=r"not built: book/intro, book/one, book/two"):
        book.build(repository)
    assert not (repository / book.KEY_FILE).exists()


def test_mathjax_is_complete_and_checked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = tmp_path / "mathjax"
    book.vendor_mathjax(target)
    assert (target / "tex-chtml-full.js").stat().st_size > 1_000_000
    assert list((target / "output/chtml/fonts/woff-v2").glob("*.woff"))
    assert sum(path.stat().st_size for path in target.rglob("*") if path.is_file()) < 4_000_000
    monkeypatch.setattr(book, "MATHJAX_SHA256", "0" * 64)
    with pytest.raises(book.BookError, match="does not hold the files"):
        book.vendor_mathjax(target)


def test_mathjax_package_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(book, "MATHJAX_PACKAGE", "no-such-package")
    with pytest.raises(book.BookError, match=r"no-such-package.*make \.venv"):
        book.vendor_mathjax(tmp_path / "mathjax")


def test_downloads_are_student_versions(repository: Path) -> None:
    notebook = new_notebook(cells=[new_code_cell("### BEGIN SOLUTION\nx = 1\n### END SOLUTION")])
    nbformat.write(notebook, repository / "book/one.ipynb")
    download = repository / book.HTML / "_sources/book/one.ipynb"
    download.parent.mkdir(parents=True)
    nbformat.write(notebook, download)
    book.offer_student_versions(repository)
    assert nbformat.read(download, as_version=4).cells[0].source == "# YOUR CODE HERE (about 1 line)"


def test_a_download_without_a_student_version_fails_the_build(repository: Path) -> None:
    notebook = new_notebook(cells=[new_code_cell("### BEGIN SOLUTION", id="open")])
    download = repository / book.HTML / "_sources/book/one.ipynb"
    download.parent.mkdir(parents=True)
    for path in (repository / "book/one.ipynb", download):
        nbformat.write(notebook, path)
    with pytest.raises(book.BookError, match=r"no student version of one\.ipynb: .*\(id open\)"):
        book.offer_student_versions(repository)


@pytest.mark.slow
def test_an_interrupted_build_says_so_in_a_line(tmp_path: Path) -> None:
    """Ctrl-C, which a terminal sends to all processes of its group: no traceback, exit code 130, and the next build starts afresh."""
    begun = tmp_path / "begun"
    code = f"import pathlib, time\npathlib.Path({str(begun)!r}).touch()\ntime.sleep(60)"
    cells = [new_markdown_cell("# One"), new_code_cell(code)]
    metadata = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    nbformat.write(new_notebook(cells=cells, metadata=metadata), tmp_path / "one.ipynb")
    (tmp_path / "_config.yml").write_text(CONFIG)
    (tmp_path / "_toc.yml").write_text("format: jb-book\nroot: one\n")
    (tmp_path / "requirements.lock").write_text("")
    command = [sys.executable, "-m", "npulab", "book", str(tmp_path)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, process_group=0) as build:
        deadline = time.monotonic() + 60
        while not begun.exists():
            assert build.poll() is None and time.monotonic() < deadline
            time.sleep(0.1)
        os.killpg(build.pid, signal.SIGINT)
        _, said = build.communicate(timeout=30)
    assert (build.returncode, said.count("\n")) == (130, 2), said
    assert said.startswith("\nnpulab book: interrupted")
    assert not (tmp_path / book.KEY_FILE).exists()


# The two traps, on a real build of a tiny book.

CONFIG = """
title: tiny
only_build_toc_files: true
execute: {execute_notebooks: cache}
sphinx:
  extra_extensions: [npulab.sphinx_ext]
  config: {nb_execution_show_tb: true}
"""


@pytest.mark.slow
def test_a_failing_notebook_fails_every_build_until_it_is_mended(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    def write(source: str) -> None:
        cells = [new_markdown_cell("# One"), new_code_cell(source)]
        metadata = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
        nbformat.write(new_notebook(cells=cells, metadata=metadata), tmp_path / "one.ipynb")

    (tmp_path / "_config.yml").write_text(CONFIG)
    (tmp_path / "_toc.yml").write_text("format: jb-book\nroot: one\n")
    (tmp_path / "requirements.lock").write_text("")
    helper = tmp_path / "utils/tiny_helper.py"
    helper.parent.mkdir()
    helper.write_text("def run():\n    raise RuntimeError('the design is wrong')\n")
    write(f"import sys; sys.path.append({str(helper.parent)!r})\nimport tiny_helper\ntiny_helper.run()")

    for _ in range(2):  # Sphinx would not read the page again, and so not warn again
        with pytest.raises(book.BookError, match="jupyter-book failed"):
            book.build(tmp_path)
        assert "the design is wrong" in capfd.readouterr().err

    helper.write_text("def run():\n    print('first ' + 'result')\n")
    book.build(tmp_path)
    assert "first result" in (tmp_path / book.HTML / "one.html").read_text()

    helper.write_text("def run():\n    print('second ' + 'result')\n")  # the notebook itself is unchanged
    shutil.rmtree(helper.parent / "__pycache__", ignore_errors=True)
    book.build(tmp_path)
    assert "second result" in (tmp_path / book.HTML / "one.html").read_text()

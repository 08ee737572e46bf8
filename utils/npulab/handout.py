"""Write student versions to files, and overwrite none that a student has changed.

A notebook that was written carries a digest of its cells, in its metadata. As long as the cells have that digest, there is no work in
it to be lost: to run a notebook changes its outputs only.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Iterator
from enum import Enum
from pathlib import Path
from typing import Any

import nbformat

from npulab.plain import References
from npulab.student import glued, shown_numbers, student_notebook

FOLDER = Path("student")
"""Where student versions are written if nothing else is said."""
HTML = "_build/html"
"""Where the site is built, in the repository."""


class Outcome(Enum):
    """What became of a file that was to be written."""

    WRITTEN = "written"
    SAME = "up to date"
    KEPT = "changed since it was written, so it is left as it is (--force overwrites it)"


def digest(notebook: Any) -> str:
    """A digest of what the cells of a notebook say; outputs and metadata do not count."""
    cells = [(cell["cell_type"], cell["source"]) for cell in notebook["cells"]]
    return hashlib.sha256(json.dumps(cells).encode()).hexdigest()


def _record(notebook: Any) -> Any:
    """The digest that a notebook was written with; None if there is none."""
    return notebook["metadata"].get("npulab", {}).get("student")


def is_changed(path: Path) -> bool:
    """Whether a file is anything else than a student version as it was written."""
    try:
        notebook = nbformat.read(path, as_version=4)
    except (ValueError, OSError, AttributeError, nbformat.ValidationError):  # no notebook, or a broken one
        return True
    return bool(_record(notebook) != digest(notebook))


def made(source: Path, page: Path | None = None) -> Any:
    """The student version of the notebook ``source``, with its record. ``page`` is the built page of the notebook, if there is one.

    Raises:
        ValueError: if a cell's markers do not pair up, a directive has no plain form, or ``page`` belongs to another state.
    """
    numbers = None if page is None else shown_numbers(page)
    chapter = nbformat.read(source, as_version=4)
    notebook = student_notebook(chapter, str(source), numbers, References.of(source.parent))
    notebook["metadata"].setdefault("npulab", {})["student"] = digest(notebook)
    return notebook


def write_student(source: Path, target: Path, page: Path | None = None, force: bool = True) -> Outcome:
    """Read the notebook ``source`` and write its student version to ``target``, making folders as needed; without ``force`` not
    over one that was changed. ``page`` is the built page of the notebook, if there is one.

    Raises:
        FileExistsError: if ``target`` is ``source``, whose solutions would be lost.
        ValueError: as :func:`made`; nothing is written then.
    """
    if source.resolve() == target.resolve():
        raise FileExistsError(f"{target} is the solution version itself; name another file with -o")
    notebook = made(source, page)
    if target.exists() and not force:
        if is_changed(target):
            return Outcome.KEPT
        if digest(nbformat.read(target, as_version=4)) == digest(notebook):
            return Outcome.SAME  # with the outputs that it may have by now
    target.parent.mkdir(parents=True, exist_ok=True)
    nbformat.write(notebook, target)
    return Outcome.WRITTEN


def fresh_page(source: Path) -> Path | None:
    """The built page of a notebook of the repository that the notebook lies in, if it is there and not older."""
    for root in source.resolve().parents:
        page = root / HTML / source.resolve().relative_to(root).with_suffix(".html")
        if page.is_file() and page.stat().st_mtime >= source.stat().st_mtime:
            return page
    return None


def plan(source: Path, output: Path | None) -> Iterator[tuple[Path, Path]]:
    """The (source, target) pairs for a notebook or a folder of notebooks; ``student/`` is the default output folder.

    Raises:
        FileNotFoundError: if ``source`` is neither a notebook nor a folder that holds one.
    """
    if source.is_dir():
        notebooks = sorted(source.glob("*.ipynb"))
        if not notebooks:
            raise FileNotFoundError(f"no notebook (*.ipynb) in {source}")
        yield from ((notebook, (output or FOLDER) / notebook.name) for notebook in notebooks)
    elif source.is_file():
        if output is None or output.is_dir():
            output = (output or FOLDER) / source.name
        yield source, output
    else:
        raise FileNotFoundError(f"no such notebook or folder: {source}")


def _say_what_lacks_numbers(sources: list[Path]) -> None:
    """One line on the notebooks in which names stand for numbers, if there are any."""
    without_page = [source for source in sources if not fresh_page(source)]
    lacking = [source.stem for source in without_page if glued(nbformat.read(source, as_version=4))]
    if lacking:
        what = "no built site" if without_page == sources else f"no up-to-date page of {', '.join(lacking)}"
        print(f"{what}: numbers stand as names; `make book` first")


def run(source: Path, output: Path | None, force: bool) -> int:
    """Write student versions, and say of each what became of it; returns the exit code, 0 also where changed ones were left."""
    try:
        pairs = list(plan(source, output))
        for notebook, target in pairs:
            outcome = write_student(notebook, target, fresh_page(notebook), force)
            print(f"{notebook} -> {target}" if outcome is Outcome.WRITTEN else f"{target}: {outcome.value}")
    except (ValueError, FileNotFoundError, FileExistsError) as error:  # marker and directive errors are ValueErrors
        print(f"npulab student: {error}", file=sys.stderr)
        return 1
    _say_what_lacks_numbers([notebook for notebook, _ in pairs])
    return 0

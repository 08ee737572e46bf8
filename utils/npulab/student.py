"""Make the student version of a chapter from the notebook in git, which holds the solutions.

A chapter's notebook is the single source. In a code cell, the lines between the two markers

    ### BEGIN SOLUTION
    ### END SOLUTION

(each alone on its line, at any indentation) are the solution. The student version keeps the cell and replaces each such
block by one line, ``# YOUR CODE HERE (about N lines)``; where the block is the body of a function or loop, ``...`` follows so
that the cell still compiles. N counts the lines of the solution that are neither blank nor comments.

JupyterLab does not show a number that the page takes from the run (``{glue:text}`name:.1f```). In the student version it stands as
on the built page; without one as its name, ``name``, under which the notebook prints it.

Cells tagged ``solution`` (a worked answer in words, or shown in full) are left out, and every output is cleared. Cells tagged
``check`` are kept: in an untouched student version they, and only they, fail.
"""

from __future__ import annotations

import argparse
import copy
import html
import io
import re
import sys
import tokenize
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import nbformat

BEGIN = "### BEGIN SOLUTION"
END = "### END SOLUTION"
SOLUTION_TAG = "solution"
HTML = "_build/html"
"""Where the site is built, in the repository."""
CHECK_TAG = "check"
GLUED = re.compile(r"\{glue:[a-z]*\}`(\w+)(?::[^`]*)?`")
"""A number in the text that MyST-NB takes from the run."""
_SHOWN = re.compile(r'<span class="pasted-text">([^<]*)</span>')


class SolutionMarkerError(ValueError):
    """A ``BEGIN`` without its ``END``, an ``END`` without its ``BEGIN``, or one block inside another."""


@dataclass(frozen=True)
class Block:
    """Lines ``first`` to ``last`` (0-based, both markers included) of a cell."""

    first: int
    last: int


def _marker_lines(source: str) -> list[tuple[int, str]]:
    """The (0-based line, marker) pairs of a cell, in order. A marker inside a string is text, not a marker."""
    lines = source.splitlines()
    candidates = [(number, line.strip()) for number, line in enumerate(lines) if line.strip() in (BEGIN, END)]
    if not candidates:
        return []
    try:
        tokens = list(tokenize.generate_tokens(io.StringIO(source).readline))
    except (tokenize.TokenError, SyntaxError):  # IPython's magics and shell lines are not Python: trust the lines
        return candidates
    comments = {token.start[0] - 1 for token in tokens if token.type == tokenize.COMMENT}
    return [(number, marker) for number, marker in candidates if number in comments]


def solution_blocks(source: str, where: str = "cell") -> list[Block]:
    """The solution blocks of a cell's source, top to bottom.

    Raises:
        SolutionMarkerError: naming ``where`` and the line, if the markers do not pair up.
    """
    blocks: list[Block] = []
    begin: int | None = None
    for number, marker in _marker_lines(source):
        if marker == BEGIN:
            if begin is not None:
                raise SolutionMarkerError(
                    f"{where}, line {number + 1}: '{BEGIN}' inside the block that line {begin + 1} began"
                )
            begin = number
        else:
            if begin is None:
                raise SolutionMarkerError(f"{where}, line {number + 1}: '{END}' without a '{BEGIN}' before it")
            blocks.append(Block(begin, number))
            begin = None
    if begin is not None:
        raise SolutionMarkerError(f"{where}, line {begin + 1}: '{BEGIN}' is never closed by an '{END}'")
    return blocks


def _placeholder(block: list[str]) -> list[str]:
    """What stands in the student version for one block (its lines, markers included)."""
    indent = block[0][: len(block[0]) - len(block[0].lstrip())]
    size = sum(1 for line in block[1:-1] if line.strip() and not line.strip().startswith("#"))
    lines = [f"{indent}# YOUR CODE HERE (about {size} line{'' if size == 1 else 's'})"]
    if indent:  # at the left margin nothing needs a body
        lines.append(f"{indent}...")
    return lines


def student_source(source: str, where: str = "cell") -> str:
    """A code cell's source with each solution block replaced by its placeholder; unchanged where there is none.

    Raises:
        SolutionMarkerError: if the markers do not pair up.
    """
    lines = source.splitlines()
    for block in reversed(solution_blocks(source, where)):
        lines[block.first : block.last + 1] = _placeholder(lines[block.first : block.last + 1])
    return _join_like(source, lines)


def solution_source(source: str, where: str = "cell") -> str:
    """A code cell's source without the marker lines: what a page shows as the solution."""
    lines = source.splitlines()
    for block in reversed(solution_blocks(source, where)):
        del lines[block.last], lines[block.first]
    return _join_like(source, lines)


def _join_like(source: str, lines: list[str]) -> str:
    return "\n".join(lines) + ("\n" if source.endswith("\n") else "")


def tags(cell: Any) -> list[str]:
    """The tags of a notebook cell."""
    return list(cell.get("metadata", {}).get("tags", []))


def cell_name(path: str, index: int, cell: Any) -> str:
    """How messages name a cell: by file, position and, where it has one, id."""
    identity = f" (id {cell['id']})" if cell.get("id") else ""
    return f"{path}, cell {index + 1}{identity}"


def _student_cell(cell: Any, where: str) -> Any:
    cell = copy.deepcopy(cell)
    if cell["cell_type"] != "code":
        return cell
    cell["source"] = student_source(cell["source"], where)
    cell["outputs"] = []
    cell["execution_count"] = None
    cell["metadata"].pop("execution", None)  # when and how long the solution ran
    return cell


def glued(notebook: Any) -> list[str]:
    """The names of the numbers that the text takes from the run, in order, each as often as it stands there."""
    texts = [cell["source"] for cell in notebook["cells"] if cell["cell_type"] == "markdown"]
    return [found[1] for text in texts for found in GLUED.finditer(text)]


def shown_numbers(page: Path) -> list[str]:
    """Those numbers as a built page shows them, in the same order."""
    return [html.unescape(text) for text in _SHOWN.findall(page.read_text(encoding="utf-8"))]


def _put_numbers(cells: list[Any], numbers: Sequence[str]) -> None:
    """Put numbers, one for each glue role, into the text of the cells."""
    remaining = iter(numbers)
    for cell in cells:
        if cell["cell_type"] == "markdown":
            cell["source"] = GLUED.sub(lambda _: next(remaining), cell["source"])


def student_notebook(notebook: Any, path: str = "notebook", numbers: Sequence[str] | None = None) -> Any:
    """The student version of a notebook (an ``nbformat`` node, left as it is); ``numbers`` are those of :func:`shown_numbers`.

    Raises:
        SolutionMarkerError: naming the cell whose markers do not pair up.
        ValueError: if there are not as many ``numbers`` as the text takes from the run.
    """
    result, names = copy.deepcopy(notebook), glued(notebook)
    if numbers is not None and len(numbers) != len(names):
        raise ValueError(f"{path} takes {len(names)} numbers from its run, and its page shows {len(numbers)}: build it anew")
    _put_numbers(result["cells"], [f"`{name}`" for name in names] if numbers is None else numbers)
    result["cells"] = [
        _student_cell(cell, cell_name(path, index, cell))
        for index, cell in enumerate(result["cells"])
        if SOLUTION_TAG not in tags(cell)
    ]
    return result


def write_student(source: Path, target: Path, page: Path | None = None) -> None:
    """Read the notebook ``source`` and write its student version to ``target``, making folders as needed. ``page`` is the built
    page of the notebook, if there is one.

    Raises:
        SolutionMarkerError: if a cell's markers do not pair up; nothing is written then.
        FileExistsError: if ``target`` is ``source``, whose solutions would be lost.
        ValueError: if ``page`` belongs to another state of the notebook.
    """
    if source.resolve() == target.resolve():
        raise FileExistsError(f"{target} is the solution version itself; name another file with -o")
    numbers = None if page is None else shown_numbers(page)
    notebook = student_notebook(nbformat.read(source, as_version=4), str(source), numbers)
    target.parent.mkdir(parents=True, exist_ok=True)
    nbformat.write(notebook, target)


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
    folder = Path("student")
    if source.is_dir():
        notebooks = sorted(source.glob("*.ipynb"))
        if not notebooks:
            raise FileNotFoundError(f"no notebook (*.ipynb) in {source}")
        yield from ((notebook, (output or folder) / notebook.name) for notebook in notebooks)
    elif source.is_file():
        if output is None or output.is_dir():
            output = (output or folder) / source.name
        yield source, output
    else:
        raise FileNotFoundError(f"no such notebook or folder: {source}")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command line of ``npulab student``."""
    parser.add_argument("source", type=Path, help="a notebook, or a folder of notebooks")
    parser.add_argument("-o", "--output", type=Path, help="file or folder to write (default: student/)")


def run(arguments: argparse.Namespace) -> int:
    """``npulab student``: write the student versions and say where; returns the exit code."""
    try:
        for source, target in plan(arguments.source, arguments.output):
            write_student(source, target, fresh_page(source))
            print(f"{source} -> {target}")
    except (ValueError, FileNotFoundError, FileExistsError) as error:  # SolutionMarkerError is a ValueError
        print(f"npulab student: {error}", file=sys.stderr)
        return 1
    return 0

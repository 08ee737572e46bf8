"""Make the student version of a chapter from the notebook in git, which holds the solutions.

A chapter's notebook is the single source. In a code cell, the lines between the two markers

    ### BEGIN SOLUTION
    ### END SOLUTION

(each alone on its line, at any indentation) are the solution. The student version keeps the cell and replaces each such
block by one line, ``# YOUR CODE HERE (about N lines)``; where the block is the body of a function or loop, ``...`` follows so
that the cell still compiles. N counts the lines of the solution that are neither blank nor comments.

JupyterLab does not know MyST. So the text becomes plain Markdown (:mod:`npulab.plain`), and a number that the page takes from the run
(``{glue:text}`name:.1f```) stands as on the built page; without one as its name, ``name``.

Worked answers are left out: cells tagged ``solution``, and those that are one ``{dropdown}``, with or without the tag. Of the cells
that the page does not show, what later cells need remains (:mod:`npulab.hidden`). Every output is cleared. Cells tagged ``check``
are kept: in an untouched student version they, and only they, fail.

A notebook that you have changed is not overwritten, except with ``--force``.
"""

from __future__ import annotations

import argparse
import copy
import html
import io
import re
import tokenize
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from npulab.hidden import HIDDEN_TAG, needed_sources
from npulab.plain import References, plain

BEGIN = "### BEGIN SOLUTION"
END = "### END SOLUTION"
SOLUTION_TAG = "solution"
CHECK_TAG = "check"
GLUED = re.compile(r"\{glue:[a-z]*\}`(\w+)(?::[^`]*)?`")
"""A number in the text that MyST-NB takes from the run."""
_ANSWER = re.compile(r"\A\s*(?P<fence>`{3,}|~{3,}|:{3,})\{dropdown\}")
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


def is_answer(cell: Any) -> bool:
    """Whether a cell is a worked answer: tagged ``solution``, or Markdown that is folded on the page."""
    return SOLUTION_TAG in tags(cell) or (cell["cell_type"] == "markdown" and bool(_ANSWER.match(cell["source"])))


def _student_cell(cell: Any, where: str, references: References | None) -> Any:
    """One cell of the student version, from its source and without what a run has left in it."""
    cell = copy.deepcopy(cell)
    if cell["cell_type"] == "markdown":
        cell["source"] = plain(cell["source"], references, where)
    if cell["cell_type"] != "code":
        return cell
    cell["source"] = student_source(cell["source"], where)
    cell["outputs"] = []
    cell["execution_count"] = None
    cell["metadata"].pop("execution", None)  # when and how long the solution ran
    return cell


def _without_idle_code(cells: list[Any]) -> list[Any]:
    """The cells without what only the page needs of the hidden ones."""
    code = [cell for cell in cells if cell["cell_type"] == "code"]
    remaining = needed_sources([(HIDDEN_TAG in tags(cell), solution_source(cell["source"])) for cell in code])
    for cell, source in zip(code, remaining):
        if HIDDEN_TAG in tags(cell):
            cell["source"] = source
    return [cell for cell in cells if HIDDEN_TAG not in tags(cell) or (cell["cell_type"] == "code" and cell["source"])]


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


def student_notebook(
    notebook: Any, path: str = "notebook", numbers: Sequence[str] | None = None, references: References | None = None
) -> Any:
    """The student version of a notebook (an ``nbformat`` node, left as it is); ``numbers`` are those of :func:`shown_numbers`.

    Raises:
        SolutionMarkerError: naming the cell whose markers do not pair up.
        DirectiveError: naming the cell with a directive that has no plain form, as a worked answer that is not a cell of its own.
        ValueError: if there are not as many ``numbers`` as the text takes from the run.
    """
    result, names = copy.deepcopy(notebook), glued(notebook)
    if numbers is not None and len(numbers) != len(names):
        raise ValueError(f"{path} takes {len(names)} numbers from its run, and its page shows {len(numbers)}: build it anew")
    _put_numbers(result["cells"], [f"`{name}`" for name in names] if numbers is None else numbers)
    wheres = {id(cell): cell_name(path, index, cell) for index, cell in enumerate(result["cells"])}
    for cell in result["cells"]:
        if cell["cell_type"] == "code":
            solution_blocks(cell["source"], wheres[id(cell)])
    cells = _without_idle_code([cell for cell in result["cells"] if not is_answer(cell)])
    result["cells"] = [_student_cell(cell, wheres[id(cell)], references) for cell in cells]
    return result


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command line of ``npulab student``."""
    parser.add_argument("source", type=Path, help="a notebook, or a folder of notebooks")
    parser.add_argument("-o", "--output", type=Path, help="file or folder to write (default: student/)")
    parser.add_argument("--force", action="store_true", help="overwrite notebooks that were changed since they were written")


def run(arguments: argparse.Namespace) -> int:
    """``npulab student``: write the student versions and say where; returns the exit code."""
    from npulab import handout  # which needs this module

    return handout.run(arguments.source, arguments.output, arguments.force)

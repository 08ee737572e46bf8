"""Sphinx extension of the book: an exercise's page shows the skeleton first and the solution folded; no unused scripts.

The notebook in git holds the solution (see :mod:`npulab.student`). Before a page is parsed, each code cell with a solution
block becomes two: a code listing with the student's version, and the cell itself, without the markers, folded under "Show a
solution". The cell is the one that runs, so the page always shows a solution that passes its check.
"""

from __future__ import annotations

import json
from typing import Any

from sphinx.application import Sphinx

from npulab.student import cell_name, solution_blocks, solution_source, student_source

PROMPTS = {"code_prompt_show": "Show a solution", "code_prompt_hide": "Hide the solution"}


def _text(source: str | list[str]) -> str:
    """A cell's source; in a notebook file it may be one string or a list of lines."""
    return source if isinstance(source, str) else "".join(source)


def _skeleton_cell(source: str) -> dict[str, Any]:
    text = f"```python\n{source.rstrip()}\n```"
    return {"cell_type": "markdown", "metadata": {}, "source": text}


def _solution_cell(cell: dict[str, Any], source: str) -> dict[str, Any]:
    metadata = dict(cell.get("metadata", {}))
    metadata["tags"] = sorted({*metadata.get("tags", []), "hide-input"})
    metadata["mystnb"] = {**PROMPTS, **metadata.get("mystnb", {})}
    return {**cell, "metadata": metadata, "source": source}


def page_cells(cells: list[dict[str, Any]], path: str) -> list[dict[str, Any]]:
    """The cells of a notebook as its page shows them.

    Raises:
        npulab.student.SolutionMarkerError: if a cell's markers do not pair up.
    """
    shown: list[dict[str, Any]] = []
    for index, cell in enumerate(cells):
        source = _text(cell["source"])
        where = cell_name(path, index, cell)
        if cell["cell_type"] == "code" and solution_blocks(source, where):
            shown += [_skeleton_cell(student_source(source)), _solution_cell(cell, solution_source(source))]
        else:
            shown.append(cell)
    return shown


def show_skeletons(app: Sphinx, docname: str, content: list[str]) -> None:
    """Handler of ``source-read``: rewrite a notebook's JSON text in place."""
    if app.env.doc2path(docname).endswith(".ipynb"):
        notebook = json.loads(content[0])
        notebook["cells"] = page_cells(notebook["cells"], docname)
        for cell in notebook["cells"]:
            cell.pop("id", None)  # added cells have none, and a notebook has ids in all of its cells or in none
        notebook["nbformat_minor"] = 4
        content[0] = json.dumps(notebook)


def drop_thebe(app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: Any) -> None:
    """Handler of ``html-page-context``: leave out the scripts of Thebe, which Jupyter Book always adds.

    Thebe would run cells on a public server. The book does not offer that, and the scripts' constants, declared twice,
    are an error in the console of every page.
    """
    context["script_files"] = [script for script in context.get("script_files", []) if not _is_thebe(script)]


def _is_thebe(script: Any) -> bool:
    text = f"{getattr(script, 'filename', script)} {getattr(script, 'attributes', {}).get('body', '')}"
    return "thebe" in text.lower()


def list_works(app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: Any) -> None:
    """Handler of ``html-page-context``: make the entries of a bibliography items of the list that they stand in.

    The role that docutils gives them, ``doc-biblioentry``, is deprecated, and not one that a list may hold.
    """
    if "body" in context:
        context["body"] = context["body"].replace('role="doc-biblioentry"', 'role="listitem"')


def reach_tables(app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: Any) -> None:
    """Handler of ``html-page-context``: let the keyboard reach a table that is scrolled sideways on a narrow page."""
    if "body" in context:
        box = '<div class="pst-scrollable-table-container"'
        context["body"] = context["body"].replace(f"{box}>", f'{box} tabindex="0">')


def setup(app: Sphinx) -> dict[str, Any]:
    """Called by Sphinx."""
    from npulab.terms import LinkTerms

    app.add_post_transform(LinkTerms)
    app.connect("source-read", show_skeletons)
    app.connect("html-page-context", drop_thebe, priority=900)
    app.connect("html-page-context", list_works)
    app.connect("html-page-context", reach_tables)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}

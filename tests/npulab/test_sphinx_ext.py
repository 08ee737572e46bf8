"""What an exercise looks like on its page."""

from __future__ import annotations

from typing import Any

import pytest

from npulab.sphinx_ext import list_works, page_cells, reach_tables
from npulab.student import SolutionMarkerError

EXERCISE = ["def f(x):\n", "    ### BEGIN SOLUTION\n", "    return x\n", "    ### END SOLUTION\n"]


def code(source: str | list[str], **metadata: Any) -> dict[str, Any]:
    return {"cell_type": "code", "metadata": metadata, "source": source, "outputs": [], "execution_count": None}


def test_skeleton_then_folded_solution() -> None:
    skeleton, solution = page_cells([code(EXERCISE, tags=["exercise"])], "chapter")
    assert skeleton["cell_type"] == "markdown"
    assert skeleton["source"] == "```python\ndef f(x):\n    # YOUR CODE HERE (about 1 line)\n    ...\n```"
    assert solution["source"] == "def f(x):\n    return x\n"
    assert solution["metadata"]["tags"] == ["exercise", "hide-input"]
    assert solution["metadata"]["mystnb"]["code_prompt_show"] == "Show a solution"


def test_a_cell_may_choose_its_own_prompt() -> None:
    _, solution = page_cells([code(EXERCISE, mystnb={"code_prompt_show": "Show one way"})], "chapter")
    assert solution["metadata"]["mystnb"] == {
        "code_prompt_show": "Show one way",
        "code_prompt_hide": "Hide the solution",
    }


def test_other_cells_are_left_alone() -> None:
    cells = [code("a = 1"), {"cell_type": "markdown", "metadata": {}, "source": EXERCISE}]
    assert page_cells(cells, "chapter") == cells


def test_bad_markers_name_the_cell() -> None:
    with pytest.raises(SolutionMarkerError, match=r"book/chapter, cell 2, line 1"):
        page_cells([code("a = 1"), code("### BEGIN SOLUTION\n")], "book/chapter")


def test_works_of_a_bibliography_are_items_of_its_list() -> None:
    context = {"body": '<div class="citation" id="a" role="doc-biblioentry">A</div>'}
    list_works(None, "page", "page.html", context, None)  # type: ignore[arg-type]
    assert context["body"] == '<div class="citation" id="a" role="listitem">A</div>'
    list_works(None, "search", "search.html", empty := {}, None)  # type: ignore[arg-type]
    assert empty == {}


def test_tables_that_scroll_can_be_reached_by_keyboard() -> None:
    context = {"body": '<div class="pst-scrollable-table-container"><table></table></div>'}
    reach_tables(None, "page", "page.html", context, None)  # type: ignore[arg-type]
    assert context["body"] == '<div class="pst-scrollable-table-container" tabindex="0"><table></table></div>'

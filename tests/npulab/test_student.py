"""The student version: solutions out, the rest as it was."""

from __future__ import annotations

import ast
from typing import Any

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from npulab.plain import DirectiveError
from npulab.student import (
    SolutionMarkerError,
    solution_blocks,
    solution_source,
    student_notebook,
    student_source,
)

CASES = {
    "body of a function": (
        "def f(x):\n    ### BEGIN SOLUTION\n    y = x + 1\n    return y\n    ### END SOLUTION\n",
        "def f(x):\n    # YOUR CODE HERE (about 2 lines)\n    ...\n",
    ),
    "left margin needs no body": (
        "answer = ...\n### BEGIN SOLUTION\nanswer = 42\n### END SOLUTION",
        "answer = ...\n# YOUR CODE HERE (about 1 line)",
    ),
    "nested deeper, code after it": (
        "for i in r:\n    if i:\n        ### BEGIN SOLUTION\n        g(i)\n        ### END SOLUTION\n    h(i)\n",
        "for i in r:\n    if i:\n        # YOUR CODE HERE (about 1 line)\n        ...\n    h(i)\n",
    ),
    "tabs are kept": (
        "def f():\n\t### BEGIN SOLUTION\n\treturn 1\n\t### END SOLUTION\n",
        "def f():\n\t# YOUR CODE HERE (about 1 line)\n\t...\n",
    ),
    "comments and blank lines do not count": (
        "### BEGIN SOLUTION\n# why\n\na = 1\n\n# how\nb = 2\n### END SOLUTION\nc = 3",
        "# YOUR CODE HERE (about 2 lines)\nc = 3",
    ),
    "two blocks": (
        "### BEGIN SOLUTION\na = 1\n### END SOLUTION\nmiddle()\n### BEGIN SOLUTION\nb = 1\nc = 1\n### END SOLUTION",
        "# YOUR CODE HERE (about 1 line)\nmiddle()\n# YOUR CODE HERE (about 2 lines)",
    ),
    "an IPython magic in the cell": (
        "%matplotlib inline\n!ls\n### BEGIN SOLUTION\na = 1\n### END SOLUTION\n",
        "%matplotlib inline\n!ls\n# YOUR CODE HERE (about 1 line)\n",
    ),
    "no markers": ("a = 1  ### BEGIN SOLUTION is only mentioned", "a = 1  ### BEGIN SOLUTION is only mentioned"),
    "markers inside a string are text": (
        's = """\n### BEGIN SOLUTION\n### END SOLUTION\n"""\n',
        's = """\n### BEGIN SOLUTION\n### END SOLUTION\n"""\n',
    ),
    "a marker in a string inside a block": (
        '### BEGIN SOLUTION\ns = """\n### END SOLUTION\n"""\n### END SOLUTION\nt = 1',
        "# YOUR CODE HERE (about 2 lines)\nt = 1",
    ),
    "empty": ("", ""),
}


@pytest.mark.parametrize(("source", "expected"), CASES.values(), ids=CASES.keys())
def test_student_source(source: str, expected: str) -> None:
    assert student_source(source) == expected


@pytest.mark.parametrize("name", [name for name in CASES if "magic" not in name])
def test_both_versions_compile(name: str) -> None:
    source, expected = CASES[name]
    ast.parse(source)
    ast.parse(expected)
    ast.parse(solution_source(source))


def test_solution_source_drops_only_the_marker_lines() -> None:
    source = CASES["nested deeper, code after it"][0]
    assert solution_source(source) == "for i in r:\n    if i:\n        g(i)\n    h(i)\n"


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("a = 1\n### BEGIN SOLUTION\nb = 1", "line 2: '### BEGIN SOLUTION' is never closed"),
        ("### END SOLUTION", "line 1: '### END SOLUTION' without"),
        ("### BEGIN SOLUTION\n### BEGIN SOLUTION\n### END SOLUTION", "line 2: .* inside the block that line 1 began"),
        ("### BEGIN SOLUTION\n### END SOLUTION\n### END SOLUTION", "line 3: '### END SOLUTION' without"),
    ],
)
def test_unbalanced_markers_name_cell_and_line(source: str, message: str) -> None:
    with pytest.raises(SolutionMarkerError, match=f"chapter, {message}"):
        solution_blocks(source, "chapter")


def chapter() -> nbformat.NotebookNode:
    """A small chapter with every kind of cell."""
    output = new_output("stream", text="42\n")
    return new_notebook(
        cells=[
            new_markdown_cell("# Text\n### BEGIN SOLUTION\nstays in words\n### END SOLUTION"),
            new_code_cell("a = 42\nprint(a)", outputs=[output], execution_count=1),
            new_code_cell(
                "### BEGIN SOLUTION\nb = a\n### END SOLUTION", execution_count=2, metadata={"tags": ["exercise"]}
            ),
            new_code_cell("assert b == 42", metadata={"tags": ["check"]}, execution_count=3),
            new_markdown_cell("Because b is a.", metadata={"tags": ["solution"]}),
            new_code_cell("b = a  # again, in full", metadata={"tags": ["solution"]}),
        ]
    )


def test_student_notebook() -> None:
    before = chapter()
    after = student_notebook(before)
    assert [cell.source for cell in after.cells] == [
        before.cells[0].source,
        "a = 42\nprint(a)",
        "# YOUR CODE HERE (about 1 line)",
        "assert b == 42",
    ]
    code = [cell for cell in after.cells if cell.cell_type == "code"]
    assert all(cell.outputs == [] and cell.execution_count is None for cell in code)
    assert before.cells[1].outputs, "the notebook given was changed"
    nbformat.validate(after)


def test_a_folded_answer_goes_with_and_without_its_tag() -> None:
    folded = "```{dropdown} Worked answer\nBecause {glue:text}`x`.\n```"
    cells = [new_markdown_cell("Text"), new_markdown_cell(folded), new_markdown_cell(f"\n{folded}")]
    assert [cell.source for cell in student_notebook(new_notebook(cells=cells)).cells] == ["Text"]


def test_an_answer_inside_another_cell_is_refused() -> None:
    mixed = new_markdown_cell("Think first.\n\n```{dropdown} Worked answer\nBecause.\n```", id="both")
    with pytest.raises(DirectiveError, match=r"one\.ipynb, cell 1 \(id both\): .*dropdown"):
        student_notebook(new_notebook(cells=[mixed]), "one.ipynb")


HIDDEN = {"tags": ["remove-cell"]}


def test_hidden_cells_keep_what_later_cells_need() -> None:
    """No number for the text, nothing that the text says, no solution that is run for its sake; but names that are used."""
    cells = [
        new_code_cell("import npulab\nlength = 3\nassert length == 3, 'the text says so'", metadata=HIDDEN),
        new_code_cell("run = npulab.run(length)"),
        new_code_cell("share = run.busy()\nassert share > 0.9, 'the text says so'\nnpulab.numbers(share=share)", metadata=HIDDEN),
        new_code_cell("### BEGIN SOLUTION\nanswer = kept\n### END SOLUTION"),
        new_markdown_cell("not on the page", metadata=HIDDEN),
    ]
    cells.insert(0, new_code_cell("kept = exercises.all()\nidle = 2", metadata=HIDDEN))
    sources = [cell.source for cell in student_notebook(new_notebook(cells=cells)).cells]
    assert sources == ["kept = exercises.all()", "import npulab\nlength = 3", "run = npulab.run(length)", "# YOUR CODE HERE (about 1 line)"]


GLUED_TEXT = "It took {glue:text}`time_us:,.1f` µs, {glue:}`ratio` times the bound; `{x}` and `{ref}` stay."


def glued_notebook() -> Any:
    answer = new_markdown_cell("{glue:text}`hidden:.0f` in all", metadata={"tags": ["solution"]})
    return new_notebook(
        cells=[new_markdown_cell(GLUED_TEXT), new_code_cell("'{glue:}`x`'"), answer, new_markdown_cell("{glue:text}`ratio:.2f`")]
    )


def test_numbers_of_the_text_become_their_names() -> None:
    notebook = glued_notebook()
    student = student_notebook(notebook)
    assert [cell["source"] for cell in student["cells"]] == [
        "It took `time_us` µs, `ratio` times the bound; `{x}` and `{ref}` stay.",
        "'{glue:}`x`'",
        "`ratio`",
    ]
    assert notebook["cells"][0]["source"] == GLUED_TEXT


def test_a_page_of_another_state_is_noticed() -> None:
    with pytest.raises(ValueError, match="takes 4 numbers from its run, and its page shows 1"):
        student_notebook(glued_notebook(), numbers=["1"])

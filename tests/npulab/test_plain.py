"""MyST Markdown in its plain form."""

from __future__ import annotations

from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_markdown_cell, new_notebook

from npulab.plain import DirectiveError, References, plain

BIBLIOGRAPHY = """
@article{many2026,
  title  = {About {NPUs}},
  author = {Wang, E. and Wu, E.},
  year   = {2026}
}

@misc{maker,
  author = {{AMD}},
  year = {2024},
}

@misc{bare,
  title = {No author}
}
"""
EXERCISE = """```{exercise} Two halves, $r$
:label: softmax-merge
:class: wide

Write `merge`:

$$
l = \\sum_k
$$
```
"""


@pytest.fixture(scope="module")
def references(tmp_path_factory: pytest.TempPathFactory) -> References:
    folder = tmp_path_factory.mktemp("book")
    (folder / "references.bib").write_text(BIBLIOGRAPHY)
    (folder / "setup.md").write_text("# Set up\n\n(troubleshooting)=\n## Messages\n")
    nbformat.write(new_notebook(cells=[new_markdown_cell("# Softmax"), new_markdown_cell(EXERCISE)]), folder / "softmax.ipynb")
    return References.of(folder)


CASES = {
    "exercise": (EXERCISE, "### Exercise: Two halves, $r$\n\nWrite `merge`:\n\n$$\nl = \\sum_k\n$$\n"),
    "admonition": (
        "Before\n\n```{admonition} A trap\n:class: warning\nOne.\n\nTwo.\n```\nAfter",
        "Before\n\n> **A trap**\n>\n> One.\n>\n> Two.\nAfter",
    ),
    "note": (":::{note}\nText.\n:::", "> **Note**\n>\n> Text."),
    "a formula is not quoted": ("```{tip} T\n$$\nx\n$$\n```", "**T**\n\n$$\nx\n$$"),
    "one in another": ("````{exercise} T\n```{note}\nN\n```\n````", "### Exercise: T\n\n> **Note**\n>\n> N"),
    "code in one": ("````{exercise} T\n```python\n{ref}`x`\n```\n````", "### Exercise: T\n\n```python\n{ref}`x`\n```"),
    "code": ("```python\nx = '{ref}`a`'\n```", "```python\nx = '{ref}`a`'\n```"),
    "code-block": ("```{code-block} python\n:linenos:\nx = 1\n```", "```python\nx = 1\n```"),
    "math": ("```{math}\n:label: eq\nx^2\n```", "$$\nx^2\n$$"),
    "an option in the text": ("```{note}\nText\n:label: is text\n```", "> **Note**\n>\n> Text\n> :label: is text"),
    "cite": ("as {cite}`many2026,maker` say", "as [Wang et al. 2026; AMD 2024] say"),
    "cite in a sentence": ("{cite:t}`many2026` say", "Wang et al. (2026) say"),
    "cite without author or entry": ("{cite}`bare,gone`", "[bare; gone]"),
    "ref to an exercise": ("as in {ref}`softmax-merge`", "as in [Two halves, $r$](softmax.ipynb)"),
    "ref with words": ("{ref}`merging <softmax-merge>`", "[merging](softmax.ipynb)"),
    "ref to a page that is no notebook": ("see {ref}`troubleshooting`", "see Messages"),
    "ref to nowhere": ("see {ref}`no-such`", "see no such"),
    "doc": ("{doc}`softmax` and {doc}`setup`", "[Softmax](softmax.ipynb) and Set up"),
    "other roles": ("{term}`tile` {term}`tiles <tile>` {math}`x^2` {abbr}`NPU`", "tile tiles $x^2$ NPU"),
    "a role in code stays": ("``{ref}`x` `` and `{ref}`", "``{ref}`x` `` and `{ref}`"),
    "a label": ("(here)=\n\n## Heading\n", "## Heading\n"),
    "marked words": ("[■]{.mark-simulated} and [a](b)", "■ and [a](b)"),
    "links": ("[to](intro.md#x) [stay](saxpy.ipynb)", "to [stay](saxpy.ipynb)"),
    "formulas": ("$$\n\\{x\\}\n$$\nand $a_{b}`$", "$$\n\\{x\\}\n$$\nand $a_{b}`$"),
    "empty": ("", ""),
}


@pytest.mark.parametrize(("text", "expected"), CASES.values(), ids=CASES.keys())
def test_plain(text: str, expected: str, references: References) -> None:
    assert plain(text, references) == expected


@pytest.mark.parametrize("text", ["a\n```{figure} x.png\n```", "```{note}\n```{figure} x.png\n```\n```", "```{note}\nendless"])
def test_what_has_no_plain_form_is_named(text: str) -> None:
    with pytest.raises(DirectiveError, match=r"cell 3: the directive \{(figure|note)\}"):
        plain(text, where="cell 3")


def test_a_folder_without_bibliography(tmp_path: Path) -> None:
    assert plain("{cite}`key` {ref}`a-b`", References.of(tmp_path)) == "[key] a b"

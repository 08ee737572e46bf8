"""MyST Markdown as plain Markdown, for JupyterLab, which knows neither MyST's directives nor its roles.

======================================  =====================================================================
``{exercise} Title`` (a fenced block)   a heading, ``### Exercise: Title``, and the text as it is
``{admonition} Title``, ``{note}`` ...  a quotation that begins with its title in bold
``{code-block} language``               a fenced block in that language
``{math}``                              a formula between ``$$``
``{cite}`key```                         author and year, from the book's bibliography
``{ref}`label```                        the title of what is labelled, and a link to its notebook
``{doc}`page```                         the page's title, and a link to its notebook
``{term}`word```, other roles           their text
======================================  =====================================================================

Labels (``(name)=`` and ``:label:``) and directives' other options are left out, as are links to pages that are no notebooks, of which
the words remain. A directive without a plain form is an error.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import nbformat

_FENCE = re.compile(r"(?P<fence>`{3,}|~{3,}|:{3,})\s*(?:\{(?P<name>[\w:-]+)\})?[ \t]*(?P<title>.*)")
_ROLE = re.compile(r"(?<!`)\{(?P<name>[a-z]+(?::[a-z]+)?)\}`(?P<text>[^`]+)`")
_TARGET = re.compile(r"^\((?P<label>[\w-]+)\)=\s*$", re.MULTILINE)
_OPTION = re.compile(r":[\w-]+:(\s|$)")
_MARKED = re.compile(r"(?<!!)\[([^\]]*)\]\{[.#][^}]*\}")  # [text]{.class}
_PAGE_LINK = re.compile(r"(?<!!)\[([^\]]*)\]\([\w./-]+\.md(?:#[^)]*)?\)")
_TITLED = re.compile(r"^\((?P<target>[\w-]+)\)=\s*\n+#+ (?P<heading>.+)|\{\w+\} (?P<title>.+)\n:label: (?P<label>[\w-]+)", re.MULTILINE)
_WORK = re.compile(r"^@\w+\{\s*(?P<key>[^,\s]+)\s*,(?P<fields>.*?)^\}", re.MULTILINE | re.DOTALL)
_QUOTED = {"admonition", "attention", "caution", "danger", "error", "hint", "important", "note", "seealso", "tip", "warning"}
_CODE = {"code", "code-block", "code-cell"}


class DirectiveError(ValueError):
    """A directive without a plain form."""


@dataclass(frozen=True)
class References:
    """What roles refer to: ``works`` (author and year by key), and ``titles`` (file and title by label or page)."""

    works: dict[str, tuple[str, str]] = field(default_factory=dict)
    titles: dict[str, tuple[str, str]] = field(default_factory=dict)

    @classmethod
    def of(cls, folder: Path) -> References:
        """Those of the notebooks, pages and ``references.bib`` in a folder."""
        bibliography = folder / "references.bib"
        works = dict(_works(bibliography.read_text(encoding="utf-8"))) if bibliography.is_file() else {}
        return cls(works, {label: found for page in _pages(folder) for label, found in _titles(*page)})

    def link(self, label: str, text: str | None = None) -> str:
        """A title, or another text for it, with a link to it where it is in a notebook."""
        file, title = self.titles.get(label, ("", label.replace("-", " ")))
        return f"[{text or title}]({file})" if file.endswith(".ipynb") else text or title

    def cite(self, keys: str, in_text: bool) -> str:
        """Works as ``[Wang et al. 2026; AMD 2024]``, or in a sentence as ``Wang et al. (2026)``."""
        works = [self.works.get(key.strip(), (key.strip(), "")) for key in keys.split(",")]
        if in_text:
            return ", ".join(f"{author} ({year})" if year else author for author, year in works)
        return "[" + "; ".join(f"{author} {year}".rstrip() for author, year in works) + "]"


def _pages(folder: Path) -> Iterator[tuple[str, str]]:
    """Name and Markdown text of each page and notebook of a folder."""
    for path in sorted(folder.glob("*.md")):
        yield path.name, path.read_text(encoding="utf-8")
    for path in sorted(folder.glob("*.ipynb")):
        cells = nbformat.read(path, as_version=4)["cells"]
        yield path.name, "\n\n".join(cell["source"] for cell in cells if cell["cell_type"] == "markdown")


def _titles(file: str, text: str) -> Iterator[tuple[str, tuple[str, str]]]:
    """The page's own title, and those of its labels."""
    if heading := re.search(r"^# (.+)", text, re.MULTILINE):
        yield Path(file).stem, (file, heading[1].strip())
    for found in _TITLED.finditer(text):
        yield found["target"] or found["label"], (file, (found["heading"] or found["title"]).strip())


def _works(bibliography: str) -> Iterator[tuple[str, tuple[str, str]]]:
    """The works of a BibTeX file: key, the first author's last name, and the year."""
    for work in _WORK.finditer(bibliography):
        fields = {name.lower(): value for name, value in re.findall(r"(\w+)\s*=\s*\{(.*)\}", work["fields"])}
        authors = str(fields.get("author", work["key"])).split(" and ")
        last = re.sub(r"[{}]", "", authors[0].split(",")[0])
        yield work["key"], (last + (" et al." if len(authors) > 1 else ""), fields.get("year", ""))


def plain(text: str, references: References | None = None, where: str = "text") -> str:
    """MyST Markdown without its directives and roles.

    Raises:
        DirectiveError: naming ``where`` and the directive, if it has no plain form or no end.
    """
    references, lines, result = references or References(), text.splitlines(), []
    position = 0
    while position < len(lines):
        end = _block_end(lines, position)
        block = lines[position:end]
        found = _FENCE.match(block[0])
        if found is None:
            result.append(_prose("\n".join(block), references))
        elif found["name"] is None:
            result.extend(block)
        else:
            if not _closes(block[-1], found["fence"]):
                raise DirectiveError(f"{where}: the directive {{{found['name']}}} is never closed")
            result.append(_directive(found["name"], found["title"].strip(), _body(block), references, where))
        position = end
    return "\n".join(result) + ("\n" if text.endswith("\n") else "")


def _block_end(lines: list[str], first: int) -> int:
    """Where the fenced block or the prose that begins in line ``first`` ends (the line after it)."""
    opening = _FENCE.match(lines[first])
    for number in range(first + 1, len(lines)):
        if opening is None and _FENCE.match(lines[number]):
            return number
        if opening and _closes(lines[number], opening["fence"]):
            return number + 1
    return len(lines)


def _closes(line: str, fence: str) -> bool:
    """Whether a line ends the block that ``fence`` began."""
    return line.startswith(fence) and not line.strip().strip(fence[0])


def _body(block: list[str]) -> str:
    """The text of a directive, without its fence, its options and blank lines around it."""
    inner = block[1:-1]
    while inner and _OPTION.match(inner[0]):
        del inner[0]
    return "\n".join(inner).strip("\n")


def _directive(name: str, title: str, body: str, references: References, where: str) -> str:
    """One directive in its plain form."""
    if name in _CODE:
        return f"```{title}\n{body}\n```"
    if name == "math":
        return f"$$\n{body}\n$$"
    title, body = _prose(title, references), plain(body, references, where)
    if name == "exercise":
        return f"### Exercise: {title}\n\n{body}"
    if name not in _QUOTED:
        raise DirectiveError(f"{where}: the directive {{{name}}} has no plain form for JupyterLab")
    lines = [f"**{title or name.capitalize()}**", "", *body.splitlines()]
    if "$$" not in body:  # a formula of several lines is none in a quotation
        lines = [f"> {line}".rstrip() for line in lines]
    return "\n".join(lines)


def _prose(text: str, references: References) -> str:
    """Text without roles, labels and marked words."""
    text = _ROLE.sub(lambda found: _role(found["name"], found["text"], references), text)
    text = re.sub(_TARGET.pattern + r"\n*", "", text, flags=re.MULTILINE)
    return _PAGE_LINK.sub(r"\1", _MARKED.sub(r"\1", text))


def _role(name: str, text: str, references: References) -> str:
    """One role in its plain form; ``text <target>`` is the text that stands for a target."""
    kind, _, form = name.partition(":")
    words = re.fullmatch(r"(?P<text>.+?)\s*<(?P<target>[^>]+)>", text, re.DOTALL)
    if kind == "cite":
        return references.cite(text, in_text=form == "t")
    if kind in ("ref", "numref", "doc"):
        return references.link(words["target"], words["text"]) if words else references.link(text)
    if kind == "math":
        return f"${text}$"
    return words["text"] if words else text

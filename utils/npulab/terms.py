"""Links from the text to the glossary: on each page, the first use of each of its words.

So the notebooks need no markup for it, and read well in JupyterLab. Headings, code, formulas, pictures and tables' heads are
left alone. Words that are common English too are linked only where the text sets them in bold, as it does when it explains
them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from docutils import nodes
from sphinx.transforms.post_transforms import SphinxPostTransform

COMMON = frozenset({"object", "fill", "drain", "depth", "partition", "fusion", "core"})
NOT_ON = ("book/glossary", "book/bibliography", "book/api")
"""The glossary itself, and pages that are lists."""
SKIP = (nodes.title, nodes.reference, nodes.literal, nodes.literal_block, nodes.raw, nodes.term, nodes.thead, nodes.caption)


def pattern(terms: Mapping[str, Any]) -> re.Pattern[str]:
    """Matches any of the terms, the longest first, in the singular or the plural; a sentence may begin with it."""
    words = []
    for term in sorted(terms, key=len, reverse=True):
        text = re.escape(term).replace(r"\ ", r"\s+")
        if term[:1].islower():
            text = f"[{term[0]}{term[0].upper()}]{text[1:]}"
        words.append(text)
    return re.compile(rf"(?<![\w-])(?P<term>{'|'.join(words)})s?(?![\w-])")


def key(found: str, terms: Mapping[str, Any]) -> str:
    """The glossary's spelling of what was found."""
    text = " ".join(found.split())
    return text if text in terms else text[:1].lower() + text[1:]


class LinkTerms(SphinxPostTransform):
    """Puts the links in when a page is written."""

    default_priority = 500
    builders = ("html",)

    def run(self, **kwargs: Any) -> None:
        standard: Any = self.env.get_domain("std")
        self.terms = {name: place for (kind, name), place in standard.objects.items() if kind == "term"}
        if not self.terms or self.env.docname in NOT_ON:
            return
        self.seen: set[str] = set()
        words = pattern(self.terms)
        for text in list(self.document.findall(nodes.Text)):
            if self._is_prose(text):
                self._link(text, words)

    def _is_prose(self, text: nodes.Text) -> bool:
        around = list(_ancestors(text))
        in_output = any("cell" in node.get("classes", ()) or "cell_output" in node.get("classes", ()) for node in around)
        return any(isinstance(n, nodes.paragraph) for n in around) and not in_output and not any(isinstance(n, SKIP) for n in around)

    def _link(self, text: nodes.Text, words: re.Pattern[str]) -> None:
        parts: list[nodes.Node] = []
        whole, done = text.astext(), 0
        bold = isinstance(text.parent, nodes.strong)
        for found in words.finditer(whole):
            name = key(found["term"], self.terms)
            if name in self.seen or (name in COMMON and not bold):
                continue
            self.seen.add(name)
            parts += [nodes.Text(whole[done : found.start()]), self._reference(name, found[0])]
            done = found.end()
        if parts:
            text.parent.replace(text, [part for part in [*parts, nodes.Text(whole[done:])] if part.astext()])

    def _reference(self, name: str, shown: str) -> nodes.reference:
        document, label = self.terms[name]
        address = f"{self.app.builder.get_relative_uri(self.env.docname, document)}#{label}"
        return nodes.reference("", shown, internal=True, refuri=address, classes=["glossary-term"])


def _ancestors(node: nodes.Node) -> Iterator[nodes.Element]:
    while node.parent is not None:
        node = node.parent
        yield node

"""What a student's notebook needs of the cells that the page does not show.

A cell tagged ``remove-cell`` gives the text its numbers (``npulab.numbers``) and makes sure that the text is right about them
(``assert``). A student's notebook already has the numbers, and a student who changes a parameter must not be stopped for what the
text says. So such a cell keeps those statements only that give a name to something which a cell that is shown, or its solution,
uses; one that keeps none is left out.
"""

from __future__ import annotations

import ast
import re
import symtable
from collections.abc import Sequence
from dataclasses import dataclass

HIDDEN_TAG = "remove-cell"


_COMPREHENSIONS = ("listcomp", "setcomp", "dictcomp", "genexpr")
_BINDING = (ast.Assign, ast.FunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom)


@dataclass(frozen=True)
class Names:
    """Names that a piece of code uses at once, uses later (in functions, when they are called), gives or changes, and, of these,
    gives afresh whatever they were before."""

    used: frozenset[str]
    used_later: frozenset[str]
    given: frozenset[str]
    afresh: frozenset[str]


def names(source: str) -> Names:
    """The names of a statement. Of what is not Python alone (a cell with IPython's magics), every word counts as used."""
    try:
        table, tree = symtable.symtable(source, "cell", "exec"), ast.parse(source)
    except SyntaxError:
        return Names(frozenset(re.findall(r"[^\W\d]\w*", source)), frozenset(), frozenset(), frozenset())
    symbols, inner, changed = table.get_symbols(), table.get_children(), _changed(tree)
    at_once = [scope for scope in inner if scope.get_name() in _COMPREHENSIONS]
    given = {symbol.get_name() for symbol in symbols if symbol.is_assigned() or symbol.is_imported()}
    return Names(
        used=frozenset(symbol.get_name() for symbol in symbols if symbol.is_referenced()).union(*map(_globals, at_once)),
        used_later=frozenset().union(*(_globals(scope) for scope in inner if scope not in at_once)),
        given=changed | given,
        afresh=frozenset(given - changed if isinstance(tree.body[0], _BINDING) else ()),
    )


def _globals(table: symtable.SymbolTable) -> set[str]:
    """The global names that a function, class or comprehension uses, and what is inside of it."""
    found = {symbol.get_name() for symbol in table.get_symbols() if symbol.is_global() and symbol.is_referenced()}
    return found.union(*map(_globals, table.get_children()))


def _changed(tree: ast.AST) -> frozenset[str]:
    """The names of things of which an item or attribute is set."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Subscript | ast.Attribute) and isinstance(node.ctx, ast.Store):
            base: ast.expr = node
            while isinstance(base, ast.Subscript | ast.Attribute):
                base = base.value
            if isinstance(base, ast.Name):
                found.add(base.id)
    return frozenset(found)


def _statements(source: str) -> list[str]:
    """The statements at the left margin, each with its decorators; the source in one piece if it is not Python alone."""
    try:
        body = ast.parse(source).body
    except SyntaxError:
        return [source]
    lines = source.splitlines()
    firsts = (min([node.lineno, *(each.lineno for each in getattr(node, "decorator_list", []))]) for node in body)
    return ["\n".join(lines[first - 1 : node.end_lineno]) for first, node in zip(firsts, body)]


def needed_sources(cells: Sequence[tuple[bool, str]]) -> list[str]:
    """What remains of each code cell of a notebook, given as whether it is hidden and its source (solutions included): all of a
    cell that is shown, and of a hidden one the statements that give a name which is needed later, or in a function anywhere."""
    always: frozenset[str] = frozenset()
    while True:
        remaining, in_functions = _remaining(cells, always)
        if in_functions <= always:
            return remaining
        always = in_functions


def _remaining(cells: Sequence[tuple[bool, str]], always: frozenset[str]) -> tuple[list[str], frozenset[str]]:
    """The same if functions need no more than ``always``, and what the remaining functions do need."""
    needed, in_functions = always, always
    remaining: list[str] = []
    for hidden, source in reversed(cells):
        kept: list[str] = []
        for statement in reversed(_statements(source)):
            found = names(statement)
            if hidden and not found.given & needed:
                continue
            needed = (needed - found.afresh) | found.used | found.used_later | always
            in_functions |= found.used_later
            kept.append(statement)
        remaining.append("\n".join(reversed(kept)) if hidden else source)
    return remaining[::-1], in_functions

"""Show a piece of a design's source, from its file and never retyped."""

from __future__ import annotations

import ast
import inspect
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import designs
from npulab.npu import is_callable_design

ROOT = Path(designs.__path__[0]).parent
"""The folder that holds the package ``designs``."""

_LANGUAGES = {".py": "python", ".cc": "cpp", ".h": "cpp"}


@dataclass(frozen=True)
class Source:
    """Lines ``first`` to ``last`` (from 1, both included) of a file; a notebook shows them highlighted."""

    path: Path
    first: int
    last: int

    @property
    def text(self) -> str:
        """The lines, as they stand in the file."""
        return "\n".join(self.path.read_text(encoding="utf-8").splitlines()[self.first - 1 : self.last])

    @property
    def where(self) -> str:
        """File (relative to the repository where it lies in there) and lines."""
        path = self.path.relative_to(ROOT) if self.path.is_relative_to(ROOT) else self.path
        return f"{path.as_posix()}, lines {self.first} to {self.last}"

    def _repr_markdown_(self) -> str:
        return f"```{_LANGUAGES.get(self.path.suffix, 'text')}\n{self.text}\n```\n\n*{self.where}*"

    def __repr__(self) -> str:
        return f"{self.text}\n\n({self.where})"


def source(what: Any, name: str = "") -> Source:
    """The source of a function, a class, an ``@iron.jit`` function or a module; or of a file (its path, from the repository's
    root or from here), all of it or the top-level ``name`` in it (in Python also ``Class.method``).

    Raises:
        FileNotFoundError: if there is no such file.
        LookupError: if the file has no such name.
        TypeError: if Python knows no source of the object.
    """
    if isinstance(what, (str, Path)):
        return _in_file(_path(what), name)
    what = what.compilable.mlir_generator if is_callable_design(what) else what
    path = Path(str(inspect.getsourcefile(what)))
    if inspect.ismodule(what):
        return _in_file(path, name)
    lines, first = inspect.getsourcelines(what)
    return Source(path, first, first + len(lines) - 1)


def _path(given: str | Path) -> Path:
    for path in (Path(given), ROOT / given):
        if path.is_file():
            return path.resolve()
    raise FileNotFoundError(f"no file {given}, neither here nor in {ROOT}")


def _in_file(path: Path, name: str) -> Source:
    text = path.read_text(encoding="utf-8")
    if not name:
        return Source(path, 1, len(text.splitlines()))
    span = _python_span(text, name) if path.suffix == ".py" else _c_span(text, name)
    if span is None:
        raise LookupError(f"{path.name} defines no {name}")
    return Source(path, *span)


def _python_span(text: str, name: str) -> tuple[int, int] | None:
    """The lines of a top-level function or class, or of a method, with its decorators."""
    body: list[ast.stmt] = ast.parse(text).body
    *classes, last = name.split(".")
    for outer in classes:
        body = next((node.body for node in body if isinstance(node, ast.ClassDef) and node.name == outer), [])
    for node in body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and node.name == last:
            first = min([node.lineno, *(d.lineno for d in node.decorator_list)])
            return first, node.end_lineno or node.lineno
    return None


def _c_span(text: str, name: str) -> tuple[int, int] | None:
    """From the line on which a function's definition begins to the line that begins with its closing brace."""
    found = re.search(rf"^[^\n/;]*\b{re.escape(name)}\([^;{{]*\{{.*?^\}}", text, re.M | re.S)
    if found is None:
        return None
    return text.count("\n", 0, found.start()) + 1, text.count("\n", 0, found.end()) + 1

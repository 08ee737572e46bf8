"""A cursor over a source text whose every miss is a DesignError that names the line and the token found there."""

from __future__ import annotations

import re
from bisect import bisect_right
from typing import NoReturn

from npusim.errors import DesignError
from npusim.ir import Loc

BLANK = re.compile(r"(?:\s+|//[^\n]*)*")
_TOKEN = re.compile(r'"(?:[^"\\\n]|\\.)*"|->|::|[%^@#!]?[\w.$-]+|\S')
_NESTING = re.compile(r'[^()\[\]{}<>"\-=]+|->|>=|<=|"(?:[^"\\]|\\.)*"|.', re.S)
_CLOSING = {"(": ")", "[": "]", "{": "}", "<": ">"}


class Cursor:
    """A position in ``text``. The methods that match skip blanks and comments first and move on only if they match."""

    def __init__(self, text: str, file: str = "<mlir>") -> None:
        self.text = text
        self.file = file
        self.pos = 0
        self._lines = [m.end() for m in re.finditer("\n", text)]

    def line(self, pos: int | None = None) -> int:
        """The line, from 1, of a position (default: the cursor's)."""
        return bisect_right(self._lines, self.pos if pos is None else pos) + 1

    def loc(self) -> Loc:
        return Loc(self.file, self.line())

    def peek(self) -> str:
        """The next character that is neither blank nor comment; empty at the end."""
        match = BLANK.match(self.text, self.pos)
        assert match is not None  # the pattern matches the empty text
        self.pos = match.end()
        return self.text[self.pos : self.pos + 1]

    def take(self, literal: str) -> bool:
        """Step over ``literal`` if it comes next."""
        self.peek()
        found = self.text.startswith(literal, self.pos)
        if found:
            self.pos += len(literal)
        return found

    def expect(self, literal: str) -> None:
        """Step over ``literal``; DesignError if something else comes next."""
        if not self.take(literal):
            self.fail(repr(literal))

    def match(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        """Match ``pattern`` and step over it."""
        self.peek()
        found = pattern.match(self.text, self.pos)
        if found:
            self.pos = found.end()
        return found

    def need(self, pattern: re.Pattern[str], what: str) -> re.Match[str]:
        """Match ``pattern`` or raise a DesignError that says ``what`` was expected."""
        return self.match(pattern) or self.fail(what)

    def balanced(self) -> str:
        """Step over a bracketed text, the cursor standing on its opening bracket, and return it with its brackets."""
        begin, open_brackets = self.pos, list[str]()
        while True:
            found = _NESTING.match(self.text, self.pos)
            if found is None:
                self.pos = begin
                self.fail(f"a closing {open_brackets[-1]!r} for this bracket")
            piece = found.group()
            if piece in _CLOSING:
                open_brackets.append(_CLOSING[piece])
            elif len(piece) == 1 and piece in ")]}>" and piece != open_brackets.pop():
                self.fail("brackets that match")
            self.pos = found.end()
            if not open_brackets:
                return self.text[begin : self.pos]

    def fail(self, expected: str) -> NoReturn:
        """Raise a DesignError: ``expected`` was wanted here and something else found."""
        self.peek()
        found = _TOKEN.match(self.text, self.pos)
        token = repr(found.group()[:40]) if found else "the end of the text"
        raise DesignError(f"{self.file}, line {self.line()}: expected {expected}, found {token}")

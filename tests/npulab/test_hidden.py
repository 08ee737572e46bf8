"""What hidden cells keep for a student."""

from __future__ import annotations

import pytest

from npulab.hidden import needed_sources

CASES = {
    "nothing is needed": ("npulab.numbers(a=a)\nassert a\nb = 1", "a = 1", ""),
    "a name": ("a = 1\nb = 2", "print(a)", "a = 1"),
    "what the name needs": ("import x\ny = 2\na = [x.f(i) for i in range(y)]\nz = 3", "print(a)", "import x\ny = 2\na = [x.f(i) for i in range(y)]"),
    "a name that is made anew": ("a = 1", "a = 2\nprint(a)", ""),
    "a name that is made from itself": ("a = 1", "a = a + 1", "a = 1"),
    "a name that may be made anew": ("a = 1", "if x:\n    a = 2\nprint(a)", "a = 1"),
    "a function": ("@d\ndef f():\n    return g\n\n\ng = 2", "f()", "@d\ndef f():\n    return g\ng = 2"),
    "in a function": ("a = 1\nb = 2", "def f(b):\n    return a + b", "a = 1"),
    "in a comprehension": ("a = 1", "[a for _ in x]", "a = 1"),
    "an item is set": ("d = {}\nd['a'] = 1\ne['a'] = 1", "print(d)", "d = {}\nd['a'] = 1"),
    "a magic": ("a = 1\nb = 2", "%time f(a)", "a = 1"),
    "two names at once": ("a, (b,) = c", "print(b)", "a, (b,) = c"),
    "no later cell": ("a = 1", "", ""),
}


@pytest.mark.parametrize(("hidden", "shown", "expected"), CASES.values(), ids=CASES.keys())
def test_needed(hidden: str, shown: str, expected: str) -> None:
    assert needed_sources([(True, hidden), (False, shown)]) == [expected, shown]


def test_a_function_may_be_called_when_the_name_is_there() -> None:
    cells = [(False, "def f():\n    return late"), (True, "late = 1"), (False, "f()")]
    assert needed_sources(cells) == [source for _, source in cells]


def test_only_later_cells_count() -> None:
    assert needed_sources([(False, "print(a)"), (True, "a = 1")]) == ["print(a)", ""]

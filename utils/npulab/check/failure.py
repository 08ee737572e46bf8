"""How a check passes or fails, and what an untouched skeleton looks like."""

from __future__ import annotations

from typing import Any, NoReturn


class CheckFailed(AssertionError):
    """An exercise is not solved yet. Notebooks show the message only, not where it was raised."""

    def _render_traceback_(self) -> list[str]:
        return [f"CheckFailed: {self}"]


def fail(what: str, *lines: str, hint: str = "") -> NoReturn:
    """Raise CheckFailed: what is not right yet, details a line each, and a hint."""
    text = "\n".join([f"not yet: {what}", *(f"  {line}" for line in lines if line)])
    raise CheckFailed(text + (f"\n  Hint: {hint}" if hint else ""))


def ok(words: str) -> None:
    """Print the one line of a check that passes."""
    print(f"ok: {words}")


def is_placeholder(value: Any) -> bool:
    """Whether it is what a skeleton leaves in place of an answer."""
    return value is None or value is Ellipsis or value is NotImplemented


def filled(value: Any, name: str = "your answer") -> Any:
    """The value, or CheckFailed if the skeleton is untouched (a call that returns nothing counts as that)."""
    if is_placeholder(value):
        fail(f"{name} is still empty", "fill in the skeleton above, run its cell, then run this one again")
    return value

"""How a refusal is worded: the problem, what competes, the real toolchain's phrase, one hint, the place in the source.

The phrase is what a learner finds when searching for the message of the real compiler.
"""

from __future__ import annotations

from collections.abc import Iterable

from npusim.ir import UNKNOWN, Loc


def explain(
    problem: str,
    *,
    details: Iterable[str] = (),
    phrase: str | tuple[str, ...] | None = None,
    hint: str | None = None,
    loc: Loc = UNKNOWN,
) -> str:
    """The text of a refusal or warning; ``problem`` is a sentence, ``details`` are the lines under it, a tuple of phrases
    are different wordings of the real toolchain."""
    lines = [problem]
    lines += [f"  {detail}" for detail in details]
    if phrase:
        said = " or ".join(f'"{p}"' for p in ((phrase,) if isinstance(phrase, str) else phrase))
        lines.append(f"The real toolchain says: {said}.")
    if hint:
        lines.append(f"Hint: {hint}")
    if loc is not UNKNOWN:
        lines.append(f"({loc})")
    return "\n".join(lines)


def count(n: int, noun: str) -> str:
    """``1 lock``, ``3 locks``."""
    return f"{n} {noun}" if n == 1 else f"{n} {noun}s"


def size(nbytes: int) -> str:
    """Bytes for a reader: ``65536 bytes (64 KiB)``."""
    if nbytes >= 1024 and nbytes % 1024 == 0:
        return f"{nbytes} bytes ({nbytes // 1024} KiB)"
    return f"{nbytes} bytes"

"""Checks that run what a learner wrote."""

from __future__ import annotations

import re
import traceback
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import npulab
import npusim
from npulab.check.failure import fail, filled
from npulab.check.structure import cost as check_cost
from npulab.check.structure import structure as check_structure
from npulab.check.values import Mistakes, close
from npulab.record import Run
from npusim.errors import NpuError

Errors = Sequence[tuple[str, str]]
"""(regular expression in an error's message, hint) of mistakes that keep a design from running; the first that fits counts."""

_OURS = tuple(Path(package.__path__[0]) for package in (npulab, npusim))


def runs(what: Any, args: Sequence[Any] = (), *, errors: Errors = (), **options: Any) -> Run:
    """Build and run a learner's design as :func:`npulab.run` does and return the Run.

    Raises:
        CheckFailed: if the skeleton is untouched, if the design is refused or hangs (with the error's own words), or if it
            fails in a way that ``errors`` knows (with the learner's line). Other failures in Python keep their traceback.
    """
    from npulab.execute import run

    filled(what, "your design")
    try:
        return run(what, args, **options)
    except Exception as error:
        if re.search(r"made no design|gave a (NoneType|ellipsis)", str(error)):
            fail("your design is still empty", "fill in the skeleton above, run its cell, then run this one again")
        hint = next((text for sign, text in errors if re.search(sign, str(error))), "")
        words = f"{type(error).__name__}: {error}"
        if isinstance(error, (TypeError, AttributeError)) and re.search("[Ee]llipsis|NoneType", str(error)):
            fail("part of your design is still empty", words, hint=hint)
        if isinstance(error, NpuError):
            fail("the design does not run", words, hint=hint)
        if hint:
            fail("the design does not run", words, _line(error), hint=hint)
        raise


def _line(error: BaseException) -> str:
    """The innermost line of the learner's own that an error came through; empty if there is none."""
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        path = Path(frame.filename)
        if not any(path.is_relative_to(folder) for folder in _OURS) and "site-packages" not in path.parts:
            return f"in {frame.name}, line {frame.lineno}: {frame.line}"
    return ""


def design(
    what: Any,
    args: Sequence[Any],
    want: Any,
    *,
    rtol: float = 0.0,
    atol: float = 0.0,
    structure: Mapping[str, Any] | None = None,
    cost: Mapping[str, Any] | None = None,
    hint: str = "",
    mistakes: Mistakes = (),
    errors: Errors = (),
    **options: Any,
) -> Run:
    """One call for an exercise that asks for a design: it runs, its values are right, it is built as wanted, and it costs no
    more than allowed. ``structure`` and ``cost`` hold the keywords of the functions of these names; ``mistakes`` are known by
    the values, ``errors`` by the message of what went wrong; ``options`` go to :func:`npulab.run`. Returns the run.

    Raises:
        CheckFailed: at the first thing that is not so.
    """
    done = what if isinstance(what, Run) else runs(what, args, errors=errors, **options)
    wanted = want if isinstance(want, tuple) else (want,)
    if len(done.outputs) != len(wanted):
        fail(f"the design writes {len(done.outputs)} of its arguments, wanted {len(wanted)}", hint=hint)
    for i, (got, value) in enumerate(zip(done.outputs, wanted)):
        name = "the result" if len(wanted) == 1 else f"output {i}"
        close(got, value, rtol, atol, hint=hint, mistakes=mistakes, name=name)
    if structure is not None:
        check_structure(done, **structure)
    if cost is not None:
        check_cost(done, **cost)
    return done

"""Checks that run what a learner wrote."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from npulab.check.failure import CheckFailed, fail, filled
from npulab.check.structure import cost as check_cost
from npulab.check.structure import structure as check_structure
from npulab.check.values import Mistakes, close
from npulab.record import Run
from npusim.errors import NpuError


def runs(what: Any, args: Sequence[Any] = (), **options: Any) -> Run:
    """Build and run a learner's design as :func:`npulab.run` does and return the Run.

    Raises:
        CheckFailed: if the skeleton is untouched, or with the error's own words if the design is refused or hangs.
    """
    from npulab.execute import run

    filled(what, "your design")
    try:
        return run(what, args, **options)
    except NpuError as error:
        if "made no design" in str(error) or "gave a NoneType" in str(error) or "gave a ellipsis" in str(error):
            fail("your design is still empty", "fill in the skeleton above, run its cell, then run this one again")
        raise CheckFailed(f"not yet: the design does not run\n  {type(error).__name__}: {error}") from error
    except (TypeError, AttributeError) as error:
        if "ellipsis" in str(error) or "NoneType" in str(error):
            fail("part of your design is still empty", f"{type(error).__name__}: {error}")
        raise


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
    **options: Any,
) -> Run:
    """One call for an exercise that asks for a design: it runs, its values are right, it is built as wanted, and it costs no
    more than allowed. ``structure`` and ``cost`` hold the keywords of the functions of these names; ``options`` go to
    :func:`npulab.run`. Returns the run.

    Raises:
        CheckFailed: at the first thing that is not so.
    """
    done = what if isinstance(what, Run) else runs(what, args, **options)
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

"""What goes wrong in a core, told with the worker, its tile and the line of the design."""

from __future__ import annotations

from npusim.errors import DesignError, NpuError
from npusim.ir import Loc
from npusim.machine import CoreProgram
from npusim.messages import explain
from npusim.place.draft import label

_NO_BOUNDS = (
    "the NPU does not check bounds: there this reads or overwrites what lies next to it. Count the loop's turns and "
    "the elements of "
    "the object."
)


def failure(program: CoreProgram, loc: Loc, error: Exception) -> Exception:
    """The error to raise for one that came up while a core ran or was prepared: of the same class if it is one of ours, else
    a DesignError that names it."""
    kind = type(error) if isinstance(error, NpuError) else DesignError
    what = str(error) if isinstance(error, (NpuError, ValueError, IndexError)) else f"{type(error).__name__}: {error}"
    hint = _NO_BOUNDS if isinstance(error, IndexError) else None
    return kind(explain(f"worker {program.name!r} on {label(program.tile)}, at {loc}: {what}", hint=hint))

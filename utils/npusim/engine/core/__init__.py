"""Core bodies compiled to Python generators.

A generator keeps its core's time in a local ``c``: ticks it has worked since it last synchronised. It lets them pass only
where somebody else could notice (before a release, before it blocks), so a run costs one event an object, not one an
operation. ``CoreRun.source`` is the generated text.
"""

from __future__ import annotations

from npusim.engine.core import calls, control, memory, scalars, sync  # noqa: F401  (each serves its operations)
from npusim.engine.core.running import CoreRun, Site
from npusim.engine.core.writer import Surroundings, Writer
from npusim.engine.loop import Process
from npusim.machine import CoreProgram

__all__ = ["CoreRun", "Site", "Surroundings", "compile_core"]


def compile_core(program: CoreProgram, around: Surroundings) -> tuple[Process, CoreRun]:
    """The process of one core and its running state; UnsupportedError for an operation that is not served."""
    writer = Writer(program, around)
    source = writer.program()
    code = compile(source, writer.run.filename, "exec")
    exec(code, writer.env)
    writer.run.process = writer.env["core"]()
    return writer.run.process, writer.run

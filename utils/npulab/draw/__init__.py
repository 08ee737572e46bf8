"""Pictures of a design and of a run, as SVG: :func:`array`, :func:`timeline`, :func:`memory`, :func:`pattern`,
:func:`graph`, :func:`sweep`, :func:`scaling`, :func:`errors`, :func:`chart`, :func:`bars`.

Each returns a :class:`~npulab.draw.svg.Picture`, which a notebook shows; its ``alt`` says in words what is to be seen.
"""

from __future__ import annotations

from npulab.draw.array import array
from npulab.draw.bars import bars
from npulab.draw.chart import chart
from npulab.draw.errors import Deviation, errors
from npulab.draw.graph import graph
from npulab.draw.memory import memory
from npulab.draw.pattern import pattern
from npulab.draw.scaling import scaling
from npulab.draw.svg import Picture
from npulab.draw.sweep import sweep
from npulab.draw.timeline import timeline

__all__ = [
    "Picture",
    "Deviation",
    "array",
    "timeline",
    "memory",
    "pattern",
    "graph",
    "sweep",
    "scaling",
    "errors",
    "chart",
    "bars",
]

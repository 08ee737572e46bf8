"""Places in the learner's source, as messages write them."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from npusim.errors import DesignError
from npusim.frontends.finder import simulated
from npusim.ir import Loc


def test_a_file_is_named_without_its_folders():
    assert str(Loc("/home/learner/designs/add.py", 12)) == "add.py:12"


def test_a_notebook_cell_is_named_as_jupyter_shows_it(monkeypatch):
    """Its code has a made-up file name, which would tell the reader nothing."""
    cells = {"/tmp/ipykernel_7/41.py": ("Cell", "In[5]")}
    shell = SimpleNamespace(compile=SimpleNamespace(format_code_name=cells.get))
    monkeypatch.setitem(__import__("sys").modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    assert str(Loc("/tmp/ipykernel_7/41.py", 3)) == "In[5]:3"
    assert str(Loc("/home/learner/add.py", 3)) == "add.py:3"


def line_here() -> int:
    import sys

    return sys._getframe(1).f_lineno


def test_what_a_frontend_refuses_names_the_line():
    with pytest.raises(DesignError) as caught, simulated():
        from aie.iron import Buffer

        line = line_here() + 1
        Buffer()
    assert str(caught.value).endswith(f"(test_locations.py:{line})")


def test_an_error_of_somebody_else_is_left_alone():
    with pytest.raises(DesignError) as caught, simulated():
        raise DesignError("mine")
    assert str(caught.value) == "mine"

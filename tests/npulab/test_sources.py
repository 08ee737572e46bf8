"""Pieces of source: the right lines, from the file itself."""

from __future__ import annotations

from pathlib import Path

import pytest

import npulab
from npulab import backend, sources

PYTHON = "import os\n\n\ndef a():\n    return 1\n\n\n@print\ndef b():\n    # why\n    return 2\n"
CPP = """// f(x) is told of here; not there
#include "g.h"
static int g(int x);

int f(int x) {
  if (x) {
    return 1;
  }
  return g(x);
}
"""


@pytest.fixture
def files(tmp_path: Path) -> Path:
    (tmp_path / "d.py").write_text(PYTHON)
    (tmp_path / "k.cc").write_text(CPP)
    return tmp_path


@pytest.mark.parametrize(
    ("file", "name", "first", "last"),
    [("d.py", "", 1, 11), ("d.py", "a", 4, 5), ("d.py", "b", 8, 11), ("k.cc", "", 1, 10), ("k.cc", "f", 5, 10)],
)
def test_lines_of_a_file(files: Path, file: str, name: str, first: int, last: int) -> None:
    found = npulab.source(files / file, name)
    assert (found.first, found.last) == (first, last)
    assert found.text == "\n".join((files / file).read_text().splitlines()[first - 1 : last])
    assert found.text in found._repr_markdown_() and found.where in found._repr_markdown_()
    assert found._repr_markdown_().startswith("```cpp" if file.endswith(".cc") else "```python")


def test_a_path_may_begin_at_the_repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    found = npulab.source("designs/saxpy/kernels.cc", "saxpy_bf16")
    assert found.text.startswith('extern "C" void saxpy_bf16(') and found.text.endswith("}")
    assert found.where.startswith("designs/saxpy/kernels.cc, lines ")


def test_a_method_of_a_class(tmp_path: Path) -> None:
    text = "def run():\n    pass\n\n\nclass Core:\n    def step(self):\n        pass\n\n    @property\n    def run(self):\n        return 2\n"
    (tmp_path / "c.py").write_text(text)
    found = npulab.source(tmp_path / "c.py", "Core.run")
    assert (found.first, found.last) == (9, 11)
    for name in ("Core.stop", "Other.run", "run.step"):
        with pytest.raises(LookupError, match=f"c.py defines no {name}"):
            npulab.source(tmp_path / "c.py", name)


def test_functions_and_designs() -> None:
    backend.use("sim", quiet=True)
    module = npulab.load("designs.saxpy.design")
    assert npulab.source(module.core_body).text == npulab.source("designs/saxpy/design.py", "core_body").text
    design = npulab.source(module.saxpy)
    assert design.text.startswith("@iron.jit\ndef saxpy(") and "Program(" in design.text.splitlines()[-1]
    assert npulab.source(sources, "source").text.startswith("def source(")


def test_what_is_not_there(files: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"nowhere\.py"):
        npulab.source("nowhere.py")
    for file in ("d.py", "k.cc"):
        with pytest.raises(LookupError, match=f"{file} defines no g"):
            npulab.source(files / file, "g")
    with pytest.raises(TypeError):
        npulab.source(1)

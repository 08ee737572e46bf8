"""The import finder: ``aie`` is ours exactly while it is activated."""

from __future__ import annotations

import importlib
import subprocess
import sys
import types
from collections.abc import Iterator
from pathlib import Path

import pytest

from npusim.errors import UnsupportedError
from npusim.frontends import finder
from npusim.frontends.iron.objectfifo import ObjectFifo
from npusim.frontends.iron.served import REASONS, TABLE, names, reason


@pytest.fixture(autouse=True)
def nothing_served() -> Iterator[None]:
    finder.deactivate()
    assert not [n for n in sys.modules if n.partition(".")[0] == "aie"]
    yield
    finder.deactivate()


def real_package_is_absent() -> bool:
    return importlib.util.find_spec("aie") is None


def test_served_within_the_block_only() -> None:
    with finder.simulated():
        assert finder.active() == ("aie",)
        iron = importlib.import_module("aie.iron")
        assert iron.ObjectFifo is ObjectFifo
        assert iron.__name__ == "aie.iron"
        assert iron.__spec__ is not None
    assert finder.active() == ()
    assert not [n for n in sys.modules if n.partition(".")[0] == "aie"]
    assert finder._finder not in sys.meta_path
    if real_package_is_absent():
        with pytest.raises(ModuleNotFoundError):
            importlib.import_module("aie.iron")


def test_blocks_nest_and_classes_stay_the_same() -> None:
    with finder.simulated():
        first = importlib.import_module("aie.iron").Worker
        with finder.simulated():
            pass
        assert finder.active() == ("aie",)
    with finder.simulated():
        assert importlib.import_module("aie.iron").Worker is first


def test_never_shadows_a_real_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "aie", types.ModuleType("aie"))
    with pytest.raises(finder.BackendError, match="imported in this process"):
        finder.activate()
    assert finder.active() == ()
    monkeypatch.delitem(sys.modules, "aie")
    finder.activate()


def test_a_package_on_the_path_is_seen_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "aie").mkdir()
    (tmp_path / "aie" / "__init__.py").write_text("real = True\n")
    monkeypatch.syspath_prepend(tmp_path)
    with finder.simulated():
        assert not hasattr(importlib.import_module("aie"), "real")
    assert importlib.import_module("aie").real
    del sys.modules["aie"]


@pytest.mark.parametrize("module", sorted(TABLE))
def test_every_module_imports(module: str) -> None:
    with finder.simulated():
        made = importlib.import_module(module)
        assert {k for k in vars(made) if not k.startswith("__")} >= set(names(module) or ())


def test_the_styles_of_import() -> None:
    with finder.simulated():
        space: dict[str, object] = {}
        exec(
            "import aie.iron as iron\n"
            "from aie.iron import *\n"
            "from aie.iron import kernels, device\n"
            "from aie.iron.device import NPU2Col4\n"
            "import aie.extras.dialects.arith as arith\n"
            "from aie.dialects import arith as other\n"
            "from aie.helpers.dialects.scf import if_, else_, _for as range_\n"
            "assert iron.kernels is kernels and iron.algorithms.transform and device.NPU2Col4 is NPU2Col4\n"
            "import aie\n"
            "assert aie.iron is iron and aie.dialects.aie.WireBundle.DMA == 1\n",
            space,
        )
        assert "ObjectFifo" in space


def test_what_is_not_served_says_so() -> None:
    with finder.simulated():
        with pytest.raises(
            ImportError, match=r"aie.iron.ObjectFifi is not served.*did you mean ObjectFifo.*real package"
        ):
            exec("from aie.iron import ObjectFifi")
        with pytest.raises(UnsupportedError, match=r"aie.compiler is not served"):
            exec("import aie.compiler")
        with pytest.raises(ImportError, match=r"aie.iron.device.XCVC1902 is not served"):
            exec("from aie.iron.device import XCVC1902")
        iron = importlib.import_module("aie.iron")
        with pytest.raises(UnsupportedError, match=r"aie.iron.nothing"):
            _ = iron.nothing
        assert not hasattr(iron, "nothing")
        assert not hasattr(iron, "__wrapped__")


def test_kept_modules_of_another_time_are_quiet() -> None:
    with finder.simulated():
        iron = importlib.import_module("aie.iron")
    assert iron.Worker
    with pytest.raises(AttributeError):
        _ = iron.nothing


def test_unknown_roots() -> None:
    with pytest.raises(UnsupportedError, match="'another'"):
        finder.activate("another")


def test_importing_npusim_serves_nothing() -> None:
    code = (
        "import sys, npusim.place, npusim.mlir, npusim.frontends.iron.served\n"
        "assert not [n for n in sys.modules if n.partition('.')[0] in ('aie', 'air')]\n"
        "assert 'npusim' not in {type(f).__module__.partition('.')[0] for f in sys.meta_path}\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize(
    ("module", "name", "why"),
    [
        ("aie.dialects.aiex", "npu_write32", "not in single writes to registers"),
        ("aie.dialects.aie", "switchbox", "not set one by one"),
        ("aie.dialects.aie", "tile", "write the design with aie.iron"),
        ("aie.utils", "test", "call the @iron.jit function"),
        ("aie.utils.trace", "parse_trace", "a run's own is in its report"),
    ],
)
def test_reasons_for_what_is_not_served(module: str, name: str, why: str) -> None:
    with finder.simulated(), pytest.raises(UnsupportedError, match=rf"{module}.{name} is not served by [^(]*: .*{why}"):
        getattr(importlib.import_module(module), name)


def test_no_reason_is_given_for_what_is_served() -> None:
    served = [f"{module}.{name}" for module in TABLE for name in names(module) or ()]
    assert not [n for n in (*TABLE, *served) if reason(n) not in (None, REASONS["aie.utils.trace"])]

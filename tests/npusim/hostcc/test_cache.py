"""The cache of compiled kernels: what it keys on, that processes may share it, and what it does with a broken entry."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from npusim.devices import NPU1, NPU2
from npusim.graph import KernelDecl
from npusim.hostcc import build as building
from npusim.hostcc import compile_kernel
from npusim.types import MemRefType
from tests.designs.hostcheck import needs_compiler

pytestmark = needs_compiler

TYPES = (MemRefType((16,), "i32"),)
TEXT = 'extern "C" void f(int *y) { for (int i = 0; i < 16; ++i) y[i] = 3 * i; }'


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "npusim" / "hostcc"


@pytest.fixture
def compiled(monkeypatch):
    """Counts compilations."""
    seen = []
    real = building._compile
    monkeypatch.setattr(building, "_compile", lambda source, *rest: seen.append(source) or real(source, *rest))
    return seen


def kernel(text=TEXT, device=NPU1, flags=()):
    return compile_kernel(KernelDecl("f", TYPES, source_string=text, compile_flags=flags), device)


def run(k):
    y = np.zeros(16, np.int32)
    k(y)
    return y


def test_the_same_source_is_compiled_once(cache, compiled):
    first, second = kernel(), kernel()
    assert len(compiled) == 1
    assert first.program == second.program
    assert first.program.path.parent == cache
    assert (run(second) == 3 * np.arange(16)).all()
    assert not list(cache.glob("build-*"))


@pytest.mark.parametrize(
    "other",
    [{"text": TEXT.replace("3", "4")}, {"device": NPU2}, {"flags": ("-DA=1",)}],
    ids=["text", "device", "flags"],
)
def test_what_differs_is_compiled_again(cache, compiled, other):
    kernel()
    kernel(**other)
    assert len(compiled) == 2


def test_a_changed_header_of_ours_is_noticed(cache, compiled, monkeypatch):
    kernel()
    monkeypatch.setattr(building, "_headers", lambda: ((building.WORKER, 1.0),))
    kernel()
    assert len(compiled) == 2


@pytest.mark.parametrize("what", ["*.json", "*.program"])
def test_a_broken_entry_is_made_anew(cache, compiled, what):
    kernel()
    for path in cache.glob(what):
        path.write_text("half a li") if what == "*.json" else path.unlink()
    assert (run(kernel()) == 3 * np.arange(16)).all()
    assert len(compiled) == 2


def test_processes_share_it(cache, tmp_path):
    script = tmp_path / "one.py"
    script.write_text(
        "from npusim.devices import NPU1\nfrom npusim.graph import KernelDecl\nfrom npusim.hostcc import compile_kernel\n"
        "from npusim.types import MemRefType\nimport numpy as np\n"
        f"k = compile_kernel(KernelDecl('f', (MemRefType((16,), 'i32'),), source_string={TEXT!r}), NPU1)\n"
        "y = np.zeros(16, np.int32)\nk(y)\nprint(int(y.sum()))\n"
    )
    runs = [subprocess.Popen([sys.executable, str(script)], stdout=subprocess.PIPE, text=True) for _ in range(3)]
    assert [r.communicate()[0].strip() for r in runs] == ["360"] * 3
    assert len(list(cache.glob("*.json"))) == 1


def test_no_process_outlives_python(cache, tmp_path):
    script = tmp_path / "left.py"
    script.write_text(
        "import os\nfrom npusim.devices import NPU1\nfrom npusim.graph import KernelDecl\nfrom npusim.hostcc import compile_kernel\n"
        "from npusim.hostcc import model\nfrom npusim.types import MemRefType\nimport numpy as np\n"
        f"k = compile_kernel(KernelDecl('f', (MemRefType((16,), 'i32'),), source_string={TEXT!r}), NPU1)\n"
        "k(np.zeros(16, np.int32))\n(w,) = model._WORKERS.values()\nprint(w._process.pid, flush=True)\nos._exit(0)\n"
    )
    pid = int(subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=True).stdout)
    for _ in range(200):  # it ends when the pipe does
        if not alive(pid):
            return
        time.sleep(0.01)
    raise AssertionError("the kernel's process is still there")


def alive(pid):
    """Whether a process runs (a zombie does not)."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    stat = Path(f"/proc/{pid}/stat")
    return not stat.exists() or stat.read_text().rsplit(")", 1)[1].split()[0] != "Z"


def test_what_is_not_used_for_a_month_goes(cache, compiled):
    first = kernel().program.path
    os.utime(first, (1, 1))
    kernel(TEXT.replace("3", "4"))
    assert not first.exists()
    assert (run(kernel()) == 3 * np.arange(16)).all()


def test_a_call_is_fast(cache):
    k = kernel()
    y = np.zeros(16, np.int32)
    k(y)
    times = []
    for _ in range(50):
        began = time.perf_counter()
        k(y)
        times.append(time.perf_counter() - began)
    assert sorted(times)[25] < 1e-3

"""The broken designs cause the messages that the book explains: each names the line and gives one hint."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from designs import broken
from npusim.load import load_design
from npusim.run import simulate

WORDS = {
    "memory": (
        "CapacityError: compute tile (0,2) needs 82944 bytes",
        "beyond the end: 0x10000-0x143ff",
        "allocated buffers exceeded",
    ),
    "channels": (
        "CapacityError: compute tile (0,3) needs 3 input DMA channels (S2MM) but has 2",
        "fifo 'c' receives objects",
    ),
    "descriptors": (
        "CapacityError: 17 buffer descriptors (BDs) are in use at once on shim tile (0,0)",
        "17 transfers of 'x'",
    ),
    "granularity": (
        "DesignError: the transfer of fifo 'x' does not fit",
        "its stride 1 is 2 bytes",
        "rearrange them in the kernel",
    ),
    "cascade": (
        "DesignError: a cascade goes from compute tile (0,2) to compute tile (0,3), that is north",
        "swap the two tiles",
    ),
    "python_if": ("DesignError: a run-time condition (made at python_if.py:16)", "with if_(cond):"),
    "release": (
        "DesignWarning: worker 'double'",
        "DeadlockError: ",
        "acquires from fifo 'y' at release.py:14 and never releases",
    ),
    "once": ("DeadlockError: ", "fifo 'w' was filled 1 time (256 bytes)", "acquire it once, outside the loop"),
    "half": ("DeadlockError: ", "add up to 4,000 bytes, but an object has 256: 15 whole and 160 bytes of another"),
    "depth": ("DeadlockError: ", "a circle in which nobody can begin", "give that end a depth of at least 4"),
}


@pytest.mark.parametrize("device", ["npu1", "npu2"])
@pytest.mark.parametrize("name", broken.NAMES)
def test_the_message_says_what_is_wrong_where_and_what_to_do(name: str, device: str) -> None:
    text = broken.message(name, device)
    for words in WORDS[name]:
        assert words in text
    for part in text.split("\n\n"):  # a warning, an error
        assert part.count("Hint: ") == 1
    shown = {int(line.split()[0]) for line in broken.listing(name).splitlines()}
    places = {int(number) for number in re.findall(rf"\b{name}\.py:(\d+)", text)}
    assert places and places <= shown  # the reader of the page can look up every line that the message names


FIXES = {
    "memory": [("N = 5120", "N = 2560")],
    "channels": [
        ('a, b, c, d = (ObjectFifo(vector(N), name=name) for name in "abcd")',
         'abc, d = ObjectFifo(vector(3 * N), name="abc"), ObjectFifo(vector(N), name="d")'),
        ("p, q, r, s = (", "p, s = ("),
        ("p[i] + q[i] + r[i]", "p[i] + p[i + N] + p[i + 2 * N]"),
        ("[a.cons(), b.cons(), c.cons(), d.prod()]", "[abc.cons(), d.prod()]"),
        ("p, q, r, s, pa, pb, pc, cd", "p, q, r, s, pa, cd"),
        ("for end, array in ((pa, p), (pb, q), (pc, r)):", "for end, array in ((pa, p), (pa, q), (pa, r)):"),
        ("[a.prod(), b.prod(), c.prod(), d.cons()]", "[abc.prod(), d.cons()]"),
    ],
    "descriptors": [
        ("        for i in range(OBJECTS):\n", ""),
        ("            px.fill(a, offset=i * N, sizes=[1, 1, 1, N], strides=[0, 0, 0, 1])", "        px.fill(a)"),
    ],
    "granularity": [("np.dtype[bfloat16]", "np.dtype[np.int32]"), ("vector(N, bfloat16)", "vector(N)")],
    "cascade": [("CascadeFlow(lower, upper)", "CascadeFlow(upper, lower)")],
    "python_if": [
        ("from aie.iron import", "from aie.helpers.dialects.scf import else_, if_\nfrom aie.iron import"),
        ("if a[i] > 0:", "with if_(a[i] > 0) as op:"),
        ("else:", "with else_(op):"),
    ],
    "release": [("        source.release(1)\n", "        source.release(1)\n        target.release(1)\n")],
    "once": [  # a loop in the function, the weights around it
        ("        a, k, b = source.acquire(1), weights.acquire(1), target.acquire(1)\n",
         "        k = weights.acquire(1)\n        for _ in range_(OBJECTS):\n            a, b = source.acquire(1), target.acquire(1)\n"),
        ("        for i in range_(N):\n            b[i]", "            for i in range_(N):\n                b[i]"),
        ("        source.release(1)\n        weights.release(1)\n        target.release(1)\n",
         "            source.release(1)\n            target.release(1)\n        weights.release(1)\n"),
    ],
    "half": [("N, LENGTH = 64", "N, LENGTH = 50")],
    "depth": [("x.cons(), means.cons()", "x.cons(depth=4), means.cons()")],
}  # fmt: skip


@pytest.mark.parametrize("name", broken.NAMES)
def test_following_the_advice_of_the_page_makes_the_design_run(name: str, tmp_path: Path) -> None:
    text = broken._path(name).read_text()
    for wrong, right in FIXES[name]:
        assert wrong in text
        text = text.replace(wrong, right)
    path = tmp_path / f"{name}.py"
    path.write_text(text)
    design = load_design(path, "npu2")
    simulate(design, broken._zeros(design))


def test_every_design_of_the_folder_is_on_the_page() -> None:
    files = {path.stem for path in broken._path("memory").parent.glob("*.py")} - {"__init__", "parts"}
    assert files == set(broken.NAMES) == set(WORDS)


def test_long_lines_are_broken_under_their_beginning() -> None:
    wide, narrow = broken.message("half"), broken.message("half", width=80)
    assert max(map(len, wide.splitlines())) > 120
    assert max(map(len, narrow.splitlines())) <= 80
    assert narrow.split() == wide.split()

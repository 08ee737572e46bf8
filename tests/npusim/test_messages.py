"""Every recorded mistake is told in the same way: the problem, the real toolchain's words, one hint, the line."""

from __future__ import annotations

import json
import re

import pytest

from tests.npusim.test_levels import DATA
from tests.reference_adapter import refuse

ERRORS = DATA / "errors"
EXPECTED = json.loads((ERRORS / "expected.json").read_text())
PYTHON = {"e57_jit_unknown_kwarg", "e58_jit_scalar_default", "e59_jit_missing_compile_arg"}
"""Wrong use of the decorator: the real package's own text, word for word."""
NAMES = [n for n in EXPECTED if not n.startswith("air_") and n not in PYTHON]
SILENT = {"e07_bd_exhaustion_core"}  # accepted, and nothing wrong with it


def texts(name: str, device: str) -> list[str]:
    error, warned = refuse(ERRORS / f"{name}.py", device)
    return [str(error)] if error is not None else list(dict.fromkeys(warned))


@pytest.mark.parametrize("device", ["npu1", "npu2"])
@pytest.mark.parametrize("name", NAMES)
def test_it_has_one_hint_and_a_line_of_the_design(name, device):
    said = texts(name, device)
    assert bool(said) == (name not in SILENT)
    for text in said:
        assert text.count("Hint: ") == 1, text
        assert re.search(r"\b\w+\.py:\d+", text), text
        assert not text.startswith(("Hint", "The real")), text


def recorded(name: str) -> str:
    """What the real toolchain said, without line breaks, quotes and Python's own punctuation of them."""
    return re.sub(r"\s+", " ", (ERRORS / f"{name}.txt").read_text()).replace("`", "'")


@pytest.mark.parametrize("name", [n for n in NAMES if "refused" in EXPECTED[n]["real"]["npu2"]])
def test_it_quotes_what_the_real_toolchain_says(name):
    (text,) = texts(name, "npu2")
    quoted = re.search(r'The real toolchain says: "(.*?)"(?: or|\.\n)', text, re.DOTALL)
    assert quoted, text
    for piece in quoted.group(1).replace("`", "'").split("..."):
        assert piece in recorded(name), (piece, recorded(name)[:500])

"""Numbers for the text: printed under their names, and recorded where MyST-NB's glue looks for them."""

from __future__ import annotations

import json

import numpy as np
import pytest
from myst_nb.ext.glue import GLUE_PREFIX

import npulab
from npulab import prose


def test_prints_names_and_values(capsys: pytest.CaptureFixture[str]) -> None:
    npulab.numbers(time_us=18.20444, n=65536, where="DDR", share=np.float64(0.25), whole=np.int64(7))
    assert capsys.readouterr().out.splitlines() == ["time_us = 18.2", "n = 65536", "where = DDR", "share = 0.25", "whole = 7"]


@pytest.mark.parametrize(("value", "text"), [(1.5, "1.5"), (2.0, "2"), (np.float64(1e-9), "1e-09"), ("a b", "a b"), (3, "3")])
def test_text_can_be_formatted(value: object, text: str) -> None:
    """A role's format is applied to ``float(text)`` or ``int(text)``, so numpy's own spelling would not do."""
    assert prose._text("x", value) == text


@pytest.mark.parametrize("value", [None, [1], object(), float("nan"), float("inf")])
def test_what_a_text_cannot_say(value: object) -> None:
    with pytest.raises(TypeError, match="x is neither a number nor text"):
        npulab.numbers(x=value)  # type: ignore[arg-type]


def test_record_is_what_glue_makes(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[tuple[object, object]] = []
    monkeypatch.setattr("IPython.display.display", lambda data, raw, metadata: shown.append((data, metadata)))
    monkeypatch.setattr("IPython.get_ipython", object)
    npulab.numbers(x=1.5)
    data, metadata = shown[0]
    assert data == {f"{GLUE_PREFIX}text/plain": "1.5"}
    assert metadata == {"scrapbook": {"name": "x", "mime_prefix": GLUE_PREFIX}}
    json.dumps(shown)

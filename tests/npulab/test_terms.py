"""Which words of a text lead to the glossary."""

from __future__ import annotations

import pytest

from npulab.terms import key, pattern

TERMS = {"ridge point": 0, "DMA channel": 0, "stream": 0, "BD": 0, "core": 0}


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("a ridge\npoint, and ridge points", ["ridge point", "ridge point"]),
        ("Streams meet DMA channels", ["stream", "DMA channel"]),
        ("upstream, stream-like and abd are other words", []),
        ("one BD, two BDs, no bd", ["BD", "BD"]),
    ],
)
def test_words_are_found_whole_in_singular_and_plural(text: str, found: list[str]) -> None:
    assert [key(match["term"], TERMS) for match in pattern(TERMS).finditer(text)] == found

"""Keys of functions: equal only where a design made from them would be."""

from __future__ import annotations

import types

import numpy as np
import pytest

from npusim.frontends.iron.fingerprint import fingerprint


def define(source, **names):
    """The function ``f`` of a source, in a module (a notebook's namespace) that holds ``names``."""
    space = dict(names)
    exec(source, space)
    return space["f"], space


def make(captured):
    def generator():
        return captured

    return generator


def test_the_same_source_again_is_the_same():
    source = "def f(a, *, N=4):\n    def core(x):\n        return x + N\n    return core"
    assert fingerprint(define(source)[0]) == fingerprint(define("\n\n" + source)[0])


@pytest.mark.parametrize("other", ["def f(x): return x + 2", "def f(x): return g(x)", "def f(x, y=1): return x + 1"])
def test_another_source_is_another(other):
    assert fingerprint(define("def f(x): return x + 1")[0]) != fingerprint(define(other)[0])


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (1, 2),
        (1, 1.0),
        (1, True),
        ([1, 2], [2, 1]),
        ({"n": 1}, {"n": 2}),
        (np.arange(3), np.arange(3) + 1),
        (np.int8, np.int16),
    ],
)
def test_captured_values_count(a, b):
    assert fingerprint(make(a)) == fingerprint(make(a))
    assert fingerprint(make(a)) != fingerprint(make(b))


def test_a_captured_list_that_changed_counts():
    sizes = [1, 2]
    generator = make(sizes)
    before = fingerprint(generator)
    sizes.append(3)
    assert fingerprint(generator) != before


def test_globals_count_also_through_helpers():
    f, space = define("def g(): return K\ndef f(): return g()", K=1)
    before = fingerprint(f)
    space["unrelated"] = 1
    assert fingerprint(f) == before
    space["K"] = 2
    assert fingerprint(f) != before


def test_array_types_count_by_value():
    def array(n):
        return np.ndarray[(n,), np.dtype[np.int32]]

    assert fingerprint(array(4)) == fingerprint(array(4))
    assert fingerprint(array(4)) != fingerprint(array(5))


def test_recursion_ends():
    f, _ = define("def g(n): return f(n)\ndef f(n): return g(n)")
    assert fingerprint(f) == fingerprint(f)


def test_other_objects_count_by_identity():
    one, two = types.SimpleNamespace(n=1), types.SimpleNamespace(n=1)
    assert fingerprint(make(one)) == fingerprint(make(one))
    assert fingerprint(make(one)) != fingerprint(make(two))

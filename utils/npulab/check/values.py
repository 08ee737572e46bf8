"""Checks of values: arrays, numbers worked out by hand, words."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from npulab.check.failure import fail, filled, ok
from npulab.record import Run

Mistake = tuple[Any, str]
"""(a predicate of (got, want), or the value that the mistake gives; hint)."""
Mistakes = Sequence[Mistake] | Mapping[Any, str]


def pairs(mistakes: Mistakes) -> Iterable[Mistake]:
    """Foreseen mistakes as (sign, hint)."""
    return mistakes.items() if isinstance(mistakes, Mapping) else mistakes


def known_mistake(got: Any, want: Any, mistakes: Mistakes, rtol: float, atol: float) -> str:
    """The hint of the first foreseen mistake that fits; empty if none does."""
    for sign, hint in pairs(mistakes):
        if callable(sign):
            if sign(got, want):
                return hint
        elif np.shape(sign) == np.shape(got) and np.allclose(_float(got), _float(sign), rtol=rtol or 1e-6, atol=atol):
            return hint
    return ""


def _float(values: Any) -> np.ndarray[Any, Any]:
    return np.asarray(values).astype(np.float64)


def _guess(got: np.ndarray[Any, Any], want: np.ndarray[Any, Any], right: np.ndarray[Any, Any]) -> str:
    """What commonly makes a result look like this."""
    if not np.isfinite(got).all() and np.isfinite(want).all():
        return "there are NaN or infinite values: memory that nobody wrote, or a division by zero?"
    if not got.any() and want.any():
        return "everything is 0, so nothing has arrived: is the output drained, and does the worker write to it?"
    if got.ndim == 2 and got.shape[0] == got.shape[1] and np.allclose(got.T, want):
        return "this is the transpose of the result"
    if np.allclose(np.sort(got, None), np.sort(want, None)):
        return "the values are right, their order is not: look at the layout transforms or the access pattern"
    done = int(np.argmin(right))
    if done and not right.ravel()[done:].any():
        return f"the first {done} elements are right and no other is: count the objects that are moved and computed"
    return ""


def close(
    got: Any,
    want: Any,
    rtol: float = 0.0,
    atol: float = 0.0,
    *,
    hint: str = "",
    mistakes: Mistakes = (),
    name: str = "the result",
) -> None:
    """Arrays or numbers agree within ``atol + rtol * |want|``. A Run stands for its only output.

    Raises:
        CheckFailed: with the first difference, how many there are, and a hint.
    """
    got = got.output if isinstance(got, Run) else filled(got, name)
    a, b = numbers(got, name), _float(want)
    if a.shape != b.shape:
        fail(f"{name} has shape {a.shape}, not {b.shape}", hint=known_mistake(got, want, mistakes, rtol, atol) or hint)
    right = np.isclose(a, b, rtol=rtol, atol=atol, equal_nan=True)
    if right.all():
        how = "exact" if not rtol and not atol else f"within rtol {rtol:g}, atol {atol:g}"
        ok(f"{name} is right ({how}{f', {a.size:,} values' if a.size > 1 else ''})")
        return
    at = tuple(int(i) for i in np.argwhere(~right)[0]) if a.ndim else ()
    where = f" at {list(at)}" if at else ""
    error = np.abs(a - b)[~right]
    largest = f"largest error {np.max(error):.4g}" if np.isfinite(error).all() else "some are not finite"
    many = f"{int((~right).sum()):,} of {a.size:,} values differ; {largest}" if a.size > 1 else ""
    known = known_mistake(got, want, mistakes, rtol, atol) or hint or (_guess(a, b, right) if a.size > 1 else "")
    fail(f"{name} is wrong", f"first difference{where}: got {a[at]:.6g}, want {b[at]:.6g}", many, hint=known)


def numbers(got: Any, name: str) -> np.ndarray[Any, Any]:
    try:
        return _float(got)
    except (TypeError, ValueError):
        fail(f"{name} is a {type(got).__name__}, not a number or an array")


def equal(got: Any, want: Any, *, hint: str = "", mistakes: Mistakes = (), name: str = "your answer") -> None:
    """Two values are equal (arrays: exactly, and of the same shape). For words, lists and whole numbers.

    Raises:
        CheckFailed: if not.
    """
    filled(got, name)
    if isinstance(want, np.ndarray):
        close(got, want, hint=hint, mistakes=mistakes, name=name)
    elif got == want:
        ok(f"{name} is {want!r}")
    else:
        known = next(
            (text for sign, text in pairs(mistakes) if (sign(got, want) if callable(sign) else got == sign)), hint
        )
        fail(f"{name} is not right", f"got {got!r}", hint=known)


def number(
    got: Any,
    want: float,
    *,
    unit: str = "",
    rtol: float = 0.01,
    hint: str = "",
    mistakes: Mistakes = (),
    name: str = "your number",
) -> None:
    """A number worked out by hand, within one per cent by default; the right one is not given away.

    Raises:
        CheckFailed: with which way it is off, and a hint.
    """
    filled(got, name)
    value = numbers(got, name)
    if value.ndim:
        fail(f"{name} is an array of shape {value.shape}, not one number")
    if abs(float(value) - want) <= rtol * abs(want):
        ok(f"{name} is right: {_plain(float(value))} {unit}".rstrip())
        return
    known = known_mistake(float(value), want, mistakes, rtol, 0.0) or hint or _factor(float(value), want)
    fail(f"{name} is too {'large' if value > want else 'small'}", f"got {_plain(float(value))} {unit}".rstrip(), hint=known)


def _plain(value: float) -> str:
    """Whole numbers in full, such as bytes; six digits of others."""
    return f"{value:,.0f}" if value.is_integer() and abs(value) < 1e15 else f"{value:.6g}"


def _factor(got: float, want: float) -> str:
    """Round factors by which people are off."""
    for factor, words in (
        (2.0, "of 2: both directions, or multiply and add?"),
        (4.0, "of 4"),
        (8.0, "of 8: bits or bytes?"),
    ):
        if want and any(abs(got / want / f - 1) < 1e-3 for f in (factor, 1 / factor)):
            return f"you are off by a factor {words}"
    if want and any(abs(got / want / f - 1) < 1e-3 for f in (1e3, 1e-3, 1e6, 1e-6, 1e9, 1e-9)):
        return "you are off by a power of 1000: look at the units"
    return ""

"""Numbers that a chapter's text takes from its run.

    npulab.numbers(bound_us=prediction.seconds * 1e6)

prints ``bound_us = 18.2``, and on the page the text may say ``{glue:text}`bound_us:.1f```. So no number that a run determines is
ever typed.
"""

from __future__ import annotations

from typing import Any

_MIME = "application/papermill.record/text/plain"
"""The type of output that MyST-NB's glue roles look for (myst_nb.ext.glue.GLUE_PREFIX and text/plain)."""


def numbers(**values: float | str) -> None:
    """Print each value under its name, and record it for the page's text.

    Raises:
        TypeError: for what is neither a number nor text (so also for None, which a measured run has in places).
    """
    texts = {name: _text(name, value) for name, value in values.items()}
    for name, text in texts.items():
        print(f"{name} = {float(text):.4g}" if isinstance(values[name], float) else f"{name} = {text}")
        _record(name, text)


def _text(name: str, value: Any) -> str:
    if isinstance(value, str):
        return value
    try:
        return str(int(value)) if int(value) == value else repr(float(value))
    except (TypeError, ValueError, OverflowError):
        raise TypeError(f"{name} is neither a number nor text: {value!r}") from None


def _record(name: str, text: str) -> None:
    """Put a value where the page finds it; nothing outside of a notebook."""
    try:
        from IPython import get_ipython
        from IPython.display import display
    except ImportError:
        return
    if get_ipython() is not None:
        display({_MIME: text}, raw=True, metadata={"scrapbook": {"name": name, "mime_prefix": _MIME.removesuffix("text/plain")}})

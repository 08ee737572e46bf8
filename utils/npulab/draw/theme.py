"""Colours and type of every picture, as one stylesheet that works on light and dark pages.

Text takes the page's own colour (``currentColor``), so it is readable wherever the page is. The eight hues have a darker
version for light pages and a lighter one for dark pages; they are told apart by lightness too, and no picture says
anything by colour alone. Who decides: the book's theme (``html[data-theme]``), JupyterLab and VS Code by their own marks,
else the system's preference.
"""

from __future__ import annotations

HUES: dict[str, tuple[str, str]] = {
    "blue": ("#1f6fb4", "#6cb2eb"),
    "orange": ("#c96a12", "#f0a35e"),
    "green": ("#2b8552", "#6fcf97"),
    "purple": ("#7d4fb3", "#bb9af7"),
    "teal": ("#0f8495", "#56c5d8"),
    "pink": ("#b8467f", "#f29ac2"),
    "gold": ("#8f7000", "#e0c050"),
    "red": ("#c13a32", "#f2837b"),
}
"""Hue -> (on a light page, on a dark page)."""

FIFO_HUES = ("blue", "orange", "green", "purple", "teal", "pink", "gold")
"""The hues that tell fifos and channels apart, in order; red is kept for what is wrong or waits."""

FONT = 'system-ui,-apple-system,"Segoe UI",Roboto,"Noto Sans","DejaVu Sans",sans-serif'


def hue(index: int) -> str:
    """The hue of the ``index``-th thing, repeating after seven."""
    return FIFO_HUES[index % len(FIFO_HUES)]


def _variables(dark: bool) -> str:
    return (
        "".join(f"--npu-{name}:{pair[dark]};" for name, pair in HUES.items()) + f"--npu-soft:{'.26' if dark else '.2'};"
    )


def _dark_selectors() -> str:
    where = ('html[data-theme="dark"]', 'body[data-jp-theme-light="false"]', "body.vscode-dark")
    return ",".join(f"{w} .npulab" for w in where)


def _light_selectors() -> str:
    where = ('html[data-theme="light"]', 'body[data-jp-theme-light="true"]', "body.vscode-light")
    return ",".join(f"{w} .npulab" for w in where)


def _hue_classes() -> str:
    rules = []
    for name, (light, _) in HUES.items():
        colour = f"var(--npu-{name},{light})"
        rules.append(f".npulab .f-{name}{{fill:{colour}}}.npulab .s-{name}{{stroke:{colour}}}")
        rules.append(f".npulab .t-{name}{{fill:{colour};fill-opacity:var(--npu-soft,.2);stroke:{colour}}}")
    return "".join(rules)


_SHAPES = (
    f".npulab{{font-family:{FONT};font-size:11px}}"
    ".npulab text{fill:currentColor;stroke:none}"
    ".npulab .small{font-size:10px}.npulab .tiny{font-size:9px}.npulab .head{font-size:12px;font-weight:600}"
    '.npulab .on{fill:#fff}html[data-theme="dark"] .npulab .on{fill:#10141a}'
    ".npulab .bold{font-weight:600}.npulab .faint{opacity:.72}.npulab .mono{font-family:ui-monospace,Menlo,Consolas,monospace}"
    ".npulab .box{fill:currentColor;fill-opacity:.04;stroke:currentColor;stroke-opacity:.45}"
    ".npulab .unused{fill:none;stroke:currentColor;stroke-opacity:.25;stroke-dasharray:3 3}"
    ".npulab .well{fill:currentColor;fill-opacity:.09;stroke:none}"
    ".npulab .rule{stroke:currentColor;stroke-opacity:.22;fill:none}"
    ".npulab .axis{stroke:currentColor;stroke-opacity:.55;fill:none}"
    ".npulab .ink{fill:currentColor}.npulab .grey{fill:currentColor;fill-opacity:.32;stroke:none}"
    ".npulab .wire{fill:none;stroke-linejoin:round;stroke-linecap:round}"
    ".npulab .dash{stroke-dasharray:5 3}.npulab .dots{stroke-dasharray:1 3.5}"
)

# The book's theme puts a light sheet under the HTML output of a cell on dark pages; our pictures need none.
_SHEET = (
    'html[data-theme="dark"] .bd-content div.cell_output .text_html:has(.npulab.npulab)'
    "{background:none;color:var(--pst-color-text-base);padding:0}"
    ".npulab-scroll{overflow-x:auto}"
)

STYLE = (
    f".npulab{{{_variables(False)}}}"
    "svg.npulab:root{color:#1f2328;background:#fff}"
    f"@media (prefers-color-scheme:dark){{.npulab{{{_variables(True)}}}svg.npulab:root{{color:#e6e8eb;background:#14181e}}}}"
    f"{_light_selectors()}{{{_variables(False)}}}{_dark_selectors()}{{{_variables(True)}}}"
    f"{_hue_classes()}{_SHAPES}{_SHEET}"
)
"""The stylesheet that every picture carries (the same text in each, so many on one page do no harm)."""

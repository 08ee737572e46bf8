"""An outcome as a table: time, speed, bytes and FLOP/B at three levels, what bounds it there, and what each stage did."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from designs.attention import run as running
from designs.attention.run import Outcome
from npulab.prediction import Prediction, predict
from npulab.record import LEVEL_NAMES, si
from npusim.report import LEVELS

Rows = list[tuple[str, ...]]


def predicted(outcome: Outcome) -> Prediction:
    """From the mapping's description: the whole device's memories over the tiles in use, reads and writes together; the ceiling
    is what the kernels reach on tiles that never wait. Always for the calibrated kernels and costs, also where the run was
    given others."""
    device = outcome.run.device
    return predict(outcome.mapping.describe(outcome.parameters, device), device)


def summary(outcome: Outcome) -> Rows:
    """Time, work and result."""
    done, p = outcome.run, outcome.parameters
    speed = done.flops_per_second or 0.0
    rows: Rows = [
        ("time", done.time_text),
        ("work", f"{p.flops:,} FLOP (full count, masked or not), {speed / 1e9:,.0f} GFLOP/s ({done.kind})"),
        ("result", str(outcome.error) if outcome.error else "timing only, nothing was computed"),
        ("predicted", _prediction(outcome)),
    ]
    if done.parts:
        rows.append(("between", "loading the next program is not in the time: about 280 us each on a device (mlir-air e0b9a2963)"))
    return rows


def _prediction(outcome: Outcome) -> str:
    """The bound and the pace, in a line."""
    before = predicted(outcome)
    most = f"at most {si(before.most_flops_per_second, 'FLOP/s')} by the roofline (limited by {before.bound.limit_text})"
    pace = f"{si(before.seconds, 's')} at the pace of the slowest ({before.slowest})"
    return f"{most}; {pace}: {outcome.run.kind} {outcome.run.seconds / before.seconds:.2f} times that"


def levels(outcome: Outcome) -> Rows:
    """Bytes and operational intensity at each level, the ridge point, and which side of it was predicted. A measured run does not
    know its bytes: they are the description's."""
    before = predicted(outcome)
    rows: Rows = [("level", "read B", "written B", "FLOP/B", "ridge", "predicted")]
    for level in LEVELS:
        traffic, intensity = (outcome.run.traffic or before.description.traffic)[level], before.intensity(level)
        if intensity is None:
            continue
        bytes_of_it = f"{traffic.read:,}", f"{traffic.written:,}"
        rows.append((LEVEL_NAMES[level], *bytes_of_it, f"{intensity:.1f}", f"{before.ridge(level):.1f}", before.regime(level)))
    return rows


def stages(outcome: Outcome) -> Rows:
    """What the compute tiles of each stage did."""
    rows: Rows = [("stage", "tiles", "share of time", "busy", "waits for")]
    for use in running.stages(outcome.run):
        waits = ", ".join(f"{name} {share:.0%}" for name, share in use.waits.items() if share >= 0.005)
        rows.append((use.name, str(use.tiles), f"{use.share:.0%}", f"{use.busy:.0%}", waits or "nothing"))
    return rows


def notes(outcome: Outcome) -> list[str]:
    """What the tables mean, in lines."""
    over, lines = predicted(outcome).roofline, []
    lines.append(
        f"ridge points: {over.ceiling:,.0f} FLOP/cycle = {si(over.ceiling * over.device.clock_hz, 'FLOP/s')}, what the calibrated "
        f"kernels reach on {over.tiles} tiles that never wait, over the memories of the whole device, reads and writes together"
    )
    if others := sorted(outcome.given & {"kernels", "costs"}):
        lines.append(f"predicted for the calibrated kernels and costs: the run was given other {' and '.join(others)}")
    if outcome.run.traffic is None:
        lines.append("bytes: what the closed formulas say (designs.attention.formulas), since a measured run does not count them")
    else:
        exact = "to the byte what" if running.exact(outcome) else "NOT what"
        lines.append(f"bytes: {exact} the closed formulas say (designs.attention.formulas)")
    if outcome.run.cores or outcome.run.parts:
        lines.append(f"{_longest(outcome)} ({outcome.run.kind})")
    return lines


def _longest(outcome: Outcome) -> str:
    """The stage that limits, and how busy its cores are; of stages that run in turn also what sets the pace of the longest."""
    done, slowest = outcome.run, running.limiting(outcome.run)
    if not done.parts:
        return f"limiting stage: {slowest.name}, its cores busy {slowest.busy:.0%} of the time"
    longest = max(range(len(done.parts)), key=lambda i: done.parts[i].times * done.parts[i].run.seconds)
    limit = predicted(outcome).phases[longest].limit
    pace = f"{limit} sets its pace" if not limit.startswith("stage ") else "they set its pace"
    return f"longest stage: {slowest.name}, {slowest.share:.0%} of the time, its cores busy {slowest.busy:.0%} of that ({pace})"


def title(outcome: Outcome) -> str:
    """Mapping, device, sizes."""
    return f"attention_{outcome.mapping.name} on {outcome.device} ({outcome.run.kind}): {outcome.parameters}"


def table(outcome: Outcome) -> str:
    """All of it as text."""
    parts = [title(outcome), _columns(summary(outcome), right=()), _columns(levels(outcome), right=(1, 2, 3, 4))]
    if outcome.run.cores or outcome.run.parts:
        parts.append(_columns(stages(outcome), right=(1, 2, 3)))
    return "\n\n".join([*parts, "\n".join(notes(outcome))])


def _columns(rows: Rows, right: Sequence[int]) -> str:
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return "\n".join(
        "  " + "  ".join(f"{cell:>{w}}" if i in right else f"{cell:<{w}}" for i, (cell, w) in enumerate(zip(row, widths))).rstrip()
        for row in rows
    )


def html(outcome: Outcome) -> str:
    """All of it for a notebook."""
    tables = [levels(outcome)]
    if outcome.run.cores or outcome.run.parts:
        tables.append(stages(outcome))
    columns = max(len(row) for rows in tables for row in rows)
    first = "".join(
        f'<tr><th scope="row">{escape(a)}</th><td colspan="{columns - 1}">{escape(b)}</td></tr>' for a, b in summary(outcome)
    )
    caption = f'<caption style="text-align:left;caption-side:top"><b>{escape(title(outcome))}</b></caption>'
    lines = "<br>".join(escape(line) for line in notes(outcome))
    body = "".join(f"<tbody>{part}</tbody>" for part in [first, *(_html_rows(rows, columns) for rows in tables)])
    return f'<table class="dataframe npulab-run">{caption}{body}</table><p>{lines}</p>'


def _html_rows(rows: Rows, columns: int) -> str:
    """A head and its rows, of which the last cell reaches to the right edge of a table of so many columns."""
    lines = [_html_cells('th scope="col"', rows[0], columns), *(_html_cells("td", row, columns) for row in rows[1:])]
    return "".join(f"<tr>{line}</tr>" for line in lines)


def _html_cells(tag: str, cells: Sequence[str], columns: int) -> str:
    wide = columns - len(cells) + 1
    tags = [tag] * (len(cells) - 1) + [f'{tag} colspan="{wide}"' if wide > 1 else tag]
    return "".join(f"<{opening}>{escape(cell)}</{opening[:2]}>" for opening, cell in zip(tags, cells))

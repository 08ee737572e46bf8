"""Chrome / Perfetto trace files from a report."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from npusim.report import Report


def chrome_trace(report: Report) -> dict[str, Any]:
    """The trace in Chrome's JSON form: one thread a track, times in microseconds of simulated time."""
    microseconds = 1e6 / (report.ticks_per_cycle * report.clock_hz)
    tracks = {name: i for i, name in enumerate(sorted({event.track for event in report.trace}))}
    events: list[dict[str, Any]] = [
        {"ph": "M", "pid": 1, "name": "process_name", "args": {"name": f"simulated {report.machine.device.name}"}}
    ]
    events += [
        {"ph": "M", "pid": 1, "tid": i, "name": "thread_name", "args": {"name": name}} for name, i in tracks.items()
    ]
    events += [
        {
            "ph": "X",
            "pid": 1,
            "tid": tracks[event.track],
            "name": event.name,
            "cat": event.kind,
            "ts": event.start * microseconds,
            "dur": event.duration * microseconds,
        }
        for event in report.trace
    ]
    return {"traceEvents": events, "displayTimeUnit": "ns", "otherData": {"kind": "simulated"}}


def write_chrome_trace(report: Report, path: str | Path) -> None:
    """Write the trace to a file that ui.perfetto.dev and chrome://tracing open."""
    Path(path).write_text(json.dumps(chrome_trace(report)))

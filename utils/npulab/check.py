"""Checks of exercises: values, structure and cost. They raise :class:`CheckFailed` with a hint, or print one line.

What an untouched skeleton leaves (``...``, None, NotImplemented) is recognised and said so. A mistake that the author foresaw
is given as a pair (how to recognise it, hint); some, such as a transposed result, are recognised anyway.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NoReturn

import numpy as np

from npulab.record import LEVEL_NAMES, Run
from npusim.errors import NpuError
from npusim.machine import Coord, Machine
from npusim.report import Level, Report

Mistake = tuple[Any, str]
"""(a predicate of (got, want), or the value that the mistake gives; hint)."""
Mistakes = Sequence[Mistake] | Mapping[Any, str]
Limit = float | tuple[float, float]
"""At most so much, or (the best known, at most)."""


class CheckFailed(AssertionError):
    """An exercise is not solved yet. Notebooks show the message only, not where it was raised."""

    def _render_traceback_(self) -> list[str]:
        return [f"CheckFailed: {self}"]


def _fail(what: str, *lines: str, hint: str = "") -> NoReturn:
    text = "\n".join([f"not yet: {what}", *(f"  {line}" for line in lines if line)])
    raise CheckFailed(text + (f"\n  Hint: {hint}" if hint else ""))


def _ok(words: str) -> None:
    print(f"ok: {words}")


def is_placeholder(value: Any) -> bool:
    """Whether it is what a skeleton leaves in place of an answer."""
    return value is None or value is Ellipsis or value is NotImplemented


def filled(value: Any, name: str = "your answer") -> Any:
    """The value, or CheckFailed if the skeleton is untouched (a call that returns nothing counts as that)."""
    if is_placeholder(value):
        _fail(f"{name} is still empty", "fill in the skeleton above, run its cell, then run this one again")
    return value


# ---- values


def _pairs(mistakes: Mistakes) -> Iterable[Mistake]:
    return mistakes.items() if isinstance(mistakes, Mapping) else mistakes


def _known_mistake(got: Any, want: Any, mistakes: Mistakes, rtol: float, atol: float) -> str:
    """The hint of the first foreseen mistake that fits; empty if none does."""
    for sign, hint in _pairs(mistakes):
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
    a, b = _numbers(got, name), _float(want)
    if a.shape != b.shape:
        _fail(
            f"{name} has shape {a.shape}, not {b.shape}", hint=_known_mistake(got, want, mistakes, rtol, atol) or hint
        )
    right = np.isclose(a, b, rtol=rtol, atol=atol, equal_nan=True)
    if right.all():
        how = "exact" if not rtol and not atol else f"within rtol {rtol:g}, atol {atol:g}"
        _ok(f"{name} is right ({how}{f', {a.size:,} values' if a.size > 1 else ''})")
        return
    at = tuple(int(i) for i in np.argwhere(~right)[0]) if a.ndim else ()
    where = f" at {list(at)}" if at else ""
    error = np.abs(a - b)[~right]
    largest = f"largest error {np.max(error):.4g}" if np.isfinite(error).all() else "some are not finite"
    many = f"{int((~right).sum()):,} of {a.size:,} values differ; {largest}" if a.size > 1 else ""
    known = _known_mistake(got, want, mistakes, rtol, atol) or hint or (_guess(a, b, right) if a.size > 1 else "")
    _fail(f"{name} is wrong", f"first difference{where}: got {a[at]:.6g}, want {b[at]:.6g}", many, hint=known)


def _numbers(got: Any, name: str) -> np.ndarray[Any, Any]:
    try:
        return _float(got)
    except (TypeError, ValueError):
        _fail(f"{name} is a {type(got).__name__}, not a number or an array")


def equal(got: Any, want: Any, *, hint: str = "", mistakes: Mistakes = (), name: str = "your answer") -> None:
    """Two values are equal (arrays: exactly, and of the same shape). For words, lists and whole numbers.

    Raises:
        CheckFailed: if not.
    """
    filled(got, name)
    if isinstance(want, np.ndarray):
        close(got, want, hint=hint, mistakes=mistakes, name=name)
    elif got == want:
        _ok(f"{name} is {want!r}")
    else:
        known = next(
            (text for sign, text in _pairs(mistakes) if (sign(got, want) if callable(sign) else got == sign)), hint
        )
        _fail(f"{name} is not right", f"got {got!r}", hint=known)


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
    value = _numbers(got, name)
    if value.ndim:
        _fail(f"{name} is an array of shape {value.shape}, not one number")
    if abs(float(value) - want) <= rtol * abs(want):
        _ok(f"{name} is right: {float(value):.6g} {unit}".rstrip())
        return
    known = _known_mistake(float(value), want, mistakes, rtol, 0.0) or hint or _factor(float(value), want)
    _fail(
        f"{name} is too {'large' if value > want else 'small'}", f"got {float(value):.6g} {unit}".rstrip(), hint=known
    )


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


# ---- running what a learner wrote


def runs(what: Any, args: Sequence[Any] = (), **options: Any) -> Run:
    """Build and run a learner's design as :func:`npulab.run` does and return the Run.

    Raises:
        CheckFailed: if the skeleton is untouched, or with the error's own words if the design is refused or hangs.
    """
    from npulab.execute import run

    filled(what, "your design")
    try:
        return run(what, args, **options)
    except NpuError as error:
        if "made no design" in str(error) or "gave a NoneType" in str(error) or "gave a ellipsis" in str(error):
            _fail("your design is still empty", "fill in the skeleton above, run its cell, then run this one again")
        raise CheckFailed(f"not yet: the design does not run\n  {type(error).__name__}: {error}") from error
    except (TypeError, AttributeError) as error:
        if "ellipsis" in str(error) or "NoneType" in str(error):
            _fail("part of your design is still empty", f"{type(error).__name__}: {error}")
        raise


# ---- structure


def _machine(of: Any) -> Machine:
    if isinstance(of, Machine):
        return of
    found = getattr(of, "machine", None)
    if not isinstance(found, Machine):
        raise TypeError(f"no structure to look at in {type(of).__name__}: pass a Machine, a Report or a simulated Run")
    return found


def _fifo_names(machine: Machine) -> set[str]:
    if machine.design is not None:
        return {fifo.name for fifo in machine.design.fifos}
    return {b.fifo for b in machine.buffers if b.fifo} | {c.fifo for c in machine.channels if c.fifo}


def _depth(machine: Machine, fifo: str) -> int:
    """The most buffers that one tile holds of a fifo."""
    tiles = [b.tile for b in machine.buffers if b.fifo == fifo]
    return max((tiles.count(tile) for tile in set(tiles)), default=0)


def memory_used(machine: Machine) -> tuple[int, Coord | None]:
    """Bytes (buffers and stack) on the fullest compute tile, and which that is."""
    used: dict[Coord, int] = {}
    for buffer in machine.buffers:
        if buffer.tile.row > 1:
            used[buffer.tile] = used.get(buffer.tile, 0) + buffer.type.nbytes
    for core in machine.cores:
        used[core.tile] = used.get(core.tile, 0) + core.stack_size
    if not used:
        return 0, None
    tile = max(used, key=lambda t: used[t])
    return used[tile], tile


_COUNTS: dict[str, tuple[str, Callable[[Machine], int]]] = {
    "tiles": ("compute tiles with a worker", lambda m: len(m.cores)),
    "memtiles": ("MemTiles in use", lambda m: len({c.tile for c in m.channels if m.device.kind(c.tile.row) == "mem"})),
    "columns": ("columns in use", lambda m: len({c.tile.col for c in m.channels} | {c.tile.col for c in m.cores})),
    "fifos": ("ObjectFifos", lambda m: len(_fifo_names(m))),
    "dma_channels": (
        "DMA channels on compute tiles",
        lambda m: sum(m.device.kind(c.tile.row) == "core" for c in m.channels),
    ),
    "shim_channels": ("shim DMA channels", lambda m: sum(m.device.kind(c.tile.row) == "shim" for c in m.channels)),
    "memtile_channels": ("MemTile DMA channels", lambda m: sum(m.device.kind(c.tile.row) == "mem" for c in m.channels)),
    "streams": ("streams", lambda m: len(m.routes)),
    "cascades": ("cascade links", lambda m: len(m.cascades)),
}


def structure(
    of: Any,
    *,
    depth: Mapping[str, int] | None = None,
    kernels: Iterable[str] | None = None,
    hint: str = "",
    mistakes: Mistakes = (),
    **counts: int,
) -> None:
    """How a design is built: pass a Machine, a Report or a simulated Run.

    ``counts`` are exact: ``tiles``, ``memtiles``, ``columns``, ``fifos``, ``dma_channels`` (on compute tiles),
    ``shim_channels``, ``memtile_channels``, ``streams``, ``cascades``. ``depth`` gives a fifo's buffers on the tile that
    holds most of them; ``kernels`` must all be declared. A mistake's predicate gets (machine, counts).

    Raises:
        CheckFailed: with what is there and what is wanted.
        TypeError: for an unknown count, or for something without a machine.
    """
    machine = _machine(filled(of, "your design"))
    unknown = set(counts) - set(_COUNTS)
    if unknown:
        raise TypeError(f"unknown count {', '.join(sorted(unknown))}; known: {', '.join(_COUNTS)}")
    known = next((text for sign, text in _pairs(mistakes) if callable(sign) and sign(machine, counts)), hint)
    done = []
    for what, want in counts.items():
        words, count = _COUNTS[what]
        if (got := count(machine)) != want:
            _fail("the design is built differently", f"{words}: {got}, wanted {want}", hint=known)
        done.append(f"{want} {words}")
    for fifo, want in (depth or {}).items():
        if fifo not in _fifo_names(machine):
            _fail(f"there is no fifo {fifo!r}", f"there are {', '.join(sorted(_fifo_names(machine)))}", hint=known)
        if (got := _depth(machine, fifo)) != want:
            _fail(
                "the design is built differently",
                f"buffers of fifo {fifo!r} on a tile: {got}, wanted {want}",
                hint=known,
            )
        done.append(f"{fifo} {want} deep")
    missing = [kernel for kernel in kernels or () if kernel not in machine.kernels]
    if missing:
        _fail(
            f"the design does not declare {', '.join(missing)}",
            f"it declares {', '.join(machine.kernels) or 'no kernel'}",
            hint=known,
        )
    _ok(", ".join(done) if done else "the design is built as wanted")


# ---- cost


def _cost(got: float, limit: Limit, words: str, unit: str, hint: str) -> str:
    """A line about one cost; CheckFailed beyond the limit."""
    best, most = limit if isinstance(limit, tuple) else (None, limit)
    if got > most:
        _fail(
            "right, but it costs too much", f"{words}: {got:,.0f} {unit}, at most {most:,.0f} {unit} wanted", hint=hint
        )
    if best is None:
        return f"{words} {got:,.0f} {unit} (at most {most:,.0f})"
    score = best / got if got else 1.0
    praise = "as good as the best known" if score >= 0.995 else f"score {score:.0%}: {best:,.0f} {unit} is possible"
    return f"{words} {got:,.0f} {unit} ({praise})"


def cost(
    of: Any,
    *,
    level: Level | None = None,
    bytes: Limit | None = None,
    l1_bytes: Limit | None = None,
    cycles: Limit | None = None,
    hint: str = "",
) -> None:
    """What a run costs: bytes that DMA moved at ``level``, memory of the fullest compute tile (``l1_bytes``, with stack), and
    cycles. Each limit is "at most", or a pair (best known, at most): then the line tells how far from the best it is, so
    that a right but wasteful answer is seen to be one.

    Raises:
        CheckFailed: beyond a limit.
        ValueError: if ``level`` and ``bytes`` are not given together, or the run does not know what is asked.
    """
    filled(of, "your run")
    if (level is None) != (bytes is None):
        raise ValueError("give level and bytes together")
    run = Run.of_report(of) if isinstance(of, Report) else of
    lines = []
    if level is not None and bytes is not None:
        if (moved := run.bytes(level)) is None:
            raise ValueError("this run does not know its bytes (it was measured)")
        lines.append(_cost(moved, bytes, f"{LEVEL_NAMES[level]} moved", "B", hint))
    if l1_bytes is not None:
        used, tile = memory_used(_machine(of))
        lines.append(_cost(used, l1_bytes, f"memory of the fullest compute tile {tile}", "B", hint))
    if cycles is not None:
        if run.cycles is None:
            raise ValueError("this run does not know its cycles (it was measured)")
        lines.append(_cost(run.cycles, cycles, "simulated time", "cycles", hint))
    _ok("; ".join(lines))


# ---- everything about one design

_structure, _cost_of = structure, cost  # the function below has keywords of these names


def design(
    what: Any,
    args: Sequence[Any],
    want: Any,
    *,
    rtol: float = 0.0,
    atol: float = 0.0,
    structure: Mapping[str, Any] | None = None,
    cost: Mapping[str, Any] | None = None,
    hint: str = "",
    mistakes: Mistakes = (),
    **options: Any,
) -> Run:
    """One call for an exercise that asks for a design: it runs, its values are right, it is built as wanted, and it costs no
    more than allowed. ``structure`` and ``cost`` hold the keywords of the functions of these names; ``options`` go to
    :func:`npulab.run`. Returns the run.

    Raises:
        CheckFailed: at the first thing that is not so.
    """
    done = what if isinstance(what, Run) else runs(what, args, **options)
    wanted = want if isinstance(want, tuple) else (want,)
    if len(done.outputs) != len(wanted):
        _fail(f"the design writes {len(done.outputs)} of its arguments, wanted {len(wanted)}", hint=hint)
    for i, (got, value) in enumerate(zip(done.outputs, wanted)):
        name = "the result" if len(wanted) == 1 else f"output {i}"
        close(got, value, rtol, atol, hint=hint, mistakes=mistakes, name=name)
    if structure is not None:
        _structure(done, **structure)
    if cost is not None:
        _cost_of(done, **cost)
    return done

"""A program of kernels as a running process, and one call of it.

Arrays go through memory that both processes share (its layout is worker.cc's). An array lies at the end of its area,
just before a page that nobody may touch, or at the start, just after one; what is left of the area is filled with a
pattern that is compared after the call. A view keeps its offset from the array that owns it, so that a misaligned
view is misaligned there, too.
"""

from __future__ import annotations

import mmap
import os
import select
import shutil
import struct
import subprocess
import tempfile
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Literal

import numpy as np

from npusim.errors import DesignError, UnsupportedError
from npusim.hostcc.build import Program
from npusim.hostcc.compiler import INCLUDE, WORKER
from npusim.hostcc.rates import Counts

Array = np.ndarray[Any, Any]
Place = Literal["end", "start"]

PAGE = max(4096, mmap.PAGESIZE)
ALIGN = 64  # bytes: what the largest vector access wants, and the buffer allocator gives
CONTROL = 65536
CASCADE = 1 << 20  # bytes of the cascade that one call may take or send
_HEAD = struct.Struct("<4I3Q")
_COUNTERS = struct.Struct("<8Q")
_ARGUMENT = struct.Struct("<3Q8s")
_REPORT = _HEAD.size + _COUNTERS.size + 32 * _ARGUMENT.size
_SCALAR = 2**64 - 1
_CANARY = 0xA5
TIMEOUT = 10.0
"""Seconds a call may take; ``NPUSIM_KERNEL_TIMEOUT`` changes it."""


def timeout() -> float:
    """The limit of one call in seconds."""
    return float(os.environ.get("NPUSIM_KERNEL_TIMEOUT", TIMEOUT))


@dataclass(frozen=True)
class Outcome:
    """What a call counted, and the bytes it sent down the cascade."""

    counts: Counts
    sent: bytes


@dataclass
class _Area:
    """The memory of one argument: where it begins in the shared memory, its size, and what lies in it."""

    begin: int
    size: int
    filled: tuple[int, int] | None = None  # offset and size of the argument that the pattern surrounds


def _room(nbytes: int) -> int:
    """Bytes of an area for an array: whole pages, with room for a view's offset."""
    return -(-(nbytes + 2 * ALIGN) // PAGE) * PAGE


def _misalignment(array: Array) -> int:
    """Bytes by which an array is off its owner's start, up to ALIGN."""
    owner = array
    while isinstance(owner.base, np.ndarray):
        owner = owner.base
    return (_address(array) - _address(owner)) % ALIGN


def _address(array: Array) -> int:
    return int(array.__array_interface__["data"][0])


class Worker:
    """Calls kernels of one program. The process is started when needed, and again after a call that failed."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self._lock = threading.Lock()
        self._areas: list[_Area] = []
        self._process: subprocess.Popen[bytes] | None = None
        self._pid = 0
        self._memory: mmap.mmap | None = None
        self._bytes: Array = np.zeros(0, np.uint8)
        self._ends: tuple[int, int] = (-1, -1)  # our ends of the pipes: to write, to read
        self._said: IO[bytes] | None = None
        self._views: dict[Any, Array] = {}

    # ---- calls

    def call(
        self,
        name: str,
        arguments: Sequence[Any],
        *,
        place: Place = "end",
        received: bytes = b"",
        seconds: float | None = None,
    ) -> Outcome:
        """Run a kernel on arrays, in place, and scalars.

        ``received`` are the bytes that the cascade brings. DesignError says what the kernel did wrong: an access out of
        bounds or misaligned, an endless loop, a crash.
        """
        function = self.program.functions[self.program.index(name)]
        if len(arguments) != len(function.arguments):
            raise DesignError(
                f"kernel {name!r} takes {len(function.arguments)} arguments, got {len(arguments)}: {function}"
            )
        if len(received) > CASCADE:
            raise UnsupportedError(
                f"kernel {name!r}: a call gets {len(received)} bytes from the cascade, {CASCADE} are served"
            )
        with self._lock:
            self._ready([a.nbytes for a in arguments if isinstance(a, np.ndarray)])
            copies = self._place(name, arguments, place)
            limit = timeout() if seconds is None else seconds
            self._write_head(self.program.index(name), len(arguments), limit, received)
            self._run(name, limit)
            for argument, (array, view) in zip(function.arguments, copies, strict=True):
                if view is not None and not argument.constant:
                    array[...] = view
            return self._outcome()

    def _place(self, name: str, arguments: Sequence[Any], place: Place) -> list[tuple[Any, Array | None]]:
        """Copy the arguments in; gives each array with its view in the shared memory."""
        copies: list[tuple[Any, Array | None]] = []
        taken: list[tuple[int, int, int]] = []  # address range and area of the arrays so far
        free = iter(range(len(self._areas)))
        for i, argument in enumerate(arguments):
            if not isinstance(argument, np.ndarray):
                self._write_argument(i, _SCALAR, 0, 0, _slot(argument))
                copies.append((argument, None))
                continue
            area = _shared_area(name, argument, taken)
            if area is None:
                area = next(free)
                taken.append((_address(argument), _address(argument) + argument.nbytes, area))
            offset = self._offset(self._areas[area], argument, place)
            view = self._view(area, offset, argument)
            view[...] = argument
            self._write_argument(i, area, offset, argument.nbytes, bytes(8))
            copies.append((argument, view))
        return copies

    def _offset(self, area: _Area, array: Array, place: Place) -> int:
        """Where an array lies in its area, and the pattern around it."""
        off = _misalignment(array)
        offset = off if place == "start" else area.size - -(-(off + array.nbytes) // ALIGN) * ALIGN + off
        if area.filled != (offset, array.nbytes):
            self._bytes[area.begin : area.begin + area.size] = _CANARY
            area.filled = (offset, array.nbytes)
        return offset

    def _view(self, area: int, offset: int, array: Array) -> Array:
        key = (area, offset, array.shape, array.dtype)
        if key not in self._views:
            assert self._memory is not None
            flat = np.frombuffer(self._memory, array.dtype, array.size, self._areas[area].begin + offset)
            self._views[key] = flat.reshape(array.shape)
        return self._views[key]

    # ---- shared memory

    def _write_head(self, kernel: int, arguments: int, limit: float, received: bytes) -> None:
        assert self._memory is not None
        _HEAD.pack_into(self._memory, 0, kernel, arguments, max(1, int(limit * 1000)), 0, len(received), 0, 0)
        self._memory[CONTROL : CONTROL + len(received)] = received

    def _write_argument(self, index: int, area: int, offset: int, size: int, value: bytes) -> None:
        assert self._memory is not None
        at = _HEAD.size + _COUNTERS.size + index * _ARGUMENT.size
        _ARGUMENT.pack_into(self._memory, at, area, offset, size, value)

    def _outcome(self) -> Outcome:
        assert self._memory is not None
        counted = _COUNTERS.unpack_from(self._memory, _HEAD.size)
        sent = _HEAD.unpack_from(self._memory, 0)[5]
        return Outcome(Counts(*counted), self._memory[CONTROL + CASCADE : CONTROL + CASCADE + sent])

    # ---- the process

    def _ready(self, sizes: list[int]) -> None:
        """A process with an area for each array."""
        rooms = [_room(n) for n in sizes]
        known = [a.size for a in self._areas]
        alive = self._process is not None and self._pid == os.getpid() and self._process.poll() is None
        if alive and len(rooms) <= len(known) and all(r <= k for r, k in zip(rooms, known)):
            return
        self.close()
        self._start([max(pair) for pair in zip(rooms, [*known, *[0] * len(rooms)])] + known[len(rooms) :])

    def _start(self, sizes: list[int]) -> None:
        begin = CONTROL + 2 * CASCADE
        self._areas = []
        for size in sizes:
            self._areas.append(_Area(begin, size))
            begin += size
        with _memory_file() as file:
            os.ftruncate(file.fileno(), begin)
            self._memory = mmap.mmap(file.fileno(), begin)
            self._bytes = np.frombuffer(self._memory, np.uint8)
            (theirs_in, ours_out), (ours_in, theirs_out) = os.pipe(), os.pipe()
            self._said = tempfile.TemporaryFile()  # noqa: SIM115 (closed with the process)
            handed = (file.fileno(), theirs_in, theirs_out)
            self._process = subprocess.Popen(
                [str(self.program.path), *map(str, handed), *map(str, sizes)],
                pass_fds=handed,
                stdin=subprocess.DEVNULL,
                stdout=self._said,
                stderr=self._said,
            )
        os.close(theirs_in)
        os.close(theirs_out)
        self._ends, self._pid = (ours_out, ours_in), os.getpid()

    def _run(self, name: str, limit: float) -> None:
        """One call; DesignError if the process ends instead of answering."""
        try:
            os.write(self._ends[0], b"!")
            answer = select.poll()
            answer.register(self._ends[1], select.POLLIN)
            if answer.poll((limit + 5) * 1000) and os.read(self._ends[1], 1):
                return
        except BaseException:  # interrupted: an answer that comes later must not be taken for the next call's
            self.close()
            raise
        raise DesignError(self._post_mortem(name))

    def _post_mortem(self, name: str) -> str:
        """What the process left behind about its end."""
        assert self._memory is not None and self._process is not None
        process, counter = self._process, _HEAD.unpack_from(self._memory, 0)[6]
        text = self._memory[_REPORT : _REPORT + 2048].split(b"\0", 1)[0].decode(errors="replace")
        if not text:
            process.kill()
            text = f"kernel {name} ended without a word (exit code {process.wait()})"
        if self._said is not None:
            self._said.seek(0)
            words = self._said.read()[-500:].decode(errors="replace").strip()
            text += f"; it said: {words}" if words else ""
        where = _line_of(self.program.path, counter) if counter else ""
        self.close()
        return f"{text} ({where})" if where else text

    def close(self) -> None:
        """End the process."""
        if self._process is None:
            return
        process, self._process = self._process, None
        for end in self._ends:
            os.close(end)
        if self._said is not None:
            self._said.close()
        if self._pid == os.getpid():
            process.kill()
            process.wait()
        self._views.clear()
        self._bytes, self._memory = np.zeros(0, np.uint8), None

    def __del__(self) -> None:
        try:
            self.close()
        except Exception:  # the interpreter may be half gone
            return


def _memory_file() -> IO[bytes]:
    """A file that lives in memory."""
    if hasattr(os, "memfd_create"):
        return os.fdopen(os.memfd_create("npusim-kernel"), "r+b")
    return tempfile.TemporaryFile()


def _slot(value: Any) -> bytes:
    """A scalar as the 8 bytes of its slot: its own bytes first. Python ints are 64 bit, Python floats are float32."""
    if isinstance(value, (bool, int)):
        return struct.pack("<q", int(value) if int(value) < 2**63 else int(value) - 2**64)
    if isinstance(value, float):
        value = np.float32(value)
    raw = np.asarray(value).tobytes()
    if np.asarray(value).dtype.kind == "i":  # as a wider register would hold it
        return struct.pack("<q", int(value))
    return raw.ljust(8, b"\0")


def _shared_area(name: str, array: Array, taken: list[tuple[int, int, int]]) -> int | None:
    """The area of an array that is passed twice; UnsupportedError if two arrays overlap in part."""
    begin = _address(array)
    end = begin + array.nbytes
    for other_begin, other_end, area in taken:
        if (begin, end) == (other_begin, other_end):
            return area
        if begin < other_end and other_begin < end:
            raise UnsupportedError(
                f"kernel {name!r}: two of its arrays overlap in part; that is not served for C++ kernels"
            )
    return None


def _line_of(program: Path, counter: int) -> str:
    """``file:line`` of a program counter in the kernel's source, or nothing where addr2line cannot say."""
    tool = shutil.which("addr2line")
    if tool is None:
        return ""
    asked = subprocess.run([tool, "-i", "-e", str(program), hex(counter)], capture_output=True, text=True, check=False)
    for line in asked.stdout.splitlines():
        file, _, number = line.split(" ")[0].rpartition(":")
        foreign = file.startswith((str(INCLUDE), "/usr/", "?")) or Path(file) == WORKER
        if not foreign and number.isdigit():
            return f"{Path(file).name}:{number}"
    return ""

"""``Buffer``: memory of one tile that a worker keeps; tables, state and run-time parameters."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import numpy as np

from npusim import graph
from npusim.errors import DesignError
from npusim.frontends import operators as ops
from npusim.frontends.iron.context import design
from npusim.frontends.iron.device import Tile
from npusim.frontends.iron.layouts import array_type
from npusim.frontends.iron.resolvable import NotResolvedError, Resolvable
from npusim.frontends.tracing import DesignTypeError, emit, here, need
from npusim.frontends.values import MemRefValue
from npusim.types import MemRefType

if TYPE_CHECKING:
    from npusim.frontends.iron.worker import Worker


class Buffer(Resolvable):
    """Memory of ``type`` (or of the shape and dtype of ``initial_value``) on a tile, by default that of its first worker.

    Workers read and write elements, ``buf[i]``. The host sequence may write elements of one made with
    ``use_write_rtp=True`` (a run-time parameter), which workers then only read.
    """

    _gbuf_index = itertools.count()

    def __init__(
        self,
        type: type[np.ndarray] | None = None,
        initial_value: np.ndarray | None = None,
        name: str | None = None,
        tile: Tile | None = None,
        use_write_rtp: bool = False,
        address: int | None = None,
    ) -> None:
        self._loc = here()
        if initial_value is not None and not isinstance(initial_value, np.ndarray):
            raise DesignTypeError(f"the initial value of a Buffer is a numpy array, got {initial_value!r}")
        if type is None:
            if initial_value is None:
                raise DesignError("a Buffer needs a type, an initial value, or both")
            type = np.ndarray[initial_value.shape, np.dtype[initial_value.dtype.type]]  # type: ignore[name-defined]
        self._arr_type = type
        self._initial_value = initial_value
        self._name = name or f"buf_{next(Buffer._gbuf_index)}"
        self._tile = tile
        self._use_write_rtp = use_write_rtp
        self._address = address
        self._explicit_tile = tile is not None
        self._owner_worker: Worker | None = None
        self._op: graph.Buffer | None = None

    @property
    def tile(self) -> Tile | None:
        """The tile that the memory is on, once it is known."""
        return self._tile

    def tiles(self) -> list[Any]:
        return [] if self._tile is None else [self._tile]

    @property
    def shape(self) -> Any:
        """Sizes in elements."""
        return self._arr_type.__args__[0]  # type: ignore[attr-defined]

    @property
    def dtype(self) -> Any:
        return self._arr_type.__args__[1].__args__[0]  # type: ignore[attr-defined]

    @property
    def op(self) -> MemRefValue:
        """The memory as traced code sees it."""
        return MemRefValue(self._graph("it").value)

    def _graph(self, what: str) -> graph.Buffer:
        if self._op is None:
            raise NotResolvedError(
                f"Buffer {self._name!r} (made at {self._loc}) is not part of the design, so {what} cannot be used: pass it "
                "to a Worker in fn_args, and use it inside the core function"
            )
        return self._op

    def __getitem__(self, idx: Any) -> Any:
        """An element, in a core function."""
        self._graph("its elements")
        need(f"reading Buffer {self._name!r}", "core")
        if isinstance(idx, slice) and idx != slice(None):
            raise DesignError(f"Buffer {self._name!r} cannot be sliced: index its elements one by one")
        got = self.op[idx]
        if isinstance(got, MemRefValue) and got.shape != self.op.shape:
            raise DesignError(
                f"Buffer {self._name!r} needs {len(self.shape)} indices, got {idx!r}: it gives elements only"
            )
        return got

    def __setitem__(self, idx: Any, source: Any) -> None:
        """Write an element: in a core function, or (with ``use_write_rtp``) in the host sequence."""
        of = self._graph("its elements")
        scope = need(f"writing Buffer {self._name!r}")
        if scope.kind == "sequence":
            self._write_from_host(of, idx, source)
        elif self._use_write_rtp:
            raise DesignError(
                f"Buffer {self._name!r} has use_write_rtp=True, so only the host sequence writes it: use another Buffer for "
                "state that a core keeps"
            )
        else:
            self.op[idx] = source

    def _write_from_host(self, of: graph.Buffer, idx: Any, source: Any) -> None:
        if not self._use_write_rtp:
            raise DesignError(f"the host sequence cannot write Buffer {self._name!r}: make it with use_write_rtp=True")
        if of.type.element not in ("i32", "ui32"):
            raise DesignError(
                f"run-time parameter {self._name!r} is of {of.type.element}, but the host writes 32-bit integers and counts "
                "indices in 32-bit words: make it of np.int32"
            )
        if isinstance(idx, bool) or not isinstance(idx, int) or len(of.type.shape) != 1:
            raise DesignError(
                f"run-time parameter {self._name!r} is written by one int index of a 1-D buffer, got {idx!r}"
            )
        if not 0 <= idx < of.type.size:
            raise DesignError(f"index {idx} is out of range for run-time parameter {self._name!r} of {of.type}")
        if isinstance(source, int):
            source = ops.constant(source, "i32")
        if not ops.is_scalar(source):
            raise DesignTypeError(f"run-time parameter {self._name!r} takes an int or a run-time i32, got {source!r}")
        if source.dtype != "i32":
            raise DesignError(f"run-time parameter {self._name!r} is written as i32, got a run-time {source.dtype}")
        emit("aiex.npu.rtp_write", (source.value,), buffer=self._name, index=idx)

    def resolve(self, loc: Any = None, ip: Any = None) -> None:
        if self._op is not None:
            return
        if self._tile is None:
            raise DesignError(
                f"Buffer {self._name!r} (made at {self._loc}) has no tile: pass it to a Worker or give tile="
            )
        kind = array_type(self._arr_type, f"Buffer {self._name!r} (made at {self._loc})")
        self._op = graph.Buffer(
            name=self._name,
            type=kind,
            tile=self._tile.op,
            initial=self._initial(kind),
            address=self._address,
            host_written=bool(self._use_write_rtp),
            loc=self._loc,
        )
        design(f"Buffer {self._name!r}").buffers.append(self._op)

    def _initial(self, kind: MemRefType) -> np.ndarray[Any, Any] | None:
        """Equal values fill the buffer, whatever the array's shape: the real package writes them as ``dense<v>``."""
        if self._initial_value is None:
            return None
        array = np.array(self._initial_value)
        if array.size and array.dtype == kind.dtype and array.tobytes() == array.size * array.flat[0].tobytes():
            return np.full(kind.shape, array.flat[0], kind.dtype)
        if array.shape != kind.shape or array.dtype != kind.dtype:
            raise DesignError(
                f"the initial value of Buffer {self._name!r} has shape {array.shape} and dtype {array.dtype}, needs {kind}"
            )
        return array

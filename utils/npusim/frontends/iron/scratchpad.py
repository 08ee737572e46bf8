"""``ScratchpadParameter``: a scalar that the host sets and every core may read."""

from __future__ import annotations

from typing import Any

from npusim import graph
from npusim.errors import DesignError
from npusim.frontends.iron import sequence
from npusim.frontends.iron.context import design
from npusim.frontends.iron.resolvable import Resolvable
from npusim.frontends.tracing import emit, need
from npusim.frontends.values import wrap
from npusim.types import element_name


class ScratchpadParameter(Resolvable):
    """A named scalar. Two bits of a value are lost on its way (MLIR-AIE), so float32 is refused there and here."""

    def __init__(self, name: str, dtype: Any) -> None:
        self._name = name
        self._dtype = dtype
        self._home: graph.Design | None = None

    @property
    def name(self) -> str:
        return self._name

    @property
    def dtype(self) -> Any:
        return self._dtype

    def read(self) -> Any:
        """The value, in a core function."""
        need(f"read() of ScratchpadParameter {self._name!r}", "core")
        return read_scratchpad_parameter(self._name, element_name(self._dtype))

    def tiles(self) -> list[Any]:
        return []

    def resolve(self, loc: Any = None, ip: Any = None) -> None:
        into = design(f"ScratchpadParameter {self._name!r}")
        if self._home is not into:
            element = element_name(self._dtype)
            if element in ("f32", "f64", "i64", "ui64"):
                raise DesignError(
                    f"ScratchpadParameter {self._name!r}: {element} does not fit its encoding, which keeps 30 bits; use "
                    "np.int32, np.int16, np.int8 or bfloat16"
                )
            self._home = into
            into.scratchpads.append(graph.Scratchpad(self._name, element))


def read_scratchpad_parameter(name: str, result_type: Any) -> Any:
    """The value of a scratchpad parameter, in a core function."""
    need("read_scratchpad_parameter", "core")
    return wrap(emit("aiex.read_scratchpad_parameter", (), (str(result_type),), parameter=name).result)


def sync_parameters() -> None:
    """In the host sequence: make the parameters that the host wrote visible to the cores."""
    sequence.active("sync_parameters()")
    emit("aiex.sync_scratchpad_parameters_from_host")

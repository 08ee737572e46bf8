"""What the compiler made of parameters in a host sequence, as the writes of parameters that they are."""

from __future__ import annotations

from collections.abc import Mapping

from npusim.errors import UnsupportedError
from npusim.ir import Op, Region, walk
from npusim.mlir.chains import constant_of

_NOT_SERVED = frozenset({"iteration", "offset_parameter", "offset_state_table_idx", "pad_dimensions"})


def settle_registers(sequence: Region, parameters: Mapping[int, str]) -> None:
    """Make ``aiex.npu.write32`` to a word of a buffer an ``aiex.npu.rtp_write``, and name the parameters.

    ``parameters`` are the names of scratchpad parameters by their place in the scratchpad. A write to an absolute address
    is an UnsupportedError: it could be any register.
    """
    for op in walk(sequence):
        if op.name == "aiex.npu.write32":
            _write(op)
        elif op.name == "aiex.npu.update_from_scratchpad":
            index = op.attrs.get("state_table_idx", 0)
            if index not in parameters or op.attrs.get("func", 1) != 1 or op.attrs.get("func_arg", 0):
                raise UnsupportedError(f"{op.loc}: {op.name} of place {index} with another function than adding it")
            op.attrs["parameter"] = parameters[index]
        elif op.name == "aie.dma_bd" and not _NOT_SERVED.isdisjoint(op.attrs):
            what = ", ".join(sorted(_NOT_SERVED & op.attrs.keys()))
            raise UnsupportedError(f"{op.loc}: {what} of a host transfer's buffer descriptor")


def _write(op: Op) -> None:
    if "buffer" not in op.attrs:
        raise UnsupportedError(f"{op.loc}: {op.name} to an address that is not in a buffer")
    address, value = op.operands
    op.name, op.operands = "aiex.npu.rtp_write", (value,)
    op.attrs = {"buffer": op.attrs["buffer"], "index": constant_of(address)}

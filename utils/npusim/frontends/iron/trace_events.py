"""``aie.utils.trace.events``: the hardware's events by name, so that designs may choose some for ``Program.enable_trace``.

Names and numbers are those of AIE2 (Xilinx/aie-rt driver/src/events/xaie_events_aieml.h), which the real package offers for
either generation. They have no effect here: the simulated NPU records its own trace.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Any

from npusim.errors import DesignError
from npusim.frontends.iron.enums import DMAChannelDir


def _events(table: str) -> dict[str, int]:
    """Names and numbers of a table: ``A_#*3`` is A_0 A_1 A_2, ``A_#|B_#*2`` is A_0 B_0 A_1 B_1, ``@9`` numbers on from 9."""
    events: dict[str, int] = {}
    number = 0
    for word in table.split():
        if word.startswith("@"):
            number = int(word[1:])
            continue
        names, _, times = word.partition("*")
        for i in range(int(times or 1)):
            for name in names.split("|"):
                events[name.replace("#", str(i))] = number
                number += 1
    return events


def _dma(channel: str) -> str:
    """The events of two channels each way."""
    pairs = [(event, event) for event in ("START_TASK", "FINISHED_BD", "FINISHED_TASK", "STALLED_LOCK")]
    pairs += [("STREAM_STARVATION", "STREAM_BACKPRESSURE"), ("MEMORY_BACKPRESSURE", "MEMORY_STARVATION")]
    return " ".join(f"DMA_S2MM_{channel}_{s2mm}*2 DMA_MM2S_{channel}_{mm2s}*2" for s2mm, mm2s in pairs)


_START = "NONE TRUE GROUP_0 TIMER_SYNC TIMER_VALUE_REACHED"
_COMBINED = "COMBO_EVENT_#*4 EDGE_DETECTION_EVENT_#*2"
_PORTS = "GROUP_STREAM_SWITCH PORT_IDLE_#|PORT_RUNNING_#|PORT_STALLED_#|PORT_TLAST_#*8"
_LOCKS = "LOCK_SEL#_ACQ_EQ|LOCK_SEL#_ACQ_GE|{}_REL|LOCK_SEL#_EQUAL_TO_VALUE*8"
_ECC = "DM_ECC_ERROR_SCRUB_CORRECTED DM_ECC_ERROR_SCRUB_2BIT DM_ECC_ERROR_1BIT DM_ECC_ERROR_2BIT"
_BROADCAST = "GROUP_BROADCAST BROADCAST_#*16 GROUP_USER_EVENT"

_CORE = f"""{_START} PERF_CNT_#*4 {_COMBINED} GROUP_PC_EVENT PC_#*4 PC_RANGE_0_1 PC_RANGE_2_3
    GROUP_STALL MEMORY_STALL STREAM_STALL CASCADE_STALL LOCK_STALL DEBUG_HALTED ACTIVE DISABLED ECC_ERROR_STALL
    ECC_SCRUBBING_STALL GROUP_PROGRAM_FLOW INSTR_EVENT_#*2 INSTR_CALL INSTR_RETURN INSTR_VECTOR INSTR_LOAD INSTR_STORE
    INSTR_STREAM_GET INSTR_STREAM_PUT INSTR_CASCADE_GET INSTR_CASCADE_PUT INSTR_LOCK_ACQUIRE_REQ INSTR_LOCK_RELEASE_REQ
    GROUP_ERRORS_#*2 SRS_OVERFLOW UPS_OVERFLOW FP_HUGE INT_FP_0 FP_INVALID FP_INF @55 PM_REG_ACCESS_FAILURE
    STREAM_PKT_PARITY_ERROR CONTROL_PKT_ERROR AXI_MM_SLAVE_ERROR INSTR_DECOMPRSN_ERROR DM_ADDRESS_OUT_OF_RANGE
    PM_ECC_ERROR_SCRUB_CORRECTED PM_ECC_ERROR_SCRUB_2BIT PM_ECC_ERROR_1BIT PM_ECC_ERROR_2BIT PM_ADDRESS_OUT_OF_RANGE
    DM_ACCESS_TO_UNAVAILABLE LOCK_ACCESS_TO_UNAVAILABLE INSTR_WARNING INSTR_ERROR DECOMPRESSION_UNDERFLOW
    STREAM_SWITCH_PORT_PARITY_ERROR PROCESSOR_BUS_ERROR {_PORTS} {_BROADCAST} USER_EVENT_#*4"""
_MEM = f"""{_START} PERF_CNT_#*2 {_COMBINED} @15 GROUP_WATCHPOINT WATCHPOINT_#*2 GROUP_DMA_ACTIVITY {_dma("#")}
    GROUP_LOCK {_LOCKS.format("LOCK_#")} GROUP_MEMORY_CONFLICT CONFLICT_DM_BANK_#*8 @86 GROUP_ERRORS {_ECC}
    DM_PARITY_ERROR_BANK_2 DM_PARITY_ERROR_BANK_3 DM_PARITY_ERROR_BANK_4 DM_PARITY_ERROR_BANK_5 DM_PARITY_ERROR_BANK_6
    DM_PARITY_ERROR_BANK_7 DMA_S2MM_#_ERROR*2 DMA_MM2S_#_ERROR*2 LOCK_ERROR DMA_TASK_TOKEN_STALL @106 {_BROADCAST}
    USER_EVENT_#*4"""
_SHIM = f"""{_START} PERF_CNT_#*2 {_COMBINED} GROUP_DMA_ACTIVITY {_dma("#")}
    GROUP_LOCK LOCK_#_ACQ_EQ|LOCK_#_ACQ_GE|LOCK_#_REL|LOCK_#_EQUAL_TO_VALUE*6 GROUP_ERRORS AXI_MM_SLAVE_ERROR
    CONTROL_PKT_ERROR STREAM_SWITCH_PARITY_ERROR AXI_MM_DECODE_NSU_ERROR AXI_MM_SLAVE_NSU_ERROR AXI_MM_UNSUPPORTED_TRAFFIC
    AXI_MM_UNSECURE_ACCESS_IN_SECURE_MODE AXI_MM_BYTE_STROBE_ERROR DMA_S2MM_ERROR DMA_MM2S_ERROR LOCK_ERROR
    DMA_TASK_TOKEN_STALL {_PORTS} GROUP_BROADCAST_A BROADCAST_A_#*16 USER_EVENT_#*2"""
_MEM_TILE = f"""{_START} PERF_CNT#_EVENT*4 {_COMBINED} GROUP_WATCHPOINT WATCHPOINT_#*4 GROUP_DMA_ACTIVITY {_dma("SEL#")}
    GROUP_LOCK {_LOCKS.format("LOCK_SEL#")} {_PORTS} GROUP_MEMORY_CONFLICT CONFLICT_DM_BANK_#*16 GROUP_ERRORS {_ECC}
    DMA_S2MM_ERROR DMA_MM2S_ERROR STREAM_SWITCH_PARITY_ERROR STREAM_PKT_ERROR CONTROL_PKT_ERROR AXI_MM_SLAVE_ERROR LOCK_ERROR
    DMA_TASK_TOKEN_STALL {_BROADCAST} USER_EVENT_#*2"""


def _enumeration(name: str, table: str) -> Any:
    made: Any = IntEnum
    return made(name, _events(table))


CoreEvent = _enumeration("CoreEvent", _CORE)
MemEvent = _enumeration("MemEvent", _MEM)
ShimTileEvent = _enumeration("ShimTileEvent", _SHIM)
MemTileEvent = _enumeration("MemTileEvent", _MEM_TILE)


class GenericEvent:
    """An event; subclasses say more about it."""

    def __init__(self, code: Any) -> None:
        self.code = code


class _PortEvent(GenericEvent):
    """What passes a port of the tile's stream switch; the event's last digit says which of eight monitors watches."""

    events: type[IntEnum]

    def __init__(self, code: Any, port: Any, channel: int, master: bool = True) -> None:
        if not isinstance(code, self.events) or not code.name.startswith("PORT_"):
            raise DesignError(f"{type(self).__name__} takes one of {self.events.__name__}.PORT_..., got {code!r}")
        super().__init__(code)
        self.slot = int(code.name[-1])
        self.port, self.channel, self.master = port, channel, master

    @property
    def direction(self) -> DMAChannelDir:
        """S2MM for a port into the tile."""
        return DMAChannelDir.S2MM if self.master else DMAChannelDir.MM2S


class PortEvent(_PortEvent):
    """Of a compute tile."""

    events = CoreEvent


class MemTilePortEvent(_PortEvent):
    """Of a MemTile."""

    events = MemTileEvent


class ShimTilePortEvent(_PortEvent):
    """Of a shim tile."""

    events = ShimTileEvent

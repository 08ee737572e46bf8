"""Errors that say whose fault it is.

``DesignError`` and ``CapacityError`` are the design's: a rule broken, a limit exceeded. ``DeadlockError`` is the design's
too, found while running. ``UnsupportedError`` is the simulator's gap: the real toolchain may accept what it refuses.
``ToolchainError`` and ``DeviceError`` come from the real path (compiler, driver, NPU).
"""

from __future__ import annotations


class NpuError(Exception):
    """Base of every error that npusim and npulab raise on purpose."""


class DesignError(NpuError, ValueError):
    """The design breaks a rule of the NPU or of its programming interface (so it is a ``ValueError``, as in IRON)."""


class CapacityError(DesignError):
    """The design needs more of something (memory, DMA channels, locks, buffer descriptors) than a tile has."""


class DeadlockError(NpuError, RuntimeError):
    """Nothing can run any more and the host sequence has not ended; the message says who waits for whom."""


class UnsupportedError(NpuError, NotImplementedError):
    """A gap of the simulator, named: the real toolchain may well accept this."""


class ToolchainError(NpuError, RuntimeError):
    """The real compiler (aiecc, aircc, Peano) failed or is missing."""


class DeviceError(NpuError, RuntimeError):
    """No NPU, or its driver refused or aborted the run."""


class DesignWarning(UserWarning):
    """Something the real tools accept silently and that is probably a mistake."""

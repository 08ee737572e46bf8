"""Messages of the real tools and what they mean."""

from __future__ import annotations

import re

import pytest

from npulab.help import ENTRIES, explained, find
from npusim.errors import DeviceError, ToolchainError


@pytest.mark.parametrize(
    ("message", "kind", "word"),
    [
        ("Kernel returned ert_cmd_state.ERT_CMD_STATE_TIMEOUT", DeviceError, "wait"),
        ("mmap(len=8192) failed (err=-11): Resource temporarily unavailable", DeviceError, "memlock"),
        ("DRM_IOCTL_AMDXDNA_CREATE_CTX IOCTL failed (err=-28): No space left on device", DeviceError, "columns"),
        ("No such device with index '0'", DeviceError, "driver"),
        ("Cannot import pyxrt (err=No module named 'pyxrt')... is XRT installed?", DeviceError, "setup.sh"),
        ("Overridden device X is not loadable on runtime device Y", DeviceError, "generation"),
        ("'aie.tile' op allocated buffers exceeded available memory", ToolchainError, "64 KiB"),
        ("[AIE ERROR] _XAie_LoadProgMemSection(): Overflow of program memory", ToolchainError, "16 KiB"),
        ("Peano compiler not found in /x/bin/clang++", ToolchainError, "llvm-aie"),
        ("No module named 'air.dialects'", ToolchainError, "mlir_air"),
        ("aircc compilation failed:\nError: could not find aiecc in PATH", ToolchainError, "mlir_air"),
        ("No module named 'aie.extras.dialects.ext'", ToolchainError, "1.4"),
    ],
)
def test_known_messages(message: str, kind: type[Exception], word: str) -> None:
    error = explained(RuntimeError(message), "toolchain")
    assert isinstance(error, kind)
    assert message in str(error) and word in str(error)


def test_unknown_messages_keep_the_place_they_came_from() -> None:
    assert isinstance(explained(RuntimeError("???"), "device"), DeviceError)
    error = explained(RuntimeError("???"), "toolchain")
    assert isinstance(error, ToolchainError) and "doctor" in str(error)


def test_each_entry_can_be_found_and_has_a_source() -> None:
    for entry in ENTRIES:
        re.compile(entry.pattern)
        assert entry.help and entry.source
    assert find("all is well") is None

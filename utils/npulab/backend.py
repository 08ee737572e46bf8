"""Where designs run: on the NPU or on the simulated one. Decided once, by ``use`` or by the environment.

``NPULAB_BACKEND`` is ``auto`` (default), ``sim`` or ``npu``; ``NPULAB_DEVICE`` names the device to simulate or to make
designs for (``npu1``, ``npu2``, or a partition such as ``npu2_4col``). ``auto`` takes the NPU if the real packages and a
device are here. Only while the simulated backend is active does ``import aie`` give the embedded package.
"""

from __future__ import annotations

import importlib.util
import os
from dataclasses import dataclass
from typing import Literal

from npulab import hardware
from npulab.help import explained
from npusim.devices import Device
from npusim.devices import device as device_named
from npusim.errors import DesignError, DeviceError

Kind = Literal["sim", "npu"]
DEFAULT_DEVICE = "npu2"


@dataclass(frozen=True)
class Backend:
    """The choice made: ``kind``, the device, and why (empty where it was asked for)."""

    kind: Kind
    device: Device
    reason: str

    def __str__(self) -> str:
        arch = "XDNA 1" if self.device.family == "npu1" else "XDNA 2"
        what = f"{self.device.name} ({arch}, {self.device.columns} columns)"
        why = f"; {self.reason}" if self.reason else ""
        if self.kind == "sim":
            return f"npulab: simulated NPU, {what}{why}. Times are simulated."
        return f"npulab: NPU, {what}{why}. Times are measured."


_current: Backend | None = None


def current() -> Backend:
    """The backend in use; the first call chooses one as :func:`use` does without arguments."""
    if _current is None:
        use()
    assert _current is not None
    return _current


def use(backend: str | None = None, device: str | None = None, *, quiet: bool = False) -> None:
    """Choose the backend (``sim``, ``npu``, ``auto``) and the device, and print one line that says which.

    Without arguments the environment decides, else ``auto``. May be called again at any time; designs imported before must
    then be loaded again.

    Raises:
        DesignError: for an unknown backend or device.
        DeviceError: for ``npu`` where there is no NPU or another one than ``device``.
        ToolchainError: if the real packages do not work.
        ImportError: for ``sim`` after the real packages were imported in this process.
    """
    global _current
    asked = backend or os.environ.get("NPULAB_BACKEND") or "auto"
    wanted = device or os.environ.get("NPULAB_DEVICE") or None
    if asked not in ("sim", "npu", "auto"):
        raise DesignError(f"backend must be 'sim', 'npu' or 'auto', got {asked!r}")
    chosen = _choose(asked, wanted)
    _enter(chosen)
    _current = chosen
    if not quiet:
        print(chosen)


def _choose(asked: str, wanted: str | None) -> Backend:
    if asked == "sim":
        return Backend("sim", device_named(wanted or DEFAULT_DEVICE), "")
    found = hardware.find_npu()
    fits = bool(found) and (wanted is None or device_named(wanted).family == found.family)
    if found and fits:
        assert found.family is not None
        return Backend("npu", device_named(wanted or found.family), found.name)
    reason = found.reason or f"the NPU here is {found.family}, not {wanted}"
    if asked == "npu":
        raise DeviceError(f"no NPU to use: {reason}. `python -m npulab doctor` says what is missing")
    return Backend("sim", device_named(wanted or DEFAULT_DEVICE), reason)


def _embedded() -> list[str]:
    """The packages that the simulated NPU can stand in for."""
    homes = {"aie": "npusim.frontends.iron", "air": "npusim.frontends.air"}
    return [root for root, home in homes.items() if importlib.util.find_spec(home) is not None]


def _enter(chosen: Backend) -> None:
    """Make ``import aie`` give what belongs to the choice, and tell it the device."""
    from npulab.execute import listen
    from npusim.frontends import finder

    if chosen.kind == "sim":
        finder.activate(*_embedded())
        point_at(chosen.device, "sim")
        listen()
        return
    finder.deactivate()
    point_at(chosen.device, chosen.kind)


def point_at(on: Device, kind: Kind) -> None:
    """Let the embedded packages, or the real ones, make designs for a device from now on."""
    if kind == "npu":
        try:
            import aie.iron as iron
            from aie.iron.device import from_name
        except ImportError as error:
            raise explained(error, "toolchain") from error
        iron.set_current_device(from_name(on.family, n_cols=None if on.partition_of is None else on.columns))
        return
    from npusim.frontends.iron import current as embedded

    embedded.set_current_device(None)
    embedded.set_runtime_device(on.name)

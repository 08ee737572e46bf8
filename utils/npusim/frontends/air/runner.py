"""``air.backend.xrt_runner``: run a module once and compare its outputs, as AIR's own examples do."""

from __future__ import annotations

from typing import Any

import numpy as np
from ml_dtypes import bfloat16

from npusim.errors import UnsupportedError
from npusim.frontends.air.backend import AirBackendError, XRTBackend
from npusim.frontends.air.types import scalar_type
from npusim.types import element_name

SHOWN = 20
"""Mismatches that are listed."""


def type_mapper(np_dtype: Any) -> Any:
    """The element type of a numpy dtype; AirBackendError for one that has none."""
    try:
        return scalar_type(element_name(np_dtype))
    except UnsupportedError as error:
        raise AirBackendError(f"numpy data type {np_dtype} has no default mapping") from error


class XRTRunner:
    """Runs a module through :class:`XRTBackend`; on the simulated NPU the latency printed is simulated."""

    def __init__(
        self,
        verbose: bool = False,
        omit_while_true_loop: bool = True,
        omit_pingpong: str = "",
        lower_linalg_to_func: bool = False,
        air_loop_fusion: bool = False,
        runtime_loop_tiling_sizes: list[int] = [],  # noqa: B006 - as recorded
        omit_auto_broadcast: bool = False,
        channel_multiplexing: list[str] = [],  # noqa: B006
        use_lock_race_condition_fix: bool = False,
        use_lock_race_condition_fix_v2: bool = False,
        trace_offset: int = 0,
        trace_size: int = 0,
        output_format: str = "xclbin",
        kernel_name: str = "",
        instance_name: str = "",
        kernel_id: str = "",
        xclbin_input: str = "",
        trace_file: str = "trace_data.txt",
        num_device_cols: int = 0,
        debug_ir: bool = False,
        bf16_emulation: bool = False,
        target_device: str = None,  # type: ignore[assignment]  # noqa: RUF013
        stack_size: int = 1024,
        n_perf_iters: int = 0,
        n_warmup_iters: int = 10,
        perf_flops: float = None,  # type: ignore[assignment]  # noqa: RUF013
        report_precision: bool = False,
    ) -> None:
        given = dict(locals())
        for own in ("self", "trace_file", "perf_flops", "report_precision"):
            del given[own]
        self._options = given
        self.verbose, self.perf_flops, self.report_precision = verbose, perf_flops, report_precision
        self.last_latency_us: float | None = None

    def run_test(
        self,
        mlir_module: Any,
        inputs: Any,
        expected_outputs: Any = [],  # noqa: B006
        stochastic_expected_outputs: Any = [],  # noqa: B006
        rtol: float = 1e-3,
        atol: float = 1e-8,
        max_mismatch_percentage: float = 0,
        min_correlation: float = None,  # type: ignore[assignment]  # noqa: RUF013
        trace_file: str = None,  # type: ignore[assignment]  # noqa: RUF013
    ) -> int:
        """Run the module over the inputs and zeroed outputs; 0 if the outputs are as expected, else -1.

        ``max_mismatch_percentage`` elements of an output may lie outside of the tolerances; a float output must correlate with
        the expected one by ``min_correlation`` if that is given.
        """
        shapes = [(o.shape, o.dtype) for o in expected_outputs]
        shapes += [
            (o["shape"], np.asarray(o["values"]).dtype) for o in stochastic_expected_outputs if not expected_outputs
        ]
        if not shapes:
            raise AssertionError("expect one of 'expected_outputs' and 'stochastic_expected_outputs' not to be empty")
        backend = XRTBackend(**self._options)
        run = backend.load(backend.compile(mlir_module))
        outputs = run(*inputs, *(np.zeros(shape, dtype) for shape, dtype in shapes))[len(inputs) :]
        self.last_latency_us = backend.last_latency_us
        self._print_latency()
        backend.unload()
        limits = (rtol, atol, max_mismatch_percentage)
        if expected_outputs:
            good = all(
                self._agrees(i, a, e, limits, min_correlation)
                for i, (a, e) in enumerate(zip(outputs, expected_outputs))
            )
        else:
            good = all(
                self._sampled(i, a, e, limits) for i, (a, e) in enumerate(zip(outputs, stochastic_expected_outputs))
            )
        print("PASS!" if good else "failed.")
        return 0 if good else -1

    def _print_latency(self) -> None:
        if self.last_latency_us is None:
            return
        line = f"Latency (us, simulated): {self.last_latency_us:.1f}"
        if self.perf_flops is not None:
            line += f" | Throughput: {self.perf_flops / (self.last_latency_us * 1e-6) / 1e9:.6e} GFLOP/s"
        print(line)

    def _agrees(self, i: int, actual: Any, expected: Any, limits: tuple[float, float, float], correlation: Any) -> bool:
        actual = actual.reshape(expected.shape)
        if not _is_float(expected.dtype):
            wrong = np.argwhere(actual != expected)
            return _report(i, actual, expected, wrong, 0)
        a, e = actual.astype(np.float64), expected.astype(np.float64)
        rtol, atol, percentage = limits
        if self.report_precision:
            _precision(i, a, e, rtol, atol)
        wrong = np.argwhere(~np.isclose(a, e, rtol=rtol, atol=atol))
        good = _report(i, a, e, wrong, int(e.size * percentage / 100))
        return _correlates(i, a, e, correlation) and good

    def _sampled(self, i: int, actual: Any, expected: dict[str, Any], limits: tuple[float, float, float]) -> bool:
        """The same for some elements only: ``indices`` (one sequence a dimension) and ``values``."""
        values = np.asarray(expected["values"])
        chosen = actual.reshape(expected["shape"])[tuple(expected["indices"])]
        return self._agrees(i, chosen, values, limits, None)


def _is_float(dtype: Any) -> bool:
    return bool(dtype == bfloat16 or np.dtype(dtype).kind == "f")


def _precision(i: int, a: Any, e: Any, rtol: float, atol: float) -> None:
    error = np.abs(a - e)
    mean = error.mean() / (np.abs(e).mean() + 1e-30)
    relative = (error / (np.abs(e) + 1e-30)).max()
    print(
        f"[precision] Output {i} ({error.size} elements): mean_rel_L1={mean:.3e} | rel_err max={relative:.3e} | "
        f"abs_err max={error.max():.3e} | rtol={rtol:.1e} atol={atol:.1e}"
    )


def _report(i: int, a: Any, e: Any, wrong: Any, allowed: int) -> bool:
    """Print what is wrong; whether it is little enough."""
    if len(wrong) <= allowed:
        return True
    print(f"ERROR: Output {i} does not meet expected output.")
    print(f"Shape: {e.shape}")
    print(f"Mismatches: {len(wrong)} / {e.size} elements ({100 * len(wrong) / e.size:.2f}%)")
    for where in map(tuple, wrong[:SHOWN]):
        index = tuple(int(k) for k in where)
        print(f"  Index {index}: expected={e[where]}, actual={a[where]}")
    return False


def _correlates(i: int, a: Any, e: Any, least: float | None) -> bool:
    if least is None:
        return True
    found = float(np.corrcoef(a.reshape(-1), e.reshape(-1))[0, 1])
    print(f"Output {i} correlation: {found:.6f} (threshold: {least})")
    return bool(np.isfinite(found)) and found >= least

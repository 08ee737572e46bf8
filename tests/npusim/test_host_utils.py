"""Host-side helpers: comparing, timing, options, the runtime that is not there."""

from __future__ import annotations

import argparse
from types import SimpleNamespace

import numpy as np
import pytest

from npusim.errors import DesignError, UnsupportedError
from npusim.frontends.finder import simulated
from npusim.frontends.iron import host_cli, host_utils, host_verify


def test_nearly_equal():
    a, b = np.array([1.0, 1.0, 0.0, np.nan, np.inf]), np.array([1.2, 1.5, 1e-9, np.nan, np.inf])
    assert host_verify.nearly_equal(a, b).tolist() == [True, False, False, False, True]
    assert host_verify.nearly_equal(a, b, rtol=0.3).tolist()[1]
    assert host_verify.nearly_equal(a, b, atol=1e-6).tolist()[2]


def test_counting_stops_at_the_first_infinity():
    a, b = np.array([1.0, 2.0, np.inf, 4.0]), np.array([1.0, 9.0, 3.0, 9.0])
    assert host_verify.count_mismatches(a, b) == (1, 2)
    assert host_verify.count_mismatches(a, b, stop_at_nonfinite=False) == (3, 4)
    with pytest.raises(DesignError, match="same shape"):
        host_verify.count_mismatches(a, b[:3])


def test_assert_pass(capsys):
    host_verify.assert_pass(np.arange(3), np.arange(3))
    host_verify.assert_pass([1.0], [1.1], rtol=0.1)
    assert capsys.readouterr().out == "PASS!\nPASS!\n"
    with pytest.raises(SystemExit, match="FAIL! sums"):
        host_verify.assert_pass([1], [2], fail_msg="sums")
    with pytest.raises(SystemExit, match="FAIL!"):
        host_verify.assert_pass([1.0], [1.1], atol=1e-3, rtol=1e-3)


def test_times_say_what_is_simulated(capsys):
    times = iter([5000, 1000, 3000])
    result = host_verify.run_iters(lambda: (None, SimpleNamespace(npu_time=next(times))), warmup=1, iters=2)
    assert result.npu == host_verify.Stats(2.0, 1.0, 3.0)
    host_verify.assert_close_with_benchmark(np.arange(3), np.arange(3), bench=result, ops=4000)
    out = capsys.readouterr().out
    assert "NPU time, simulated    (avg/min/max us): 2.0 / 1.0 / 3.0" in out
    assert "NPU GFLOPS, simulated                  : 2.00" in out
    with pytest.raises(SystemExit, match=r"first mismatches: \[\[1\]\]"):
        host_verify.assert_close_with_benchmark([1, 3], np.array([1, 2]), bench=result, mismatch_indices=True)
    with pytest.raises(DesignError, match="iters"):
        host_verify.run_iters(lambda: None, iters=0)


def test_options():
    parser = argparse.ArgumentParser()
    host_cli.add_compile_args(parser, with_emit_mlir=True, with_elf=True)
    host_cli.add_benchmark_args(parser)
    host_cli.add_trace_arg(parser)
    options = parser.parse_args(["-d", "npu2", "--emit-mlir", "-i", "3", "-t", "8192"])
    assert (options.dev, options.emit_mlir, options.iters, options.warmup, options.trace_size) == (
        "npu2",
        True,
        3,
        2,
        8192,
    )
    assert (options.xclbin_path, options.insts_path, options.elf_path) == (None, None, None)
    runtime = argparse.ArgumentParser()
    host_cli.add_runtime_args(runtime, with_io_sizes=True)
    assert runtime.parse_args(["--xclbin", "x"]).in1_size == 0


def test_paths_that_do_not_go_together():
    with pytest.raises(SystemExit, match="--insts-path"):
        host_cli.run_design_cli(None, SimpleNamespace(dev="npu2", xclbin_path="x"), compile_kwargs={})
    with pytest.raises(SystemExit, match="requires an explicit target"):
        host_cli.run_design_cli(None, SimpleNamespace(dev=None, emit_mlir=True), compile_kwargs={})


def test_trace_configuration_is_accepted_and_not_used():
    config = host_utils.TraceConfig(8192, trace_file="t.txt")
    assert str(config) == "TraceConfig(trace_size=8192, trace_file='t.txt')"
    with pytest.raises(UnsupportedError, match="python -m npusim run"):
        config.read_trace()
    with pytest.raises(DesignError, match="Invalid trace size"):
        host_utils.TraceConfig(0)


def test_compiled_files_cannot_be_run():
    kernel = host_utils.NPUKernel("a.xclbin", "insts.bin")
    with simulated():
        from aie.utils import DefaultNPURuntime
    assert DefaultNPURuntime is host_utils.DefaultNPURuntime
    for run in (
        kernel,
        lambda: host_utils.DefaultNPURuntime.load(kernel),
        lambda: host_utils.DefaultNPURuntime.run_test(kernel, [], None),
    ):
        with pytest.raises(UnsupportedError, match=r"call the @iron\.jit design"):
            run()

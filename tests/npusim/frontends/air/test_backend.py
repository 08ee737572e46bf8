"""XRTBackend and XRTRunner: modules compiled, loaded, run and compared as AIR's own examples do it."""

from __future__ import annotations

import numpy as np
import pytest

from npusim.errors import UnsupportedError
from npusim.frontends.air.backend import AirBackendError, XRTBackend, detect_target_device
from npusim.frontends.air.runner import XRTRunner, type_mapper
from tests.npusim.air.designs import T, add_one, counts
from tests.npusim.frontends.air.test_dialects import one_core


def increment():
    def compute(x, y):
        from tests.npusim.air.designs import arith, for_, load, store, yield_

        for i in for_(16):
            store(arith.addi(load(x, [i]), arith.ConstantOp(T.i32(), 1)), y, [i])
            yield_([])
        add_one(x, 1)

    return one_core(compute)


def test_compile_load_call():
    backend = XRTBackend(target_device="npu1")
    call = backend.load(backend.compile(increment()))
    given = counts(16)
    taken = np.zeros(16, np.int32)
    results = call(given, taken)
    np.testing.assert_array_equal(results[1], given + 1)
    assert not taken.any()  # copies come back, as from the real one
    assert backend.last_report.machine.device.name == "npu1"
    backend.unload()


def test_a_loaded_backend_compiles_nothing():
    backend = XRTBackend()
    artifact = backend.compile(increment())
    backend.load(artifact)
    with pytest.raises(AirBackendError, match="currently loaded"):
        backend.compile(increment())
    with pytest.raises(AirBackendError, match="while an artifact is loaded"):
        backend.load(artifact)


def test_the_device_is_the_simulated_one_or_that_of_the_environment(monkeypatch):
    monkeypatch.setenv("AIR_TARGET_DEVICE", "npu1")
    assert detect_target_device() == "npu1"
    monkeypatch.setenv("AIR_TARGET_DEVICE", "npu9")
    with pytest.raises(ValueError, match="npu9"):
        detect_target_device()


def test_columns_make_a_smaller_device():
    assert XRTBackend(target_device="npu2", num_device_cols=2).compile(increment()).machine.device.columns == 2


@pytest.mark.parametrize("option", ["bf16_emulation", "air_loop_fusion", "derive_library_call", "coalesce_shim_dma"])
def test_options_that_change_what_is_made_are_refused(option):
    with pytest.raises(UnsupportedError, match=option):
        XRTBackend(**{option: True})


def test_options_that_steer_files_are_taken():
    XRTBackend(
        verbose=True, kernel_name="k", instance_name="i", xclbin_input="x", debug_ir=True, omit_while_true_loop=True
    )


def test_double_buffering_can_be_left_out():
    many = XRTBackend(omit_pingpong="all").compile(increment()).machine
    assert all(len(buffers) == 1 for core in many.parties.cores for buffers in core.buffers.values())


@pytest.mark.parametrize(("wrong", "status"), [(0, 0), (1, -1)])
def test_the_runner_compares(wrong, status, capsys):
    given = counts(16)
    expected = given + 1
    expected[3] += wrong
    assert XRTRunner().run_test(increment(), inputs=[given], expected_outputs=[expected]) == status
    printed = capsys.readouterr().out
    assert ("PASS!" in printed) == (status == 0)
    assert ("Index (3,): expected=5, actual=4" in printed) == (status != 0)


def test_the_runner_samples():
    sample = {"shape": (16,), "indices": [np.array([2, 5])], "values": np.array([3, 6], np.int32)}
    assert XRTRunner().run_test(increment(), inputs=[counts(16)], stochastic_expected_outputs=[sample]) == 0
    sample["values"][0] = 0
    assert XRTRunner().run_test(increment(), inputs=[counts(16)], stochastic_expected_outputs=[sample]) == -1


def test_tolerances_and_correlation(capsys):
    runner = XRTRunner(report_precision=True)
    actual, expected = np.array([1.0, 2.0, 3.1], np.float32), np.array([1.0, 2.0, 3.0], np.float32)
    assert not runner._agrees(0, actual, expected, (1e-3, 1e-8, 0), None)
    assert runner._agrees(0, actual, expected, (1e-3, 1e-8, 34), None)
    assert runner._agrees(0, actual, expected, (0.05, 1e-8, 0), 0.99)
    assert not runner._agrees(0, -actual, expected, (9, 9, 0), 0.99)
    assert "mean_rel_L1" in capsys.readouterr().out


def test_the_latency_is_simulated(capsys):
    runner = XRTRunner(n_perf_iters=3, perf_flops=16.0)
    runner.run_test(increment(), inputs=[counts(16)], expected_outputs=[counts(16, 1)])
    assert runner.last_latency_us > 0
    assert "simulated" in capsys.readouterr().out


def test_element_types_of_numpy():
    assert str(type_mapper(np.float32)) == "f32"
    with pytest.raises(AirBackendError, match="no default mapping"):
        type_mapper(np.complex64)


def test_warnings_name_the_line_that_compiles():
    from tests.npusim.air.test_checks import echo

    with pytest.warns(UserWarning, match="elements stay in the channel") as caught:
        XRTBackend().compile(echo(put=16, get=8))
    assert caught[0].filename == __file__
